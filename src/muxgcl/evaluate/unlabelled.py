r"""An embedding without labels: are there stable clusters that most edges stay inside?

- *Stability*: the columns are divided at random into two halves, and k-means groups the nodes by
  each. The normalised mutual information of the two groupings is 1 where both halves of an
  embedding tell the same clusters, and 0 where what one tells is chance.
- *Modularity*: the share of edges inside clusters of the whole embedding, minus the share of all
  pairs of nodes inside them, $\frac{1}{|E|}\sum_{(i,j) \in E} [g_i = g_j] - \sum_c (n_c / n)^2$.

Either alone is fooled: noise that went through many hops has modularity, and a table of two blobs
has stability. The smaller of the two, `structure`, goes with accuracy on all five benchmark graphs
(docs/mux-hop.md, Without labels).
"""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from muxgcl.errors import UserError
from muxgcl.evaluate.arrays import Edges, Index, Labels, Rows, single_unit_rows

CLUSTERS = 10  # nobody knows how many classes there are
NODES = 8192  # that k-means learns from, at most
STARTS = 3  # of k-means, of which the tightest is kept
DRAWS = 3  # of halves of the columns; figures are means over them
BLOCK = 8192  # rows that go to their centres at a time


@dataclass(frozen=True, slots=True)
class Structure:
    """From 0 for chance to 1; the smaller of the other two is `structure`."""

    FIGURES: ClassVar[tuple[str, ...]] = ("structure", "stability", "modularity")

    structure: float
    stability: float
    modularity: float

    def to_dict(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)


def structure(z: Rows, edge_index: Edges, *, clusters: int = CLUSTERS) -> Structure | None:
    """Stability and modularity of an embedding; None for too few nodes, columns or edges.

    Args:
        z: embeddings [n, d].
        edge_index: [2, e]; self-loops do not count.
        clusters: of k-means.

    Example:
        >>> blobs = np.repeat(np.eye(2), 30, axis=0).repeat(2, axis=1)
        >>> ring = np.stack([np.arange(60), (np.arange(60) + 1) % 60])
        >>> found = structure(blobs, ring, clusters=2)
        >>> found.stability, round(found.modularity, 3)
        (1.0, 0.467)
    """
    if clusters < 2:
        raise UserError(f"expected at least two clusters, got {clusters}")
    z, edges = np.asarray(z), np.asarray(edge_index)
    row, col = edges[:, edges[0] != edges[1]]
    if len(z) < 2 * clusters or z.shape[1] < 2 or not len(row):
        return None
    from sklearn.metrics import normalized_mutual_info_score  # takes seconds to load

    chance = np.random.default_rng(0)  # of halves and samples
    some = np.sort(chance.permutation(len(z))[:NODES])
    stable, modular = [], []
    for draw in range(DRAWS):
        halves = np.array_split(chance.permutation(z.shape[1]), 2)
        one, two = (_groups(z[some][:, half], clusters, draw) for half in halves)
        stable.append(float(normalized_mutual_info_score(one, two)))
        groups = _groups(z, clusters, draw, some)
        shares = np.bincount(groups, minlength=clusters) / len(z)
        modular.append(float((groups[row] == groups[col]).mean() - (shares**2).sum()))
    stability, modularity = float(np.mean(stable)), float(np.mean(modular))
    return Structure(min(stability, modularity), stability, modularity)


def _groups(z: Rows, clusters: int, seed: int, learned: Index | Sequence[int] = ()) -> Labels:
    """k-means on unit rows, learned from some of them; the group of every row."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    rows = single_unit_rows(z[learned] if len(learned) else z)
    # with one thread sums keep an order
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters
        kmeans = KMeans(clusters, n_init=STARTS, random_state=seed).fit(rows)
    if not len(learned):
        return np.asarray(kmeans.labels_, np.int64)
    parts = (z[first : first + BLOCK] for first in range(0, len(z), BLOCK))
    return np.concatenate([kmeans.predict(single_unit_rows(part)) for part in parts]).astype(
        np.int64
    )
