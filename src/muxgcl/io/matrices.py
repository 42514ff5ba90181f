"""Tables of features without names: `.npy`, `.npz`, and arrays held in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, issparse

from muxgcl.errors import UserError
from muxgcl.io.ids import Ids, ids_of, is_missing
from muxgcl.io.nodes import NodeTable, no_numbers
from muxgcl.io.npz import Npz, read_npy
from muxgcl.io.roles import LABELS, NodeColumns
from muxgcl.io.safety import check_size, listed
from muxgcl.io.table import Matrix, check_finite, counted, lean
from muxgcl.shapes import Array

IDS = ("id", "ids")
NODE_BYTES = 8  # its id
COLUMN_BYTES = 300  # its name, and the rule by which it becomes a feature


def read_matrix_file(path: Path, columns: NodeColumns) -> NodeTable:
    """Read a table of features or labels from `.npy` or `.npz`.

    Rows are the nodes 0, 1, ..., unless an `.npz` brings an array `id`. An `.npz` holds one sparse
    matrix as scipy saves it, or one two-dimensional array; a list called as the label column, or by
    a usual name for labels, is the label.
    """
    if path.suffix.lower() == ".npy":
        array = read_npy(path)
        if array.ndim == 1 and not columns.features:
            return nodes_in_order(str(path), no_numbers(len(array)), labels=array)
        return nodes_in_order(str(path), array)
    with Npz.open(path) as arrays:
        label = _label(arrays, columns)
        ids = next((arrays.read(name) for name in IDS if name in arrays), None)
        labels = None if label is None else arrays.read(label)
        if not columns.features:
            if labels is None:
                raise UserError(f"{path} has no list of labels; it has {listed(arrays.names)}")
            matrix: Any = no_numbers(len(labels))
        elif "indptr" in arrays or "format" in arrays:
            matrix = arrays.sparse()
        else:
            others = [name for name in arrays.names if name not in (*IDS, label)]
            tables = [array for array in map(arrays.read, others) if array.ndim == 2]
            if len(tables) != 1:
                raise UserError(
                    f"{path} must hold one two-dimensional array of features; "
                    f"it has {len(tables)} among {listed(arrays.names)}"
                )
            matrix = tables[0]
    return nodes_in_order(str(path), matrix, ids=ids, labels=labels)


def _label(arrays: Npz, columns: NodeColumns) -> str | None:
    if columns.label is not None and columns.label in arrays:
        return columns.label
    return next((name for name in LABELS if name in arrays), None)


def nodes_in_order(
    name: str,
    matrix: Any,
    *,
    ids: Array | None = None,
    labels: Any = None,
    notes: tuple[str, ...] = (),
) -> NodeTable:
    """A matrix's rows as nodes, numbered from 0 unless ids are given."""
    rows, columns = check_shape(matrix, name)
    numbers = as_matrix(matrix, name)
    if ids is not None and ids.shape != (rows,):
        raise UserError(f"{name} has {rows:,} rows, but its ids have the shape {list(ids.shape)}")
    names = [str(column) for column in range(columns)]
    place = counted("row", first=0)
    check_finite(numbers, names, name, place)
    return NodeTable(
        name=name,
        ids=np.arange(rows) if ids is None else ids_of(ids.astype("U").tolist()),
        numbers=lean(numbers),
        number_names=names,
        labels=None if labels is None else labels_in_order(labels, rows, name),
        place=place,
        notes=notes,
        numbered=ids is None,
        placed=True,
    )


def labels_in_order(labels: Any, rows: int, name: str) -> Ids:
    """One label a node, as text; a negative number is a missing label, as PyG has it."""
    labels = _as_array(labels)
    if labels.shape != (rows,):
        raise UserError(f"{name}: {rows:,} nodes, but labels of shape {list(labels.shape)}")
    if labels.dtype.kind in "iu":
        return ["" if label < 0 else str(label) for label in labels.tolist()]
    if labels.dtype.kind == "S":
        labels = labels.astype("U")
    if labels.dtype.kind == "f":
        labels = np.where(np.isnan(labels) | (labels < 0), None, labels)
    elif labels.dtype.kind not in "UOTb":
        raise UserError(f"{name}: labels must be integers or text, got {labels.dtype}")
    return ids_of(labels.tolist())


def _as_array(labels: Any) -> Array:
    """Labels as an array, None where one is missing: text would no longer tell."""
    if isinstance(labels, torch.Tensor):
        labels = labels.detach().cpu().numpy()
    if isinstance(labels, np.ndarray) and labels.dtype.kind not in "OT":
        return labels
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if not any(map(is_missing, values)):
        return np.asarray(labels)
    given = [None if is_missing(value) else value for value in values]
    return np.fromiter(given, dtype=object, count=len(given))


def check_shape(matrix: Any, name: str) -> tuple[int, int]:
    """Rows and columns of something rectangular; neither cost more memory than there is."""
    if matrix.ndim != 2:
        raise UserError(
            f"{name}: features must be numbers of shape [nodes, columns], "
            f"got {matrix.dtype} of shape {list(matrix.shape)}"
        )
    rows, columns = matrix.shape
    if not rows:
        raise UserError(f"{name} has no rows")
    check_size(name, NODE_BYTES * rows + COLUMN_BYTES * columns)
    return rows, columns


def as_matrix(matrix: Any, name: str) -> Matrix:
    """Anything rectangular as float32, sparse if it was."""
    tensor = isinstance(matrix, torch.Tensor)
    real = not matrix.is_complex() if tensor else matrix.dtype.kind in "biuf"
    if matrix.ndim != 2 or not real:
        raise UserError(
            f"{name}: features must be numbers of shape [nodes, columns], "
            f"got {matrix.dtype} of shape {list(matrix.shape)}"
        )
    if tensor:
        matrix = matrix.detach().cpu().float()
        if matrix.layout != torch.strided:
            return _sparse(matrix)
        matrix = matrix.numpy()
    with np.errstate(over="ignore"):  # infinities are refused by name
        matrix = csr_array(matrix) if issparse(matrix) else matrix
        matrix = matrix.astype(np.float32, copy=not isinstance(matrix, np.memmap))
    if issparse(matrix):
        matrix.sum_duplicates()
    return matrix


def _sparse(matrix: torch.Tensor) -> csr_array:
    entries = matrix.to_sparse_coo().coalesce()
    where = tuple(entries.indices().numpy())
    return csr_array((entries.values().numpy(), where), shape=tuple(matrix.shape))
