"""Arrow files (`.arrow`, `.feather`), mapped into memory; needs pyarrow (the `io` extra).

Such a file is a stream of messages between two marks, and it is read as one. What a message would
take once it is decompressed stands in the message, and is looked at before pyarrow allocates it:
a compressed buffer begins with its length.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from muxgcl.errors import UserError
from muxgcl.io.columnar import is_number, is_text, read_columns
from muxgcl.io.roles import EdgeColumns, NodeColumns
from muxgcl.io.safety import check_file, parsing, quoted
from muxgcl.io.table import Table

SUFFIXES = (".arrow", ".feather")
MARK, END = b"ARROW1\0\0", b"ARROW1"
CELL_BYTES = 4
# fields of the tables in a message, as Arrow's format numbers them
HEADER, DATA = 2, 1
LENGTH, BUFFERS, COMPRESSION = 0, 2, 3


def read_arrow(path: Path, columns: EdgeColumns | NodeColumns) -> Table:
    """Read the columns that are asked for; nulls are missing values."""
    check_file(path)
    try:
        import pyarrow as arrow
    except ImportError as missing:
        raise UserError(f"{path}: reading Arrow needs pyarrow; pip install pyarrow") from missing
    with parsing(path, "Arrow"), arrow.memory_map(str(path)) as mapped:
        file = ArrowFile(path, mapped.read_buffer())
        return read_columns(file, path, columns)


class ArrowFile:
    """What `read_columns` asks of a file."""

    def __init__(self, path: Path, content: Any) -> None:
        begin, end = bytes(content[: len(MARK)]), bytes(content[-len(END) :])
        if begin != MARK or end != END:
            side = "end" if begin == MARK else "begin"
            raise UserError(f"{path} cannot be read as Arrow: it does not {side} as an Arrow file")
        self.path, self.content, self.stream = path, content, content.slice(len(MARK))
        self.schema_arrow = self._open([]).schema

    def unpacked(self, wanted: set[str]) -> int:
        """Bytes of all columns, and rows that a column of nulls may declare for nothing."""
        import pyarrow as arrow
        from pyarrow.ipc import MessageReader, open_file

        total = rows = batches = 0
        for message in MessageReader.open_stream(arrow.BufferReader(self.stream)):
            if message.type in ("record batch", "dictionary"):
                length, size = _declared(message.metadata, message.body, message.type)
                rows, total = rows + length, total + size
                batches += message.type == "record batch"
        if batches != (said := open_file(arrow.BufferReader(self.content)).num_record_batches):
            raise ValueError(f"{batches} blocks of rows were found, its end lists {said}")
        return max(total, CELL_BYTES * rows * len(wanted))

    def iter_batches(self, size: int, columns: list[str]) -> Iterator[Any]:
        """These columns, so many rows at a time."""
        names = list(self.schema_arrow.names)
        for name in columns:
            _check_kind(self.path, name, self.schema_arrow.field(names.index(name)).type)
        for batch in self._open(sorted(map(names.index, columns))):
            batch.validate(full=True)  # offsets and codes that point outside are the file's fault
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size)

    def _open(self, fields: list[int]) -> Any:
        import pyarrow as arrow
        from pyarrow.ipc import IpcReadOptions, open_stream

        options = IpcReadOptions(included_fields=fields)  # none: all
        return open_stream(arrow.BufferReader(self.stream), options=options)


def _check_kind(path: Path, name: str, kind: Any) -> None:
    """Refuse what a few bytes could make any size, and what is neither number nor text."""
    import pyarrow.types as kinds

    inside = kind.value_type if kinds.is_dictionary(kind) else kind
    plain = is_number(inside) or is_text(inside) or kinds.is_null(inside)
    if not (plain or kinds.is_temporal(inside) or kinds.is_decimal(inside)):
        raise UserError(f"{path}: column {quoted(name)} holds {kind}; expected numbers or text")


def _declared(metadata: Any, body: Any, kind: str) -> tuple[int, int]:
    """How many rows a message says that it has, and how many bytes."""
    meta = memoryview(metadata)
    batch = _child(meta, _number(meta, "<I", 0), HEADER)
    if kind == "dictionary":
        batch = _child(meta, batch, DATA)
    at = _field(meta, batch, LENGTH)
    rows = max(0, _number(meta, "<q", at)) if at else 0
    if not _field(meta, batch, COMPRESSION):
        return rows, body.size
    first, content, total = _child(meta, batch, BUFFERS), memoryview(body), 0
    for k in range(_number(meta, "<I", first)):
        offset, length = struct.unpack_from("<qq", meta, first + 4 + 16 * k)
        if length:
            total += max(_number(content, "<q", offset), length)
    return rows, total


def _field(meta: memoryview, table: int, number: int) -> int:
    """Where a field of a flatbuffer's table is; 0 where it is left out."""
    slots = table - _number(meta, "<i", table)
    entry = 4 + 2 * number
    if entry >= _number(meta, "<H", slots):
        return 0
    offset = _number(meta, "<H", slots + entry)
    return table + offset if offset else 0


def _child(meta: memoryview, table: int, number: int) -> int:
    """Where the table or list begins that a field points to."""
    at = _field(meta, table, number)
    if not at:
        raise ValueError("a message lacks one of its parts")
    return at + _number(meta, "<I", at)


def _number(content: memoryview, form: str, at: int) -> int:
    if at < 0:
        raise ValueError("a message points outside of itself")
    found: int = struct.unpack_from(form, content, at)[0]
    return found
