"""Columns → features, by rules that are the same for every format.

- Numbers are scaled to zero mean and unit variance, except columns of 0 and 1, and except a wide
  table that is mostly zeros (indicators or counts): these are kept as they are, and stay sparse.
- Text is one-hot encoded if it is a category: at most 256 different texts, each used twice on
  average (or at most 16, not all different). Other text (names, sentences) is left out.
- A missing number becomes the mean, or 0 in a column that is kept as it is; a missing category
  becomes zeros.
"""

import warnings
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.io.nodes import NodeTable
from muxgcl.io.safety import check_size, how_many, listed, quoted
from muxgcl.io.structure import NAMES
from muxgcl.io.table import WIDE, Dense, Matrix, Place, is_bag, is_number, row_blocks, to_dense

MOST_CATEGORIES = 256
ALWAYS_CATEGORIES = 16
MOSTLY = 0.9  # numbers in so many cells of a column make a word in it a mistake
ROOM = 1 << 28  # bytes that features may always take; beyond that they are sparse if ...
SPARSE_BELOW = 0.1  # ... at most this share of them is not zero
COARSE = 64  # steps between 32-bit numbers: a column that spans fewer has lost what it had to say
AS_IS = (0.0, 1.0)
GAPS = (-99.0, -999.0, -9999.0, -99999.0)  # that often stand where a number is missing

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Encoding:
    """What was learned from the columns of one graph, so that another is encoded alike.

    Args:
        numbers: a column's shift and scale; its feature is `(value - shift) / scale`.
        categories: a column's texts, one feature each.
        structure: whether features made from the edges stand beside the columns.
    """

    numbers: dict[str, tuple[float, float]] = field(default_factory=dict)
    categories: dict[str, list[str]] = field(default_factory=dict)
    structure: bool = False

    def names(self, features: int) -> list[str]:
        """Of so many features: `age`, `city=Oslo`, then what was made from edges; else places."""
        one_hot = [f"{name}={text}" for name, texts in self.categories.items() for text in texts]
        found = [*self.numbers, *one_hot]
        if self.structure or (not found and features == len(NAMES)):
            found += NAMES
        return found or [str(place) for place in range(features)]

    @property
    def changes(self) -> bool:
        """Whether features are other numbers than those in the columns."""
        return bool(self.categories) or any(rule != AS_IS for rule in self.numbers.values())

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON; `from_dict` brings it back exactly."""
        numbers = {name: list(rule) for name, rule in self.numbers.items()}
        stored = {"numbers": numbers, "categories": self.categories}
        return {**stored, "structure": True} if self.structure else stored

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """The encoding that `as_dict` wrote."""
        numbers = {name: (shift, scale) for name, (shift, scale) in stored["numbers"].items()}
        return cls(numbers, dict(stored["categories"]), bool(stored.get("structure")))


def learn_encoding(table: NodeTable, *, scale: bool = True) -> tuple[Encoding, list[str]]:
    """Choose a rule for each column; the notes say which."""
    numbers, notes = _learn_numbers(table, scale)
    categories = {}
    for name, cells in table.text.items():
        check_one_kind(cells, name, table.name, table.place)
        texts = sorted(set(cells) - {""})
        given = sum(map(bool, cells))
        most = min(MOST_CATEGORIES, max(ALWAYS_CATEGORIES, given // 2))
        if len(texts) <= most and len(texts) < given:
            categories[name] = texts
            kinds = how_many(len(texts), "category", "categories")
            notes.append(f"column {quoted(name)}: {kinds} one-hot encoded")
        else:
            kinds = how_many(len(texts), "value", "different values")
            told = f"text, {kinds}: not used as a feature{_almost_numbers(texts)}"
            notes.append(f"column {quoted(name)}: {told}")
    return Encoding(numbers, categories), notes


def _almost_numbers(texts: list[str]) -> str:
    """What keeps most texts of a column from being its numbers."""
    words = [text for text in texts if not is_number(text)]
    if 2 * len(words) > len(texts):
        return ""
    return f"; numbers but for {listed(words, 3)}; leave a cell blank where there is no number"


def _learn_numbers(
    table: NodeTable, scale: bool
) -> tuple[dict[str, tuple[float, float]], list[str]]:
    names = table.number_names
    if not names:
        return {}, []
    blank = [name for name, empty in zip(names, _blank(table.numbers), strict=True) if empty]
    notes = []
    if blank:
        notes.append(f"{_columns(blank)} {'is' if len(blank) == 1 else 'are'} blank: zeros")
    if not scale or is_bag(table.numbers):
        if kept := len(names) - len(blank):
            why = "wide and mostly zeros" if scale else "as asked"
            many = how_many(kept, "column kept as it is", "columns kept as they are")
            notes.append(f"{many}: {why}")
        return dict.fromkeys(names, AS_IS), notes
    rules, scaled, flat, coarse, gaps = {}, [], [], [], []
    for name, column in zip(names, to_dense(table.numbers).T, strict=True):
        given = column[~np.isnan(column)].astype(np.float64)
        if ((given == 0) | (given == 1)).all():
            rules[name] = AS_IS
        else:
            rules[name] = (float(given.mean()), float(given.std()) or 1.0)
            scaled.append(name)
            if given.min() in GAPS and (given < 0).sum() == (given == given.min()).sum() > 1:
                gaps.append(name)
            if np.ptp(given) == 0:
                flat.append(name)
            elif np.ptp(given) < COARSE * np.spacing(np.float32(np.abs(given).max())):
                coarse.append(name)
    aside = {*scaled, *blank}
    if as_is := [name for name in names if name not in aside]:
        one = f"{_columns(as_is)}: 0 and 1, kept as it is"
        notes.append(
            one if len(as_is) == 1 else f"{len(as_is):,} columns of 0 and 1 kept as they are"
        )
    if scaled:
        notes.append(f"{_columns(scaled)}: scaled to zero mean, unit variance")
    if flat:
        notes.append(f"{_columns(flat)}: constant: zeros")
    if gaps:
        notes.append(
            f"{_columns(gaps)}: the one negative number is like {GAPS[1]:g}; leave a cell blank "
            "where there is no number"
        )
    if coarse:
        notes.append(f"{_columns(coarse)}: almost the same in 32 bits; subtract an offset first")
    return rules, notes


def _blank(numbers: Matrix) -> Mask:
    """Columns in which nothing is given."""
    rows, columns = numbers.shape
    if isinstance(numbers, csr_array):
        missing = numbers.indices[np.isnan(numbers.data)]
        return np.bincount(missing, minlength=columns) == rows
    blank = np.ones(columns, dtype=bool)
    for _, block in row_blocks(numbers):
        blank &= np.isnan(block).all(0)
    return blank


def _columns(names: list[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {listed(names)}"


def check_one_kind(cells: list[str], name: str, table: str, place: Place) -> None:
    """A word in a column of numbers is more likely a slip than a category."""
    given = [cell for cell in cells if cell]
    if given and sum(map(is_number, given)) >= MOSTLY * len(given):
        row = next(row for row, cell in enumerate(cells) if cell and not is_number(cell))
        raise UserError(
            f"{table}, {place(row)}: column {quoted(name)} holds numbers, but here "
            f"{quoted(cells[row])}; leave the cell blank where there is no number"
        )


def encode(table: NodeTable, encoding: Encoding) -> tuple[Tensor, list[str]]:
    """Features [nodes, columns]: numbers first, then categories; the notes say what was missing."""
    known = {*table.number_names, *table.text}
    if _unnamed(encoding.numbers) and _unnamed(table.number_names):
        got, wanted = len(table.number_names), len(encoding.numbers)
        if got != wanted:
            raise UserError(
                f"{table.name} has {how_many(got, 'feature')}; the model was trained on {wanted:,}"
            )
    if absent := [name for name in (*encoding.numbers, *encoding.categories) if name not in known]:
        verb, which = ("is", "it") if len(absent) == 1 else ("are", "them")
        raise UserError(
            f"{_columns(absent)} {verb} missing from {table.name}; the model was trained on {which}"
        )
    numbers, given, notes = _encode_numbers(table, encoding)
    parts: list[Matrix] = [numbers]
    for name, texts in encoding.categories.items():
        if name not in table.text:
            raise UserError(f"{table.name}: column {quoted(name)} holds numbers; expected text")
        parts.append(_one_hot(table.text[name], texts))
        seen = set(table.text[name])
        if strange := sorted(seen - {""} - set(texts)):
            notes.append(f"column {quoted(name)}: unknown, so left at zero: {listed(strange)}")
        if "" in seen:
            notes.append(f"column {quoted(name)}: {table.text[name].count(''):,} missing, zeros")
        given |= np.array(list(map(bool, table.text[name])))
    if nothing := int((~given).sum()):
        notes.append(f"{how_many(nothing, 'node has', 'nodes have')} no features: zeros")
    return as_tensor(parts), notes


def _unnamed(names: Collection[str]) -> bool:
    """Whether these are columns of a matrix, which go by their place."""
    return bool(names) and list(names) == [str(place) for place in range(len(names))]


def _encode_numbers(table: NodeTable, encoding: Encoding) -> tuple[Matrix, Mask, list[str]]:
    """The features, which nodes anything is given of, and what was missing.

    They are written over the numbers of a wide table that nobody else holds.
    """
    names = list(encoding.numbers)
    if words := [name for name in names if name in table.text]:
        raise UserError(f"{table.name}: column {quoted(words[0])} holds text; expected numbers")
    numbers: Matrix = table.numbers
    if names != table.number_names:
        at = {name: position for position, name in enumerate(table.number_names)}
        numbers = numbers[:, [at[name] for name in names]]
    rules = list(encoding.numbers.values())
    spent = table.ours and len(table.number_names) > WIDE  # leaks and reports look at fewer columns
    if any(rule != AS_IS for rule in rules):
        numbers = to_dense(numbers) if spent else to_dense(numbers).copy()
        for column, (shift, scale) in zip(numbers.T, rules, strict=True):
            column[:] = (column.astype(np.float64) - shift) / scale
    given, missing = _given(numbers)
    if not missing:
        return numbers, given, []
    numbers = numbers if spent else numbers.copy()
    entries = numbers.data if isinstance(numbers, csr_array) else numbers
    np.nan_to_num(entries, copy=False)  # after scaling, 0 is the mean
    many = how_many(missing, "missing number")
    return numbers, given, [f"{many} set to the mean, or to 0 in columns kept as is"]


def _given(numbers: Matrix) -> tuple[Mask, int]:
    """Rows with a number (in a bag of words, with a word), and how many numbers are missing."""
    if isinstance(numbers, csr_array):
        absent = np.isnan(numbers.data)
        words = np.concatenate([[0], np.cumsum(~absent)])  # up to each entry
        return np.diff(words[numbers.indptr]) > 0, int(absent.sum())
    given, missing = np.zeros(len(numbers), dtype=bool), 0
    for start, block in row_blocks(numbers):
        absent = np.isnan(block)
        given[start : start + len(block)] = ~absent.all(1)
        missing += int(absent.sum())
    return given, missing


def _one_hot(cells: list[str], texts: list[str]) -> csr_array:
    code = {text: column for column, text in enumerate(texts)}
    found = [(row, code[cell]) for row, cell in enumerate(cells) if cell in code]
    rows, columns = np.array(found, dtype=np.int64).reshape(-1, 2).T
    shape = len(cells), len(texts)
    return csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)


def as_tensor(parts: list[Matrix]) -> Tensor:
    """Side by side: dense, or sparse where dense would be large and mostly zeros."""
    rows, columns = parts[0].shape[0], sum(part.shape[1] for part in parts)
    filled = sum(
        part.nnz if isinstance(part, csr_array) else int(np.count_nonzero(part)) for part in parts
    )
    size = rows * columns
    if 4 * size > ROOM and filled <= SPARSE_BELOW * size:
        entries = hstack([csr_array(part) for part in parts], format="coo")
        where = torch.from_numpy(np.stack(entries.coords).astype(np.int64))
        values = torch.from_numpy(entries.data.astype(np.float32))
        shape = rows, columns
        return torch.sparse_coo_tensor(where, values, shape, check_invariants=True).coalesce()
    check_size("the dense table of features", 4 * size)
    tables: list[Dense] = [to_dense(part) for part in parts]
    dense = tables[0] if len(tables) == 1 else np.hstack(tables)
    with warnings.catch_warnings():  # nobody writes to features, not to a read-only map either
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(dense, dtype=np.float32))
