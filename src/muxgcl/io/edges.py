"""Edges as they were read, and the rules that make them one undirected graph."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from muxgcl.errors import UserError
from muxgcl.io.cells import read_texts
from muxgcl.io.ids import Ids, Positions, as_text, positions, whole
from muxgcl.io.nodes import check_ids
from muxgcl.io.roles import ENDS, EdgeColumns, kind_of_id, usual_ends
from muxgcl.io.safety import how_many, listed, quoted
from muxgcl.io.table import Place, Table, counted, is_number

Weights = NDArray[np.float32]
TYPES = frozenset({"type", "kind", "relation", "rel", "edge_type", "etype", "typ", "art"})
WEIGHTS = frozenset({"weights", "w", "strength", "gewicht", "poids", "peso", "count", "value"})
FEW = 10  # edges, of which some should meet
RARE = 10  # edges, of which one at most may be commented out
MATRIX = 10  # columns that are not used, from which an edge list may be an adjacency matrix
MANY = 1_000_000  # edges up to which their ends are compared
HEAVIEST = 1e37  # of all weights together: a degree twice as large is still a 32-bit number


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeList:
    """One entry an edge, by the ids of its two ends."""

    name: str  # as messages call it
    source: Ids
    target: Ids
    weight: Weights | None = None
    kind: Ids | None = None  # the type of each edge
    mirrored: bool = (
        False  # each edge stands for both directions, as in an undirected NetworkX graph
    )
    place: Place = field(default_factory=lambda: counted("edge"))
    notes: tuple[str, ...] = ()
    headless: bool = False  # the first edge may be a header that was not recognised
    header: tuple[str, str] | None = None  # two words that may be an edge all the same
    wider: bool = False  # there are columns that were not used

    def __post_init__(self) -> None:
        for ids in (self.source, self.target):
            check_ids(ids, self.name, self.place)
        if self.weight is None:
            return
        wrong = np.flatnonzero(~np.isfinite(self.weight) | (self.weight < 0))
        if len(wrong):
            value = self.weight[wrong[0]]
            raise UserError(
                f"{self.name}, {self.place(int(wrong[0]))}: the weight of an edge must be a number "
                f"of at least 0, got {'none' if np.isnan(value) else f'{value:g}'}"
            )
        if float(self.weight.sum(dtype=np.float64)) > HEAVIEST:
            raise UserError(
                f"{self.name}: the weights of all edges add up to more than {HEAVIEST:g}, "
                "which 32 bits cannot hold; divide them by a number"
            )


def edge_list(table: Table, columns: EdgeColumns) -> EdgeList:
    """A table's rows as edges."""
    rows, read = read_texts(table.rows, table.columns, table.name, table.place)
    notes = [*table.notes, *read]
    source, target = columns.ends(table.name, table.columns)
    weight = columns.weights(table.name, table.columns)
    kind = columns.kinds(table.name, table.columns)
    if weight in rows.text:
        cells = rows.text[weight]
        row = next(row for row, cell in enumerate(cells) if not is_number(cell))
        raise UserError(
            f"{table.name}, {table.place(row)}: the weight of an edge must be a number "
            f"of at least 0, got {quoted(cells[row])}"
        )
    if table.headless:
        notes.append(f"{table.name}: no header found, the first line is an edge")
    ignored = [name for name in table.columns if name not in (source, target, weight, kind)]
    if ignored:
        notes.append(
            f"{table.name}: columns not used: {listed(ignored)}{_remedy(ignored, columns)}"
        )
        notes += _about_choice((source, target), table, columns)
    if weight is not None and columns.weight is None:
        notes.append(f"{table.name}: weights from column {quoted(weight)}")
    ends = [whole(rows.kept[end]) for end in (source, target)]
    for end, ids in zip((source, target), ends, strict=True):
        if ids is not rows.kept[end]:
            notes.append(f"{table.name}: column {quoted(end)} is read as whole numbers")
    notes += _about_lines(ends[0], table, len(ignored))
    if len(ends[0]) <= MANY:
        notes += _about_ids((source, target), ends, table.name)
    return EdgeList(
        name=table.name,
        source=ends[0],
        target=ends[1],
        weight=None if weight is None else np.asarray(rows.numbers[:, 0]),
        kind=None if kind is None else rows.kept[kind],
        place=table.place,
        notes=tuple(notes),
        headless=table.headless,
        header=(source, target) if table.guessed else None,
        wider=bool(ignored),
    )


def _about_lines(source: Ids, table: Table, ignored: int) -> list[str]:
    """Lines where the file may hold something else: comments among edges, or a whole matrix."""
    notes = []
    marked = sum(one.startswith("#") for one in source) if isinstance(source, list) else 0
    if 0 < marked <= len(source) / RARE:
        begin = how_many(marked, "edge begins", "edges begin")
        notes.append(f"{table.name}: {begin} with '#'; only lines before the first are comments")
    if ignored >= MATRIX and len(table.columns) - len(source) in (0, 1):
        notes.append(
            f"{table.name}: as many lines as columns; is it an adjacency matrix? One is read from "
            "an .npz of scipy, or from an array in Python"
        )
    return notes


