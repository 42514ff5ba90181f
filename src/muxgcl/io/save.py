"""Tables by node id in the format that a file name asks for, written block by block."""

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from muxgcl.errors import UserError
from muxgcl.io.files import write_atomically
from muxgcl.io.table import is_number
from muxgcl.shapes import Array

FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for the start of one
TABLES = (".npz", ".npy", ".parquet", ".csv", ".arrow", ".feather", ".safetensors")
VECTORS = (".neo4j.csv", ".vec", ".faiss")  # only rows of numbers: embeddings
NEEDED = {  # a package, by its name on import, and what installs it
    ".parquet": ("pyarrow", "pyarrow: pip install pyarrow"),
    ".arrow": ("pyarrow", "pyarrow: pip install pyarrow"),
    ".feather": ("pyarrow", "pyarrow: pip install pyarrow"),
    ".faiss": ("faiss", "FAISS: pip install faiss-cpu"),
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
    save_blocks(path, ids, [table], names=names)


def save_blocks(
    path: Path, ids: Array, blocks: Iterable[Array], *, names: Sequence[str] | None = None
) -> int:
    """Write blocks of rows as `save_table` does, as they come: one is in memory at a time.

    Only `.safetensors` and `.faiss` are made of the whole table. A failure on the way, of the
    blocks or of the disk, leaves what was there before. Only a process that is killed between the
    two renames of an index and its ids leaves no index. Returns how many columns there were.
    """
    ending, checked = check_format(path), _checked(path, len(ids), blocks)
    first = next(checked)
    columns = list(names or (f"z{i}" for i in range(first.shape[1])))
    rows = Rows(ids, columns, first, chain([first], checked))

    def save_ids() -> None:
        write_atomically(
            path.with_suffix(".ids.npy"),
            lambda file: np.save(file, ids),
            # an index never stands beside the ids of another
            before_rename=lambda: path.unlink(missing_ok=True),
        )

    beside = ending == ".faiss" and ids.dtype.kind not in "iu"
    write_atomically(
        path,
        lambda file: WRITERS[ending](file, rows),
        before_rename=save_ids if beside else None,
    )
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


@dataclass(frozen=True, slots=True)
class Rows:
    """What a writer gets: blocks that can be gone through once, of which the first is known."""

    ids: Array
    names: list[str]
    first: Array
    blocks: Iterator[Array]

    def whole(self) -> Array:
        """All blocks as one table."""
        return np.concatenate([*self.blocks])

    def lines(self) -> Iterator[tuple[Any, list[Any]]]:
        """An id and its numbers, row by row."""
        rows = (row for block in self.blocks for row in block.tolist())
        return zip(self.ids.tolist(), rows, strict=True)

    def tables(self) -> Iterator[Any]:
        """A table of pyarrow's for each block, with a column of ids."""
        import pyarrow

        start = 0
        for block in self.blocks:
            ids = self.ids[start : start + len(block)]
            yield pyarrow.table(
                {"id": ids, **{name: block[:, i] for i, name in enumerate(self.names)}}
            )
            start += len(block)


def _npy(file: Any, rows: Rows) -> None:
    facts = {
        "descr": np.lib.format.dtype_to_descr(rows.first.dtype),
        "fortran_order": False,
        "shape": (len(rows.ids), *rows.first.shape[1:]),
    }
    np.lib.format.write_array_header_1_0(file, facts)
    for block in rows.blocks:
        file.write(np.ascontiguousarray(block, rows.first.dtype).data)


def _npz(file: IO[bytes], rows: Rows) -> None:
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        with archive.open("id.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array(member, np.asanyarray(rows.ids), allow_pickle=False)
        with archive.open("embedding.npy", "w", force_zip64=True) as member:
            _npy(member, rows)


def _csv(file: IO[bytes], rows: Rows) -> None:
    lines = ([harmless(key), *row] for key, row in rows.lines())
    write_csv(file, ["id", *map(harmless, rows.names)], lines)


def write_csv(
    file: IO[bytes], names: Sequence[str], rows: Iterable[Sequence[Any]], ending: str = "\r\n"
) -> None:
    """Names of columns and rows as CSV; cells of text are written as they are, see `harmless`."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator=ending)
    writer.writerow(names)
    writer.writerows(rows)
    text.detach()


def harmless(cell: Any) -> Any:
    """A cell of CSV that no spreadsheet takes for a formula; numbers are left as they are."""
    if isinstance(cell, str) and cell.startswith(FORMULAS) and not is_number(cell):
        return "'" + cell
    return cell


def _parquet(file: IO[bytes], rows: Rows) -> None:
    from pyarrow.parquet import ParquetWriter

    _tables(rows, lambda schema: ParquetWriter(file, schema))


def _arrow(file: IO[bytes], rows: Rows) -> None:
    """Arrow's file format, which Feather (version 2) is another name of."""
    from pyarrow.ipc import new_file

    _tables(rows, lambda schema: new_file(file, schema))


def _tables(rows: Rows, begin: Callable[[Any], Any]) -> None:
    writer = None
    try:
        for table in rows.tables():
            writer = writer or begin(table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _safetensors(file: IO[bytes], rows: Rows) -> None:
    from safetensors.numpy import save

    ids, tensors = rows.ids, {"embedding": np.ascontiguousarray(rows.whole())}
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


def _neo4j(file: IO[bytes], rows: Rows) -> None:
    lines = ([key, ";".join(map(str, row))] for key, row in rows.lines())
    write_csv(file, ["id:ID", "embedding:float[]"], lines, ending="\n")


def _word2vec(file: IO[bytes], rows: Rows) -> None:
    """A line of two sizes, then a line a node: its id and its numbers between single spaces."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    text.write(f"{len(rows.ids)} {rows.first.shape[1]}\n")
    for key, row in rows.lines():
        name = str(key)
        if not name or any(letter.isspace() for letter in name):
            raise UserError(f"the word2vec format has no ids with blanks, got {name!r}")
        text.write(" ".join([name, *map(str, row)]) + "\n")
    text.detach()


def _faiss(file: IO[bytes], rows: Rows) -> None:
    import faiss

    table = np.array(rows.whole(), np.float32)
    faiss.normalize_L2(table)  # a row of zeros stays one
    index: Any = faiss.IndexFlatIP(table.shape[1])
    if rows.ids.dtype.kind in "iu":
        if len(rows.ids) and int(rows.ids.max()) >= 1 << 63:
            raise UserError(f"FAISS holds ids below 2^63, got {rows.ids.max()}")
        index = faiss.IndexIDMap2(index)
        index.add_with_ids(table, rows.ids.astype(np.int64))
    else:
        index.add(table)
    file.write(faiss.serialize_index(index).tobytes())


WRITERS: dict[str, Callable[[IO[bytes], Rows], object]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".safetensors": _safetensors,
    ".neo4j.csv": _neo4j,
    ".vec": _word2vec,
    ".faiss": _faiss,
}
