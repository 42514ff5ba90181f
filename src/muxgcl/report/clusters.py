"""The clusters that the page colours by, and the narrow rows that find them in a moment."""

import numpy as np
from jaxtyping import Float
from sklearn.cluster import KMeans
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from muxgcl.evaluate import assign
from muxgcl.evaluate.arrays import Labels, Rows, single_unit_rows, unit_rows

Narrow = Float[np.ndarray, "n w"]  # of the same nodes as rows [n, d], fewer numbers each


def narrowed(unit: Rows, width: int) -> Narrow:
    """Rows whose products are nearly those of the given ones, `width` numbers each at most."""
    if unit.shape[1] <= width:
        return unit
    # main directions, neither centred nor scaled again: nothing keeps the products as well
    return np.asarray(unit @ randomized_svd(unit, width, random_state=0)[2].T)


def clustered(rows: Rows, narrow: Narrow, most: int) -> Labels:
    """k-means of the rows, with `most` clusters or as many as there are different rows.

    The starts on wide rows are compared on the narrow ones; the best goes on with whole rows.
    """
    count = distinct(rows, most)
    with threadpool_limits(1):  # threads that share a core stall
        if narrow.shape[1] == rows.shape[1]:
            return assign(rows, count)
        unit, groups = single_unit_rows(rows), assign(narrow, count)
        centres = np.stack([unit[groups == group].mean(0) for group in np.unique(groups)])
        found = KMeans(len(centres), init=centres, n_init=1).fit_predict(unit)
    return np.asarray(found, np.int64)


def distinct(rows: Rows, most: int) -> int:
    """How many different directions there are, up to `most`: k-means can make no more clusters."""
    seen: set[bytes] = set()
    for start in range(0, len(rows), 256):
        block: Rows = unit_rows(rows[start : start + 256]).round(6) + 0.0  # no -0
        seen.update(row.tobytes() for row in block)
        if len(seen) >= most:
            return most
    return len(seen)
