"""Link prediction: hide edges before training, then ask the embedding to tell them from non-edges.

It needs no labels, so it can choose settings where there are none.
"""

from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Bool, Int

from muxgcl.errors import UserError
from muxgcl.evaluate.arrays import Edges, Index, Pairs, PerPair, Rows


@dataclass(frozen=True, slots=True)
class HiddenEdges:
    """A graph with edges taken out, and the question to ask about it."""

    edge_index: Int[np.ndarray, "2 left"]  # in the order it came
    kept: Bool[np.ndarray, " e"]  # which entries of the original edge_index these are
    positives: Pairs  # hidden edges, one row an undirected edge, smaller node first
    negatives: Pairs  # as many pairs without an edge in the whole graph


@dataclass(frozen=True, slots=True)
class LinkScores:
    """How well similarity ranks hidden edges above non-edges, from 0 to 1; chance is 1/2."""

    auc: float
    ap: float
    n: int  # hidden edges

    def to_dict(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)


def hide_edges(edge_index: Edges, nodes: int, *, share: float = 0.1, seed: int = 0) -> HiddenEdges:
    """Hide a share of the undirected edges, both directions of each, and draw as many non-edges.

    No node loses its last edge: nothing could be learned about it, and the score would measure
    that. So one random edge of every node stays, and where that leaves too few (a tree, nearly),
    fewer are hidden than asked for. Self-loops stay and are never asked about.

    Args:
        edge_index: [2, e]; one direction of an edge is enough.
        nodes: number of nodes.
        share: of the undirected edges to hide.
        seed: the same seed hides the same edges.
    """
    edge_index = np.asarray(edge_index)
    if not 0 < share < 1:
        raise UserError(f"share of edges to hide must lie between 0 and 1, got {share}")
    if edge_index.size and not 0 <= edge_index.min() <= edge_index.max() < nodes:
        raise UserError(f"expected edges between nodes 0 and {nodes - 1}, got one outside")
    rng = np.random.default_rng(seed)
    low, high = edge_index.min(0), edge_index.max(0)
    code = np.where(low < high, low * nodes + high, -1)  # [e]; -1: a self-loop
    edges = np.unique(code[code >= 0])  # one number an undirected edge
    rank = rng.permutation(len(edges))
    can_go = np.flatnonzero(~_first_of_a_node(edges, rank, nodes))
    wanted = max(1, round(share * len(edges)))
    hidden = edges[can_go[np.argsort(rank[can_go])][:wanted]]
    if not len(hidden):
        raise UserError(f"no edge of {len(edges)} can be hidden without isolating a node")
    kept = ~np.isin(code, hidden)
    non_edges = _draw_non_edges(edges, nodes, len(hidden), rng)
    return HiddenEdges(edge_index[:, kept], kept, _pairs(hidden, nodes), non_edges)


def link_prediction(z: Rows, hidden: HiddenEdges) -> LinkScores:
    """Area under the ROC curve and average precision of hidden edges against non-edges."""
    from sklearn.metrics import average_precision_score, roc_auc_score  # takes seconds to load

    pairs = np.concatenate([hidden.positives, hidden.negatives])
    truth = np.repeat([1, 0], [len(hidden.positives), len(hidden.negatives)])
    scores = similarities(z, pairs)
    auc, ap = roc_auc_score(truth, scores), average_precision_score(truth, scores)
    return LinkScores(float(auc), float(ap), len(hidden.positives))


def similarities(z: Rows, pairs: Pairs) -> PerPair:
    """The cosine of each pair of rows; a zero row is similar to nothing."""
    z = np.asarray(z)
    left, right = (z[side].astype(np.float64) for side in pairs.T)
    dot = (left * right).sum(1)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.divide(dot, lengths, out=np.zeros_like(dot), where=lengths > 0)


def _pairs(code: Index, nodes: int) -> Pairs:
    return np.stack(np.divmod(code, nodes), axis=1)


def _first_of_a_node(edges: Index, rank: Index, nodes: int) -> Bool[np.ndarray, " m"]:
    """Which edges are the lowest in rank at one of their ends."""
    ends = _pairs(edges, nodes)  # [m, 2]
    lowest = np.full(nodes, len(edges))
    np.minimum.at(lowest, ends.ravel(), np.repeat(rank, 2))
    return (lowest[ends] == rank[:, None]).any(1)


def _draw_non_edges(edges: Index, nodes: int, count: int, rng: np.random.Generator) -> Pairs:
    """Distinct pairs of different nodes without an edge, all equally likely.

    Pairs i < j are numbered row by row; the k-th number that no edge has is found by bisection, so
    a dense graph costs no more than a sparse one.
    """
    first = np.arange(nodes)
    row_start = first * (2 * nodes - first - 1) // 2  # number of pair (i, i + 1)
    i, j = _pairs(edges, nodes).T
    taken = row_start[i] + j - i - 1  # ascending, as the edges are
    free = nodes * (nodes - 1) // 2 - len(taken)
    if free < count:
        raise UserError(f"expected {count} pairs without an edge, the graph has only {free}")
    drawn = rng.choice(free, count, replace=False)
    number = drawn + np.searchsorted(taken - np.arange(len(taken)), drawn, side="right")
    i = np.searchsorted(row_start, number, side="right") - 1
    return np.stack([i, number - row_start[i] + i + 1], axis=1)
