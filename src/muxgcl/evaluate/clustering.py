"""k-means on an embedding, compared with the classes: NMI and ARI."""

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from muxgcl.errors import UserError
from muxgcl.evaluate.agreement import mutual_information, rand_index
from muxgcl.evaluate.arrays import Labels, Table, checked_labels, unit_rows
from muxgcl.evaluate.kmeans import kmeans
from muxgcl.evaluate.probe import on_all_cores
from muxgcl.evaluate.statistics import Summary, summarise

STARTS = 10  # a repeat; the tightest is kept, as in scikit-learn before 1.4


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
    """k-means on rows of length one: the tightest of `STARTS` k-means++ starts."""
    z = unit_rows(z)
    if not 1 <= clusters <= z.shape[0]:
        raise UserError(f"expected between 1 and {z.shape[0]} clusters, got {clusters}")
    with threadpool_limits(limits=1):  # a step is too short to share: threads would only wait
        # in float32: twice as fast
        return kmeans(z.astype(np.float32), clusters, starts=STARTS, seed=seed)


def compare(groups: Labels, y: Labels) -> ClusteringResult:
    """How far given clusters agree with the classes of the labelled nodes."""
    groups, y = np.asarray(groups), checked_labels(y, len(groups))
    labelled = y >= 0
    if not labelled.any():
        raise UserError("expected labels to compare the clusters with, got none")
    return ClusteringResult(
        (mutual_information(y[labelled], groups[labelled]),),
        (rand_index(y[labelled], groups[labelled]),),
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
    rows = unit_rows(z)
    with threadpool_limits(limits=1):
        found = on_all_cores(lambda i: assign(rows, count, seed=seed + i)[labelled], range(repeats))
    return ClusteringResult(
        tuple(mutual_information(y[labelled], groups) for groups in found),
        tuple(rand_index(y[labelled], groups) for groups in found),
    )
