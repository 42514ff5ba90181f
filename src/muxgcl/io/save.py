"""Tables by node id in the format that a file name asks for."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np

from muxgcl.errors import UserError
from muxgcl.io.files import write_atomically
from muxgcl.io.table import is_number

Array = np.ndarray[Any, np.dtype[Any]]
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for the start of one
TABLES = (".npz", ".npy", ".parquet", ".csv", ".arrow", ".feather", ".safetensors")
VECTORS = (".neo4j.csv", ".vec", ".faiss")  # only rows of numbers: embeddings
NEEDED = {  # a package, by its name on import, and what installs it
    ".parquet": ("pyarrow", "pyarrow: pip install 'muxgcl[io]'"),
    ".arrow": ("pyarrow", "pyarrow: pip install 'muxgcl[io]'"),
    ".feather": ("pyarrow", "pyarrow: pip install 'muxgcl[io]'"),
    ".faiss": ("faiss", "FAISS: pip install 'muxgcl[faiss]'"),
}
LONGEST_IDS = 80_000_000  # characters of ids that a header of safetensors may hold


def check_format(path: Path, formats: Sequence[str] = (*TABLES, *VECTORS)) -> str:
    """The ending that names the format; one that names none is refused before any work is done."""
    found = next((ending for ending in VECTORS if path.name.endswith(ending)), path.suffix)
    if found not in formats:
        raise UserError(f"expected a file ending in {', '.join(formats)}, got {path.name!r}")
    package, advice = NEEDED.get(found, ("", ""))
    if package and find_spec(package) is None:
        raise UserError(f"{found} needs {advice}")
    return found


def check_numbers(path: Path, table: Array) -> None:
    """Refuse to write NaN or infinity: they are no embedding."""
    if table.dtype.kind == "f" and not np.isfinite(table).all():
        raise UserError(f"{path} is not written: the table holds NaN or infinity")


def save_table(path: Path, ids: Array, table: Array, *, names: Sequence[str] | None = None) -> None:
    """Write one row a node, whole or not at all.

    - `.npz`: the arrays `id` and `embedding`; `.npy`: the table alone, in node order.
    - `.csv`, `.parquet`, `.arrow`, `.feather`: a column `id`, then one column for each entry of
      `names` (z0, z1, ... by default). In `.csv` an id that a spreadsheet would run as a formula
      has a `'` before it.
    - `.safetensors`: the tensors `embedding` and `id`; ids that are text are a JSON list in the
      metadata, under `id`.
    - `.neo4j.csv`: what `neo4j-admin database import` takes as nodes: an id, and a list of numbers.
      Ids are as they are, since other files name them.
    - `.vec`: text as word2vec writes it.
    - `.faiss`: an exact index of the rows at unit length, so that inner products are cosines. A
      search finds ids that are whole numbers. For other ids it finds row numbers, and the ids are
      written beside it, as `NAME.ids.npy`.
    """
    ending = check_format(path)
    check_numbers(path, table)
    names = list(names or (f"z{i}" for i in range(table.shape[1])))
    writers: dict[str, Callable[[IO[bytes]], object]] = {
        ".npz": lambda file: np.savez(file, id=ids, embedding=table),
        ".npy": lambda file: np.save(file, table),
        ".csv": lambda file: _csv(file, ids, table, names),
        ".parquet": lambda file: _parquet(file, ids, table, names),
        ".arrow": lambda file: _arrow(file, ids, table, names),
        ".feather": lambda file: _arrow(file, ids, table, names),
        ".safetensors": lambda file: _safetensors(file, ids, table),
        ".neo4j.csv": lambda file: _neo4j(file, ids, table),
        ".vec": lambda file: _word2vec(file, ids, table),
        ".faiss": lambda file: _faiss(file, ids, table),
    }
    if ending == ".faiss" and ids.dtype.kind not in "iu":
        write_atomically(path.with_suffix(".ids.npy"), lambda file: np.save(file, ids))
    write_atomically(path, writers[ending])


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
    import pyarrow.parquet

    pyarrow.parquet.write_table(_columns(ids, table, names), file)


def _arrow(file: IO[bytes], ids: Array, table: Array, names: list[str]) -> None:
    """Arrow's file format, which Feather (version 2) is another name of."""
    import pyarrow.ipc

    columns = _columns(ids, table, names)
    with pyarrow.ipc.new_file(file, columns.schema) as writer:
        writer.write_table(columns)


def _columns(ids: Array, table: Array, names: list[str]) -> Any:
    import pyarrow

    return pyarrow.table({"id": ids, **{name: table[:, i] for i, name in enumerate(names)}})


def _safetensors(file: IO[bytes], ids: Array, table: Array) -> None:
    from safetensors.numpy import save

    tensors = {"embedding": np.ascontiguousarray(table)}
    if ids.dtype.kind in "iu":
        file.write(save({**tensors, "id": np.ascontiguousarray(ids)}))
        return
    listed = json.dumps(ids.tolist())
    if len(listed) > LONGEST_IDS:
        raise UserError(
            f"safetensors holds {LONGEST_IDS:,} characters of ids at most, got {len(listed):,}; "
            ".parquet and .npz hold any number"
        )
    file.write(save(tensors, {"id": listed}))


def _neo4j(file: IO[bytes], ids: Array, table: Array) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id:ID", "embedding:float[]"])
    for key, row in zip(ids.tolist(), table.tolist(), strict=True):
        writer.writerow([key, ";".join(map(str, row))])
    text.detach()


def _word2vec(file: IO[bytes], ids: Array, table: Array) -> None:
    """A line of two sizes, then a line a node: its id and its numbers between single spaces."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    text.write(f"{len(table)} {table.shape[1]}\n")
    for key, row in zip(map(str, ids.tolist()), table.tolist(), strict=True):
        if not key or any(letter.isspace() for letter in key):
            raise UserError(f"the word2vec format has no ids with blanks, got {key!r}")
        text.write(" ".join([key, *map(str, row)]) + "\n")
    text.detach()


def _faiss(file: IO[bytes], ids: Array, table: Array) -> None:
    import faiss

    rows = np.array(table, np.float32)
    faiss.normalize_L2(rows)  # a row of zeros stays one
    index: Any = faiss.IndexFlatIP(rows.shape[1])
    if ids.dtype.kind in "iu":
        index = faiss.IndexIDMap2(index)
        index.add_with_ids(rows, ids.astype(np.int64))
    else:
        index.add(rows)
    file.write(faiss.serialize_index(index).tobytes())
