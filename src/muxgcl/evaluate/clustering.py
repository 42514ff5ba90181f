"""k-means on an embedding, compared with the classes: NMI and ARI."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from muxgcl.errors import UserError
from muxgcl.evaluate.arrays import Labels, Table, checked_labels, unit_rows
from muxgcl.evaluate.probe import on_all_cores
from muxgcl.evaluate.statistics import Summary, summarise

STARTS = 10  # of k-means++ a repeat; the tightest grouping is kept


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
    (groups,) = _groupings(unit_rows(z), clusters, [seed])
    return groups


def _groupings(rows: Table, clusters: int, seeds: Sequence[int]) -> list[Labels]:
    """One k-means for each seed, each in a thread of its own."""
    from sklearn.cluster import KMeans  # takes seconds to load
    from sklearn.exceptions import ConvergenceWarning

    if not 1 <= clusters <= rows.shape[0]:
        raise UserError(f"expected between 1 and {rows.shape[0]} clusters, got {clusters}")
    rows = rows.astype(np.float32)  # twice as fast as float64

    def group(seed: int) -> Labels:
        with threadpool_limits(limits=1):  # OpenMP's limit holds for one thread; sums keep an order
            found: Labels = KMeans(clusters, n_init=STARTS, random_state=seed).fit_predict(rows)
        return found.astype(np.int64)

    with threadpool_limits(limits=1), warnings.catch_warnings():
        # fewer different rows than clusters leave some clusters empty
        warnings.simplefilter("ignore", ConvergenceWarning)
        return on_all_cores(group, seeds)


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
    return compare(_groupings(unit_rows(z), count, range(seed, seed + repeats)), y)
