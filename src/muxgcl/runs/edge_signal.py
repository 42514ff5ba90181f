r"""Do the edges say anything? Two measures that need no label.

**Of features.** With the centred unit row $x_i$ of a node's features and the mean $y_i$ over its
neighbours, $T = \lVert X^\top Y \rVert_F^2$ is large where neighbours are alike, or unlike in a way
of their own. Where edges and features have nothing to do with each other, it is what it is after
the rows of Y were dealt out anew.

**Of other edges.** A part of the edges is hidden. Signs drawn at random for every node are averaged
over a few steps of the other edges. Where edges follow any pattern, the two ends of a hidden edge
are closer to each other, or farther apart, than they are after the ends were dealt out anew.

Both are told in standard deviations of what chance gives. On the benchmark graphs the first is
above 200.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from muxgcl.graph import Graph
from muxgcl.runs.scipy_tables import dense, edges_of, features_table
from muxgcl.shapes import Array

NODES = 4096  # that are looked at, at most
COLUMNS = 512  # of features; more are mixed at random to as many
DEALS = 20  # of rows
FOLDS = 5  # parts of the edges, hidden in turn
FEW_EDGES = 1_000_000  # in more of them one part will do
SIGNS, STEPS = 96, 6
FEWEST_EDGES = 500  # fewer say little
BY_CHANCE = 4.0  # standard deviations, at most


@dataclass(frozen=True, slots=True)
class EdgeSignal:
    """How far from chance, in standard deviations."""

    features: float
    edges: float

    @property
    def silent(self) -> bool:
        """Whether the edges look as if they were drawn at random."""
        return max(abs(self.features), abs(self.edges)) < BY_CHANCE


def edge_signal(graph: Graph, seed: int = 0) -> EdgeSignal | None:
    """Both measures, the second one 0 where the first tells already; None of few edges."""
    chance, edges = np.random.default_rng(seed), edges_of(graph)
    if edges.shape[1] < 2 * FEWEST_EDGES:
        return None
    of_features = _of_features(graph, edges, chance)
    clear = abs(of_features) >= BY_CHANCE
    return EdgeSignal(of_features, 0.0 if clear else _of_edges(graph.num_nodes, edges, chance))


def neighbours_alike(graph: Graph, seed: int = 0) -> float:
    r"""How alike neighbours are in their features, in standard deviations of what chance gives.

    $\sum_i \langle x_i, y_i\rangle$ of the rows above: below 0 where neighbours are unlike.
    """
    chance, edges = np.random.default_rng(seed), edges_of(graph)
    if not edges.shape[1]:
        return 0.0
    one, two = _beside_means(graph, edges, chance)
    dealt = [float((one * chance.permutation(two)).sum()) for _ in range(DEALS)]
    return _from_chance(float((one * two).sum()), dealt)


def _of_features(graph: Graph, edges: Array, chance: np.random.Generator) -> float:
    one, two = _beside_means(graph, edges, chance)
    dealt = [_shared(one, chance.permutation(two)) for _ in range(DEALS)]
    return _from_chance(_shared(one, two), dealt)


def _beside_means(graph: Graph, edges: Array, chance: np.random.Generator) -> tuple[Array, Array]:
    """Rows of nodes that have neighbours, and means over these, both centred."""
    adjacency = _matrix(edges, graph.num_nodes)
    linked = chance.permutation(np.flatnonzero(np.diff(adjacency.indptr)))[:NODES]
    around = adjacency[linked]
    needed, place = np.unique(np.concatenate([linked, around.indices]), return_inverse=True)
    rows = _unit(_narrow(features_table(graph.features)[needed], chance))
    own, others = place[: len(linked)], place[len(linked) :]
    shape = (len(linked), len(needed))
    sums = sparse.csr_array((around.data, others, around.indptr), shape) @ rows
    means = sums / np.diff(around.indptr)[:, None]
    return rows[own] - rows[own].mean(0), means - means.mean(0)


def _of_edges(nodes: int, edges: Array, chance: np.random.Generator) -> float:
    adjacency = _matrix(edges, nodes)
    once = chance.permuted(edges[:, edges[0] < edges[1]], axis=0)  # either end first
    fold = chance.integers(FOLDS, size=once.shape[1])
    gaps = [np.zeros(0)]
    for k in range(FOLDS if edges.shape[1] <= FEW_EDGES else 1):
        kept, hidden = once[:, fold != k], once[:, fold == k]
        near = _positions(_matrix(np.hstack([kept, kept[::-1]]), nodes), chance)
        first, second = hidden
        other = chance.permutation(second)
        fair = (np.asarray(adjacency[first, other]).ravel() == 0) & (first != other)
        first, second, other = first[fair], second[fair], other[fair]
        gaps.append((near[first] * (near[second] - near[other])).sum(1))
    gap = np.concatenate(gaps)
    spread = gap.std() / max(len(gap), 1) ** 0.5 if len(gap) else 0.0
    return float(gap.mean() / spread) if spread > 0 else 0.0


def _positions(adjacency: Any, chance: np.random.Generator) -> Array:
    """Random signs averaged over the surroundings, as unit rows."""
    size = (np.diff(adjacency.indptr) + 1).astype(np.float32)[:, None]
    found = chance.choice(np.array([-1, 1], np.float32), (len(size), SIGNS))
    for _ in range(STEPS):
        found = (adjacency @ found + found) / size
    return _unit(found - (size * found).sum(0) / size.sum())


def _narrow(table: Any, chance: np.random.Generator) -> Array:
    """A dense table of no more than so many columns."""
    if table.shape[1] > COLUMNS:
        table = table @ chance.standard_normal((table.shape[1], COLUMNS)).astype(np.float32)
    return dense(table)


def _matrix(edges: Array, nodes: int) -> Any:
    return sparse.csr_array((np.ones(edges.shape[1], np.float32), tuple(edges)), (nodes, nodes))


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def _shared(one: Array, two: Array) -> float:
    return float(((one.T @ two).astype(np.float64) ** 2).sum())


def _from_chance(value: float, drawn: list[float]) -> float:
    spread = float(np.std(drawn))
    return (value - float(np.mean(drawn))) / spread if spread > 0 else 0.0
