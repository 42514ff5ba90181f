"""What is known about the nodes: ids, columns, labels."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from muxgcl.errors import UserError
from muxgcl.io.cells import MARKS, read_texts
from muxgcl.io.ids import Ids, as_text, first_repeat, positions, whole
from muxgcl.io.roles import NodeColumns, names_ids
from muxgcl.io.safety import LONGEST_NAME, how_many, listed, quoted
from muxgcl.io.table import MISSING, Dense, Matrix, Place, Table, counted, is_number

PLAUSIBLE = 20  # classes that are numbers
MOST_NUMBERS = 100  # of which half the nodes may have one of their own
LONGEST_NUMBER = 1000  # characters; a longer label is a word
NO_CLASS = frozenset({"unknown", "unlabelled", "unlabeled", "missing", "none"})
Text = dict[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTable:
    """One row a node. Without columns it only says which nodes there are, in which order."""

    name: str  # as messages call it
    ids: Ids
    numbers: Matrix
    number_names: list[str]
    text: Text = field(default_factory=dict)  # blank: missing
    shown: Text = field(default_factory=dict)  # for a report only, never features
    labels: Ids | None = None  # blank or None: missing
    label_name: str | None = None  # of the column that they are from
    place: Place = field(default_factory=lambda: counted("row"))
    notes: tuple[str, ...] = ()
    numbered: bool = False  # rows are the nodes 0, 1, ...: there should be one for each
    placed: bool = False  # columns have no names but their places
    ours: bool = False  # nobody else holds its numbers
    assumed: str | None = None  # the first column, read as the id though its name does not tell

    def __post_init__(self) -> None:
        check_ids(self.ids, self.name, self.place)
        if (repeat := first_repeat(self.ids)) is not None:
            again, before = repeat
            hint = (
                f" (the first column, {quoted(self.assumed)}, is read as the id; "
                "--id-column names another)"
                if self.assumed is not None
                else ""
            )
            raise UserError(
                f"{self.name}, {self.place(again)}: the id {quoted(as_text(self.ids)[again])} "
                f"is already on {self.place(before)}{hint}"
            )


def only(table: NodeTable, columns: NodeColumns) -> NodeTable:
    """Those columns of a matrix that are wanted; a table with names was read without the others."""
    if not table.placed or not (columns.include or columns.exclude):
        return table
    names = columns.wanted(table.name, table.number_names)
    at = {name: place for place, name in enumerate(table.number_names)}
    numbers = table.numbers[:, [at[name] for name in names]]
    return replace(table, numbers=numbers, number_names=names)


def no_numbers(rows: int) -> Dense:
    """The matrix of a table without numbers."""
    return np.zeros((rows, 0), dtype=np.float32)


def node_table(table: Table, columns: NodeColumns) -> NodeTable:
    """A table's rows as nodes."""
    rows, read = read_texts(table.rows, table.columns, table.name, table.place, columns.texts)
    id_column = columns.ids(table.name, table.columns)
    label_column = columns.labels(table.name, table.columns)
    told = []
    first = id_column == table.columns[0]
    if columns.id is None and not first:
        another = "--id-column names another"
        told.append(f"{table.name}: column {quoted(id_column)} is read as the id ({another})")
    if label_column is not None:
        told.append(f"{table.name}: column {quoted(label_column)} is the label, not a feature")
    return NodeTable(
        name=table.name,
        ids=whole(rows.kept[id_column]),
        numbers=rows.numbers,
        number_names=rows.number_names,
        text=rows.text,
        labels=None if label_column is None else rows.kept[label_column],
        label_name=label_column,
        place=table.place,
        notes=(*table.notes, *told, *read),
        ours=True,
        assumed=id_column if columns.id is None and first and not names_ids(id_column) else None,
    )


def check_ids(ids: Ids, name: str, place: Place) -> None:
    """Refuse blank ids and ids of absurd length."""
    if not isinstance(ids, list):
        return
    if "" in ids:
        raise UserError(f"{name}, {place(ids.index(''))}: the id of a node is blank")
    if (longest := max(map(len, ids), default=0)) > LONGEST_NAME:
        row = next(row for row, one in enumerate(ids) if len(one) == longest)
        raise UserError(
            f"{name}, {place(row)}: an id of {longest:,} characters; "
            f"at most {LONGEST_NAME:,} are read"
        )


