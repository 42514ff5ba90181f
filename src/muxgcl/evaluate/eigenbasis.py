r"""Training rows turned into the eigenbasis of their Gram matrix, where $T^\top T$ is diagonal.

An L2 penalty is the same in any rotated basis, so the turned problem has the same solution. It has
at most one column more than there are rows, however wide the table was; a wide sparse table is
never made dense.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.linalg import eigh

from muxgcl.evaluate.arrays import Table

Solution = Float[np.ndarray, "r k"]  # one column for each class
Weights = Float[np.ndarray, "d k"]
Intercepts = Float[np.ndarray, " k"]

_RANK = 1e-12  # an eigenvalue this small beside the trace is rounding


@dataclass(frozen=True, slots=True)
class Turned:
    """A linear problem in the eigenbasis."""

    rows: Float[np.ndarray, "n r"]
    curvature: Float[np.ndarray, "r 1"]  # the diagonal of rows.T @ rows
    penalised: Float[np.ndarray, "r 1"]  # 1, or 0 for a free intercept
    back: Callable[[Solution], tuple[Weights, Intercepts]]  # in the columns that came


def with_free_intercept(x: Table) -> Turned:
    """The rows, and a column of ones that the penalty leaves alone.

    A free intercept takes up any shift of the rows. Centred ones are orthogonal to the ones.
    """
    centre = np.asarray(x.mean(axis=0)).ravel()  # [d]
    rows, curvature, back = _turn(x, centre)

    def with_intercept(solution: Solution) -> tuple[Weights, Intercepts]:
        weight = back(solution[:-1])
        return weight, solution[-1] - centre @ weight

    return Turned(
        rows=np.column_stack([rows, np.ones(len(rows))]),
        curvature=np.append(curvature, len(rows))[:, None],
        penalised=np.append(np.ones(len(curvature)), 0.0)[:, None],
        back=with_intercept,
    )


def with_penalised_intercept(x: Table) -> Turned:
    """The intercept as the weight of one more feature that is always 1, as in liblinear."""
    ones = np.ones((x.shape[0], 1))
    x = sparse.hstack([x, ones], "csr") if sparse.issparse(x) else np.hstack([x, ones])
    rows, curvature, back = _turn(x, np.zeros(x.shape[1]))

    def split(solution: Solution) -> tuple[Weights, Intercepts]:
        weight = back(solution)
        return weight[:-1], weight[-1]

    return Turned(rows, curvature[:, None], np.ones((len(curvature), 1)), split)


def _turn(
    x: Table, centre: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, "n r"], Float[np.ndarray, " r"], Callable[[Solution], Weights]]:
    """`x - centre` in its eigenbasis, the eigenvalues, and the way back."""
    n, d = x.shape
    if d <= n:
        x = x.toarray() if sparse.issparse(x) else x
        products = x.T @ x
        products -= n * np.outer(centre, centre)
        curvature, axes = _eigen(products)  # [r], [d, r]
        rows = x @ axes
        rows -= centre @ axes
        return rows, curvature, lambda solution: axes @ solution

    # Wide: x - centre = U diag(s) V.T, where U and s come from the n x n matrix of inner products.
    inner = x @ x.T
    inner = inner.toarray() if sparse.issparse(inner) else inner
    shift = np.asarray(x @ centre)  # [n]
    curvature, left = _eigen(inner - shift[:, None] - shift + centre @ centre)  # [r], [n, r]
    scale = np.sqrt(curvature)

    def back(solution: Solution) -> Weights:
        shares = left @ (solution / scale[:, None])  # [n, k]: a weight is a sum of training rows
        return x.T @ shares  # shares of centred rows sum to zero, so the centre drops out

    return left * scale, curvature, back


def _eigen(
    symmetric: Float[np.ndarray, "m m"],
) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, "m r"]]:
    """Eigenvalues and eigenvectors, without zeros up to rounding; the input is spoilt."""
    zero = _RANK * max(np.trace(symmetric), 1.0)
    # by columns, as LAPACK has it: no copy
    values, vectors = eigh(symmetric.T, overwrite_a=True, check_finite=False, driver="evd")
    first = int(np.searchsorted(values, zero, side="right"))  # they ascend
    return values[first:], vectors[:, first:]
