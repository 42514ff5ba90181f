"""Nearest nodes by cosine: exact, a block of rows at a time."""

import numpy as np
from jaxtyping import Float, Int

from muxgcl.errors import UserError
from muxgcl.evaluate.arrays import Index, Rows

BLOCK = 8_192  # rows that are compared at once


def nearest(
    z: Rows, queries: Index, k: int = 10
) -> tuple[Int[np.ndarray, "q k"], Float[np.ndarray, "q k"]]:
    """The k rows most similar to each of some rows, and their cosines, the most similar first.

    A row is not its own neighbour. Of equal cosines the lower row comes first. A zero row has
    cosine 0 with all.

    Args:
        z: embeddings [n, d].
        queries: rows to look around.
        k: how many neighbours; fewer where there are fewer nodes.
    """
    if k < 1:
        raise UserError(f"k must be at least 1, got {k}")
    k = min(k, len(z) - 1)
    wanted = _unit(np.asarray(z)[queries])  # [q, d]
    near = np.empty((len(queries), 0), np.int64)
    cosine = np.empty((len(queries), 0))
    for start in range(0, len(z), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(z)))
        found = wanted @ _unit(np.asarray(z)[rows]).T  # [q, block]
        found[rows[None] == queries[:, None]] = -np.inf
        near = np.hstack([near, np.broadcast_to(rows, found.shape)])
        cosine = np.hstack([cosine, found])
        best = np.argsort(-cosine, axis=1, kind="stable")[:, :k]  # lower rows stand further left
        near, cosine = np.take_along_axis(near, best, 1), np.take_along_axis(cosine, best, 1)
    return near, cosine


def _unit(rows: Rows) -> Rows:
    rows = rows.astype(np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1)
