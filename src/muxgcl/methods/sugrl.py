r"""SUGRL: Mo, Peng, Xu, Shi and Zhu 2022, <https://ojs.aaai.org/index.php/AAAI/article/view/20748>.

A perceptron makes anchors h; a node's positives are its propagated neighbourhood p and the mean q
of a few sampled neighbours, its negatives the anchors of K random other nodes. With Euclidean d:

$$\mathcal L = \sum_{k=1}^{K} \frac1N \sum_i \big(w_1 [d(h_i, p_i) - d(h_i, n^k_i) + m_1]_+
    + w_2 [d(h_i, q_i) - d(h_i, n^k_i) + m_1]_+\big)
    + \frac{w_3}{K} \sum_k \sum_i [d(h_i, n^k_i) - \mathrm{sg}(d(h_i, p_i)) - m_1 - m_2]_+$$

The last term, which keeps negatives from running away, is a sum over the nodes and not a mean, as
in the authors' code. The embedding is $\hat A\,\mathrm{MLP}(X)$.

Departs from their code: neighbours are drawn afresh, uniformly and with replacement, at every step
(theirs cycle through fixed lists); the weights are trained here (their script loads shipped ones).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.functional import dropout, pairwise_distance

from muxgcl.augment import drop_entries
from muxgcl.errors import UserError
from muxgcl.graph import Features, Graph
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.of_graph import PerGraphCache, features_scaled
from muxgcl.shapes import Nodes, Scalar
from muxgcl.sparse import SparseMatrix

HIDDEN_DROPOUT = 0.2  # on the anchors before they are propagated
NEIGHBOURS = 5  # sampled for the second positive


@dataclass(frozen=True, slots=True, kw_only=True)
class SugrlConfig:
    """Settings of SUGRL."""

    widths: tuple[int, ...] = (512, 128)  # of the perceptron's layers
    dropout: float = 0.3  # of the features
    weights: tuple[float, float, float] = (10.0, 10.0, 1.0)  # w1, w2, w3
    margins: tuple[float, float] = (0.8, 0.2)  # m1, m2
    negatives: int = 4  # K
    row_normalize: bool = True  # divide each row of features by its sum: the margins assume it

    def __post_init__(self) -> None:
        if not self.widths or min(self.widths) < 1 or self.negatives < 1:
            raise UserError(
                "widths and negatives must be at least 1, "
                f"got {list(self.widths)} and {self.negatives}"
            )
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout must be at least 0 and below 1, got {self.dropout}")


class Sugrl(Method):
    """Bring anchors near their neighbourhood, and other nodes to a bounded distance."""

    name: ClassVar = "sugrl"
    paper: ClassVar = "Mo et al. 2022, https://ojs.aaai.org/index.php/AAAI/article/view/20748"
    cost: ClassVar = "linear"
    Config: ClassVar = SugrlConfig

    def __init__(self, graph: Graph, cfg: SugrlConfig, context: Context) -> None:
        super().__init__()
        self.cfg = cfg
        self.scaled = features_scaled(cfg.row_normalize)
        self.propagation = PerGraphCache(propagation)
        widths = [graph.num_features, *cfg.widths]
        self.kernels = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in pairwise(widths)
        )
        self.biases = nn.ParameterList(torch.zeros(b) for b in widths[1:])

    def perceptron(self, features: Features) -> Nodes:
        """Linear layers with a ReLU between them."""
        hidden: Tensor = features @ self.kernels[0] + self.biases[0]
        for kernel, bias in zip(self.kernels[1:], self.biases[1:], strict=True):
            hidden = hidden.relu() @ kernel + bias
        return hidden

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """The two ranking terms and the upper bound."""
        features = self.scaled(graph).features
        anchor = self.perceptron(drop_entries(features, self.cfg.dropout))
        structure = self.propagation(graph) @ dropout(anchor, HIDDEN_DROPOUT)
        neighbours = anchor[sample_neighbours(graph, NEIGHBOURS)].mean(1)
        shuffled = torch.rand(self.cfg.negatives, len(anchor), device=graph.device).argsort(1)
        names = ("structure", "neighbours", "bound")
        terms = triplet_terms(
            anchor, structure, neighbours, [anchor[order] for order in shuffled], self.cfg.margins
        )
        return {
            name: weight * term
            for name, weight, term in zip(names, self.cfg.weights, terms, strict=True)
        }

    def embed(self, graph: Graph) -> Nodes:
        """The perceptron's output, propagated once."""
        return self.propagation(graph) @ self.perceptron(self.scaled(graph).features)


def propagation(graph: Graph) -> SparseMatrix:
    """The normalised adjacency with self-loops."""
    return graph.adjacency.propagation()


def triplet_terms(
    anchor: Nodes,
    structure: Nodes,
    neighbours: Nodes,
    negatives: list[Nodes],
    margins: tuple[float, float],
) -> tuple[Scalar, Scalar, Scalar]:
    """The three sums of the objective, before their weights."""
    near, also_near = (pairwise_distance(anchor, other) for other in (structure, neighbours))
    far = torch.stack([pairwise_distance(anchor, other) for other in negatives])  # [K, n]
    margin, slack = margins
    bound = (far - near.detach() - margin - slack).relu().sum() / len(far)
    one, two = ((pull - far + margin).relu().mean(1).sum() for pull in (near, also_near))
    return one, two, bound


def sample_neighbours(graph: Graph, count: int) -> Int[Tensor, "n k"]:
    """Neighbours of every node, itself among them, drawn uniformly and with replacement."""
    adjacency = graph.adjacency
    first, degree = adjacency.rowptr[:-1, None], adjacency.rowptr.diff()[:, None]
    pick = (torch.rand(graph.num_nodes, count, device=graph.device) * degree).long()
    return adjacency.col[first + pick.minimum(degree - 1)]  # rounding may reach the degree
