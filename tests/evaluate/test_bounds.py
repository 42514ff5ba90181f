"""Where a rule of evaluation begins and ends, and what it says there."""

import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import t as student

from muxgcl.errors import UserError
from muxgcl.evaluate import cluster, holdout_splits, link_prediction, paired_difference, probe
from muxgcl.evaluate import link as links
from muxgcl.evaluate.arrays import checked_labels, unit_rows
from muxgcl.evaluate.clustering import assign
from muxgcl.evaluate.controls import majority, raw_features, side_by_side
from muxgcl.evaluate.link import HiddenEdges, hide_edges, similarities
from muxgcl.evaluate.logistic import fit_path
from muxgcl.evaluate.probe import STRENGTHS
from muxgcl.evaluate.protocols import (
    PaperProtocol,
    PaperResult,
    _exact_matches,
    _folds,
    holdout,
)
from muxgcl.evaluate.splits import Split, development_splits, public_splits, random_split
from muxgcl.evaluate.statistics import Difference, Summary, summarise

# statistics -------------------------------------------------------------------------------------


def test_a_summary_says_how_sure_its_mean_is() -> None:
    found = Summary(80.0, 3.0, 9)
    assert found.standard_error == 1.0
    assert str(found) == "80.00 ± 3.00 (n = 9)"
    assert found.to_dict() == {"mean": 80.0, "std": 3.0, "n": 9}
    assert summarise([4.0]) == Summary(4.0, 0.0, 1)
    assert summarise([[1.0, 3.0]]).std == pytest.approx(2**0.5)


def difference(low: float | None, high: float | None) -> Difference:
    return Difference(1.0, low, high, 0.95, 5, 100)


@pytest.mark.parametrize(
    ("low", "high", "clear", "above"),
    [
        (0.1, 2.0, True, True),
        (0.0, 2.0, False, False),
        (-1.0, 0.0, False, False),
        (-1.0, -0.1, True, False),
        (-1.0, 1.0, False, False),
        (None, None, False, False),
    ],
)
def test_a_difference_is_clear_where_its_interval_leaves_out_zero(
    low: float | None, high: float | None, clear: bool, above: bool
) -> None:
    found = difference(low, high)
    assert (found.is_clear, found.is_above) == (clear, above)
    shown = f"[{low:+.2f}, {high:+.2f}]" if low is not None else "no interval"
    assert shown in str(found)
    assert str(found).startswith("+1.00 ")


def test_five_seeds_and_splits_have_an_interval_whose_length_follows_from_the_confidence() -> None:
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(2, 5, 5))
    wide, narrow = (paired_difference(one, two, confidence=c) for c in (0.95, 0.5))
    assert (wide.seeds, wide.n, wide.confidence) == (5, 25, 0.95)
    assert wide.mean == pytest.approx((one - two).mean())
    assert wide.high - wide.mean == pytest.approx(wide.mean - wide.low)
    assert wide.high - wide.low > narrow.high - narrow.low
    assert paired_difference(one[:4], two[:4]).low is None
    assert paired_difference(one[:, :4], two[:, :4]).low is None
    for wrong in (0.0, 1.0):
        with pytest.raises(UserError, match="confidence must lie between 0 and 1"):
            paired_difference(one, two, confidence=wrong)
    for shape in ((5, 4), (0, 5), (2, 5, 5)):
        with pytest.raises(UserError, match="expected scores in pairs"):
            paired_difference(
                np.zeros(shape), np.zeros((5, 5)) if len(shape) == 2 else np.zeros(shape)
            )


def test_an_effect_of_the_seed_alone_leaves_its_own_degrees_of_freedom() -> None:
    effect = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 6.0])
    scores = np.repeat(effect[:, None], 7, axis=1)
    found = paired_difference(scores, np.zeros_like(scores))
    error = effect.std(ddof=1) / 6**0.5
    assert found.high - found.mean == pytest.approx(error * student.ppf(0.975, 5))


# splits -----------------------------------------------------------------------------------------


def test_the_smallest_split_has_one_node_a_part() -> None:
    split = random_split(3, 0)
    assert [len(part) for part in (split.train, split.val, split.test)] == [1, 1, 1]
    for labels in (2, np.array([0, 1])):
        with pytest.raises(UserError, match="got 2 labelled nodes"):
            random_split(labels, 0)
    for shares in ({"train": -0.1}, {"val": -0.1}, {"train": 0.5, "val": 0.5}):
        with pytest.raises(UserError, match="expected labelled nodes for train"):
            random_split(100, 0, **shares)
    sizes = random_split(100, 0, train=0.25, val=0.15)
    assert [len(p) for p in (sizes.train, sizes.val, sizes.test)] == [25, 15, 60]


def test_six_labelled_nodes_are_enough_for_a_reported_score_and_one_split_is() -> None:
    y = np.array([0, 1, 0, 1, 0, 1])
    assert len(holdout_splits(y, 1)) == 1
    with pytest.raises(UserError, match=r"at least 6 labelled nodes, .* got 5"):
        holdout_splits(y[:5], 1)
    assert len(holdout_splits(y[:5], 1, everywhere=True)) == 1
    for splits in (holdout_splits, development_splits):
        with pytest.raises(UserError, match="at least one split, got 0"):
            splits(y, 0)
    assert len(holdout_splits(np.arange(40) % 2)) == 20
    assert len(development_splits(np.arange(80) % 2)) == 20


