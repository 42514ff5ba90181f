"""A graph's features, edges and propagation as numpy and scipy hold them, for what is measured."""

from typing import Any

import numpy as np
from scipy import sparse
from torch import Tensor

from muxgcl.graph import Features, Graph
from muxgcl.shapes import Array
from muxgcl.sparse import Csr


def features_table(features: Features) -> Any:
    """Features as numpy's table or scipy's sparse matrix."""
    return features.cpu().numpy() if isinstance(features, Tensor) else scipy_rows(features.matrix)


def scipy_rows(matrix: Csr) -> Any:
    """A sparse matrix as scipy holds it."""
    places = (part.cpu().numpy() for part in (matrix.col, matrix.rowptr))
    shape = (matrix.rows, matrix.columns)
    return sparse.csr_array((matrix.value.cpu().numpy(), *places), shape=shape)


def dense(table: Any) -> Array:
    """A table of numpy's or scipy's as numpy's."""
    return np.asarray(table.toarray() if sparse.issparse(table) else table)


def edges_of(graph: Graph) -> Array:
    """Edges without self-loops, [2, e], in both directions."""
    adjacency = graph.adjacency
    edges = np.stack([adjacency.row.cpu().numpy(), adjacency.col.cpu().numpy()])
    return np.asarray(edges[:, edges[0] != edges[1]])
