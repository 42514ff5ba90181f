"""The probe against plain scikit-learn, and what may and may not influence it."""

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize

from muxgcl.errors import UserError
from muxgcl.evaluate import STRENGTHS, Split, holdout_splits, probe, subsampled


def embedding(
    n: int = 400, d: int = 16, k: int = 4, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping clusters, so that nothing is decided by a landslide."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    z = 0.8 * rng.normal(size=(k, d))[y] + rng.normal(size=(n, d))
    return z.astype(np.float32), y


def grid_search(z: np.ndarray, y: np.ndarray, split: Split) -> tuple[float, float]:
    """C chosen on val by `GridSearchCV`, and test accuracy of its model, fitted on train."""
    z = normalize(z.astype(np.float64))
    nodes = np.concatenate([split.train, split.val])
    fold = PredefinedSplit(np.repeat([-1, 0], [len(split.train), len(split.val)]))
    model = OneVsRestClassifier(LogisticRegression(solver="newton-cholesky", tol=1e-8))
    search = GridSearchCV(model, {"estimator__C": STRENGTHS}, cv=fold, refit=False)
    search.fit(z[nodes], y[nodes])
    model.set_params(**search.best_params_).fit(z[split.train], y[split.train])
    return search.best_params_["estimator__C"], 100 * model.score(z[split.test], y[split.test])


@pytest.mark.parametrize(("n", "d", "k"), [(400, 16, 4), (300, 64, 3), (300, 8, 2)])
def test_choice_and_accuracy_are_those_of_grid_search(n: int, d: int, k: int) -> None:
    z, y = embedding(n, d, k)
    splits = holdout_splits(y, 4)
    result = probe(z, y, splits)
    for split, got in zip(splits, result.splits, strict=True):
        assert (got.strength, got.accuracy) == pytest.approx(grid_search(z, y, split))


def test_sparse_and_dense_tables_score_alike() -> None:
    z, y = embedding(d=200)
    z[np.random.default_rng(1).random(z.shape) < 0.8] = 0
    splits = holdout_splits(y, 3)
    dense, thin = probe(z, y, splits), probe(sparse.csr_matrix(z), y, splits)
    assert thin.to_record() == dense.to_record()


def test_nodes_set_aside_count_beside_the_score_and_not_in_it() -> None:
    z, y = embedding()
    half, whole = holdout_splits(y, 3), holdout_splits(y, 3, everywhere=True)
    one, two = probe(z, y, half), probe(z, y, whole)
    assert [s.everywhere for s in one.splits] == pytest.approx(two.accuracies)
    assert [s.everywhere for s in two.splits] == two.accuracies  # nothing is set aside there
    bare = [Split(split.train, split.val, split.test) for split in half]
    assert probe(z, y, bare).accuracies == one.accuracies
    assert [s.strength for s in one.splits] == [s.strength for s in two.splits]


def test_test_labels_influence_nothing_but_the_test_score() -> None:
    z, y = embedding()
    splits = holdout_splits(y, 1)
    other = y.copy()
    other[splits[0].test] = np.random.default_rng(1).permutation(y[splits[0].test])
    (one,), (two,) = probe(z, y, splits).splits, probe(z, other, splits).splits
    assert two.strength == one.strength
    assert np.array_equal(two.confusion.sum(0), one.confusion.sum(0))  # the same predictions
    assert two.accuracy < one.accuracy - 10


def test_a_class_that_only_test_nodes_have_is_never_predicted() -> None:
    z, y = embedding()
    (split,) = holdout_splits(y, 1)
    other = y.copy()
    other[split.test[:7]] = 9
    result = probe(z, other, [split])
    assert result.classes.tolist() == [0, 1, 2, 3, 9]
    assert result.confusion[:, -1].sum() == 0
    assert result.confusion[-1].sum() == 7
    assert result.splits[0].strength == probe(z, y, [split]).splits[0].strength


def test_validation_labels_choose_the_strength() -> None:
    z, y = embedding()
    (split,) = holdout_splits(y, 1)
    other = y.copy()
    other[split.val] = np.bincount(y[split.train]).argmax()  # now a model that says so always wins
    assert probe(z, other, [split]).splits[0].strength < probe(z, y, [split]).splits[0].strength


def test_the_order_of_the_nodes_does_not_matter() -> None:
    z, y = embedding()
    order = np.random.default_rng(2).permutation(len(y))
    place = np.argsort(order)  # node i is now at place[i]
    splits = holdout_splits(y, 3, everywhere=True)
    moved = [Split(place[s.train], place[s.val], place[s.test]) for s in splits]
    assert probe(z[order], y[order], moved).to_record() == probe(z, y, splits).to_record()


def test_the_length_of_a_row_does_not_matter_and_a_zero_row_is_allowed() -> None:
    z, y = embedding()
    z[0] = 0
    splits = holdout_splits(y, 2)
    stretched = z * np.random.default_rng(3).uniform(0.5, 2, (len(z), 1)).astype(np.float32)
    assert probe(stretched, y, splits).to_record() == probe(z, y, splits).to_record()


def test_scores_follow_from_the_confusion_matrix() -> None:
    z, y = embedding()
    splits = holdout_splits(y, 5)
    result = probe(z, y, splits)
    for split, score in zip(splits, result.splits, strict=True):
        counts, hits = score.confusion, np.diag(score.confusion)
        assert counts.sum(1).tolist() == np.bincount(y[split.test]).tolist()
        assert score.accuracy == pytest.approx(100 * hits.sum() / counts.sum())
        f1 = 2 * hits / (counts.sum(0) + counts.sum(1))
        assert score.macro_f1 == pytest.approx(100 * f1.mean())
    assert np.array_equal(result.confusion, sum(score.confusion for score in result.splits))


def test_json_carries_mean_deviation_and_count() -> None:
    z, y = embedding()
    result = probe(z, y, holdout_splits(y, 5))
    values = np.array(result.to_record()["accuracy"])
    assert result.to_dict()["accuracy"] == {
        "mean": pytest.approx(values.mean()),
        "std": pytest.approx(values.std(ddof=1)),
        "n": 5,
    }
    assert values.mean() > 60  # percent, and better than chance


def test_what_cannot_be_probed_is_refused_in_one_line() -> None:
    z, y = embedding()
    splits = holdout_splits(y, 1)
    broken = z.copy()
    broken[3, 4] = np.nan
    with pytest.raises(UserError, match="got 1 entries that are NaN or infinite"):
        probe(broken, y, splits)
    with pytest.raises(UserError, match="expected 400 integer labels"):
        probe(z, y[:-1], splits)
    with pytest.raises(UserError, match="one is empty"):
        probe(z, y, [Split(splits[0].train, splits[0].val, splits[0].test[:0])])


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_rows_that_no_split_names_do_not_matter(layout: type) -> None:
    z, y = embedding()
    splits = [subsampled(split, (40, 30, 20)) for split in holdout_splits(y, 2)]
    want = probe(z, y, splits)
    far = np.vstack([z, np.full((3 * len(z), z.shape[1]), 7.0, np.float32)])
    found = probe(layout(far), np.r_[y, np.full(3 * len(y), -1)], splits)
    assert found.accuracies == want.accuracies
    np.testing.assert_array_equal(found.confusion, want.confusion)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_the_size_of_a_block_of_rows_does_not_matter(
    layout: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    z, y = embedding()
    splits = holdout_splits(y, 2)
    want = probe(layout(z), y, splits)
    for name, size in (("ROWS", 7), ("SCORES", 1)):
        monkeypatch.setattr(sys.modules[probe.__module__], name, size)
        found = probe(layout(z), y, splits)
        assert found.to_record() == want.to_record()
        assert [s.validation for s in found.splits] == [s.validation for s in want.splits]


def test_the_table_that_is_scored_stays_as_it_was() -> None:
    z, y = embedding()
    for table in (z, z.astype(np.float64), sparse.csr_array(z.astype(np.float64))):
        before = table.copy()
        probe(table, y, holdout_splits(y, 1))
        assert abs(table - before).max() == 0
