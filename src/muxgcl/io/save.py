"""Tables by node id in the format that a file name asks for."""

import csv
import io
from collections.abc import Sequence
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
    check_format(path)
    check_numbers(path, table)
    names = list(names or (f"z{i}" for i in range(table.shape[1])))
    writers = {
        ".npz": lambda file: np.savez(file, id=ids, embedding=table),
        ".npy": lambda file: np.save(file, table),
        ".csv": lambda file: _csv(file, ids, table, names),
        ".parquet": lambda file: _parquet(file, ids, table, names),
    }
    write_atomically(path, writers[path.suffix])


def _csv(file: IO[bytes], ids: Array, table: Array, names: list[str]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(["id", *map(harmless, names)])
    for key, row in zip(ids.tolist(), table.tolist(), strict=True):
        writer.writerow([harmless(key), *row])
    text.detach()


def harmless(cell: Any) -> Any:
    """A cell of CSV that no spreadsheet takes for a formula; numbers are left as they are."""
    if isinstance(cell, str) and cell.startswith(FORMULAS) and not is_number(cell):
        return "'" + cell
    return cell


def _parquet(file: IO[bytes], ids: Array, table: Array, names: list[str]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError("Parquet needs pyarrow: pip install 'muxgcl[io]'") from None
    columns = {"id": ids, **{name: table[:, i] for i, name in enumerate(names)}}
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
