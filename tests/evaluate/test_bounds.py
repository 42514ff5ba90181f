"""Where a rule of evaluation begins and ends, and what it says there."""

import numpy as np
import pytest
from scipy.stats import t as student

from muxgcl.errors import UserError
from muxgcl.evaluate import holdout_splits, link_prediction, paired_difference
from muxgcl.evaluate import link as links
from muxgcl.evaluate.link import HiddenEdges, hide_edges, similarities
from muxgcl.evaluate.splits import development_splits, public_splits, random_split
from muxgcl.evaluate.statistics import Difference, Summary, summarise

# statistics -------------------------------------------------------------------------------------


def test_a_summary_has_mean_spread_and_count() -> None:
    found = Summary(80.0, 3.0, 9)
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
        with pytest.raises(UserError, match="2 labelled nodes are too few to score"):
            random_split(labels, 0)
    for shares in ({"train": -0.1}, {"val": -0.1}, {"train": 0.5, "val": 0.5}):
        with pytest.raises(UserError, match="expected labelled nodes for train"):
            random_split(100, 0, **shares)
    sizes = random_split(100, 0, train=0.25, val=0.15)
    assert [len(p) for p in (sizes.train, sizes.val, sizes.test)] == [25, 15, 60]


def test_six_labelled_nodes_are_enough_for_a_reported_score_and_one_split_is() -> None:
    y = np.array([0, 1, 0, 1, 0, 1])
    assert len(holdout_splits(y, 1)) == 1
    with pytest.raises(UserError, match=r"5 labelled nodes are too few .* at least 6"):
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


def test_a_zero_row_is_similar_to_nothing() -> None:
    z = np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]], np.float32)
    pairs = np.array([[0, 1], [0, 2], [1, 1]])
    assert similarities(z, pairs).tolist() == pytest.approx([0.8, 0.0, 1.0])
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
