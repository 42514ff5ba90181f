"""k-means: rows in groups around their means, from starts that lie far apart.

Lloyd's iteration from greedy k-means++ starts (Arthur and Vassilvitskii 2007): each next centre is
a row drawn by its squared distance from those that are there, the best of a few draws. The tightest
of several starts wins. scikit-learn does the same, but takes seconds to load.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy import sparse

from muxgcl.evaluate.arrays import Index, Labels, Rows, Table

STEPS = 300  # of an iteration that does not come to rest
Distances = Float[np.ndarray, "n k"]  # squared


def kmeans(rows: Table, clusters: int, *, starts: int, seed: int) -> Labels:
    """Which group each row belongs to, in the tightest of `starts` groupings."""
    draw, search = np.random.default_rng(seed), _Search(rows)
    groupings = [search.settle(search.spread(clusters, draw)) for _ in range(starts)]
    return min(groupings, key=lambda grouping: grouping[1])[0]


class _Search:
    """The rows, dense or sparse, and their squared lengths."""

    def __init__(self, rows: Table) -> None:
        squares = rows.multiply(rows) if sparse.issparse(rows) else rows**2
        self.rows, self.lengths = rows, squares.sum(1)[:, None]

    def some(self, index: Sequence[int] | Index) -> Rows:
        """These rows, dense."""
        found = self.rows[index]
        return found.toarray() if sparse.issparse(found) else found

    def distances(self, centres: Rows) -> Distances:
        """Of every row from every centre, never below 0."""
        found = self.rows @ centres.T
        found *= -2
        found += self.lengths + (centres**2).sum(1)
        return np.maximum(found, 0, out=found)

    def spread(self, clusters: int, draw: np.random.Generator) -> Rows:
        """Rows to begin with as centres."""
        count, trials = len(self.lengths), 2 + int(math.log(clusters))
        chosen = [int(draw.integers(count))]
        nearest = self.distances(self.some(chosen))[:, 0]  # [n], from the closest centre so far
        while len(chosen) < clusters:
            mass = nearest.cumsum(dtype=np.float64)
            tried = np.searchsorted(mass, mass[-1] * draw.random(trials)).clip(max=count - 1)
            then = np.minimum(nearest[:, None], self.distances(self.some(tried)))  # [n, trials]
            best = int(then.sum(0).argmin())
            chosen.append(int(tried[best]))
            nearest = then[:, best]
        return self.some(chosen)

    def settle(self, centres: Rows) -> tuple[Labels, float]:
        """Move rows to the nearest centre and centres to the mean of their rows, until all stay."""
        own, label = np.arange(len(self.lengths)), np.full(len(self.lengths), -1)
        for _ in range(STEPS):
            before, distance = label, self.distances(centres)
            label = distance.argmin(1)
            away = distance[own, label]
            if (label == before).all():
                break
            member = label[:, None] == np.arange(len(centres))  # [n, k]
            for empty in np.flatnonzero(~member.any(0)):  # it takes over the row that is worst off
                worst = int(away.argmax())
                member[worst], member[worst, empty], away[worst] = False, True, 0
            member = member.T.astype(self.rows.dtype)
            centres = member @ self.rows / np.maximum(member.sum(1), 1)[:, None]
        return label, float(away.sum(dtype=np.float64))
