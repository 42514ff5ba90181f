r"""Is a node's own row of features more than noise? A measure that needs no label.

The columns of X are divided at random into two halves, a and b. If features tell which nodes are
alike, both halves tell the same: their matrices of cosines agree. With the centred unit rows
$a_i$ and $b_i$ of $\hat A^k X$,

$$R_k = \frac{\sum_{i \ne j} \langle a_i, a_j\rangle \langle b_i, b_j\rangle}
{\sqrt{\sum_{i \ne j} \langle a_i, a_j\rangle^2 \sum_{i \ne j} \langle b_i, b_j\rangle^2}},$$

an RV coefficient without its diagonal. On the benchmark graphs $R_0$ is between 0.18 and 0.8 of
$R_2$; where features are mostly noise it is a hundredth of it, since averages over neighbours keep
what single rows lose (records/noise.jsonl).
"""

import numpy as np
from torch import Tensor

from muxgcl.graph import Graph
from muxgcl.runs.scipy_tables import dense, features_table, scipy_rows
from muxgcl.shapes import Array

NODES, COLUMNS = 8192, 2048  # that are looked at, at most
FEWEST = 16  # values of a node: halves of fewer say little
HALVINGS = 4  # of the columns, the mean of which is taken
BLOCK = 256  # rows that are propagated at a time


def agreement(graph: Graph, hops: int, seed: int = 0) -> tuple[float, float] | None:
    """`R_0` and `R_hops` of a sample of nodes and columns; None where there are too few of them."""
    if graph.num_nodes < FEWEST or few_values(graph):
        return None
    chance = np.random.default_rng(seed)
    nodes = np.sort(chance.permutation(graph.num_nodes)[:NODES])
    columns = np.sort(chance.permutation(graph.num_features)[:COLUMNS])
    table = features_table(graph.features)
    propagation = scipy_rows(graph.adjacency.propagation().matrix)
    near, far = (np.empty((len(nodes), len(columns)), np.float32) for _ in range(2))
    for start in range(0, len(nodes), BLOCK):  # hubs reach most nodes: a few rows at a time
        some = slice(start, start + BLOCK)
        reach = propagation[nodes[some]]
        for _ in range(hops - 1):
            reach = reach @ propagation
        near[some], far[some] = (dense(t[:, columns]) for t in (table[nodes[some]], reach @ table))
    places = [chance.permutation(len(columns)) for _ in range(HALVINGS)]
    halvings = [np.array_split(place, 2) for place in places]
    return _alike(near, halvings), _alike(far, halvings)


def few_values(graph: Graph) -> bool:
    """Whether every node has only a few values: some numbers, or one column of each category."""
    features = graph.features
    if isinstance(features, Tensor):
        counts = features[:NODES].count_nonzero(1)
    else:
        counts = features.matrix.rowptr.diff()
    return int(counts.max()) < FEWEST


def _alike(table: Array, halvings: list[list[Array]]) -> float:
    """How far halves of the columns agree on which rows are alike, in the mean."""
    found = []
    for halves in halvings:
        one, two = (_centred(table[:, part]) for part in halves)
        size = _shared(one, one) * _shared(two, two)
        found.append(_shared(one, two) / size**0.5 if size > 0 else 0.0)
    return float(np.mean(found))


def _centred(table: Array) -> Array:
    """Unit rows, their mean removed."""
    unit = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    return np.asarray(unit - unit.mean(0))


def _shared(one: Array, two: Array) -> float:
    """Sum over pairs of different rows of their products in both tables."""
    whole = ((one.T @ two).astype(np.float64) ** 2).sum()
    return float(whole - ((one**2).sum(1) * (two**2).sum(1)).sum(dtype=np.float64))
