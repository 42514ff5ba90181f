r"""GGD, graph group discrimination: Zheng et al. 2022, <https://arxiv.org/abs/2206.01535>.

One graph convolution encodes the graph, and once more the same graph with its rows of features
shuffled. A linear layer, its outputs summed to one logit, tells real nodes from shuffled ones; no
summary of the graph is needed, as in DGI.

$$H = \mathrm{PReLU}(\hat A X' W + b), \qquad \tilde H = \mathrm{PReLU}(\hat A P X' W + b), \qquad
s_i = \sum_k (M h_i + c)_k$$
$$\mathcal L = \frac1{2N} \sum_i \big[\mathrm{softplus}(-s_i) + \mathrm{softplus}(\tilde s_i)\big]$$

X' has a fifth of its columns, drawn afresh at every step, set to 0, the same for both groups. The
embedding is $H + \hat A^k H$ of the whole graph, or H alone for k = 0, with the weights whose
training loss was lowest (`parts/lowest.py`; `lowest_loss = false` takes the last). The sum of the
layer's outputs is a product with its summed rows, so M is never applied to all nodes.

Departs from the authors' code: training has a fixed length (theirs also stops once the loss has not
fallen for 500 epochs); a state is kept with the loss that it gave, while theirs for Amazon is
the one after the next step; all nodes are there (theirs are the largest component on Amazon).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import nn

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.losses.infomax import infomax
from muxgcl.methods.base import Context, Method
from muxgcl.methods.dgi import real_and_shuffled, shuffle
from muxgcl.methods.parts.lowest import Lowest
from muxgcl.methods.parts.of_graph import PerGraphCache, features_scaled
from muxgcl.methods.parts.residual import with_propagated
from muxgcl.nn.gcn import GCN
from muxgcl.shapes import Nodes, PerFeature, PerNode, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class GgdConfig:
    """Settings of GGD."""

    width: int = 512  # of the embedding
    mask_features: float = 0.2  # share of the columns set to 0 at each step
    hops: int = 5  # k; 0 leaves the propagated part of the embedding out
    slope_each: bool = False  # a slope of PReLU for each column, as on Amazon, instead of one
    lowest_loss: bool = True  # embed with the weights of the lowest training loss, not the last
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do

    def __post_init__(self) -> None:
        if not 0 <= self.mask_features < 1:
            raise UserError(
                f"mask_features must be at least 0 and below 1, got {self.mask_features}"
            )
        if self.hops < 0:
            raise UserError(f"hops must not be negative, got {self.hops}")


class Ggd(Method):
    """Tell real nodes from nodes with shuffled features by one number each."""

    name: ClassVar = "ggd"
    paper: ClassVar = "Zheng et al. 2022, https://arxiv.org/abs/2206.01535"
    cost: ClassVar = "linear"
    Config: ClassVar = GgdConfig

    def __init__(self, graph: Graph, cfg: GgdConfig, context: Context) -> None:
        super().__init__()
        self.cfg = cfg
        self.scaled = features_scaled(cfg.row_normalize)
        self.view = PerGraphCache(self.plain_view)
        self.encoder = GCN(graph.num_features, cfg.width, layers=1, act="prelu")
        if cfg.slope_each:
            self.encoder.act = nn.PReLU(cfg.width)
        self.head = nn.Linear(cfg.width, cfg.width)
        self.lowest = Lowest(self.encoder)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """The cross entropy of both groups' logits."""
        kept = keep_exactly(graph, self.cfg.mask_features)
        view = replace(self.view(graph), kept_columns=kept)
        groups = real_and_shuffled(self.encoder, view, shuffle(graph))
        loss = infomax(*(summed(self.head, nodes) for nodes in groups))
        self.lowest.update(self.encoder, loss.detach())
        return {"discrimination": loss}

    def embed(self, graph: Graph) -> Nodes:
        """The encoder's output plus its propagation."""
        view = self.view(graph)
        encoder = self.lowest.module if self.cfg.lowest_loss else self.encoder
        return with_propagated(encoder.embed(view), view.propagation, self.cfg.hops)


def summed(head: nn.Linear, nodes: Nodes) -> PerNode:
    """The sum of a linear layer's outputs for every node."""
    return nodes @ head.weight.sum(0) + head.bias.sum()


def keep_exactly(graph: Graph, p: float) -> PerFeature:
    """1 for each feature column that is kept, 0 for this share of them, rounded down."""
    columns = graph.num_features
    order = torch.rand(columns, device=graph.device).argsort()
    return torch.ones(columns, device=graph.device).index_fill(0, order[: int(p * columns)], 0.0)
