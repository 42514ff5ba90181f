"""Large text tables, parsed by pyarrow where it is installed: the same cells, many times as fast.

Only text that pyarrow and Python's csv cannot read differently comes here, see `is_plain`. Whatever
pyarrow refuses is left to `delimited`, which names the line of a mistake.
"""

import codecs
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.errors import UserError
from muxgcl.io.ids import Ids, read_ids
from muxgcl.io.roles import Choice
from muxgcl.io.table import (
    MISSING,
    Block,
    Dense,
    ReadAgain,
    counted,
    is_number,
    lean,
    settle,
    stripped,
)
from muxgcl.io.text_files import open_binary

SMALL = 1 << 20  # bytes up to which loading pyarrow takes longer than reading without it
PIECE = 1 << 22  # bytes that are parsed at a time
LONGEST_CELL = 1 << 17  # characters; Python's csv refuses longer ones


def is_plain(path: Path, delimiter: str) -> bool:
    """Whether a file is large text of which csv and pyarrow make the same cells.

    That is UTF-8 without lone carriage returns, whose quotes stand around whole cells of one line;
    with spaces between cells, one at a time and no quotes. Raises nothing: a fault is found in
    reading.
    """
    if path.stat().st_size <= SMALL or find_spec("pyarrow") is None:
        return False
    decoder = codecs.getincrementaldecoder("utf-8")()
    last, quotes = b"\n", 0
    with open_binary(path) as file:
        while piece := file.read(PIECE):
            while piece[-1:] in b'"\r' and (more := file.read(1)):  # what follows tells its sense
                piece += more
            try:
                decoder.decode(piece)
            except UnicodeDecodeError:
                return False
            if b"\r" in piece and piece.count(b"\r") != piece.count(b"\r\n"):
                return False
            joined = last + piece
            spaces = (b'"', b"  ", b"\n ", b" \n", b" \r")
            if delimiter == " " and any(one in joined for one in spaces):
                return False
            if b'"' in piece:
                if not _quoted_whole(joined, quotes, delimiter):
                    return False
                quotes += piece.count(b'"')
            elif quotes % 2 and b"\n" in piece:
                return False
            last = piece[-1:]
    return quotes % 2 == 0


def _quoted_whole(text: bytes, before: int, delimiter: str) -> bool:
    """Whether each quote of a piece opens or closes a cell of one line, or is one of two inside.

    `text` begins with the byte before the piece, which is no quote unless nothing follows it;
    `before` is how many quotes came earlier.
    """
    codes = np.frombuffer(text + b"\n", np.uint8)
    at = np.flatnonzero(codes[1:-1] == ord('"')) + 1
    opens = (np.arange(len(at)) + before) % 2 == 0
    left, right = codes[at - 1], codes[at + 1]
    outside = [ord("\n"), ord(delimiter), ord('"')]
    whole = np.where(opens, np.isin(left, outside), np.isin(right, [*outside, ord("\r")]))
    lines = np.flatnonzero(codes[1:-1] == ord("\n")) + 1
    inside = (np.searchsorted(at, lines) + before) % 2
    return bool(whole.all() and not inside.any())


class ArrowReader:
    """Blocks of one plain file."""

    def __init__(
        self,
        path: Path,
        names: list[str],
        choice: Choice,
        some: list[list[str]],
        delimiter: str,
        *,
        skip: int,
    ) -> None:
        """`some`: records to judge columns by; `skip`: lines before the first row."""
        self.path, self.names, self.choice = path, names, choice
        self.delimiter, self.skip, self.usable = delimiter, skip, True
        at = {name: place for place, name in enumerate(names)}
        self.numeric = [
            name
            for name in choice.values
            if all(_numeric(row[at[name]].strip()) for row in some[1:])
        ]

    def blocks(self, as_text: frozenset[str]) -> Iterator[Block]:
        """All blocks, or `ReadAgain`: then as text, and if that fails too, not by pyarrow."""
        from pyarrow import ArrowInvalid

        try:
            yield from self._blocks(as_text, [n for n in self.numeric if n not in as_text])
        except (ArrowInvalid, _OtherwiseReadError):
            self.usable, self.numeric = bool(self.numeric), []
            raise ReadAgain from None
        except UserError:  # the reader that counts lines says where it is
            self.usable = False
            raise ReadAgain from None

    def _blocks(self, as_text: frozenset[str], numeric: list[str]) -> Iterator[Block]:
        for batch in self._batches(numeric):
            columns = {name: batch.column(name) for name in batch.schema.names}
            kept = {name: _ids(columns[name]) for name in self.choice.kept}
            if len(numeric) == len(self.choice.values):
                numbers = [_numbers(columns[name]) for name in numeric]
                table = np.stack(numbers, 1) if numbers else np.zeros((len(batch), 0), np.float32)
                yield Block(kept=kept, text={}, numbers=lean(table), number_names=numeric)
                continue
            values: dict[str, Dense | list[str]] = {}
            for name in self.choice.values:
                if name in numeric:
                    values[name] = _numbers(columns[name])
                elif name in as_text:
                    values[name] = stripped(_texts(columns[name]))
                else:
                    values[name] = settle(
                        _texts(columns[name]), name, str(self.path), counted("row")
                    )
            yield Block.of(batch.num_rows, kept, values)

    def _batches(self, numeric: list[str]) -> Iterator[Any]:
        from pyarrow import csv, float64, string

        wanted = [*self.choice.kept, *self.choice.values]
        read = csv.ReadOptions(block_size=PIECE, skip_rows=self.skip, column_names=self.names)
        parse = csv.ParseOptions(delimiter=self.delimiter)
        convert = csv.ConvertOptions(
            check_utf8=False,  # it was
            quoted_strings_can_be_null=True,
            column_types={name: float64() if name in numeric else string() for name in wanted},
            include_columns=wanted,
            null_values=list(MISSING),
        )
        # pyarrow unpacks .gz by itself
        with csv.open_csv(self.path, read, parse, convert) as batches:
            yield from batches


class _OtherwiseReadError(Exception):
    """Something that Python's csv or float refuse or read in another way."""


def _numeric(cell: str) -> bool:
    return cell in MISSING or is_number(cell)


def _numbers(column: Any) -> Dense:
    """NaN where nothing is given; what is given must be finite."""
    numbers = column.to_numpy(zero_copy_only=False)
    if int(np.isfinite(numbers).sum()) != len(column) - column.null_count:
        raise _OtherwiseReadError
    with np.errstate(over="ignore"):
        single = numbers.astype(np.float32)
    if np.isinf(single).any():
        raise _OtherwiseReadError
    return single


def _texts(column: Any) -> list[str]:
    import pyarrow.compute as compute

    if (compute.max(compute.binary_length(column)).as_py() or 0) > LONGEST_CELL:
        raise _OtherwiseReadError
    return column.to_pylist()


def _ids(column: Any) -> Ids:
    """Integers where each is in plain writing, as `read_ids` has it."""
    import pyarrow as arrow
    import pyarrow.compute as compute

    try:
        numbers = column.cast(arrow.int64())
    except arrow.ArrowInvalid:
        return read_ids([cell.strip() for cell in _texts(column)])
    if compute.all(compute.equal(numbers.cast(arrow.string()), column)).as_py():
        return numbers.to_numpy()
    return read_ids([cell.strip() for cell in _texts(column)])