def joined_labels(labels: NodeTable, nodes: Ids, of: str) -> list[str]:
    """The label of each node, blank where there is none.

    An array's rows are the nodes 0, 1, ...; those of nodes with names come in their order.
    """
    if labels.labels is None:
        raise UserError(f"{labels.name} has no column of labels")
    if labels.numbered and len(labels.ids) != len(nodes):
        raise UserError(
            f"{labels.name}: expected {how_many(len(nodes), 'label')}, one for each node, "
            f"got {len(labels.ids):,}"
        )
    if labels.numbered and isinstance(nodes, list):
        return as_text(labels.labels)
    spread = [""] * len(nodes)
    for row, label in zip(rows_of(labels, nodes, of), labels.labels, strict=True):
        spread[row] = str(label)
    return spread


def about_order(labels: NodeTable, nodes: Ids) -> list[str]:
    """A line where labels without ids are those of nodes with names."""
    if not labels.numbered or not isinstance(nodes, list):
        return []
    return [f"{labels.name}: taken in the order of the nodes: {listed(nodes[:3])}, ..."]


def rows_of(table: NodeTable, nodes: Ids, of: str) -> list[int]:
    """Where each row of a table stands among the nodes; every row must be one of them."""
    found = positions(table.ids, nodes)
    if len(absent := np.flatnonzero(found < 0)):
        row = int(absent[0])
        raise UserError(
            f"{table.name}, {table.place(row)}: node {quoted(as_text(table.ids)[row])} "
            f"is not in {of}"
        )
    return found.tolist()


def classes(labels: Ids) -> tuple[NDArray[np.int64], list[str]]:
    """The class of each node, and the classes' names: integers by size, words by their letters.

    Whole numbers are integers however they are written: `1.0` is what is left of 1 in a column that
    once had a gap.
    """
    texts = ["" if text in MISSING else text for text in as_text(labels)]
    different = set(texts) - {""}
    integers = {text: value for text in different if (value := _integer(text)) is not None}
    if integers.keys() == different:
        rank = {value: number for number, value in enumerate(sorted(set(integers.values())))}
        order = [str(value) for value in rank]
        code = {text: rank[value] for text, value in integers.items()}
    else:
        order = sorted(different)
        code = {text: number for number, text in enumerate(order)}
    return np.array([code.get(text, -1) for text in texts], dtype=np.int64), order


def about_classes(table: NodeTable, y: NDArray[np.int64], names: list[str]) -> list[str]:
    """Lines about classes that may be none, and about numbers that are read as classes."""
    which = f"label {quoted(table.label_name)}" if table.label_name else table.name
    notes = _about_numbers(table, y, names)
    if len(names) > 2 and (doubtful := [name for name in names if _is_doubtful(name)]):
        classes = "a class" if len(doubtful) == 1 else "classes"
        notes.append(
            f"{which}: {listed(doubtful)} read as {classes}; leave the cell blank where a node has "
            "none"
        )
    spellings: dict[str, list[str]] = {}
    for name in names:
        spellings.setdefault(name.casefold(), []).append(name)
    if alike := next((one for one in spellings.values() if len(one) > 1), None):
        notes.append(f"{which}: {listed(alike)} are different classes")
    return notes


def _is_doubtful(name: str) -> bool:
    """Whether a class is called as a node without one often is."""
    return name in MARKS or name == "-1" or name.casefold() in NO_CLASS


def _about_numbers(table: NodeTable, y: NDArray[np.int64], names: list[str]) -> list[str]:
    """A line about numbers that are read as many classes; too many of them are refused."""
    whole_ones = all(_integer(name) is not None for name in names)
    if len(names) <= PLAUSIBLE or not (whole_ones or all(map(is_number, names))):
        return []
    label = table.label_name
    if len(names) > MOST_NUMBERS and 2 * len(names) > int((y >= 0).sum()):
        many = f"{len(names):,} different numbers: muxgcl scores classes only"
        if label is None:
            raise UserError(f"{table.name}: {many}; train without them, or bin them first")
        raise UserError(
            f"column {quoted(label)} holds {many}; "
            f"--exclude {label} trains without it, or bin it first"
        )
    if label is None and whole_ones:  # an array of the numbers of classes
        return []
    which = f"label {quoted(label)}" if label else table.name
    return [f"{which}: the numbers are read as {len(names):,} classes"]


def _integer(text: str) -> int | None:
    if not is_number(text):
        return None
    if len(text) > LONGEST_NUMBER:
        return None
    if text.lstrip("-").isdecimal():
        return int(text)
    value = float(text)
    return int(value) if value.is_integer() else None
