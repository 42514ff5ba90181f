"""A graph in one `.npz`: the GNN benchmark's layout, or an adjacency matrix as scipy saves it.

Benchmark: Shchur et al. 2018, <https://arxiv.org/abs/1811.05868>. `adj_*` and `attr_*` are CSR
matrices (or `attr_matrix` is dense), `labels` is a list. Everything else in the file is left alone.
"""

from pathlib import Path
from typing import Any

from muxgcl.errors import UserError
from muxgcl.io.edges import EdgeList
from muxgcl.io.matrices import nodes_in_order
from muxgcl.io.memory import read_adjacency
from muxgcl.io.nodes import NodeTable
from muxgcl.io.npz import Npz
from muxgcl.io.safety import listed


def read_graph_npz(path: Path) -> tuple[EdgeList, NodeTable]:
    """Edges, and nodes numbered from 0."""
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
        else:
            raise UserError(
                f"{path} holds no graph: expected adj_data, adj_indices, adj_indptr and adj_shape, "
                f"got {listed(arrays.names)}"
            )
    table = nodes_in_order(
        str(path), nodes.numbers if features is None else features, labels=labels
    )
    if len(table.ids) != len(nodes.ids):
        raise UserError(
            f"{path}: adj_* has {len(nodes.ids):,} nodes, but attr_* has {len(table.ids):,} rows"
        )
    return edges, table
