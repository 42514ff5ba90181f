"""A table as every reader hands it over: kept columns, text columns, and one matrix of numbers.

Numbers are read in single precision whatever the file stores, so that a graph's features do not
depend on its format. A table is read block by block, and a block that is wide and mostly zeros is
kept sparse at once: 8,000 indicators of 34,000 nodes never stand in memory as 8,000 x 34,000.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from muxgcl.errors import UserError
from muxgcl.io.ids import Ids, join
from muxgcl.io.safety import check_size, quoted

CELLS = 1 << 16  # read and converted at a time
GROWTH = 16  # a table that is full grows by this part of its rows
WIDE = 64  # a table of so many numbers with ...
FILLED = 0.25  # ... at most this share of them not zero is a bag of words: indicators or counts
MISSING = frozenset({"", "NA", "N/A", "null", "NULL", "None", "NaN", "nan", "NAN"})
TRUTH = {"true": 1.0, "false": 0.0}

Dense = NDArray[np.float32]
Matrix: TypeAlias = Dense | csr_array  # [rows, columns]
Place = Callable[[int], str]  # row → "line 7", for messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some rows of a table."""

    kept: dict[str, Ids]  # ids and labels, never turned into numbers
    text: dict[str, list[str]]  # blank: missing
    numbers: Matrix  # NaN: missing
    number_names: list[str]

    @classmethod
    def of(cls, rows: int, kept: dict[str, Ids], values: dict[str, Dense | list[str]]) -> Self:
        """From one column each."""
        dense = {name: cells for name, cells in values.items() if not isinstance(cells, list)}
        numbers = np.stack(list(dense.values()), 1) if dense else np.zeros((rows, 0), np.float32)
        return cls(
            kept=kept,
            text={name: cells for name, cells in values.items() if isinstance(cells, list)},
            numbers=lean(numbers),
            number_names=list(dense),
        )

    @classmethod
    def empty(cls, kept: Iterable[str], values: Iterable[str]) -> Self:
        """No rows of these columns."""
        return cls.of(
            0,
            {name: np.zeros(0, np.int64) for name in kept},
            {name: np.zeros(0, np.float32) for name in values},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All rows of a table."""

    name: str  # as messages call it
    columns: list[str]  # in the order of the file, those left out included
    rows: Block
    place: Place
    headless: bool = False  # no header was found: columns are called "1", "2", ...
    guessed: bool = False  # that the first line is a header
    notes: tuple[str, ...] = ()


def gather(read: Callable[[frozenset[str]], Iterator[Block]]) -> Block | None:
    """Stack blocks; a column that is numbers in one block and text in another is read as text."""
    rows, text = _read_whole(read, frozenset())
    return _read_whole(read, text)[0] if rows is None and text else rows


class ReadAgain(Exception):
    """The blocks so far do not count: the reader goes another way when it is called again."""


def _read_whole(
    read: Callable[[frozenset[str]], Iterator[Block]], as_text: frozenset[str]
) -> tuple[Block | None, frozenset[str]]:
    while True:
        with suppress(ReadAgain):
            return _stacked(read(as_text))


def _stacked(blocks: Iterator[Block]) -> tuple[Block | None, frozenset[str]]:
    """All blocks as one, and the columns that are text in any of them.

    None if there are no blocks, or if they differ in which columns are text. Memory holds the table
    and one block.
    """
    first, numbers, text = None, _Growing(), set[str]()
    kept: dict[str, list[Ids]] = {}
    texts: dict[str, list[str]] = {}
    alike = True
    for block in blocks:
        first = block if first is None else first
        text |= block.text.keys()
        alike = alike and block.text.keys() == first.text.keys()
        if not alike:  # all that is wanted of the rest is which columns are text
            numbers = _Growing()
            continue
        numbers.add(block.numbers)
        for name, ids in block.kept.items():
            kept.setdefault(name, []).append(ids)
        for name, cells in block.text.items():
            texts.setdefault(name, []).extend(cells)
    if first is None or not alike:
        return None, frozenset(text)
    whole = Block(
        kept={name: join(parts) for name, parts in kept.items()},
        text=texts,
        numbers=numbers.whole(),
        number_names=first.number_names,
    )
    return whole, frozenset(text)


def is_bag(matrix: Matrix) -> bool:
    """Whether a matrix is wide and mostly zeros, so that its columns are indicators or counts."""
    rows, columns = matrix.shape
    filled = matrix.nnz if isinstance(matrix, csr_array) else np.count_nonzero(matrix)
    return bool(columns >= WIDE and filled <= FILLED * rows * columns)


def lean(matrix: Matrix) -> Matrix:
    """Sparse where it is a bag of words, dense otherwise; zeros are not stored."""
    if isinstance(matrix, csr_array):
        matrix.eliminate_zeros()
    if is_bag(matrix):
        return matrix if isinstance(matrix, csr_array) else csr_array(matrix)
    return to_dense(matrix)


def to_dense(matrix: Matrix) -> Dense:
    """Every entry written out, if there is room for it."""
    if not isinstance(matrix, csr_array):
        return matrix
    check_size("the dense table of features", 4 * matrix.shape[0] * matrix.shape[1])
    return matrix.toarray()


class _Growing:
    """Matrices one below the other: dense ones in one table that grows where it is."""

    def __init__(self) -> None:
        self.table: Dense | None = None
        self.ours = False  # the table is a block of somebody else's until it grows
        self.rows = 0  # of the table that are filled
        self.rest: list[Matrix] = []  # from the first sparse one on

    def add(self, matrix: Matrix) -> None:
        """Put a matrix below the others."""
        if self.rest or isinstance(matrix, csr_array):
            self.rest.append(matrix)
            return
        end = self.rows + len(matrix)
        if self.table is None:
            self.table = matrix
        else:
            if end > len(self.table):
                self._resize(end + end // GROWTH)
            self.table[self.rows : end] = matrix
        self.rows = end

    def whole(self) -> Matrix:
        """All of them."""
        if self.table is not None and len(self.table) > self.rows:
            self._resize(self.rows)
        parts = self.rest if self.table is None else [self.table, *self.rest]
        if len(parts) == 1:
            return parts[0]
        return lean(vstack([csr_array(part) for part in parts], format="csr"))

    def _resize(self, rows: int) -> None:
        assert self.table is not None
        if not self.ours:
            self.table, self.ours = np.array(self.table, order="C"), True
        # the system moves large tables without copying them; nobody else holds this one
        self.table.resize((rows, self.table.shape[1]), refcheck=False)


def settle(texts: list[str], name: str, table: str, place: Place) -> Dense | list[str]:
    """Numbers if every cell that is given is one (`true` is 1, `false` 0), else stripped text."""
    try:
        values = numbers_in(texts)
    except ValueError:
        meaning = {text: _number(text.strip()) for text in set(texts)}
        if None in meaning.values():
            return stripped(texts)
        with np.errstate(over="ignore"):
            values = np.array([meaning[text] for text in texts], dtype=np.float32)
    check_finite(values[:, None], [name], table, place, where=~np.isnan(values[:, None]))
    return values


def stripped(texts: list[str]) -> list[str]:
    """Cells without the space around them, blank where they say that there is no value."""
    return ["" if (cell := text.strip()) in MISSING else cell for text in texts]


def numbers_in(texts: list[str] | list[list[str]]) -> Dense:
    """Parse text as numbers, or raise ValueError; NaN is missing, infinities the caller refuses."""
    rows = [texts] if texts and isinstance(texts[0], str) else texts
    if any("_" in "".join(row) for row in rows):  # see is_number
        raise ValueError("not a number")
    with np.errstate(over="ignore"):
        return np.array(texts, dtype=np.float32)


def is_number(text: str) -> bool:
    """Whether a cell is a number as Python reads it, but for underscores."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python would read 20_21 as 2021


def _number(text: str) -> float | None:
    """A stripped cell's number: NaN where it is missing, None where it is a word."""
    if text in MISSING:
        return float("nan")
    if text.lower() in TRUTH:
        return TRUTH[text.lower()]
    return float(text) if is_number(text) else None


def check_finite(
    values: Matrix,
    names: list[str],
    table: str,
    place: Place,
    where: NDArray[np.bool_] | None = None,
) -> None:
    """Refuse NaN and infinity (where a mask says, or everywhere), naming column and first row."""
    if where is None and not isinstance(values, csr_array) and values.size > CELLS:
        for start, block in row_blocks(values):
            check_finite(block, names, table, _later(place, start))
        return
    entries = values.data if isinstance(values, csr_array) else values
    wrong = ~np.isfinite(entries)
    if where is not None:
        wrong &= where
    if not wrong.any():
        return
    if isinstance(values, csr_array):
        at = int(np.flatnonzero(wrong)[0])
        row, column = int(np.searchsorted(values.indptr, at, side="right")) - 1, values.indices[at]
    else:
        row, column = (int(axis[0]) for axis in np.nonzero(wrong))
    value = "NaN" if np.isnan(values[row, column]) else "infinity or more than 3.4e38"
    raise UserError(
        f"{table}, {place(row)}: column {quoted(names[column])} holds {value}; "
        "expected a finite number"
    )


def row_blocks(table: Dense) -> Iterator[tuple[int, Dense]]:
    """Some rows at a time, and the number of the first: a mapped table is never held whole."""
    size = max(1, CELLS // max(1, table.shape[1]))
    for start in range(0, len(table), size):
        yield start, table[start : start + size]


def _later(place: Place, start: int) -> Place:
    return lambda row: place(row + start)


def counted(word: str, first: int = 1) -> Place:
    """Rows named by their number: `row 7`."""
    return lambda row: f"{word} {row + first:,}"
