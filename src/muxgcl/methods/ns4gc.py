r"""NS4GC, a sparse similarity of nodes: Liu et al. 2024, <https://arxiv.org/abs/2408.03765>.

Two views, one encoder, no projector. The similarities across views, $S = Z_1 Z_2^\top$ of unit
rows, should be 1 on the diagonal, high on edges, and below a threshold s everywhere else:

$$\mathcal L = -\frac1N \sum_i S_{ii} - \lambda \frac1{|E|} \sum_{(i,j) \in E} S_{ij}
    + \gamma \frac1{N^2 - N - |E|} \sum_{i \ne j,\, (i,j) \notin E}
      \mathrm{sigmoid}\Big(\frac{S_{ij} - s}{\tau}\Big)$$

with the edges E of the whole graph, each direction counted. The last sum is that over *all* pairs,
which runs on the kernels (`Sigmoid`), less the one over edges. The embedding is Z of the whole
graph, rows of length 1; the last epoch counts.

Departs from the authors' code: self-loops and repeated edges of a graph are left out (theirs are
edges like others). A view, in which an edge may be left in one direction alone, divides it by the
roots of what both its ends receive; theirs takes what both send.

With a sampled contrast all nodes are encoded; the last term is an unbiased estimate, as it is
linear in the sums.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from muxgcl.augment import Corrupt, both
from muxgcl.errors import UserError
from muxgcl.graph import Adjacency, Graph
from muxgcl.kernels import Backend, Sample, Sigmoid, pair_sum, taken
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.edge_sums import edge_dot, met_sum
from muxgcl.methods.parts.of_graph import features_scaled
from muxgcl.nn.gcn import GCN, Activation
from muxgcl.nn.projector import unit_rows
from muxgcl.nn.readout import Readout, ReadoutConfig
from muxgcl.shapes import Nodes, Scalar, Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Ns4gcConfig(ReadoutConfig):
    """Settings of NS4GC."""

    layers: int = 2  # of the encoder
    hidden: int = 256  # width between layers
    width: int = 64  # of the embedding
    activation: Activation = "selu"  # between layers
    drop_edges: tuple[float, float] = (0.3, 0.3)  # share of edges dropped, in each view
    mask_features: tuple[float, float] = (0.2, 0.2)  # share of feature columns masked, in each view
    threshold: float = 0.6  # s
    temperature: float = 0.1  # tau
    neighbors: float = 1.0  # lambda
    others: float = 1.0  # gamma
    row_normalize: bool = False  # divide each row of features by its sum

    def __post_init__(self) -> None:
        if self.hidden < 1:
            raise UserError(f"hidden must be at least 1, got {self.hidden}")
        if min(self.neighbors, self.others) < 0:
            raise UserError(
                f"neighbors and others must not be negative, got {self.neighbors} and {self.others}"
            )


class Ns4gc(Method):
    """Bring a node's views and its neighbours together, all else below a threshold."""

    name: ClassVar = "ns4gc"
    paper: ClassVar = "Liu et al. 2024, https://arxiv.org/abs/2408.03765"
    cost: ClassVar = "quadratic"
    samples: ClassVar = True
    Config: ClassVar = Ns4gcConfig
    readout: Readout

    def __init__(self, graph: Graph, cfg: Ns4gcConfig, context: Context) -> None:
        super().__init__()
        self.cfg, self.context = cfg, context
        self.above = Sigmoid(cfg.threshold, cfg.temperature)
        self.scaled = features_scaled(cfg.row_normalize)
        self.views = [Corrupt(*p) for p in zip(cfg.drop_edges, cfg.mask_features, strict=True)]
        self.encoder = GCN(
            graph.num_features,
            cfg.width,
            layers=cfg.layers,
            hidden=cfg.hidden,
            act=cfg.activation,
            final_activation=False,
        )
        self.readout = Readout.of(cfg, last=cfg.layers)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """The node itself, its neighbours, all others."""
        views = both(self.scaled(graph), self.views)
        one, two = unit_rows(self.encoder.embed(views)).chunk(2)
        own, near, far = similarities(
            one,
            two,
            graph.adjacency,
            self.above,
            backend=self.context.backend,
            sample=self.context.sample(graph),
        )
        return {
            "self": -own,
            "neighbours": -self.cfg.neighbors * near,
            "others": self.cfg.others * far,
        }

    def embed(self, graph: Graph) -> Nodes:
        """What is read out of the encoder, rows of length 1."""
        return unit_rows(super().embed(graph))

    def embed_blocks(self, graph: Graph) -> Iterator[Scale]:
        """The embedding, a block of rows at a time."""
        view = self.plain_view(graph)
        return map(unit_rows, self.readout.embed_blocks(self.encoder, view, graph))


def similarities(
    one: Nodes,
    two: Nodes,
    adjacency: Adjacency,
    above: Sigmoid,
    *,
    backend: Backend = "auto",
    sample: Sample | None = None,
) -> tuple[Scalar, Scalar, Scalar]:
    """Mean similarity to oneself and on edges, and the mean of `above` on all other pairs.

    With a sample, the last one is estimated.
    """
    nodes, edges = len(one), len(adjacency.col) - len(one)
    cosine, apart = edge_dot(one, two, adjacency), ~adjacency.loop
    near = (cosine * apart).sum() / max(edges, 1)
    pairs = pair_sum(taken(one, sample), taken(two, sample), above, backend=backend, sample=sample)
    others = pairs - met_sum(above.value(cosine) * apart, adjacency, sample)  # of each anchor
    far = others.mean() * (nodes / max(nodes * (nodes - 1) - edges, 1))
    return (one * two).sum() / nodes, near, far
