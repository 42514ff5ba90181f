r"""How hard each negative is, frozen at one moment of training and never stored as a matrix.

$$B_{ij} = P(\text{true negative} \mid x_{ij})\, x_{ij}, \qquad x_{ij} = (1 + u_i \cdot v_j) / 2$$

is a function of one cosine. The two tables of unit rows and that function, as a curve, are kept.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from muxgcl.kernels import PairWeight, Sample, taken
from muxgcl.methods.parts.beta_mixture import BetaMixture
from muxgcl.shapes import Nodes

COLUMNS = 100  # of similarities that the mixture is fitted to
KNOTS = 4097  # of the curve
TILE_BYTES = 32 << 20
Hardest = tuple[Int[Tensor, "n s"], Float[Tensor, "n s"]]  # columns and their hardness


class Hardness(nn.Module):
    """B of ProGCL. Its state is in buffers: a resumed run has the B of the run that it resumes."""

    rows: Tensor
    cols: Tensor
    curve: Tensor
    row_mean: Tensor
    fitted: Tensor

    def __init__(self, nodes: int, width: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(nodes, width))
        self.register_buffer("cols", torch.zeros(nodes, width))
        self.register_buffer("curve", torch.ones(KNOTS))  # over cosines from -1 to 1
        self.register_buffer("row_mean", torch.ones(nodes))  # over all other nodes
        self.register_buffer("fitted", torch.zeros((), dtype=torch.bool))
        self.known = False  # `fitted`, without asking the device
        self._hardest: Hardest | None = None

    @property
    def weight(self) -> PairWeight:
        """B as the contrast takes it."""
        return PairWeight(self.rows, self.cols, curve=self.curve)

    def of(self, sample: Sample | None) -> tuple[PairWeight, Float[Tensor, "n 1"]]:
        """B and its means over all other nodes; with a sample, of its nodes alone."""
        rows, cols, mean = (
            taken(table, sample) for table in (self.rows, self.cols, self.row_mean[:, None])
        )
        return PairWeight(rows, cols, curve=self.curve), mean

    @torch.no_grad()
    def remember(self, one: Nodes, two: Nodes) -> None:
        """Take these unit tables as the ones that B is made of."""
        self.rows.copy_(one)
        self.cols.copy_(two)

    @torch.no_grad()
    def fit(self, false_share: float, steps: int) -> None:
        """Fit the mixture to all rows and some columns of similarities; its lower part is true."""
        some = torch.randint(len(self.cols), (COLUMNS,), device=self.cols.device)
        x = (self.rows @ self.cols[some].T + 1).flatten() / 2
        mixture = BetaMixture.fit(x, false_share, steps)
        knots = torch.linspace(0, 1, KNOTS, dtype=torch.float64, device=x.device)
        self.freeze(mixture.posterior(knots)[0] * knots)

    @torch.no_grad()
    def freeze(self, curve: Float[Tensor, " knots"]) -> None:
        """B is this curve of the remembered cosines from now on."""
        self.curve.copy_(curve)
        sums = torch.cat([tile.sum(1) for tile in self._tiles(own=0.0)])
        others = max(1, len(self.rows) - 1)
        self.row_mean.copy_((sums / others).clamp(min=torch.finfo(sums.dtype).tiny))
        self.fitted.fill_(True)
        self.known, self._hardest = True, None

    @torch.no_grad()
    def hardest(self, count: int) -> Hardest:
        """The columns of each row with the largest B, found once."""
        if self._hardest is None:
            count = min(count, len(self.rows) - 1)
            found = [tile.topk(count) for tile in self._tiles(own=-1.0)]
            columns = torch.cat([f.indices.int() for f in found])  # half the size of int64
            self._hardest = columns, torch.cat([f.values for f in found])
        return self._hardest

    def _tiles(self, own: float) -> Iterator[Float[Tensor, "b n"]]:
        """B in blocks of rows, with this value for a node against itself."""
        n = len(self.rows)
        size = max(1, TILE_BYTES // (4 * n))
        for start in range(0, n, size):
            tile = self.weight.tile(start, min(start + size, n))
            tile[:, start:].diagonal().fill_(own)
            yield tile

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take tables of any number of nodes: what was trained may embed another graph."""
        for name in ("rows", "cols", "row_mean"):
            if prefix + name in state:
                like = state[prefix + name]
                setattr(self, name, torch.empty_like(like, device=self.curve.device))
        super()._load_from_state_dict(state, prefix, *rest)
        self.known, self._hardest = bool(self.fitted), None
