"""Which column is what: the two ends of an edge and its weight, a node's id and its label."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from muxgcl.errors import UserError
from muxgcl.io.cells import looks_numeric
from muxgcl.io.ids import Ids
from muxgcl.io.safety import listed, quoted
from muxgcl.io.table import is_number

ENDS = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("source_id", "target_id"),
    ("src_id", "dst_id"),
    ("from_id", "to_id"),
    ("citing", "cited"),
    ("citing_id", "cited_id"),
)
ALSO_ENDS = (("u", "v"), ("start", "end"))  # if they are names at all: nodes may be called so
IDS = ("id", "ids", "node", "node_id", "nodeid")
LABELS = ("label", "labels", "class", "y")
_USUAL = {end for pair in ENDS for end in pair} | {"node", "name", "u", "v", "index"}
_ID = re.compile(r"id|ids|.*[_ ](id|ID)|.*[a-z]I[dD]|ID|Id|[nN]ode")
_KIND = re.compile(r"([A-Za-z]{3,})[0-9]*(?:[_ ](?:id|ID|Id)|I[dD])[_ ]?[0-9]*")


@dataclass(frozen=True, slots=True)
class Choice:
    """What to read of a table: columns kept as they are, and columns of values."""

    kept: list[str]
    values: list[str]


Choose = Callable[[str, list[str]], Choice]  # table's name, its columns → what to read of it


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """The columns of an edge list, as far as the user has named them."""

    source: str | None = None
    target: str | None = None
    weight: str | None = None
    kind: str | None = None  # the type of an edge
    may_be_empty: bool = False  # a table of nodes says what the graph is
    texts: ClassVar[frozenset[str]] = frozenset()

    @property
    def named(self) -> list[str]:
        """The names that the user gave."""
        given = (self.source, self.target, self.weight, self.kind)
        return [name for name in given if name is not None]

    def ends(self, table: str, columns: list[str]) -> tuple[str, str]:
        """Source and target: as named, by a usual pair of names, or the first two columns."""
        if len(columns) < 2:
            raise UserError(f"{table} has one column; an edge list needs a source and a target")
        first, second = usual_ends(columns) or (columns[0], columns[1])
        source = find(self.source, table, columns) if self.source is not None else first
        target = find(self.target, table, columns) if self.target is not None else second
        if source == target:
            raise UserError(f"{table}: source and target are both the column {quoted(source)}")
        return source, target

    def weights(self, table: str, columns: list[str]) -> str | None:
        """The weight: as named, or a column called `weight`."""
        if self.weight is not None:
            return find(self.weight, table, columns)
        usual = [column for column in columns if column.lower() == "weight"]
        return usual[0] if usual else None

    def choose(self, table: str, columns: list[str]) -> Choice:
        """Read the two ends, the weight if there is one, and the type if it is asked for."""
        weight, kind = self.weights(table, columns), self.kinds(table, columns)
        kept = [*self.ends(table, columns), *([] if kind is None else [kind])]
        return Choice(kept, [] if weight is None else [weight])

    def kinds(self, table: str, columns: list[str]) -> str | None:
        """The type of an edge, where it is named; neither an end nor the weight."""
        if self.kind is None:
            return None
        found = find(self.kind, table, columns)
        if found in (*self.ends(table, columns), self.weights(table, columns)):
            raise UserError(
                f"{table}: the column {quoted(found)} cannot be the type of an edge too"
            )
        return found


@dataclass(frozen=True, slots=True)
class NodeColumns:
    """The columns of a table of nodes, as far as the user has named them."""

    id: str | None = None
    label: str | None = None
    features: bool = True  # whether the other columns are wanted
    label_elsewhere: bool = False  # the label is in another file; here it is only kept out
    include: tuple[str, ...] = ()  # these columns alone, by name or pattern
    exclude: tuple[str, ...] = ()  # all but these
    texts: frozenset[str] = frozenset()  # categories of an earlier graph, whatever they look like

    @property
    def named(self) -> list[str]:
        """The names that the user gave."""
        return [name for name in (self.id, self.label) if name is not None]

    def ids(self, table: str, columns: list[str]) -> str:
        """The id: as named, or a column called `id` or `node`, or the first."""
        if self.id is not None:
            return find(self.id, table, columns)
        usual = [column for column in columns if column.lower() in IDS]
        return columns[0] if names_ids(columns[0]) or not usual else usual[0]

    def labels(self, table: str, columns: list[str]) -> str | None:
        """The label: as named, or by a usual name; the only other column of a table of labels."""
        ids = self.ids(table, columns)
        others = [column for column in columns if column != ids]
        if self.label is not None and not (self.label_elsewhere and self.label not in others):
            if self.label == ids:
                raise UserError(
                    f"{table}: {quoted(self.label)} is the column of node ids; "
                    "it cannot be the label"
                )
            return find(self.label, table, others)
        usual = [
            column for column in others if column.lower() in LABELS and column not in self.exclude
        ]
        if not usual and not self.features:
            if len(others) == 1:
                return others[0]
            raise UserError(
                f"{table}: which column is the label? --label-column names one of {listed(others)}"
            )
        return usual[0] if usual else None

    def choose(self, table: str, columns: list[str]) -> Choice:
        """Read id and label as they are, and the rest as features if they are wanted."""
        label = self.labels(table, columns)
        kept = [self.ids(table, columns), *([] if label is None else [label])]
        rest = [column for column in columns if column not in kept]
        return Choice(kept, self.wanted(table, rest) if self.features else [])

    def wanted(self, table: str, columns: list[str]) -> list[str]:
        """Those of the columns that may become features; every name must be one of them."""
        for pattern in (*self.include, *self.exclude):
            if not any(_matches(column, pattern) for column in columns):
                raise UserError(
                    f"{table} has no column {quoted(pattern)} to include or exclude; "
                    f"its features are {listed(columns)}"
                )
        return [
            column
            for column in columns
            if (not self.include or any(_matches(column, one) for one in self.include))
            and not any(_matches(column, one) for one in self.exclude)
        ]


def _matches(column: str, pattern: str) -> bool:
    return column == pattern or fnmatchcase(column, pattern)


def usual_ends(
    columns: list[str], pairs: tuple[tuple[str, str], ...] = (*ENDS, *ALSO_ENDS)
) -> tuple[str, str] | None:
    """Two columns that are called as the ends of edges are."""
    lower = {column.lower(): column for column in reversed(columns)}
    return next(((lower[a], lower[b]) for a, b in pairs if a in lower and b in lower), None)


def names_ids(column: str) -> bool:
    """Whether a column is called as ids are."""
    return _ID.fullmatch(column) is not None


def kind_of_id(column: str) -> str | None:
    """What a column holds the ids of: `user` for `user_id`; None where its name does not tell."""
    found = _KIND.fullmatch(column)
    ends = {end for pair in ENDS for end in pair}
    return None if found is None or column.lower() in ends else found[1].lower()


def numbers_rows(ids: NodeColumns, columns: list[str], *, integers: bool, named: bool) -> bool:
    """Whether an index without a name merely numbers the rows, the ids being in a column.

    Args:
        ids: what the user has named.
        columns: the columns beside the index.
        integers: whether the index holds integers.
        named: whether the first of the columns holds texts that are all different.
    """
    if ids.id is not None:
        return ids.id in columns
    return integers and (named or any(map(names_ids, columns)))


def find(name: str, table: str, columns: list[str]) -> str:
    """The column of this name, or an error that lists those there are."""
    if name not in columns:
        raise UserError(f"{table} has no column {quoted(name)}; it has {listed(columns)}")
    return name


def check_names(table: str, columns: list[str]) -> list[str]:
    """A column without a name is called by its place; no name may come twice."""
    columns = [column.strip() or str(place) for place, column in enumerate(columns, 1)]
    if len(set(columns)) < len(columns):
        repeated = next(column for column, times in Counter(columns).items() if times > 1)
        raise UserError(f"{table} has two columns called {quoted(repeated)}")
    return columns


def is_header(rows: list[list[str]], *, named: list[str], nodes: bool) -> bool | None:
    """Whether the first row names the columns; None where only the whole edge list can tell.

    It does where it holds a name that the user gave or a usual pair of names, or has a word
    above a column of numbers. It does not where a number heads a column of numbers. A table of
    nodes that is words alone is assumed to have a header; for an edge list see `stands_apart`.
    """
    first = [cell.strip() for cell in rows[0]]
    words = [name for name in named if not name.isdecimal()]
    if set(words) & set(first):
        return True
    lower = {cell.lower() for cell in first}
    if any({*pair} <= lower for pair in ENDS):
        return True
    if nodes and (first[0].lower() in _USUAL or names_ids(first[0])):
        return True
    below = [[row[place].strip() for row in rows[1:]] for place in range(len(first))]
    numeric = [any(column) and all(map(looks_numeric, filter(None, column))) for column in below]
    if any(yes and not looks_numeric(cell) for cell, yes in zip(first, numeric, strict=True)):
        return True
    if any(map(looks_numeric, first)) or len(words) < len(named):
        return False
    return True if nodes else None


def stands_apart(source: Ids, target: Ids) -> bool:
    """Whether the first row of an edge list of words is a header: neither word occurs again.

    Nor may anything below look like it: `n1` and `n7` are of one kind.
    """
    if len(source) < 2 or not (isinstance(source, list) and isinstance(target, list)):
        return False
    first = {source[0], target[0]}
    if len(first) < 2 or "" in first or any(map(is_number, first)):
        return False
    below = {*source[1:], *target[1:]}
    if first & below:
        return False
    kinds = {_kind(one) for one in first if _kind(one) != one}
    return not kinds or kinds.isdisjoint(map(_kind, below))


def _kind(name: str) -> str:
    """A name with every number in it written alike."""
    return re.sub(r"[0-9]+", "0", name) if not name.isalpha() else name
