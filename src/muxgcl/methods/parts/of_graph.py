"""What follows from a graph alone: computed once, not at every step."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from muxgcl.graph import Graph

T = TypeVar("T")


class PerGraphCache(Generic[T]):
    """A function of the graph that remembers its last answer.

    Training asks it about one graph at every step and pays once; another graph, as in embedding
    new nodes, gets its own answer. It is no module: nothing of it goes into a checkpoint, and of a
    pickle only the function is part.
    """

    def __init__(self, compute: Callable[[Graph], T]) -> None:
        self._compute = compute
        self._last: tuple[Graph, T] | None = None

    def __call__(self, graph: Graph) -> T:
        """The answer for this graph."""
        if self._last is None or self._last[0] is not graph:
            self._last = graph, self._compute(graph)
        return self._last[1]

    def forget(self) -> None:
        """Let go of the graph and of the answer."""
        self._last = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_compute": self._compute, "_last": None}


def features_scaled(row_normalize: bool) -> PerGraphCache[Graph]:
    """The graph with rows of features that sum to one, or as it is."""
    return PerGraphCache(row_normalized if row_normalize else as_it_is)


def as_it_is(graph: Graph) -> Graph:
    """The graph itself."""
    return graph


def row_normalized(graph: Graph) -> Graph:
    """The graph with every row of features divided by its absolute sum; zero rows stay zero."""
    features = graph.features
    if isinstance(features, Tensor):
        sums = features.abs().sum(1, keepdim=True)
        return replace(graph, features=features / torch.where(sums > 0, sums, 1))
    rows, columns = features.matrix, features.transpose
    row = rows.row
    sums = rows.value.new_zeros(rows.rows).index_add_(0, row, rows.value.abs())
    sums = torch.where(sums > 0, sums, 1)
    scaled = replace(
        features,
        matrix=replace(rows, value=rows.value / sums[row]),
        transpose=replace(columns, value=columns.value / sums[columns.col]),
    )
    return replace(graph, features=scaled)
