"""Where the probe, the controls and the clusters begin and end, and what they say there."""

import sys
import warnings

import numpy as np
import pytest
from scipy import sparse

from muxgcl.errors import UserError
from muxgcl.evaluate import cluster, holdout_splits, probe
from muxgcl.evaluate.arrays import checked_labels, unit_rows
from muxgcl.evaluate.clustering import assign
from muxgcl.evaluate.controls import majority, raw_features, side_by_side
from muxgcl.evaluate.logistic import fit_path
from muxgcl.evaluate.probe import STRENGTHS
from muxgcl.evaluate.protocols import (
    PaperProtocol,
    PaperResult,
    _exact_matches,
    _folds,
    holdout,
)
from muxgcl.evaluate.splits import Split, random_split
from muxgcl.evaluate.statistics import summarise

# probe and controls -----------------------------------------------------------------------------


def blobs(n: int = 60, k: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.normal(size=(n, 4)) + 2 * rng.normal(size=(k, 4))[y], y


def test_confusions_are_counted_for_the_first_classes_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z, y = blobs()
    splits = holdout_splits(y, 3)
    whole = probe(z, y, splits)
    monkeypatch.setattr(sys.modules["muxgcl.evaluate.probe"], "COUNTED", 2)
    some = probe(z, y, splits)
    assert whole.classes.tolist() == [0, 1, 2]
    assert some.classes.tolist() == [0, 1]
    for one, two in zip(some.splits, whole.splits, strict=True):
        assert np.array_equal(one.confusion, two.confusion[:2, :2])
        assert (one.accuracy, one.macro_f1) == (two.accuracy, two.macro_f1)
    only_two = Split(splits[0].train, splits[0].val, np.flatnonzero(y == 2))
    (found,) = probe(z, y, [only_two]).splits
    assert found.confusion.shape == (2, 2)


def test_tables_and_labels_that_do_not_fit_are_refused(unchecked: None) -> None:
    for table in (np.zeros(3), np.zeros((2, 2, 2))):
        with pytest.raises(UserError, match="must be a table"):
            unit_rows(table)
    bad = np.array([[1.0, np.nan], [np.inf, 1.0]])
    for table in (bad, sparse.csr_array(bad)):
        with pytest.raises(UserError, match="got 2 entries that are NaN or infinite"):
            unit_rows(table)
    assert unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [[0.6, 0.8], [0.0, 0.0]]
    for labels in (np.zeros(3, int), np.zeros(4), np.zeros((4, 1), int)):
        with pytest.raises(UserError, match="expected 4 integer labels"):
            checked_labels(labels, 4)
    assert checked_labels(np.zeros(4, np.int8), 4).dtype == np.int64


def test_features_are_sparse_where_less_than_a_quarter_is_not_zero() -> None:
    x = np.zeros((8, 5))
    x.flat[:9] = 1
    assert sparse.issparse(raw_features(x))
    x.flat[9] = 1
    assert not sparse.issparse(raw_features(x))
    assert sparse.issparse(raw_features(sparse.csr_array(np.ones((2, 2)))))
    both = side_by_side([sparse.csr_array(np.eye(2)), np.full((2, 1), 5.0)])
    assert isinstance(both, np.ndarray)
    assert both.tolist() == [[1, 0, 1], [0, 1, 1]]
    assert sparse.issparse(side_by_side([sparse.csr_array(np.eye(2))] * 2))


def test_the_majority_is_scored_like_a_method() -> None:
    y = np.array([0, 0, 1, 1, 1, 0, 0, 0, 1, -1])
    split = Split(np.array([0, 1, 2]), np.array([3, 4, 5]), np.array([6, 7, 8, 2]), np.array([3]))
    (found,) = majority(y, [split]).splits
    assert (found.accuracy, found.everywhere, found.strength) == (50.0, 40.0, 0.0)
    assert found.validation == pytest.approx(100 / 3)
    assert found.macro_f1 == pytest.approx(100 * (2 / 3) / 2)
    assert found.confusion.tolist() == [[2, 0], [2, 0]]
    tie = Split(np.array([2, 0]), np.array([3]), np.array([6, 8]))
    assert majority(y, [tie]).splits[0].accuracy == 50.0  # the smaller of two classes
    assert majority(y, [tie]).splits[0].everywhere == 50.0


def test_one_to_all_clusters_can_be_asked_for() -> None:
    z, y = blobs(12)
    assert set(assign(z, 1)) == {0}
    assert len(set(assign(z, 12))) == 12
    for count in (0, 13):
        with pytest.raises(UserError, match=f"between 1 and 12 clusters, got {count}"):
            assign(z, count)
    assert len(cluster(z, y).nmi_scores) == 5
    assert cluster(z, y, clusters=1).nmi.mean == 0.0


def test_a_path_that_does_not_converge_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    z, y = blobs()
    monkeypatch.setattr("muxgcl.evaluate.logistic._NEWTON_STEPS", 1)
    with pytest.warns(RuntimeWarning, match="no convergence at C = 0.5"):
        fit_path(z, y, [0.5])
    monkeypatch.setattr("muxgcl.evaluate.logistic._NEWTON_STEPS", 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_path(z, y, [0.5, 1e4])


# protocols --------------------------------------------------------------------------------------


def test_five_folds_are_held_back_in_the_order_of_the_nodes() -> None:
    train = np.array([9, 2, 7, 4, 5, 0])
    folds = _folds(train)
    assert [held.tolist() for _, held in folds] == [[9, 2], [7], [4], [5], [0]]
    for fit, held in folds:
        assert fit.tolist() == [i for i in train.tolist() if i not in held]
    assert len(_folds(train[:5])) == 5
    with pytest.raises(UserError, match="at least 5 training nodes, got 4"):
        _folds(train[:4])


class Fixed:
    """A model with given scores."""

    def __init__(self, classes: list[int], scores: list[list[float]]) -> None:
        self.classes, self.given = np.array(classes), np.array(scores)

    def scores(self, x: np.ndarray) -> np.ndarray:
        return self.given

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.zeros(len(x), int)


def test_an_answer_in_a_fold_is_right_where_its_class_alone_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = [[0.5, -0.5], [0.0, 1.0], [0.5, 0.5], [-1.0, -1.0], [2.0, -1.0], [-1.0, -1.0]]
    y = np.array([0, 1, 0, 2, 1, 0])
    asked: list[object] = []

    def fit_path(x: np.ndarray, y: np.ndarray, strengths: object, **how: object) -> list[Fixed]:
        asked.append((len(x), strengths, how))
        return [Fixed([0, 1], scores), Fixed([0, 1], [[1.0, -1.0]] * 6)]

    monkeypatch.setattr("muxgcl.evaluate.protocols.fit_path", fit_path)
    shares = _exact_matches(np.zeros((6, 2)), y, np.arange(4), np.arange(6))
    assert shares == pytest.approx([2 / 6, 3 / 6])
    assert asked == [(4, STRENGTHS, {"penalise_intercept": True})]


def test_the_paper_chooses_the_strength_that_is_best_over_the_folds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[list[float]] = []

    def matches(z: np.ndarray, y: np.ndarray, fit: np.ndarray, held: np.ndarray) -> list[float]:
        shares = np.zeros(len(STRENGTHS))
        shares[7], shares[held[0] % 5] = 0.8, 1.0  # one fold alone is better elsewhere
        return list(shares)

    def fit_path(x: np.ndarray, y: np.ndarray, strengths: list[float], **how: object) -> list:
        used.append(strengths)
        assert how == {"penalise_intercept": True}
        return [Fixed([0], [[0.0]])]

    monkeypatch.setattr("muxgcl.evaluate.protocols._exact_matches", matches)
    monkeypatch.setattr("muxgcl.evaluate.protocols.fit_path", fit_path)
    y = np.arange(100) % 2
    found = PaperProtocol(y, seed=4).observe(9, np.ones((100, 2)))
    assert used == [[STRENGTHS[7]]] * 3
    assert len(found) == 3
    tests = [random_split(y, (4, 9, repeat)).test for repeat in range(3)]
    assert found == pytest.approx([100 * (y[test] == 0).mean() for test in tests])


def test_the_papers_figure_is_the_best_epoch_and_the_other_one_all_of_them() -> None:
    found = PaperResult({1: (50.0, 60.0), 2: (80.0, 70.0), 3: (75.0, 75.0)})
    assert found.best_epoch == 2  # the first of two
    assert found.accuracy == summarise([80.0, 70.0])
    assert found.unselected == summarise([50.0, 60.0, 80.0, 70.0, 75.0, 75.0])
    assert found.to_dict()["optimistic"] is True
    assert PaperProtocol(np.arange(50) % 2).seed == 0


def test_holdout_has_twenty_splits_of_seed_0_in_the_report_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z, y = blobs(80, 2)
    asked: list[list[Split]] = []
    monkeypatch.setattr(
        "muxgcl.evaluate.protocols.probe", lambda z, y, splits, device: asked.append(splits)
    )
    holdout(z, y)
    holdout(z, y, count=2, seed=3, everywhere=True)
    wanted = (holdout_splits(y, 20, 0), holdout_splits(y, 2, 3, everywhere=True))
    for found, want in zip(asked, wanted, strict=True):
        assert [split.test.tolist() for split in found] == [split.test.tolist() for split in want]
