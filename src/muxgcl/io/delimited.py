"""CSV, TSV and other text with one record a line, read without pandas."""

import csv
import re
from array import array
from collections import deque
from collections.abc import Iterator, MutableSequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

import numpy as np

from muxgcl.errors import UserError
from muxgcl.io.arrow_text import ArrowReader, is_plain
from muxgcl.io.cells import looks_numeric
from muxgcl.io.ids import read_ids
from muxgcl.io.roles import (
    Choice,
    EdgeColumns,
    NodeColumns,
    check_names,
    is_header,
    numbers_rows,
    stands_apart,
)
from muxgcl.io.safety import how_many, listed, parsing
from muxgcl.io.table import (
    CELLS,
    Block,
    Dense,
    Place,
    Table,
    check_finite,
    gather,
    lean,
    numbers_in,
    settle,
    stripped,
)
from muxgcl.io.text_files import check_text, open_text, without_gz

_BRACES = re.compile(r"[\s,;|]+\{.*\}\s*$")  # NetworkX's attributes of an edge


def read_delimited(
    path: Path, columns: EdgeColumns | NodeColumns, *, header: bool | None = None
) -> Table:
    """Read the columns that are asked for.

    Lines that begin with `#` or `%` before the first record are comments. The separator is a tab in
    `.tsv`, else whichever of comma, semicolon, tab and `|` the first record has most of, else
    spaces. Attributes in braces at the end of a line, as NetworkX writes them, are not read. A
    file whose name ends in `.gz` is unpacked on the way.
    """
    check_text(path)
    with parsing(path, "text"), open_text(path) as file:
        records = _records(file, path, array("q"))
        first = next(records, None)
        if first is None:
            raise UserError(f"{path} is empty")
        some = [first, *islice(records, max(1, min(1000, CELLS // len(first))))]
        nodes = isinstance(columns, NodeColumns)
        if (known := header) is None:
            known = is_header(some, named=columns.named, nodes=nodes)
        file.seek(0)
        _, opening, delimiter = _opening(file, path)
        braces = _has_braces(opening, path)
        plain = not braces and is_plain(path, delimiter)
        table = _table(file, path, columns, some, header=bool(known), plain=plain)
        if known is None and isinstance(columns, EdgeColumns):
            ends = columns.ends(table.name, table.columns)
            if stands_apart(*(table.rows.kept[end] for end in ends)):
                table = _table(file, path, columns, some, header=True, plain=plain)
                note = (
                    f"{path}: line 1 is a header ({listed(first)}), because its words occur "
                    "nowhere else; --no-header reads it as an edge"
                )
                table = replace(table, notes=(*table.notes, note), guessed=True)
    if braces:
        note = f"{path}: attributes in braces are not read (GraphML keeps them)"
        table = replace(table, notes=(*table.notes, note))
    return table


def _table(
    file: TextIO,
    path: Path,
    columns: EdgeColumns | NodeColumns,
    some: list[list[str]],
    *,
    header: bool,
    plain: bool,
) -> Table:
    first = some[0]
    names = first if header else [str(place) for place in range(1, len(first) + 1)]
    names = check_names(str(path), names)
    seen, notes = names, tuple[str, ...]()
    if header and not first[0].strip() and _numbers_rows(columns, names, some[1:]):
        seen, notes = names[1:], (f"{path}: its first column numbers the rows, not used",)
    reader = _Reader(path, names, columns.choose(str(path), seen), skip=int(header))
    if plain and len(names) > 1:
        file.seek(0)
        comments, _, delimiter = _opening(file, path)
        skip = comments + int(header)
        reader.arrow = ArrowReader(path, names, reader.choice, some, delimiter, skip=skip)
    rows = gather(lambda as_text: reader.blocks(file, as_text | columns.texts))
    if rows is None:
        if not (isinstance(columns, EdgeColumns) and columns.may_be_empty):
            raise UserError(f"{path} has a header but no rows")
        rows = Block.empty(reader.choice.kept, reader.choice.values)
        notes += (f"{path} has a header but no rows: the graph has no edges",)
    return Table(
        name=str(path),
        columns=seen,
        rows=rows,
        place=reader.place,
        headless=not header,
        notes=notes,
    )


def _numbers_rows(
    columns: EdgeColumns | NodeColumns, names: list[str], rows: list[list[str]]
) -> bool:
    """Of a first column without a name, as pandas and R write the numbers of rows."""
    if len(names) < 3 or not all(row[0].strip().isdecimal() for row in rows):
        return False
    if isinstance(columns, EdgeColumns):
        return names[0] not in columns.named
    texts = [row[1].strip() for row in rows]
    differ = len(set(texts)) == len(texts) and not any(map(looks_numeric, texts))
    return numbers_rows(columns, names[1:], integers=True, named=differ)


class _Reader:
    """Blocks of one file, and the line that each row came from."""

    def __init__(self, path: Path, names: list[str], choice: Choice, *, skip: int) -> None:
        self.path, self.choice, self.skip = path, choice, skip
        self.at = {name: position for position, name in enumerate(names)}
        self.lines = array("q")  # of every record, the header included
        self.arrow: ArrowReader | None = None  # for what it can read

    def place(self, row: int) -> str:
        if not self.lines:  # pyarrow does not count them
            with open_text(self.path) as file:
                deque(_records(file, self.path, self.lines), maxlen=0)
        return f"line {self.lines[row + self.skip]:,}"

    def blocks(self, file: TextIO, as_text: frozenset[str]) -> Iterator[Block]:
        if self.arrow is not None and self.arrow.usable:
            yield from self.arrow.blocks(as_text)
            return
        file.seek(0)
        del self.lines[:]
        records = islice(_records(file, self.path, self.lines), self.skip, None)
        start = 0
        while rows := list(islice(records, max(1, CELLS // len(self.at)))):
            yield self._block(rows, start, as_text)
            start += len(rows)

    def _block(self, rows: list[list[str]], start: int, as_text: frozenset[str]) -> Block:
        def place(row: int) -> str:
            return self.place(start + row)

        def column(name: str) -> list[str]:
            return [row[self.at[name]] for row in rows]

        kept = {
            name: read_ids([cell.strip() for cell in column(name)]) for name in self.choice.kept
        }
        if not as_text and (numbers := self._numbers(rows, place)) is not None:
            return Block(kept=kept, text={}, numbers=lean(numbers), number_names=self.choice.values)
        values = {
            name: stripped(column(name))
            if name in as_text
            else settle(column(name), name, str(self.path), place)
            for name in self.choice.values
        }
        return Block.of(len(rows), kept, values)

    def _numbers(self, rows: list[list[str]], place: Place) -> Dense | None:
        """All value columns in one go, or None where a cell is blank or not a number."""
        names = self.choice.values
        if not names:
            return np.zeros((len(rows), 0), np.float32)
        wanted = [self.at[name] for name in names]
        try:
            numbers = numbers_in([[row[at] for at in wanted] for row in rows])
        except ValueError:
            return None
        check_finite(numbers, names, str(self.path), place, where=~np.isnan(numbers))
        return numbers


def _records(file: TextIO, path: Path, lines: MutableSequence[int]) -> Iterator[list[str]]:
    """Every record, all of the same number of fields; its line is added to `lines`."""
    comments, opening, delimiter = _opening(file, path)
    physical: Iterator[str] = chain([opening], iter(file.readline, ""))
    if _has_braces(opening, path):
        physical = (_BRACES.sub("\n", line) for line in physical)
    if delimiter == " ":
        physical = (line.strip(" \r\n") for line in physical)
    reader = csv.reader(physical, delimiter=delimiter, strict=True, skipinitialspace=True)
    width = 0
    try:
        for cells in reader:
            if not cells or cells == [""]:  # a blank line
                continue
            lines.append(comments + reader.line_num)
            width = width or len(cells)
            if len(cells) != width:
                raise UserError(
                    f"{path}, line {lines[-1]:,}: {how_many(len(cells), 'field')}, "
                    f"but line {lines[0]:,} has {width}"
                )
            yield cells
    except csv.Error as fault:
        line = comments + reader.line_num
        raise UserError(f"{path}, line {line:,}: {fault}") from fault


def _opening(file: TextIO, path: Path) -> tuple[int, str, str]:
    """How many lines come before the first record, its first line, and what separates cells."""
    comments, opening = 0, file.readline()
    while opening and (opening.startswith(("#", "%")) or not opening.strip()):
        comments, opening = comments + 1, file.readline()
    edge = _BRACES.sub("\n", opening) if _has_braces(opening, path) else opening
    return comments, opening, _delimiter(edge, path)


def _has_braces(line: str, path: Path) -> bool:
    return without_gz(path).suffix.lower() not in (".csv", ".tsv") and bool(_BRACES.search(line))


def _delimiter(line: str, path: Path) -> str:
    kind = without_gz(path).suffix.lower()
    if kind == ".tsv":
        return "\t"
    line = re.sub('"[^"]*"', "", line)  # what is quoted separates nothing
    if ";" in line or "\t" in line:
        line = re.sub(r"(?<=[0-9]),(?=[0-9])", "", line)  # nor does a decimal comma
    most = max(",;\t|", key=line.count)
    return most if most in line or kind == ".csv" else " "
