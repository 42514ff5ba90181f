"""A graph in one `.npz`: the GNN benchmark's layout, scipy's adjacency matrix, or PyG's arrays.

Benchmark: Shchur et al. 2018, <https://arxiv.org/abs/1811.05868>. `adj_*` and `attr_*` are CSR
matrices (or `attr_matrix` is dense), `labels` is a list. PyG's arrays are `edge_index` and, where
they are there, `x`, `y` and `edge_weight`. Everything else in the file is left alone.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from muxgcl.errors import UserError
from muxgcl.io.edges import EdgeList
from muxgcl.io.matrices import nodes_in_order
from muxgcl.io.nodes import NodeTable, no_numbers
from muxgcl.io.npz import Npz
from muxgcl.io.objects import read_adjacency, read_edge_index
from muxgcl.io.safety import listed


def read_graph_npz(path: Path) -> tuple[EdgeList, NodeTable | None]:
    """Edges, and nodes numbered from 0 where the file says which there are."""
    labels: Any = None
    with Npz.open(path) as arrays:
        if "adj_indptr" in arrays:
            edges, nodes = read_adjacency(arrays.sparse("adj_"), f"{path}, adj_*")
            features = None
            if "attr_indptr" in arrays:
                features = arrays.sparse("attr_")
            elif "attr_matrix" in arrays:
                features = arrays.read("attr_matrix")
            labels = arrays.read("labels") if "labels" in arrays else None
        elif "indptr" in arrays or "format" in arrays:
            return read_adjacency(arrays.sparse(), str(path))
        elif "edge_index" in arrays:
            return _from_edge_index(path, arrays)
        else:
            raise UserError(
                f"{path} holds no graph: expected adj_data, adj_indices, adj_indptr and adj_shape, "
                f"or edge_index, got {listed(arrays.names)}"
            )
    table = nodes_in_order(
        str(path), nodes.numbers if features is None else features, labels=labels
    )
    if len(table.ids) != len(nodes.ids):
        raise UserError(
            f"{path}: adj_* has {len(nodes.ids):,} nodes, but attr_* has {len(table.ids):,} rows"
        )
    return edges, table


def _from_edge_index(path: Path, arrays: Npz) -> tuple[EdgeList, NodeTable | None]:
    """Arrays called as PyG calls them; without `x` and `y` the nodes are those of the edges."""
    ends = arrays.read("edge_index")
    if ends.ndim == 2 and ends.shape[1] == 2 != ends.shape[0]:
        ends = ends.T
    weight = arrays.read("edge_weight") if "edge_weight" in arrays else None
    labels = arrays.read("y") if "y" in arrays else None
    edges = replace(read_edge_index(ends, weight), name=f"{path}, edge_index")
    if "x" in arrays:
        return edges, nodes_in_order(str(path), arrays.read("x"), labels=labels)
    if labels is None:
        return edges, None
    return edges, nodes_in_order(str(path), no_numbers(len(labels)), labels=labels)
