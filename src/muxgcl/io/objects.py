"""Graphs held in memory: PyG's `Data`, an adjacency matrix, an edge index, a list of edges."""

import warnings
from collections.abc import Set
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array

from muxgcl.errors import UserError
from muxgcl.io.edges import EdgeList
from muxgcl.io.ids import ids_of
from muxgcl.io.matrices import nodes_in_order
from muxgcl.io.nodes import NodeTable, no_numbers
from muxgcl.io.safety import how_many
from muxgcl.io.table import counted

if TYPE_CHECKING:
    from torch_geometric.data import Data


def read_data(data: "Data") -> tuple[EdgeList, NodeTable]:
    """PyG's graph: `edge_index`, and where it has them `x`, `y` and `edge_weight`."""
    if data.edge_index is None:
        raise UserError(f"a PyG graph needs an edge_index; it has {list(data.keys())}")
    notes = []
    edges = read_edge_index(data.edge_index, data.get("edge_weight"))
    with warnings.catch_warnings(record=True) as guess:  # PyG says so in a warning
        warnings.simplefilter("always")
        nodes = int(data.num_nodes or 0)
    if guess:
        notes.append(f"num_nodes is not set: {how_many(nodes, 'node')}, as edge_index names them")
    if data.get("edge_attr") is not None and data.get("edge_weight") is None:
        notes.append("edge_attr is not used: weights of edges are called edge_weight")
    labels = data.get("y")
    if labels is not None and (labels.is_floating_point() or labels.squeeze().ndim > 1):
        notes.append(f"y is not one class a node ({labels.dtype}, {list(labels.shape)}): not used")
        labels = None
    table = nodes_in_order(
        "the PyG graph",
        no_numbers(nodes) if data.x is None else data.x,
        labels=None if labels is None else labels.reshape(-1),
        notes=tuple(notes),
    )
    return edges, table


def read_array(array: Any) -> tuple[EdgeList, NodeTable | None]:
    """An array or a tensor: an edge index, one edge a row, or a dense adjacency matrix.

    Integers of shape [2, edges] are an edge index, of shape [edges, 2] one edge a row. Any other
    square matrix of numbers is an adjacency matrix; of shape [2, 2], integers are an edge index.
    """
    if isinstance(array, torch.Tensor) and array.layout != torch.strided:
        entries = array.to_sparse_coo().coalesce().cpu()
        places = tuple(entries.indices().numpy())
        return read_adjacency(coo_array((entries.values().numpy(), places), tuple(array.shape)))
    values = _array(array)
    square = values.ndim == 2 and values.shape[0] == values.shape[1]
    whole = values.dtype.kind in "iu"
    if square and values.dtype.kind in "biuf" and not (whole and len(values) == 2):
        return read_adjacency(coo_array(values))
    if whole and values.ndim == 2 and values.shape[1] == 2 != values.shape[0]:
        values = values.T
    return read_edge_index(values), None


def is_edges(source: Any) -> bool:
    """Whether these are edges: pairs of ids, or triples with a weight, each a tuple.

    They are in a list, a tuple or a set. Edges may be lists, too, but for as many lists of numbers
    as each of them has: these might be the rows of a matrix.
    """
    if not isinstance(source, list | tuple | Set) or not source:
        return False
    length = len(first) if isinstance(first := next(iter(source)), list | tuple) else 0
    square = len(source) == length
    return length in (2, 3) and all(
        isinstance(edge, list | tuple)
        and len(edge) == length
        and all(
            isinstance(end, str if square and isinstance(edge, list) else str | int | np.integer)
            for end in edge[:2]
        )
        for edge in source
    )


def read_edges(edges: Any) -> EdgeList:
    """A list of (source, target) or (source, target, weight); ids are whole numbers or text."""
    edges, weight = list(edges), None
    if len(edges[0]) == 3:
        for row, edge in enumerate(edges):
            if not isinstance(edge[2], int | float | np.number):
                raise UserError(
                    f"the list of edges, edge {row}: the third entry is the weight: expected a "
                    f"number, got {type(edge[2]).__name__}"
                )
        weight = np.array([edge[2] for edge in edges], dtype=np.float32)
    ends = ids_of([edge[0] for edge in edges] + [edge[1] for edge in edges])
    return EdgeList(
        name="the list of edges",
        source=ends[: len(edges)],
        target=ends[len(edges) :],
        weight=weight,
        place=counted("edge", first=0),
    )


def read_edge_index(edge_index: Any, weight: Any = None) -> EdgeList:
    """An integer tensor or array of shape [2, edges], nodes numbered from 0."""
    ends = _array(edge_index)
    if ends.ndim != 2 or ends.shape[0] != 2 or ends.dtype.kind not in "iu":
        raise UserError(
            "expected an edge index (integers of shape [2, edges] or [edges, 2]) or a square "
            f"adjacency matrix, got {ends.dtype} of shape {list(ends.shape)}"
        )
    ends = ends.astype(np.int64)
    if weight is not None:
        weight = _array(weight).astype(np.float32)
        if weight.shape != ends.shape[1:]:
            raise UserError(
                f"{ends.shape[1]:,} edges, but edge weights of shape {list(weight.shape)}"
            )
    return EdgeList(
        name="the edge index",
        source=ends[0],
        target=ends[1],
        weight=weight,
        place=counted("edge", first=0),
    )


def read_adjacency(matrix: Any, name: str = "the adjacency matrix") -> tuple[EdgeList, NodeTable]:
    """A square sparse matrix: entry (i, j) is the weight of an edge from i to j."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise UserError(f"{name} must be square, got {list(matrix.shape)}")
    if matrix.dtype.kind not in "biuf":
        raise UserError(f"{name} must hold numbers, got {matrix.dtype}")
    entries = coo_array(matrix, copy=True)
    entries.sum_duplicates()  # what scipy takes an entry stored twice to mean
    source, target = (end.astype(np.int64) for end in entries.coords)
    edges = EdgeList(
        name=name,
        source=source,
        target=target,
        weight=entries.data.astype(np.float32),
        place=counted("entry"),
    )
    return edges, nodes_in_order(name, no_numbers(matrix.shape[0]))


def _array(values: Any) -> NDArray[Any]:
    if isinstance(values, torch.Tensor):
        return values.detach().cpu().numpy()
    return np.asarray(values)