def test_a_search_needs_two_classes_in_its_half() -> None:
    y = np.full(40, -1)
    y[:20] = np.arange(20) % 2
    split = development_splits(y, 1)[0]
    assert [len(part) for part in (split.train, split.val, split.test)] == [2, 2, 6]
    with pytest.raises(UserError, match=r"at least two classes in the half .* got 1"):
        development_splits(np.zeros(40, int), 1)


def test_masks_of_a_public_split_do_not_overlap_and_unlabelled_nodes_are_left_out() -> None:
    y = np.array([0, 1, -1, 0, 1, 1])
    masks = [np.zeros((6, 1), bool) for _ in range(3)]
    masks[0][:3], masks[1][3], masks[2][4:] = True, True, True
    (split,) = public_splits(y, *masks)
    assert [p.tolist() for p in (split.train, split.val, split.test)] == [[0, 1], [3], [4, 5]]
    for missing in range(3):
        given = [None if k == missing else mask for k, mask in enumerate(masks)]
        with pytest.raises(UserError, match="expected train, val and test masks"):
            public_splits(y, *given)
    for one, two in ((0, 1), (0, 2), (1, 2)):
        shared = [mask.copy() for mask in masks]
        shared[one] |= masks[two]
        with pytest.raises(UserError, match="must not share nodes"):
            public_splits(y, *shared)
    with pytest.raises(UserError, match="at least two classes to tell apart, got 1"):
        public_splits(np.zeros(6, int), *masks)


# links ------------------------------------------------------------------------------------------


def test_a_zero_row_is_similar_to_nothing_and_dot_minds_length() -> None:
    z = np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]], np.float32)
    pairs = np.array([[0, 1], [0, 2], [1, 1]])
    assert similarities(z, pairs).tolist() == pytest.approx([0.8, 0.0, 1.0])
    assert similarities(z, pairs, similarity="dot").tolist() == [8.0, 0.0, 4.0]
    hidden = HiddenEdges(np.empty((2, 0), int), np.empty(0, bool), pairs[:1], pairs[1:2])
    assert link_prediction(z, hidden).to_dict() == {"auc": 1.0, "ap": 1.0, "n": 1}


def test_what_cannot_be_hidden_or_compared_is_refused() -> None:
    ring = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    for share in (0.0, 1.0):
        with pytest.raises(UserError, match="between 0 and 1, got"):
            hide_edges(ring, 4, share=share)
    for bad in ([[0], [4]], [[-1], [0]]):
        with pytest.raises(UserError, match="between nodes 0 and 3, got one outside"):
            hide_edges(np.array(bad), 4)
    with pytest.raises(UserError, match="no edge of 2 can be hidden"):
        hide_edges(np.array([[0, 1], [1, 2]]), 3)
    complete = np.array([(i, j) for i in range(5) for j in range(i)]).T
    with pytest.raises(UserError, match="expected 1 pairs without an edge, the graph has only 0"):
        hide_edges(complete, 5)


def test_as_many_non_edges_as_there_are_can_be_drawn() -> None:
    rng = np.random.default_rng(0)
    edges = np.array([0 * 5 + 1, 1 * 5 + 3, 2 * 5 + 4])
    found = links._draw_non_edges(edges, 5, 7, rng)
    free = {(i, j) for i in range(5) for j in range(i + 1, 5)} - {(0, 1), (1, 3), (2, 4)}
    assert {tuple(pair) for pair in found.tolist()} == free
    with pytest.raises(UserError, match="expected 8 pairs without an edge, the graph has only 7"):
        links._draw_non_edges(edges, 5, 8, rng)


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
    tests = [random_split(y, (4, 9, repeat)).test for repeat in range(3)]
    assert found == pytest.approx([100 * (y[test] == 0).mean() for test in tests])


def test_the_papers_figure_is_the_best_epoch_and_the_other_one_all_of_them() -> None:
    found = PaperResult({1: (50.0, 60.0), 2: (80.0, 70.0), 3: (75.0, 75.0)})
    assert found.best_epoch == 2  # the first of two
    assert found.accuracy == summarise([80.0, 70.0])
    assert found.unselected == summarise([50.0, 60.0, 80.0, 70.0, 75.0, 75.0])
    assert found.to_dict()["optimistic"] is True
    assert PaperProtocol(np.arange(50) % 2).repeats == 3
    assert PaperProtocol(np.arange(50) % 2).seed == 0


def test_holdout_has_twenty_splits_of_seed_0_in_the_report_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z, y = blobs(80, 2)
    asked: list[list[Split]] = []
    monkeypatch.setattr(
        "muxgcl.evaluate.protocols.probe", lambda z, y, splits: asked.append(splits)
    )
    holdout(z, y)
    holdout(z, y, count=2, seed=3, everywhere=True)
    wanted = (holdout_splits(y, 20, 0), holdout_splits(y, 2, 3, everywhere=True))
    for found, want in zip(asked, wanted, strict=True):
        assert [split.test.tolist() for split in found] == [split.test.tolist() for split in want]
