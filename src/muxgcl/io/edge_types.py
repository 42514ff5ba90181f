r"""Directions and types of edges, beside the undirected graph that they make together.

An entry (a, b) of the undirected graph weighs $w_{ab} = \sum_t \max(w^t_{ba}, w^t_{ab})$ over the
types t of edges. Its part of type t is $w^t_{ba} / w_{ab}$: what a receives from b. Without
directions an edge goes both ways.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muxgcl.errors import UserError
from muxgcl.io.edges import EdgeList, Weights, merge
from muxgcl.io.ids import Positions, as_text, in_order
from muxgcl.io.safety import how_many, listed

MOST_TYPES = 64


@dataclass(frozen=True, slots=True, eq=False)
class EdgeKinds:
    """Parts of every entry of an undirected graph, one row a type of edge."""

    names: list[str]  # of the types; none where all edges are of one
    parts: NDArray[np.float32]  # [types, entries]
    weight: Weights | None  # of the entries; None where all are 1
    directed: bool
    notes: list[str]

    def contradicts(self, note: str) -> bool:
        """Whether a note on the undirected graph does not hold here."""
        wrong = ["made undirected", "reverse: the larger"] if self.directed else []
        wrong += ["duplicate edge"] if self.names else []
        return any(words in note for words in wrong)


def edge_kinds(
    edges: EdgeList,
    ends: tuple[Positions, Positions],
    edge_index: NDArray[np.int64],
    nodes: int,
    *,
    directed: bool,
) -> EdgeKinds | None:
    """The types and directions of edges; None where there is one type and no direction.

    Args:
        edges: as they were read.
        ends: their two ends as positions.
        edge_index: the entries of the undirected graph, sorted.
        nodes: how many nodes there are.
        directed: whether an edge goes from its source to its target alone.
    """
    if directed and edges.mirrored:
        raise UserError(f"{edges.name} is undirected: leave --directed out")
    kind = [] if edges.kind is None else as_text(edges.kind)
    names = as_text(in_order(edges.kind)) if edges.kind is not None else []
    if len(names) > MOST_TYPES:
        raise UserError(
            f"{edges.name}: expected at most {MOST_TYPES} types of edges, got {len(names):,}"
        )
    if len(names) < 2 and not directed:
        return None
    place = {name: number for number, name in enumerate(names)}
    number = np.array([place[name] for name in kind]) if len(names) > 1 else None
    entries = edge_index[0] * nodes + edge_index[1]
    found = np.zeros((max(1, len(names)), len(entries)), np.float32)
    used = (ends[0] != ends[1]) & (True if edges.weight is None else edges.weight > 0)
    for row in range(len(found)):
        mine = used if number is None else used & (number == row)
        if not mine.any():  # nothing but self-loops
            continue
        source, target = (end[mine] for end in ends)
        key = target * nodes + source  # the target receives
        weight = np.ones(len(key), np.float32) if edges.weight is None else edges.weight[mine]
        if not directed:
            key = np.concatenate([key, source * nodes + target])
            weight = np.concatenate([weight, weight])
        key, largest = merge(key, weight)
        found[row, np.searchsorted(entries, key)] = largest
    mirror = np.searchsorted(entries, edge_index[1] * nodes + edge_index[0])
    total = np.maximum(found, found[:, mirror]).sum(0)
    notes = _notes(names, found, mirror, directed)
    plain = bool((total == 1).all())
    names = names if len(names) > 1 else []
    return EdgeKinds(names, found / total, None if plain else total, directed, notes)


def _notes(
    names: list[str], found: NDArray[np.float32], mirror: NDArray[np.int64], directed: bool
) -> list[str]:
    notes = []
    if directed:
        one: NDArray[np.bool_] = np.any(found > 0, axis=0)
        both = how_many((one & one[mirror]).sum() // 2, "pair")
        notes.append(f"directed: {how_many(one.sum(), 'edge')}, {both} both ways")
    if len(names) > 1:
        notes.append(f"{len(names)} types of edges: {listed(names)}")
    return notes
