"""Views: a graph with some edges dropped and some feature columns masked.

A view keeps the graph's shape: a dropped edge weighs 0 and leaves the degree, a masked column is 0.
Static shapes let the whole training step be captured once and replayed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from muxgcl.errors import UserError
from muxgcl.graph import Degrees, Features, Graph
from muxgcl.kernels.dropout import dropout
from muxgcl.kernels.rounded import product
from muxgcl.shapes import PerEdge, PerFeature, Scale
from muxgcl.sparse import SparseMatrix


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What an encoder sees: how to propagate, and features with a mask over their columns.

    Two views may be stacked: node i of view v is then row `v * n + i` of everything that comes out.
    """

    propagation: SparseMatrix
    features: Features
    kept_columns: PerFeature | Float[Tensor, "v f"] | None = None

    def project(self, weight: Float[Tensor, "f h"]) -> Scale:
        """Masked features times `weight`; masking a column of X is masking a row of the weight."""
        kept = self.kept_columns
        if kept is None:
            return self._multiply(weight)
        if kept.ndim == 1:
            return self._multiply(weight * kept[:, None])
        masked = weight * kept[:, :, None]  # [v, f, h]
        if isinstance(self.features, Tensor):
            return self._multiply(masked).flatten(0, 1)
        beside = self.features @ masked.transpose(0, 1).flatten(1)  # [n, v * h]
        views: Tensor = beside.unflatten(1, (len(kept), -1))
        return views.transpose(0, 1).flatten(0, 1)

    def _multiply(self, weight: Float[Tensor, "*v f h"]) -> Float[Tensor, "*v n h"]:
        padding = self.features.shape[1] - weight.shape[-2]  # see `Graph.aligned_features`
        weight = pad(weight, (0, 0, 0, padding)) if padding else weight
        if isinstance(self.features, Tensor) and weight.ndim == 2:
            return product(self.features, weight)
        return self.features @ weight


def clean(graph: Graph) -> View:
    """The graph as it is."""
    return View(graph.adjacency.propagation(), graph.aligned_features)


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Drop every directed edge with one probability and mask every feature column with another."""

    drop_edges: float = 0.0
    mask_features: float = 0.0
    degrees: Degrees = "received"

    def __post_init__(self) -> None:
        for name in ("drop_edges", "mask_features"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 0 and below 1, got {getattr(self, name)}")

    def __call__(self, graph: Graph) -> View:
        """A fresh view; the graph is left as it was."""
        weight = drop_edges(graph, self.drop_edges) if self.drop_edges else None
        kept = keep_columns(graph, self.mask_features) if self.mask_features else None
        propagation = graph.adjacency.propagation(weight, self.degrees)
        return View(propagation, graph.aligned_features, kept)


def both(graph: Graph, rates: Sequence[Corrupt]) -> View:
    """Two fresh views, stacked: one pass through the encoder instead of two."""
    drop, mask = [r.drop_edges for r in rates], [r.mask_features for r in rates]
    return stacked(graph, drop, mask, rates[0].degrees)


def stacked(
    graph: Graph,
    drop: Sequence[float | PerEdge],
    mask: Sequence[float | PerFeature],
    degrees: Degrees = "received",
) -> View:
    """Two fresh views, stacked; a view has one probability for all its edges, or one for each.

    Likewise for columns of features.
    """
    propagation = stacked_propagation(graph, drop, degrees)
    chance = torch.rand(2, graph.num_features, device=graph.device)
    columns = [c >= p for c, p in zip(chance, mask, strict=True)]
    kept_columns = torch.stack(columns).float()
    return View(propagation, graph.aligned_features, kept_columns)


def dropped(graph: Graph, drop: Sequence[float], entries: float) -> View:
    """Two fresh views, stacked, that lose edges and single entries of the features.

    What is left of the features is scaled up by 1 / (1 - entries); zeros stay zero.
    """
    propagation = stacked_propagation(graph, drop)
    return View(propagation, drop_entries(graph.features_twice, entries))


def stacked_propagation(
    graph: Graph, drop: Sequence[float | PerEdge], degrees: Degrees = "received"
) -> SparseMatrix:
    """How two copies of the graph propagate, each with its own edges dropped."""
    adjacency = graph.twice
    chance = torch.rand(2, len(adjacency.weight) // 2, device=graph.device)
    kept = torch.cat([c >= p for c, p in zip(chance, drop, strict=True)])
    return adjacency.propagation(adjacency.weight * (kept | adjacency.loop), degrees)


def drop_entries(features: Features, p: float) -> Features:
    """Each entry 0 with probability `p`, the others scaled up by 1 / (1 - p)."""
    return dropout(features, p) if isinstance(features, Tensor) else features.dropout(p)


def drop_edges(graph: Graph, p: float) -> PerEdge:
    """Edge weights with each entry 0 with probability `p`; self-loops always stay."""
    adjacency = graph.adjacency
    kept = torch.rand(adjacency.weight.shape, device=graph.device) >= p
    return adjacency.weight * (kept | adjacency.loop)


def keep_columns(graph: Graph, p: float) -> PerFeature:
    """1 for each feature column that is kept, 0 with probability `p`."""
    return (torch.rand(graph.num_features, device=graph.device) >= p).float()
