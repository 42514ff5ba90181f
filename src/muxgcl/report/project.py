"""Embeddings laid out in the plane: PCA, t-SNE, and UMAP where it is installed."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from joblib import cpu_count
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from muxgcl.evaluate.arrays import Rows, single_unit_rows

Plane = Float[np.ndarray, "n 2"]

TSNE_NODES = 3_000  # beyond them t-SNE would take minutes on a laptop
TSNE_FEWEST = 8  # fewer nodes have no neighbourhoods to speak of
TSNE_MANY = 1_000  # more nodes take seconds
WIDTH = 32  # principal directions that t-SNE and UMAP start from


@dataclass(frozen=True, slots=True)
class Map:
    """Places in the unit square, and how they were found."""

    name: str
    note: str
    places: Plane


def maps(embedding: Rows) -> list[Map]:
    """All maps that can be had of these rows; rows are scaled to length one first."""
    rows = single_unit_rows(embedding)
    n = len(rows)
    pca = PCA(min(WIDTH, *rows.shape), random_state=0)
    with np.errstate(invalid="ignore"):  # equal rows have no variance to explain
        main = pca.fit_transform(rows) if n > 1 else np.zeros((1, 2), np.float32)
        share = np.nan_to_num(pca.explained_variance_ratio_[:2]).sum() if n > 1 else 0
    note = (
        "PCA: the flat view of the embedding that keeps the most of its spread "
        f"({share:.0%} of it). Distances across the whole map mean something."
    )
    found = [Map("PCA", note, _in_square(main))]
    spread = np.ptp(main, axis=0)
    if n >= TSNE_FEWEST and len(spread) > 1 and spread.max() > 1e-6:  # else nothing to group
        found.append(_tsne(main))
        if find_spec("umap") is not None:
            found.append(_umap(main))
    return found


def _tsne(rows: Rows) -> Map:
    n = len(rows)
    chosen = np.sort(np.random.default_rng(0).permutation(n)[:TSNE_NODES])
    perplexity = min(30.0, (len(chosen) - 1) / 3)
    steps = _tsne_steps(len(chosen))
    tsne = TSNE(init="pca", perplexity=perplexity, random_state=0, **steps)
    with threadpool_limits(max(1, cpu_count() // 4)):  # threads that share a core stall
        places = tsne.fit_transform(rows[chosen])
    note = (
        "t-SNE: nodes that are alike lie together, so groups stand out; the gaps between groups "
        f"and their sizes mean little. {steps['max_iter']} steps"
    )
    if n == len(chosen):
        return Map("t-SNE", f"{note}.", _in_square(places))
    note = (
        f"{note} on {len(chosen):,} nodes drawn at random; each of the others stands among the "
        "three of these that are most like it."
    )
    return Map("t-SNE", note, _in_square(_among_neighbours(rows, chosen, places)))


def _tsne_steps(n: int) -> dict[str, Any]:
    """scikit-learn's settings; of many nodes fewer and longer steps, with coarser forces.

    On Photo, Cora, CiteSeer and blobs the loss ended as low as after 500 of its own steps, in about
    60% of the time. Steps twice as long as these threw some nodes far out.
    """
    if n <= TSNE_MANY:
        return {"max_iter": 500}
    return {"max_iter": 400, "angle": 0.8, "learning_rate": n / 12}


def _among_neighbours(
    rows: Rows, chosen: Int[np.ndarray, " m"], places: Float[np.ndarray, "m 2"]
) -> Plane:
    """Every row at the average place of its three nearest chosen rows, the nearer the heavier."""
    distance, nearest = NearestNeighbors(n_neighbors=3).fit(rows[chosen]).kneighbors(rows)
    weight = 1 / (distance + 1e-6) ** 2
    weight /= weight.sum(1, keepdims=True)
    everywhere = np.einsum("nk,nkc->nc", weight, places[nearest])
    everywhere[chosen] = places
    return everywhere


def _umap(rows: Rows) -> Map:
    from umap import UMAP  # an extra: slow to import, and often not there

    places = UMAP(n_neighbors=min(15, len(rows) - 1), random_state=0).fit_transform(rows)
    note = (
        "UMAP: nodes that are alike lie together; the gaps between groups mean a little more than "
        "in t-SNE, still not much."
    )
    return Map("UMAP", note, _in_square(places))


def _in_square(places: Rows) -> Plane:
    """Moved and scaled, both axes alike, so that the middle is 1/2 and all lie in [0, 1]."""
    plane = np.zeros((len(places), 2), np.float32)
    plane[:, : places.shape[1]] = np.nan_to_num(places[:, :2])
    low, high = plane.min(0), plane.max(0)
    span = float((high - low).max())
    return np.asarray((plane - (low + high) / 2) / (span or 1) + 0.5, np.float32)
