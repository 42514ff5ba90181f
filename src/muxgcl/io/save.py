"""Tables by node id in the format that a file name asks for, written block by block."""

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from muxgcl.errors import UserError
from muxgcl.io.files import write_atomically
from muxgcl.io.table import is_number

Array = np.ndarray[Any, np.dtype[Any]]
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for the start of one
FORMATS = (".npz", ".npy", ".parquet", ".csv")


def check_format(path: Path) -> None:
    """Refuse a file name that names no format, before any work is done."""
    if path.suffix not in FORMATS:
        raise UserError(f"expected a file ending in {', '.join(FORMATS)}, got {path.name!r}")


def check_numbers(path: Path, table: Array) -> None:
    """Refuse to write NaN or infinity: they are no embedding."""
    if table.dtype.kind == "f" and not np.isfinite(table).all():
        raise UserError(f"{path} is not written: the table holds NaN or infinity")


def save_table(path: Path, ids: Array, table: Array, *, names: Sequence[str] | None = None) -> None:
    """Write one row a node, whole or not at all.

    `.npz` holds the arrays `id` and `embedding`; `.npy` the table alone, in node order; `.csv` and
    `.parquet` a column `id`, then one column for each entry of `names` (z0, z1, ... by default).
    In `.csv` an id that a spreadsheet would run as a formula has a `'` before it.
    """
    save_blocks(path, ids, [table], names=names)


def save_blocks(
    path: Path, ids: Array, blocks: Iterable[Array], *, names: Sequence[str] | None = None
) -> int:
    """The same from blocks of rows, which are written as they come: one is in memory at a time.

    A failure on the way, of the blocks or of the disk, leaves what was there before. Returns how
    many columns there were.
    """
    check_format(path)
    checked = _checked(path, len(ids), blocks)
    first = next(checked)

    def write(file: IO[bytes]) -> None:
        columns = list(names or (f"z{i}" for i in range(first.shape[1])))
        writers = {".npz": _npz, ".npy": _npy, ".csv": _csv, ".parquet": _parquet}
        writers[path.suffix](file, ids, chain([first], checked), first, columns)

    write_atomically(path, write)
    return int(first.shape[1])


def _checked(path: Path, rows: int, blocks: Iterable[Array]) -> Iterator[Array]:
    """Blocks of numbers, as many rows as there are nodes."""
    count = 0
    for block in blocks:
        check_numbers(path, block)
        count += len(block)
        yield block
    if count != rows:
        raise ValueError(f"{rows} ids, but {count} rows")


def _npy(file: Any, ids: Array, blocks: Iterator[Array], first: Array, names: list[str]) -> None:
    facts = {
        "descr": np.lib.format.dtype_to_descr(first.dtype),
        "fortran_order": False,
        "shape": (len(ids), *first.shape[1:]),
    }
    np.lib.format.write_array_header_1_0(file, facts)
    for block in blocks:
        file.write(np.ascontiguousarray(block, first.dtype).data)


def _npz(
    file: IO[bytes], ids: Array, blocks: Iterator[Array], first: Array, names: list[str]
) -> None:
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        with archive.open("id.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array(member, np.asanyarray(ids), allow_pickle=False)
        with archive.open("embedding.npy", "w", force_zip64=True) as member:
            _npy(member, ids, blocks, first, names)


def _csv(
    file: IO[bytes], ids: Array, blocks: Iterator[Array], first: Array, names: list[str]
) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(["id", *map(harmless, names)])
    rows = (row for block in blocks for row in block.tolist())
    for key, row in zip(ids.tolist(), rows, strict=True):
        writer.writerow([harmless(key), *row])
    text.detach()


def harmless(cell: Any) -> Any:
    """A cell of CSV that no spreadsheet takes for a formula; numbers are left as they are."""
    if isinstance(cell, str) and cell.startswith(FORMULAS) and not is_number(cell):
        return "'" + cell
    return cell


def _parquet(
    file: IO[bytes], ids: Array, blocks: Iterator[Array], first: Array, names: list[str]
) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError("Parquet needs pyarrow: pip install 'muxgcl[io]'") from None
    writer, start = None, 0
    try:
        for block in blocks:
            here = {"id": ids[start : start + len(block)]}
            table = pyarrow.table(here | {name: block[:, i] for i, name in enumerate(names)})
            writer = writer or pyarrow.parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
            start += len(block)
    finally:
        if writer is not None:
            writer.close()
