"""A graph as a folder of plain `.npy` arrays: written as a stream, read through the page cache.

edges.npy             [edges, 2]   each edge once, nodes numbered from 0
labels.npy            [nodes]      the class of every node
features_indptr.npy   [nodes + 1]  features in CSR: row i has the columns
features_indices.npy  [entries]    indices[indptr[i]:indptr[i + 1]], each with the value 1
graph.json            how many of what, and how it was made
"""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from scipy.sparse import csr_array

from muxgcl.errors import UserError
from muxgcl.io.edges import EdgeList
from muxgcl.io.matrices import nodes_in_order
from muxgcl.io.nodes import NodeTable
from muxgcl.io.npz import read_npy
from muxgcl.io.objects import read_edge_index
from muxgcl.io.safety import check_size, in_words
from muxgcl.io.schema import fields, read_json, whole
from muxgcl.shapes import Array

FACTS = "graph.json"
_count = whole(0, 2**53)
_facts = fields({"nodes": _count, "features": _count}, "nodes", "features")


class Stream:
    """An `.npy` file that grows block by block; its header is set right at the end."""

    def __init__(self, path: Path, dtype: type[np.generic], *rest: int) -> None:
        self.path, self.dtype, self.rest, self.rows = path, np.dtype(dtype), rest, 0
        self.file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self.file = self.path.open("wb")
        self._header()
        return self

    def write(self, block: Array) -> None:
        """Append rows."""
        assert self.file is not None
        self.file.write(np.ascontiguousarray(block, dtype=self.dtype).tobytes())
        self.rows += len(block)

    def _header(self) -> None:
        assert self.file is not None
        facts = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.rows, *self.rest)}
        np.lib.format.write_array_header_1_0(self.file, facts)  # leaves room for a longer shape

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self.file is not None
        try:
            if kind is None:
                self.file.seek(0)
                self._header()
        finally:
            self.file.close()


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write in; it appears under its name whole, or not at all."""
    if path.exists():
        raise UserError(f"{path} is there already: name another folder")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        yield unfinished
        unfinished.chmod(0o755)
        unfinished.rename(path)
    except OSError as error:  # such as a disk that is full
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def check_room(path: Path, size: int) -> None:
    """Refuse files that the disk has no room for, before the first is written."""
    there = next(folder for folder in path.absolute().parents if folder.exists())
    with suppress(OSError):  # a file system that does not say
        if size > (free := shutil.disk_usage(there).free):
            raise UserError(
                f"{path} would take {in_words(size)} of disk; {in_words(free)} are free"
            )


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """What makes this a folder of arrays."""
    (folder / FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def is_array_folder(path: Path) -> bool:
    """Whether a folder is one of these."""
    return (path / FACTS).is_file() and (path / "edges.npy").is_file()


def read_array_folder(folder: Path) -> tuple[EdgeList, NodeTable]:
    """Edges and nodes of such a folder."""
    facts = read_json(folder / FACTS, _facts)
    nodes, columns = facts["nodes"], facts["features"]
    edges = _array(folder / "edges.npy", 2)
    labels = _array(folder / "labels.npy", 1)
    indptr, indices = (_array(folder / f"features_{name}.npy", 1) for name in ("indptr", "indices"))
    if edges.shape[1] != 2 or len(labels) != nodes or len(indptr) != nodes + 1:
        raise UserError(
            f"{folder}: expected {nodes:,} nodes, got {len(labels):,} labels, "
            f"{len(indptr) - 1:,} rows of features and edges of shape {list(edges.shape)}"
        )
    check_size(str(folder), 16 * (edges.size + len(indices)))
    bounds = np.diff(indptr)
    if indptr[0] != 0 or indptr[-1] != len(indices) or (len(bounds) and bounds.min() < 0):
        raise UserError(f"{folder}/features_indptr.npy does not fit features_indices.npy")
    if len(indices) and not 0 <= indices.min() <= indices.max() < columns:
        raise UserError(f"{folder}/features_indices.npy has columns beyond the {columns:,} stated")
    ones = np.ones(len(indices), np.float32)
    features = csr_array((ones, np.asarray(indices), np.asarray(indptr)), shape=(nodes, columns))
    table = nodes_in_order(str(folder), features, labels=np.asarray(labels))
    return read_edge_index(np.asarray(edges).T), table


def _array(path: Path, dimensions: int) -> Array:
    """Whole numbers, mapped into memory."""
    array = read_npy(path, mapped_from=0)
    if array.ndim != dimensions or array.dtype.kind not in "iu":
        raise UserError(
            f"{path}: expected whole numbers in {dimensions} dimensions, "
            f"got {array.dtype} of shape {list(array.shape)}"
        )
    return array
