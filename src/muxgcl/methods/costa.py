r"""COSTA: Zhang, Zhu, Song, Koniusz and King 2022, <https://arxiv.org/abs/2206.04726>.

Augment features, not only graphs: both views' embeddings $H_1, H_2$ (n x d) are multiplied by one
fresh random sketch $P$ (k x n, k = ratio n) along the *node* axis, which keeps their covariance,
$E[P^\top P] = I$. Rows i of $P H_1$ and of $P H_2$ mix the same nodes and are the positive pair:

$$\mathcal L = \tfrac12 \big[\mathrm{NCE}(Z_1, Z_2) + \mathrm{NCE}(Z_2, Z_1)\big], \qquad
\mathrm{NCE} = -\tfrac1k \sum_i \log \frac{e^{z_{1i} \cdot z_{2i} / \tau}}
                                          {\sum_j e^{z_{1i} \cdot z_{2j} / \tau}},
\qquad Z_v = \mathrm{project}(P H_v).$$

Negatives come from the other view alone, as in the authors' code (the paper lists both views).
Departs from it: a large $P$ is never stored. The Gaussian sketch, $P_{ij} \sim N(0, 1/k)$, is then
drawn in blocks of rows from a seed of the step, and again for the gradient. `sketch = "sparse"` has
a few entries of $\pm 1/\sqrt s$ in each column instead: the same covariance in expectation for
O(s n) work, but a row mixes about s / ratio nodes rather than all. The single-view variant is left
out.

With a sampled contrast B and M are numbers of rows of $P$, out of k. The rows of a Gaussian sketch
are independent and alike, so only as many are drawn.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from muxgcl.augment import Corrupt, both
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import Sample, contrast, taken
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.of_graph import features_scaled
from muxgcl.nn.gcn import GCN, Activation
from muxgcl.nn.projector import Projector
from muxgcl.nn.readout import Readout, ReadoutConfig
from muxgcl.shapes import Nodes, Scalar
from muxgcl.sparse import SparseMatrix

BLOCK_BYTES = 32 << 20  # of a Gaussian sketch held at once
ENTRIES = 8  # of a column of a sparse sketch: fewer leave rows of P empty


@dataclass(frozen=True, slots=True, kw_only=True)
class CostaConfig(ReadoutConfig):
    """Settings of COSTA."""

    layers: int = 2  # of the encoder
    width: int = 256  # of the embedding and between layers
    projection: int = 256  # width inside the projector
    projection_out: int | None = None  # width of what is contrasted; `width` by default
    activation: Activation = "relu"  # of the encoder
    drop_edges: tuple[float, float] = (0.2, 0.4)  # share of edges dropped, in each view
    mask_features: tuple[float, float] = (0.3, 0.3)  # share of feature columns masked, in each view
    temperature: float = 0.4  # of the contrast; a lower one is sharper
    ratio: float = 0.5  # rows of the sketch for each node
    sketch: Literal["gaussian", "sparse"] = "gaussian"  # `sparse` is linear in the nodes
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do

    def __post_init__(self) -> None:
        if self.temperature <= 0 or self.ratio <= 0:
            raise UserError(
                f"temperature and ratio must be positive, got {self.temperature} and {self.ratio}"
            )


class Costa(Method):
    """Contrast random mixtures of nodes, the same in both views."""

    name: ClassVar = "costa"
    paper: ClassVar = "Zhang et al. 2022, https://arxiv.org/abs/2206.04726"
    cost: ClassVar = "quadratic"
    samples: ClassVar = True
    Config: ClassVar = CostaConfig

    def __init__(self, graph: Graph, cfg: CostaConfig, context: Context) -> None:
        super().__init__()
        self.cfg, self.context = cfg, context
        self.scaled = features_scaled(cfg.row_normalize)
        self.views = [Corrupt(*p) for p in zip(cfg.drop_edges, cfg.mask_features, strict=True)]
        self.encoder = GCN(
            graph.num_features, cfg.width, layers=cfg.layers, hidden=cfg.width, act=cfg.activation
        )
        self.readout = Readout.of(cfg, last=cfg.layers)
        self.projector = Projector(cfg.width, cfg.projection, cfg.projection_out)
        self.capturable = self._is_small(graph.num_nodes)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Inter-view InfoNCE over the rows of one sketch of both views."""
        views = self.encoder.embed(both(self.scaled(graph), self.views)).chunk(2)
        sample = self.context.sample(graph, self._rows(graph.num_nodes))
        mixed = self.mix(torch.cat(views, 1), sample)  # side by side: one P for both
        one, two = (self.projector(part) for part in mixed.chunk(2, 1))
        return {"contrast": (self._nce(one, two, sample) + self._nce(two, one, sample)) / 2}

    def mix(self, nodes: Nodes, sample: Sample | None = None) -> Float[Tensor, "k d"]:
        """The product with a fresh sketch of the node axis; with a sample, its rows alone."""
        rows = self._rows(len(nodes))
        if self.cfg.sketch == "sparse":
            return taken(sparse_sketch(rows, len(nodes), nodes.device) @ nodes, sample)
        drawn = rows if sample is None else len(sample.nodes)  # any of them: all are alike
        if self._is_small(len(nodes)):
            return torch.randn(drawn, len(nodes), device=nodes.device) / math.sqrt(rows) @ nodes
        seed = int(torch.randint(2**62, ()))  # drawn again in the backward pass, from the seed
        found: Tensor = _Sketched.apply(nodes, Gaussian(drawn, len(nodes), seed, rows**-0.5))
        return found

    def _rows(self, nodes: int) -> int:
        return max(1, int(self.cfg.ratio * nodes))

    def _is_small(self, nodes: int) -> bool:
        """Whether the whole sketch may be kept until the backward pass."""
        return self.cfg.sketch == "gaussian" and 4 * nodes * self._rows(nodes) <= BLOCK_BYTES

    def _nce(self, one: Nodes, two: Nodes, sample: Sample | None) -> Scalar:
        return contrast(
            one,
            two,
            temperature=self.cfg.temperature,
            backend=self.context.backend,
            sample=sample,
        )


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Independent normal entries, a function of the seed."""

    rows: int
    nodes: int
    seed: int
    spread: float  # their standard deviation

    def blocks(self, like: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Which rows, and these rows: every row once, drawn again at every call, always alike."""
        size = max(1, BLOCK_BYTES // (self.nodes * like.element_size()))
        chance = torch.Generator(like.device).manual_seed(self.seed)
        for start in range(0, self.rows, size):
            block = slice(start, min(start + size, self.rows))
            shape = block.stop - start, self.nodes
            drawn = torch.randn(shape, generator=chance, dtype=like.dtype, device=like.device)
            yield block, drawn.mul_(self.spread)


class _Sketched(torch.autograd.Function):
    """`P @ nodes`; the gradient draws P once more instead of keeping it."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, sketch: Gaussian) -> Tensor:
        ctx.sketch, ctx.shape = sketch, nodes.shape
        return torch.cat([block @ nodes for _, block in sketch.blocks(nodes)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        d_nodes = grads[0].new_zeros(ctx.shape)
        for rows, block in ctx.sketch.blocks(grads[0]):
            d_nodes.addmm_(block.T, grads[0][rows])
        return d_nodes, None


def sparse_sketch(rows: int, nodes: int, device: torch.device) -> SparseMatrix:
    """Each column has one random sign in each of `ENTRIES` bands of rows, and length 1."""
    entries = min(ENTRIES, rows)
    edges = torch.arange(entries + 1, device=device) * rows // entries
    first, size = edges[:-1], edges.diff()  # of each band
    chance = torch.rand(nodes, entries, 2, device=device)
    row = first + (chance[..., 0] * size).long().clamp(max=size - 1)
    sign = (chance[..., 1] < 0.5).float() * 2 - 1
    column = torch.arange(nodes, device=device).repeat_interleave(entries)
    value = sign.flatten() * entries**-0.5
    return SparseMatrix.from_entries(row.flatten(), column, value, (rows, nodes))
