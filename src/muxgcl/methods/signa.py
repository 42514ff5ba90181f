r"""SIGNA, one view and soft neighbours: Sun et al. 2025, <https://arxiv.org/abs/2412.09261>.

There are no views. A perceptron with dropout encodes the features, and the graph enters through the
loss alone: neighbours are positives, but each only with probability 1 - m, drawn afresh at every
step for each direction; the rest of the time a neighbour is a negative like any other node. With
unit rows $h_i$ of the projector, $r_{ij} = \tfrac12(1 + \langle h_i, h_j\rangle)$, the kept
neighbours $K_i$ of node i, $k_i = |K_i|$ and $P_i = K_i \cup \{i\}$:

$$\mathcal L = -\frac1N \sum_i \Big[ \frac1{k_i + 1} \sum_{j \in P_i} \log(r_{ij} + \epsilon)
    + \frac1{N - k_i - 1} \sum_{j \notin P_i} \log(1 - r_{ij} + \epsilon) \Big]$$

Only the sum over *all* other nodes is quadratic. It runs on the kernels (`LogGap`), and what it
counts too much on kept edges is taken off again:

$$\sum_{j \notin P_i} \log(1 - r_{ij} + \epsilon)
    = \sum_{j \ne i} \log(1 - r_{ij} + \epsilon) - \sum_{j \in K_i} \log(1 - r_{ij} + \epsilon).$$

The encoder has two blocks of dropout, linear layer, PReLU (one slope for both) and layer
normalisation, in this order; the embedding is its output, without the projector and without any
propagation. As in the authors' code a node is its own positive, layer normalisation is always on
(their option to turn it off never arrives), and the last epoch counts. Departs from it: a node that
is joined to all others has no negatives instead of 0/0.

With a sampled contrast all nodes are encoded and have all their neighbours; the second term is an
unbiased estimate, as it is linear in the sums.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from muxgcl.augment import drop_entries
from muxgcl.errors import UserError
from muxgcl.graph import Adjacency, Graph
from muxgcl.kernels import Backend, LogGap, Sample, pair_sum, taken
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.edge_sums import edge_dot, met_sum, row_sum
from muxgcl.methods.parts.of_graph import PerGraphCache, features_scaled
from muxgcl.nn.adam import Adam
from muxgcl.nn.perceptron import Perceptron
from muxgcl.nn.projector import Projector
from muxgcl.shapes import Nodes, PerEdge, Scalar

EPSILON = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class SignaConfig:
    """Settings of SIGNA."""

    width: int = 1024  # of the embedding; after the first block it is twice that
    projection: int = 256  # width inside the projector
    projection_out: int | None = None  # width of what is contrasted; `width` by default
    dropout: float = 0.4  # of the features, and before the second block
    mask_neighbors: float = 0.4  # m: how often a neighbour counts as a negative
    convolve: bool = False  # propagate in each block, as the authors do for Flickr and PPI
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do

    def __post_init__(self) -> None:
        for name in ("dropout", "mask_neighbors"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 0 and below 1, got {getattr(self, name)}")
        if min(self.width, self.projection, self.projection_out or 1) < 1:
            raise UserError(
                "width, projection and projection_out must be at least 1, "
                f"got {self.width}, {self.projection} and {self.projection_out}"
            )


class Signa(Method):
    """Pull neighbours together and push all others away, in one view."""

    name: ClassVar = "signa"
    paper: ClassVar = "Sun et al. 2025, https://arxiv.org/abs/2412.09261"
    cost: ClassVar = "quadratic"
    samples: ClassVar = True
    Config: ClassVar = SignaConfig

    def __init__(self, graph: Graph, cfg: SignaConfig, context: Context) -> None:
        super().__init__()
        self.cfg, self.context = cfg, context
        self.scaled = features_scaled(cfg.row_normalize)
        self.view = PerGraphCache(self.plain_view)
        self.encoder = Perceptron(
            graph.num_features,
            cfg.width,
            hidden=2 * cfg.width,
            dropout=cfg.dropout,
            convolutions=2 if cfg.convolve else 0,
        )
        self.encoder.acts[1] = self.encoder.acts[0]  # one slope
        self.projector = Projector(cfg.width, cfg.projection, cfg.projection_out)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Kept neighbours as positives, all other nodes as negatives."""
        view = self.view(graph)
        features = drop_entries(view.features, self.cfg.dropout)
        rows = self.projector(self.encoder(replace(view, features=features)))
        adjacency = graph.adjacency
        chance = torch.rand(len(adjacency.col), device=graph.device)
        kept = ((chance >= self.cfg.mask_neighbors) & ~adjacency.loop).to(rows.dtype)
        sample = self.context.sample(graph)
        return contrast(rows, adjacency, kept, backend=self.context.backend, sample=sample)

    def embed(self, graph: Graph) -> Nodes:
        """The encoder's output, nothing dropped."""
        return self.encoder.embed(self.view(graph))

    def optimizer(self, lr: float, weight_decay: float) -> Adam:
        """AdamW."""
        return Adam(self.parameters(), lr, weight_decay, decoupled=True)


def contrast(
    rows: Nodes,
    adjacency: Adjacency,
    kept: PerEdge,
    *,
    backend: Backend = "auto",
    sample: Sample | None = None,
) -> dict[str, Scalar]:
    """The two terms of the objective; `kept` is 1 where an edge is a positive, 0 on loops.

    With a sample, the second one is estimated.
    """
    gap = LogGap(EPSILON)
    cosine = edge_dot(rows, rows, adjacency)
    count = row_sum(kept, adjacency)
    near = (kept + adjacency.loop) * ((1 + cosine) / 2 + EPSILON).log()
    some = taken(rows, sample)
    others = pair_sum(some, some, gap, backend=backend, sample=sample)
    far = others - met_sum(kept * gap.value(cosine), adjacency, sample)
    negatives = (len(rows) - 1 - count).clamp(min=1)
    if sample is not None:
        negatives = negatives[sample.anchor_nodes]
    return {
        "neighbours": -(row_sum(near, adjacency) / (count + 1)).mean(),
        "others": -(far / negatives).mean(),
    }
