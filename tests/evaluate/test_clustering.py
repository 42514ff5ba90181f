"""k-means finds what was planted, and nothing where nothing was."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans, kmeans_plusplus
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

from muxgcl.errors import UserError
from muxgcl.evaluate import assign, cluster, clustering, compare


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
    (nmi,), (ari,) = (found := compare([groups], y)).nmi_scores, found.ari_scores
    assert nmi == pytest.approx(normalized_mutual_info_score(y[known], groups[known]))
    assert ari == pytest.approx(adjusted_rand_score(y[known], groups[known]))
    with pytest.raises(UserError, match="got none"):
        compare([groups], np.full(90, -1))


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


@pytest.mark.parametrize("thin", [False, True])
def test_groups_are_those_of_scikit_learns_k_means_on_unit_rows(thin: bool) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(300, 12)) * (rng.random((300, 12)) < 0.5)
    unit = normalize(rows).astype(np.float32)
    want = KMeans(5, n_init=10, random_state=7).fit_predict(
        sparse.csr_array(unit) if thin else unit
    )
    assert np.array_equal(assign(sparse.csr_array(rows) if thin else rows, 5, seed=7), want)


def test_every_start_is_the_one_that_a_single_generator_would_draw() -> None:
    rows = np.random.default_rng(5).normal(size=(80, 4))
    one = np.random.RandomState(11)
    for state in clustering._states(11, 6):
        got, want = (kmeans_plusplus(rows, 6, random_state=s)[1] for s in (state, one))
        assert np.array_equal(got, want)


def test_repeats_count_on_from_the_seed_and_are_scored_on_labelled_nodes() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(150, 6)), rng.integers(-1, 4, 150)
    got = cluster(z, y, repeats=3, seed=4)
    groups = [assign(z, 4, seed=4 + i)[y >= 0] for i in range(3)]
    truth = y[y >= 0]
    assert got.nmi_scores == tuple(normalized_mutual_info_score(truth, g) for g in groups)
    assert got.ari_scores == tuple(adjusted_rand_score(truth, g) for g in groups)
    assert len(set(got.ari_scores)) > 1


def test_fewer_different_rows_than_clusters_are_no_trouble() -> None:
    label = assign(np.repeat(np.eye(2), 5, axis=0), 4)
    assert not set(label[:5]) & set(label[5:])
    assert set(assign(np.zeros((6, 3)), 3)) <= {0, 1, 2}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_large_table_ends_in_the_grouping_of_a_small_one(
    form: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts are compared on some of the rows; the best one goes on with all of them."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 1000)
    z = form(0.8 * np.eye(6)[y] + 0.2 * rng.normal(size=(1000, 6)))
    whole = assign(z, 4)
    monkeypatch.setattr(clustering, "LARGE", 1000)
    monkeypatch.setattr(clustering, "SAMPLE", 600)  # 100 rows
    some = assign(z, 4)
    assert some.shape == (1000,)
    assert compare([some], whole).ari_scores[0] > 0.98
    np.testing.assert_array_equal(some, assign(z, 4))


def test_many_rows_are_clustered_in_mini_batches_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """On blobs that anyone would find, and in blocks that do not divide the rows."""
    y = np.repeat(np.arange(4), 250)
    z = np.eye(6)[y] + 0.05 * np.random.default_rng(0).normal(size=(1000, 6))
    whole = assign(z, 4)
    monkeypatch.setattr(clustering, "MANY", 300)
    monkeypatch.setattr(clustering, "BATCH", 64)
    assert assign(z, 4).shape == (1000,)
    assert compare([assign(z, 4), whole], y).nmi_scores == pytest.approx((1, 1))
    np.testing.assert_array_equal(assign(z, 4, seed=1), assign(z, 4, seed=1))
    np.testing.assert_array_equal(assign(sparse.csr_array(z), 4), assign(z, 4))


def test_mini_batches_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    z = np.random.default_rng(0).normal(size=(900, 8))
    unit = normalize(z).astype(np.float32)
    monkeypatch.setattr(clustering, "MANY", 899)  # rows are many, and all but one are the sample
    monkeypatch.setattr(clustering, "BATCH", 64)
    some = np.sort(np.random.default_rng(900).permutation(900)[:899])
    for seed in (0, 3):
        start = clustering._best_start(unit[some], 5, seed)
        how = {"init": start, "n_init": 1, "batch_size": 64, "random_state": seed}
        want = MiniBatchKMeans(5, **how).fit(unit[some]).predict(unit)
        assert np.array_equal(assign(z, 5, seed=seed), want)
