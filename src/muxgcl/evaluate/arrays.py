"""Array types used in evaluation: embeddings [n, d], labels [n] (-1: none); numpy throughout."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from muxgcl.errors import UserError

Rows = Float[np.ndarray, "n d"]
Table = Any  # Rows, or the same as a scipy sparse matrix
Labels = Int[np.ndarray, " n"]
Index = Int[np.ndarray, " _"]  # any number of nodes
Pairs = Int[np.ndarray, "m 2"]
Edges = Int[np.ndarray, "2 e"]
Weights = Float[np.ndarray, " e"]
BLOCK = 1 << 22  # numbers that are looked at in one go
PerPair = Float[np.ndarray, " m"]


def unit_rows(z: Table) -> Table:
    """Rows scaled to length one in float64; a zero row stays zero, a sparse table sparse."""
    from sklearn.preprocessing import normalize  # takes seconds to load

    given = checked_table(z)
    z = given.astype(np.float64, copy=False)
    return normalize(z, copy=z is given)


def single_unit_rows(z: Table) -> Table:
    """Rows scaled to length one in float32; a block of a dense table is in float64 at a time."""
    if sparse.issparse(z):
        return unit_rows(z).astype(np.float32)
    z = checked_table(z)
    rows, step = np.empty(z.shape, np.float32), max(1, BLOCK // max(1, z.shape[1]))
    for start in range(0, len(z), step):
        rows[start : start + step] = unit_rows(z[start : start + step])
    return rows


def checked_table(z: Table) -> Table:
    """The table as it is, all of it finite; a sparse one by rows."""
    z = sparse.csr_array(z) if sparse.issparse(z) else np.asarray(z)
    if z.ndim != 2:
        raise UserError(f"embeddings must be a table [nodes, width], got shape {z.shape}")
    values = z.data if sparse.issparse(z) else z
    step = max(1, BLOCK // max(1, values[:1].size))
    blocks = (values[start : start + step] for start in range(0, len(values), step))
    broken = sum(int((~np.isfinite(block)).sum()) for block in blocks)
    if broken:
        raise UserError(f"embeddings must be finite, got {broken} entries that are NaN or infinite")
    return z


def checked_labels(y: Labels, n: int) -> Labels:
    """The labels as int64, one for each of `n` nodes."""
    y = np.asarray(y)
    if y.ndim != 1 or len(y) != n or not np.issubdtype(y.dtype, np.integer):
        raise UserError(f"expected {n} integer labels, got {y.dtype} of shape {y.shape}")
    return y.astype(np.int64)
