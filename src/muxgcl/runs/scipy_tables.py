"""A graph's features and propagation as numpy and scipy hold them, for controls and measures."""

from typing import Any

from scipy import sparse
from torch import Tensor

from muxgcl.graph import Features
from muxgcl.sparse import Csr


def features_table(features: Features) -> Any:
    """Features as numpy's table or scipy's sparse matrix."""
    return features.cpu().numpy() if isinstance(features, Tensor) else scipy_rows(features.matrix)


def scipy_rows(matrix: Csr) -> Any:
    """The same matrix as scipy holds it."""
    places = (part.cpu().numpy() for part in (matrix.col, matrix.rowptr))
    shape = (matrix.rows, matrix.columns)
    return sparse.csr_array((matrix.value.cpu().numpy(), *places), shape=shape)
