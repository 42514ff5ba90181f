"""k-means on an embedding, compared with the classes: NMI and ARI.

The starts on a large table are compared on a sample of its rows, and the best goes on with all of
them. A table of many rows goes on with scikit-learn's k-means in mini-batches, on a larger sample;
then all rows go to their nearest centre, a block at a time.
"""

import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from muxgcl.errors import UserError
from muxgcl.evaluate.arrays import Labels, Rows, Table, checked_labels, single_unit_rows
from muxgcl.evaluate.probe import on_all_cores
from muxgcl.evaluate.statistics import Summary, summarise

STARTS = 10  # of k-means++ a repeat; the tightest grouping is kept
MANY = 50_000  # rows, beyond which centres are found from so many of them, in mini-batches
BATCH = 8192
LARGE, SAMPLE = 1 << 26, 1 << 24  # numbers in a large table, and in a sample to compare starts on


@dataclass(frozen=True, slots=True)
class ClusteringResult:
    """One entry for each repeat; both measures are 1 where clusters and classes agree."""

    nmi_scores: tuple[float, ...]
    ari_scores: tuple[float, ...]

    @property
    def nmi(self) -> Summary:
        """Normalised mutual information, over the repeats."""
        return summarise(self.nmi_scores)

    @property
    def ari(self) -> Summary:
        """Adjusted Rand index, over the repeats."""
        return summarise(self.ari_scores)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """For JSON: the summaries."""
        return {"nmi": self.nmi.to_dict(), "ari": self.ari.to_dict()}


def assign(z: Table, clusters: int, *, seed: int = 0) -> Labels:
    """scikit-learn's k-means on rows of length one, from `STARTS` k-means++ starts."""
    (groups,) = _groupings(z, clusters, [seed])
    return groups


def _groupings(z: Table, clusters: int, seeds: Sequence[int]) -> list[Labels]:
    """One k-means for each seed, each in a thread of its own."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # takes seconds to load
    from sklearn.exceptions import ConvergenceWarning

    count = z.shape[0]
    if not 1 <= clusters <= count:
        raise UserError(f"expected between 1 and {count} clusters, got {clusters}")
    many, some = count > MANY, np.arange(count)
    if many:
        rng = np.random.default_rng(count)
        some = np.sort(rng.permutation(count)[: max(clusters, min(MANY, LARGE // z.shape[1]))])
    rows = single_unit_rows(z[some] if many else z)

    def group(seed: int) -> Labels:
        with threadpool_limits(limits=1):  # OpenMP's limit holds for one thread; sums keep an order
            start = _best_start(rows, clusters, seed)
            if not many:
                found: Labels = KMeans(clusters, init=start, n_init=1).fit_predict(rows)
                return found.astype(np.int64)
            how = {"batch_size": BATCH, "random_state": seed}
            kmeans = MiniBatchKMeans(clusters, init=start, n_init=1, **how).fit(rows)
            blocks = (z[first : first + BATCH] for first in range(0, count, BATCH))
            nearest = [kmeans.predict(single_unit_rows(block)) for block in blocks]
        return np.concatenate(nearest).astype(np.int64)

    with threadpool_limits(limits=1), warnings.catch_warnings():
        # fewer different rows than clusters leave some clusters empty
        warnings.simplefilter("ignore", ConvergenceWarning)
        if many or rows.size > LARGE:
            return on_all_cores(group, seeds)
        return _tightest(rows, clusters, seeds)


def _tightest(rows: Table, clusters: int, seeds: Sequence[int]) -> list[Labels]:
    """For each seed the tightest of `STARTS` groupings; every start is a thread's work."""
    from sklearn.cluster import KMeans, kmeans_plusplus

    def group(state: np.random.RandomState) -> tuple[float, Labels]:
        with threadpool_limits(limits=1):
            start, _ = kmeans_plusplus(rows, clusters, random_state=state)
            kmeans = KMeans(clusters, init=start, n_init=1).fit(rows)
        return float(kmeans.inertia_), kmeans.labels_.astype(np.int64)

    found = on_all_cores(group, [state for seed in seeds for state in _states(seed, clusters)])
    parts = [found[first : first + STARTS] for first in range(0, len(found), STARTS)]
    return [min(part, key=lambda grouping: grouping[0])[1] for part in parts]


def _states(seed: int, clusters: int) -> list[np.random.RandomState]:
    """The generator before each start, as in one KMeans: a start draws the same count each time.

    It draws one number for its first centre and `trials` for each further one.
    """
    trials, first = 2 + int(np.log(clusters)), np.random.RandomState(seed)
    found = []
    for _ in range(STARTS):
        found.append(deepcopy(first))
        first.random_sample(1 + (clusters - 1) * trials)
    return found


def _best_start(rows: Table, clusters: int, seed: int) -> Rows:
    """Centres of the tightest grouping, from all starts, of a sample of the rows."""
    from sklearn.cluster import KMeans

    count = max(clusters, SAMPLE * rows.shape[0] // max(1, rows.size))
    some = np.random.default_rng(seed).permutation(rows.shape[0])[:count]
    kmeans = KMeans(clusters, n_init=STARTS, random_state=seed).fit(rows[np.sort(some)])
    centres: Rows = kmeans.cluster_centers_
    return centres


def compare(groupings: Sequence[Labels], y: Labels) -> ClusteringResult:
    """How far given clusters agree with the classes, on the labelled nodes."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    labelled = np.asarray(y) >= 0
    if not labelled.any():
        raise UserError("expected labels to compare the clusters with, got none")
    truth = np.asarray(y)[labelled]
    return ClusteringResult(
        tuple(float(normalized_mutual_info_score(truth, groups[labelled])) for groups in groupings),
        tuple(float(adjusted_rand_score(truth, groups[labelled])) for groups in groupings),
    )


def cluster(
    z: Table, y: Labels, *, clusters: int | None = None, repeats: int = 5, seed: int = 0
) -> ClusteringResult:
    """Cluster all nodes, and compare the labelled ones with their classes.

    Args:
        z: embeddings [n, d].
        y: one label a node, -1 for none.
        clusters: how many; as many as there are classes by default.
        repeats: independent runs of k-means; the spread says how much hangs on its start.
        seed: of the first run; the others count on from it.
    """
    y = checked_labels(y, z.shape[0])
    labelled = y >= 0
    if not labelled.any():
        raise UserError("expected labels to compare the clusters with, got none")
    count = len(np.unique(y[labelled])) if clusters is None else clusters
    return compare(_groupings(z, count, range(seed, seed + repeats)), y)
