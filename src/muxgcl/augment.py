"""Views: a graph with some edges dropped and some feature columns masked.

A view keeps the graph's shape: a dropped edge weighs 0 and leaves the degree, a masked column is 0.
Static shapes let the whole training step be captured once and replayed.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.graph import Features, Graph
from muxgcl.shapes import PerEdge, PerFeature, Scale
from muxgcl.sparse import SparseMatrix


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What an encoder sees: how to propagate, and features with a mask over their columns."""

    propagation: SparseMatrix
    features: Features
    kept_columns: PerFeature | None = None

    def project(self, weight: Tensor) -> Scale:
        """Masked features times `weight`; masking a column of X is masking a row of the weight."""
        if self.kept_columns is not None:
            weight = weight * self.kept_columns[:, None]
        return self.features @ weight


def clean(graph: Graph) -> View:
    """The graph as it is."""
    return View(graph.adjacency.propagation(), graph.features)


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Drop every directed edge with one probability and mask every feature column with another."""

    drop_edges: float = 0.0
    mask_features: float = 0.0

    def __post_init__(self) -> None:
        for name in ("drop_edges", "mask_features"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 0 and below 1, got {getattr(self, name)}")

    def __call__(self, graph: Graph) -> View:
        """A fresh view; the graph is left as it was."""
        weight = drop_edges(graph, self.drop_edges) if self.drop_edges else None
        kept = keep_columns(graph, self.mask_features) if self.mask_features else None
        return View(graph.adjacency.propagation(weight), graph.features, kept)


def drop_edges(graph: Graph, p: float | PerEdge) -> PerEdge:
    """Edge weights with each entry 0 with probability `p`; self-loops always stay."""
    adjacency = graph.adjacency
    kept = torch.rand(adjacency.weight.shape, device=graph.device) >= p
    return adjacency.weight * (kept | adjacency.loop)


def keep_columns(graph: Graph, p: float | PerFeature) -> PerFeature:
    """1 for each feature column that is kept, 0 with probability `p`."""
    return (torch.rand(graph.num_features, device=graph.device) >= p).float()
