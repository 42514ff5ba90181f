"""How much each negative counts, kept as two thin tables and never as a matrix."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from jaxtyping import Float, Int
from torch import Tensor

from muxgcl.errors import UserError

# how many nodes a stacked table repeats, or the node of every anchor and of every key
Ids = int | tuple[Int[Tensor, " n"], Int[Tensor, " m"]] | None


def check_nodes(anchors: int, keys: int, nodes: Ids) -> None:
    """Refuse tables without rows, and views of no nodes."""
    for name, rows in (("anchor", anchors), ("keys", keys)):
        if rows < 1:
            raise UserError(f"{name} must have at least 1 row, got {rows}")
    if isinstance(nodes, int) and nodes < 1:
        raise UserError(f"nodes must be at least 1, got {nodes}")


@dataclass(frozen=True, slots=True, eq=False)
class PairWeight:
    r"""$w_{ij} = \text{offset} + \text{slope}\,\langle p_i, q_j\rangle$, cut to [0, `most`].

    The rows of both tables are unit vectors, one per node; a stacked table of anchors or keys reads
    row `i % len(rows)`. With a `curve` the weight is that function of the cosine instead: its
    values, from 0 to 1, at equally spaced cosines from -1 to 1, joined by straight lines.
    """

    rows: Float[Tensor, "n r"]
    cols: Float[Tensor, "m r"]
    offset: float = 0.5
    slope: float = -0.5
    curve: Float[Tensor, " knots"] | None = None
    most: float = 1.0

    def tile(self, start: int, stop: int) -> Float[Tensor, "b m"]:
        """Weights of the nodes `start:stop` against all nodes of `cols`."""
        return self.of(self.rows[start:stop])

    def of(self, rows: Float[Tensor, "b r"]) -> Float[Tensor, "b m"]:
        """Weights of nodes with these rows against all nodes of `cols`."""
        cosine = rows @ self.cols.T
        if self.curve is None:
            return cosine.mul_(self.slope).add_(self.offset).clamp_(0, self.most)
        position = (cosine.clamp_(-1, 1) + 1) * ((len(self.curve) - 1) / 2)
        left = position.long().clamp_(max=len(self.curve) - 2)
        return torch.lerp(self.curve[left], self.curve[left + 1], position - left)

    def between(self, rows: tuple[int, int], cols: tuple[int, int]) -> Self:
        """The weights of the nodes from the first to before the second, in either table."""
        return replace(self, rows=self.rows[slice(*rows)], cols=self.cols[slice(*cols)])

    def stacked(self, anchors: int, keys: int) -> Float[Tensor, "anchors keys"]:
        """The whole matrix for stacked tables of anchors and keys; for definitions and tests."""
        return self.expanded(anchors, keys).tile(0, anchors)

    def expanded(self, anchors: int, keys: int) -> Self:
        """With one row for each anchor and for each key."""
        at = self.rows.device
        rows = torch.arange(anchors, device=at) % len(self.rows)
        cols = torch.arange(keys, device=at) % len(self.cols)
        return replace(self, rows=self.rows[rows], cols=self.cols[cols])
