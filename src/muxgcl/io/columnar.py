"""Tables of Arrow columns, read in batches, whatever file they are in; needs pyarrow."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from muxgcl.errors import UserError
from muxgcl.io.ids import Ids, ids_of
from muxgcl.io.roles import Choice, EdgeColumns, NodeColumns, check_names, numbers_rows
from muxgcl.io.safety import check_size, listed, quoted
from muxgcl.io.table import (
    CELLS,
    Block,
    Dense,
    Place,
    Table,
    check_finite,
    counted,
    gather,
    settle,
    stripped,
)

TEXT_BYTES = 60  # of a Python string, beside its characters
_UNNAMED = re.compile(r"__index_level_[0-9]+__")
BATCH = 1024  # rows at least: each column of a batch has its cost


class ColumnFile(Protocol):
    """A file of named columns."""

    @property
    def schema_arrow(self) -> Any:
        """Their names and types."""

    def unpacked(self, wanted: set[str]) -> int:
        """Bytes that these columns take at most once they are read, as the file states them."""

    def iter_batches(self, size: int, columns: list[str]) -> Iterator[Any]:
        """These columns, so many rows at a time; anew at every call."""


def read_columns(file: ColumnFile, path: Path, columns: EdgeColumns | NodeColumns) -> Table:
    """The columns that are asked for; nulls are missing values."""
    stored, notes = _without_row_numbers(file, path, columns)
    names = check_names(str(path), stored)
    choice = columns.choose(str(path), names)
    wanted = dict(zip(names, stored, strict=True))
    wanted = {name: wanted[name] for name in (*choice.kept, *choice.values)}
    # coding lets a small file declare any number of rows
    check_size(str(path), file.unpacked(set(wanted.values())))
    rows = gather(lambda as_text: _blocks(file, path, wanted, choice, as_text | columns.texts))
    if rows is None:
        if not (isinstance(columns, EdgeColumns) and columns.may_be_empty):
            raise UserError(f"{path} has no rows")
        rows = Block.empty(choice.kept, choice.values)
        notes += (f"{path} has no rows: the graph has no edges",)
    return Table(name=str(path), columns=names, rows=rows, place=counted("row"), notes=notes)


def _without_row_numbers(
    file: ColumnFile, path: Path, columns: EdgeColumns | NodeColumns
) -> tuple[list[str], tuple[str, ...]]:
    """The columns, a pandas index of nodes first, as in a frame; one that numbers rows is left out.

    Pandas writes an index that has no name under one of its own, `__index_level_0__`.
    """
    stored = list(file.schema_arrow.names)
    texts = [field.name for field in file.schema_arrow if _is_coded_text(field.type)]
    try:
        about = json.loads((file.schema_arrow.metadata or {}).get(b"pandas", b"{}"))
        index = [one for one in about.get("index_columns", []) if one in stored]
    except (ValueError, AttributeError, TypeError):  # not what pandas writes
        index = []
    unnamed = [name for name in stored if _UNNAMED.fullmatch(name)]
    others = [name for name in stored if name not in unnamed]
    note = f"{path}: {listed(unnamed)} numbers the rows, not used"
    if isinstance(columns, EdgeColumns):
        return (others, (note,)) if unnamed else (stored, ())
    if len(unnamed) == 1:
        named = others[:1] if others and others[0] in texts else []
        differ = any(_all_different(file, path, name) for name in named)
        if numbers_rows(columns, others, integers=unnamed[0] not in texts, named=differ):
            return others, (note,)
    first_ones = [name for name in stored if name in index or name in unnamed]
    return [*first_ones, *(name for name in stored if name not in first_ones)], ()


def _all_different(file: ColumnFile, path: Path, name: str) -> bool:
    import pyarrow as arrow
    import pyarrow.compute as compute

    check_size(str(path), file.unpacked({name}))
    batches = [batch.column(0) for batch in file.iter_batches(BATCH * BATCH, [name])]
    column = arrow.chunked_array(batches, type=None if batches else arrow.string())
    return len(compute.unique(column)) == len(column)


def _blocks(
    file: ColumnFile, path: Path, wanted: dict[str, str], choice: Choice, as_text: frozenset[str]
) -> Iterator[Block]:
    size, rows, texts = max(BATCH, CELLS // len(wanted)), 0, 0
    for batch in file.iter_batches(size, list(wanted.values())):
        columns = {name: batch.column(stored) for name, stored in wanted.items()}
        texts += sum(map(_text_bytes, columns.values()))
        check_size(str(path), texts)
        columns = {name: _decoded(column) for name, column in columns.items()}
        place = counted("row", 1 + rows)
        rows += batch.num_rows
        values = {
            name: _values(columns[name], name, str(path), place, name in as_text)
            for name in choice.values
        }
        kept = {name: _kept(columns[name]) for name in choice.kept}
        yield Block.of(batch.num_rows, kept, values)


def _text_bytes(column: Any) -> int:
    """What the texts of a column take once each row has its own."""
    import pyarrow.compute as compute
    import pyarrow.types as kinds

    if is_number(column.type):
        return 0
    if not kinds.is_dictionary(column.type):
        return int(column.nbytes)
    words = column.dictionary
    if not is_text(words.type):
        return int(column.nbytes)
    lengths = compute.binary_length(words).cast("int64")
    total = compute.sum(compute.take(lengths, column.indices)).as_py() or 0
    return int(total) + TEXT_BYTES * len(column)


def _decoded(column: Any) -> Any:
    import pyarrow.types as kinds

    return column.dictionary_decode() if kinds.is_dictionary(column.type) else column


def is_number(kind: Any) -> bool:
    """Whether a column of this type holds numbers."""
    import pyarrow.types as kinds

    return kinds.is_floating(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind)


def is_text(kind: Any) -> bool:
    """Whether it holds text."""
    import pyarrow.types as kinds

    return kinds.is_string(kind) or kinds.is_large_string(kind)


def _is_coded_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    return is_text(kind.value_type if kinds.is_dictionary(kind) else kind)


def _kept(column: Any) -> Ids:
    import pyarrow.types as kinds

    if kinds.is_signed_integer(column.type) and not column.null_count:
        return column.to_numpy().astype(np.int64)
    return ids_of(column.to_pylist())


def _values(column: Any, name: str, table: str, place: Place, as_text: bool) -> Dense | list[str]:
    import pyarrow as arrow
    import pyarrow.types as kinds

    kind = column.type
    if kinds.is_nested(kind) or kinds.is_binary(kind) or kinds.is_large_binary(kind):
        raise UserError(f"{table}: column {quoted(name)} holds {kind}; expected numbers or text")
    if is_number(kind):
        given = column.is_valid().to_numpy(zero_copy_only=False)
        numbers = column.cast(arrow.float32(), safe=False).to_numpy(zero_copy_only=False)
        check_finite(numbers[:, None], [name], table, place, where=given[:, None])
        return numbers
    cells = ["" if cell is None else cell for cell in column.cast(arrow.string()).to_pylist()]
    return stripped(cells) if as_text else settle(cells, name, table, place)
