"""k-means finds what was planted, and nothing where nothing was."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.metrics import (
    adjusted_rand_score,
    confusion_matrix,
    f1_score,
    normalized_mutual_info_score,
)

from muxgcl.errors import UserError
from muxgcl.evaluate import assign, cluster, compare
from muxgcl.evaluate.agreement import confusion, macro_f1, mutual_information, rand_index
from muxgcl.evaluate.kmeans import kmeans


def planted(n: int = 120, k: int = 4) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(n) % k
    return np.eye(k)[y] + 0.05 * np.random.default_rng(0).normal(size=(n, k)), y


def test_planted_clusters_are_found() -> None:
    z, y = planted()
    result = cluster(z, y, repeats=3)
    assert result.nmi_scores == pytest.approx([1, 1, 1])
    assert result.ari_scores == pytest.approx([1, 1, 1])
    assert result.to_dict()["nmi"] == {"mean": pytest.approx(1), "std": pytest.approx(0), "n": 3}


def test_given_clusters_are_compared_on_the_labelled_nodes() -> None:
    rng = np.random.default_rng(0)
    groups, y = rng.integers(0, 5, 90), rng.integers(-1, 4, 90)
    known = y >= 0
    (nmi,), (ari,) = (found := compare(groups, y)).nmi_scores, found.ari_scores
    assert nmi == pytest.approx(normalized_mutual_info_score(y[known], groups[known]))
    assert ari == pytest.approx(adjusted_rand_score(y[known], groups[known]))
    with pytest.raises(UserError, match="got none"):
        compare(groups, np.full(90, -1))


def test_noise_agrees_with_no_labels() -> None:
    rng = np.random.default_rng(0)
    result = cluster(rng.normal(size=(500, 8)), rng.integers(0, 4, 500), repeats=2)
    assert abs(result.ari.mean) < 0.05
    assert result.nmi.mean < 0.05


def test_only_the_direction_of_a_row_counts() -> None:
    z, y = planted()
    stretched = z * np.random.default_rng(1).uniform(0.01, 100, (len(z), 1))
    assert cluster(stretched, y, repeats=1).nmi.mean == pytest.approx(1)


def test_two_classes_merged_score_as_computed_by_hand() -> None:
    z, y = planted(k=4)
    merged = np.where(y == 3, 2, y)  # three classes, so three clusters of four planted ones
    got = cluster(z[y < 3], merged[y < 3], repeats=1)
    assert got.ari.mean == pytest.approx(1)
    halves = cluster(z[y < 2], np.arange((y < 2).sum()) // 2 % 2, repeats=1)  # labels across both
    assert halves.nmi.mean == pytest.approx(0, abs=1e-9)


def test_unlabelled_nodes_are_clustered_and_not_scored() -> None:
    z, y = planted()
    y[::7] = -1
    assert len(assign(z, 4)) == len(z)
    assert cluster(z, y, repeats=1).ari.mean == pytest.approx(1)


def test_a_seed_fixes_the_clusters_and_sparse_rows_do_too() -> None:
    z = np.random.default_rng(0).normal(size=(200, 6))
    assert np.array_equal(assign(z, 5, seed=3), assign(z, 5, seed=3))
    y, thin = np.arange(200) % 5, sparse.csr_array(planted(200, 5)[0])
    assert cluster(thin, y, repeats=1).nmi.mean == pytest.approx(1)


def test_labels_or_clusters_that_are_not_there_are_refused() -> None:
    z, y = planted()
    with pytest.raises(UserError, match="expected labels"):
        cluster(z, np.full_like(y, -1))
    with pytest.raises(UserError, match="between 1 and 120 clusters, got 121"):
        assign(z, 121)


@pytest.mark.parametrize("clusters", [1, 3, 8])
@pytest.mark.parametrize("thin", [False, True])
def test_groups_are_as_tight_as_scikit_learns(clusters: int, thin: bool) -> None:
    rng = np.random.default_rng(clusters)
    rows = (rng.normal(size=(300, 12)) * (rng.random((300, 12)) < 0.5)).astype(np.float32)

    def tightness(label: np.ndarray) -> float:
        groups = [rows[label == k] for k in np.unique(label)]
        return sum(float(((group - group.mean(0)) ** 2).sum()) for group in groups)

    mine = kmeans(sparse.csr_array(rows) if thin else rows, clusters, starts=10, seed=0)
    theirs = KMeans(clusters, n_init=10, random_state=0).fit_predict(rows)
    assert len(np.unique(mine)) == clusters
    assert tightness(mine) <= 1.01 * tightness(theirs)


def test_every_row_is_with_its_nearest_mean() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
    label = kmeans(rows, 6, starts=3, seed=1)
    means = np.stack([rows[label == k].mean(0) for k in range(6)])
    nearest = ((rows[:, None] - means) ** 2).sum(2).argmin(1)
    assert np.array_equal(label, nearest)


def test_fewer_different_rows_than_clusters_are_no_trouble() -> None:
    rows = np.repeat(np.eye(2, dtype=np.float32), 5, axis=0)
    label = kmeans(rows, 4, starts=2, seed=0)
    assert not set(label[:5]) & set(label[5:])
    assert set(kmeans(np.zeros((6, 3), np.float32), 3, starts=1, seed=0)) <= {0, 1, 2}


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 3)), min_size=1, max_size=40))
def test_agreement_is_what_scikit_learn_says(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs).T
    assert mutual_information(one, other) == pytest.approx(
        normalized_mutual_info_score(one, other), abs=1e-12
    )
    assert rand_index(one, other) == pytest.approx(adjusted_rand_score(one, other), abs=1e-12)
    classes = np.append(np.union1d(one, other), 99)  # and one that is not there
    counts = confusion(one, other, classes)
    assert np.array_equal(counts, confusion_matrix(one, other, labels=classes))
    assert macro_f1(counts) == pytest.approx(
        f1_score(one, other, average="macro", zero_division=0), abs=1e-12
    )