def _about_choice(ends: tuple[str, str], table: Table, columns: EdgeColumns) -> list[str]:
    """A line where nothing but their place says that two columns are the ends."""
    if None not in (columns.source, columns.target) or usual_ends(table.columns, ENDS) == ends:
        return []
    source, target = map(quoted, ends)
    return [
        f"{table.name}: edges go from column {source} to column {target} "
        "(--source, --target name others)"
    ]


def _about_ids(names: tuple[str, str], ends: list[Ids], table: str) -> list[str]:
    """A line where the two columns seem to hold nodes of different kinds."""
    if not _meet(*ends):
        apart = f"{table}: no id is in both columns; is this a list of edges between one kind of "
        return [f"{apart}nodes?"] if len(ends[0]) >= FEW else []
    one, two = map(kind_of_id, names)
    if one is None or two is None or one == two or any(isinstance(ids, list) for ids in ends):
        return []
    short = (one[0], two[0]) if one[0] != two[0] else (one, two)
    return [
        f"{quoted(names[0])} and {quoted(names[1])} are read as ids of the same nodes: 7 in one is "
        f"7 in the other; prefix them ({short[0]}7, {short[1]}7) if they are not"
    ]


def _meet(source: Ids, target: Ids) -> bool:
    """Whether an id is in both columns."""
    if isinstance(source, list) or isinstance(target, list):
        return not set(as_text(source)).isdisjoint(as_text(target))
    return bool(np.isin(source, target).any())


def _remedy(ignored: list[str], columns: EdgeColumns) -> str:
    """The options that would use a column whose name says what it is."""
    asked = {"--edge-type": (columns.kind, TYPES), "--weight": (columns.weight, WEIGHTS)}
    found = [
        f"{option} {name}"
        for option, (given, usual) in asked.items()
        for name in ignored
        if given is None and name.lower() in usual
    ]
    return f" ({', '.join(found)})" if found else ""


def place_among(
    edges: EdgeList, nodes: Ids, table: str, *, one: str = "an edge"
) -> tuple[Positions, Positions]:
    """The two ends of each edge as positions among the nodes; every end must be one of them."""
    ends = positions(edges.source, nodes), positions(edges.target, nodes)
    absent = np.flatnonzero((ends[0] < 0) | (ends[1] < 0))
    if len(absent):
        row = int(absent[0])
        ids, found = (edges.source, ends[0]) if ends[0][row] < 0 else (edges.target, ends[1])
        hint = " (is that line a header?)" if edges.headless and row == 0 else ""
        if not hint and edges.wider and (found < 0).all():
            hint = " (--source and --target name the columns)"
        if not hint and not isinstance(ids, list) and _counted_from_one(edges, nodes):
            hint = " (rows are counted from 0)"
        raise UserError(
            f"{edges.name}, {edges.place(row)}: {one} names node {quoted(as_text(ids)[row])}, "
            f"which is not in {table}{hint}"
        )
    return ends


def _counted_from_one(edges: EdgeList, nodes: Ids) -> bool:
    """Whether edges name 1, ..., n and the nodes are 0, ..., n - 1."""
    if any(isinstance(ids, list) for ids in (edges.source, edges.target, nodes)):
        return False
    first, last = (pick([pick(edges.source), pick(edges.target)]) for pick in (np.min, np.max))
    return bool(first == 1 and last == len(nodes) and np.array_equal(nodes, np.arange(last)))


def undirected(
    source: Positions, target: Positions, weight: Weights | None, nodes: int
) -> tuple[NDArray[np.int64], Weights | None, list[str]]:
    """Both directions of every edge once, sorted, without self-loops; and what was done for it.

    Edges of weight 0 are no edges. Of duplicates, and of two directions, the larger weight counts.
    Weights that are all 1 say nothing and are left out.
    """
    notes: list[str] = []
    if not len(source):
        return np.zeros((2, 0), np.int64), None, notes
    if weight is not None and (zeros := weight == 0).any():
        source, target, weight = source[~zeros], target[~zeros], weight[~zeros]
        notes.append(f"{how_many(zeros.sum(), 'edge')} of weight 0 removed")
    if (loops := source == target).any():
        source, target = source[~loops], target[~loops]
        weight = weight if weight is None else weight[~loops]
        notes.append(f"{how_many(loops.sum(), 'self-loop')} removed")
    if not len(source):
        raise UserError("the graph has no edge between two different nodes")

    key, once = merge(source * nodes + target, weight)
    if merged := len(source) - len(key):
        plain = weight is None or (weight == weight[0]).all()
        kept = "" if plain else ", the largest weight kept"
        notes.append(f"{how_many(merged, 'duplicate edge')} merged{kept}")
    row, column = key // nodes, key % nodes
    both = np.concatenate([key, column * nodes + row])
    full, weight = merge(both, None if once is None else np.concatenate([once, once]))
    if len(full) != len(key):
        notes.append(f"made undirected: {len(key):,} -> {len(full):,} entries")
    if once is not None and weight is not None:
        differ = int((weight[np.searchsorted(full, key)] != once).sum())
        if differ:
            less = how_many(differ, "edge weighs less than its", "edges weigh less than their")
            notes.append(f"{less} reverse: the larger weight kept")
        weight = None if (weight == 1).all() else weight
    return np.stack([full // nodes, full % nodes]), weight, notes


def merge(key: Positions, weight: Weights | None) -> tuple[Positions, Weights | None]:
    """Each key once, sorted, with its largest weight."""
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    return key[first], None if weight is None else np.maximum.reduceat(weight[order], first)
