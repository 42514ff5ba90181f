r"""DMoN, deep modularity networks: Tsitsulin et al. 2023, <https://arxiv.org/abs/2006.16904>.

One graph convolution with a skip weight, a soft assignment S of nodes to k clusters, and the
modularity of that assignment, with a term against one cluster taking all:

$$Z = \mathrm{SELU}(\hat A X W + (X W) \odot w + b), \qquad
S = \mathrm{softmax}(\mathrm{dropout}(Z W_s + b_s))$$
$$\mathcal L = -\frac1{2m} \mathrm{tr}\,S^\top \Big(A - \frac{d d^\top}{2m}\Big) S
    + \gamma \Big(\frac{\sqrt k}{N} \Big\lVert \sum_i S_i \Big\rVert - 1\Big)$$

The trace is a sparse product and the null model a vector's length, so cost is linear.

Departs from the authors' code: the modularity is the paper's (theirs halves the null model), and w
begins at 1, b at 0 (theirs are drawn between -0.22 and 0.22). The embedding is Z;
`output = "clusters"` gives S instead. The authors' clusters are the largest entries of the rows of
S (`assignment`); k-means on Z, as for every other method, is ours. On features with large rows the
assignment saturates at once and nothing is learned: `row_normalize` divides them by their sums.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.functional import dropout, selu

from muxgcl.augment import clean
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.of_graph import PerGraphCache, features_scaled
from muxgcl.shapes import Nodes, Scalar
from muxgcl.sparse import SparseMatrix


@dataclass(frozen=True, slots=True, kw_only=True)
class DmonConfig:
    """Settings of DMoN."""

    width: int = 64  # of the embedding
    clusters: int = 16  # how many
    dropout: float = 0.5  # of the assignment's logits
    collapse_weight: float = 1.0  # gamma
    output: Literal["hidden", "clusters"] = "hidden"  # embed by Z or by S
    row_normalize: bool = False  # divide each row of features by its sum

    def __post_init__(self) -> None:
        if self.width < 1 or self.clusters < 1:
            raise UserError(
                f"width and clusters must be at least 1, got {self.width} and {self.clusters}"
            )
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout must be at least 0 and below 1, got {self.dropout}")


class Dmon(Method):
    """Cluster the nodes so that modularity is high."""

    name: ClassVar = "dmon"
    paper: ClassVar = "Tsitsulin et al. 2023, https://arxiv.org/abs/2006.16904"
    cost: ClassVar = "linear"
    Config: ClassVar = DmonConfig

    def __init__(self, graph: Graph, cfg: DmonConfig, context: Context) -> None:
        super().__init__()
        self.cfg = cfg
        self.edges = PerGraphCache(without_loops)
        self.scaled = features_scaled(cfg.row_normalize)
        self.weight = nn.Parameter(
            nn.init.xavier_uniform_(torch.empty(graph.num_features, cfg.width))
        )
        self.skip = nn.Parameter(torch.ones(cfg.width))
        self.bias = nn.Parameter(torch.zeros(cfg.width))
        self.assign = nn.Linear(cfg.width, cfg.clusters)
        nn.init.orthogonal_(self.assign.weight)
        nn.init.zeros_(self.assign.bias)

    def hidden(self, graph: Graph) -> Nodes:
        """Z: the convolution with its skip weight."""
        view = clean(self.scaled(graph))
        mixed = view.project(self.weight)
        return selu(view.propagation @ mixed + mixed * self.skip + self.bias)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Modularity, turned to be minimised, and the collapse term."""
        logits = dropout(self.assign(self.hidden(graph)), self.cfg.dropout)
        clusters = logits.softmax(1)
        return {
            "modularity": -modularity(clusters, self.edges(graph)),
            "collapse": self.cfg.collapse_weight * collapse(clusters),
        }

    def assignment(self, graph: Graph) -> Int[Tensor, " n"]:
        """The largest entry of each row of S, without dropout."""
        found: Tensor = self.assign(self.hidden(graph))
        return found.argmax(1)

    def embed(self, graph: Graph) -> Nodes:
        """Z, or the assignment without dropout."""
        hidden = self.hidden(graph)
        return hidden if self.cfg.output == "hidden" else self.assign(hidden).softmax(1)


def without_loops(graph: Graph) -> SparseMatrix:
    """A, without the self-loops that propagation needs."""
    return graph.adjacency.matrix(graph.adjacency.weight * ~graph.adjacency.loop)


def modularity(clusters: Nodes, edges: SparseMatrix) -> Scalar:
    """Share of edges inside clusters beyond what the degrees alone would give."""
    degree = edges @ clusters.new_ones(len(clusters), 1)  # [n, 1]
    total = degree.sum().clamp(min=1e-12)  # 2 m; a graph without edges has modularity 0
    inside = (clusters * (edges @ clusters)).sum() / total
    return inside - ((degree.T @ clusters) / total).square().sum()


def collapse(clusters: Nodes) -> Scalar:
    """0 for clusters of equal size, sqrt(k) - 1 for one that has all nodes."""
    nodes, count = clusters.shape
    size: Tensor = clusters.sum(0).norm()
    return size * (math.sqrt(count) / nodes) - 1
