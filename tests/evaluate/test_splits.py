"""Splits are disjoint, complete, reproducible, and blind to unlabelled nodes."""

import numpy as np
import pytest

from muxgcl.errors import UserError
from muxgcl.evaluate import (
    Split,
    holdout_splits,
    nodes_in,
    public_splits,
    random_split,
    reindexed,
    subsampled,
)


def same(one: Split, two: Split) -> bool:
    return all(
        np.array_equal(getattr(one, part), getattr(two, part)) for part in ("train", "val", "test")
    )


def labels(n: int = 200, k: int = 5) -> np.ndarray:
    return np.random.default_rng(0).integers(0, k, n)


@pytest.mark.parametrize("n", [3, 10, 199, 1000])
def test_a_split_is_a_partition_into_tenths_and_the_rest(n: int) -> None:
    split = random_split(n, seed=3)
    everyone = np.concatenate([split.train, split.val, split.test])
    assert sorted(everyone) == list(range(n))
    assert len(split.train) == len(split.val) == max(1, round(n / 10))


def test_unlabelled_nodes_are_in_no_part() -> None:
    y = labels()
    y[::3] = -1
    for split in holdout_splits(y, 5, everywhere=True):
        everyone = np.concatenate([split.train, split.val, split.test])
        assert sorted(everyone) == np.flatnonzero(y >= 0).tolist()


def test_a_seed_fixes_the_splits_and_another_seed_changes_them() -> None:
    y = labels()
    assert all(map(same, holdout_splits(y, 4, 7), holdout_splits(y, 4, 7)))
    assert not any(map(same, holdout_splits(y, 4, 7), holdout_splits(y, 4, 8)))


def test_more_splits_begin_with_the_same_ones_and_all_differ() -> None:
    y = labels()
    assert all(map(same, holdout_splits(y, 3), holdout_splits(y, 20)))
    assert len({tuple(split.train) for split in holdout_splits(y, 20)}) == 20


def test_naming_the_classes_otherwise_leaves_the_splits_alone() -> None:
    y = labels()
    assert all(map(same, holdout_splits(y, 5), holdout_splits(10 * (4 - y), 5)))


def test_each_class_is_in_train_even_where_it_has_two_nodes_in_two_hundred() -> None:
    y = np.zeros(200, np.int64)
    y[[5, 100]] = 1
    assert any(
        1 not in y[random_split(200, (0, i)).train] for i in range(20)
    )  # chance leaves it out
    assert all(1 in y[split.train] for split in holdout_splits(y, 20))


def test_more_classes_than_training_nodes_still_give_a_split() -> None:
    split = random_split(np.arange(20), seed=0)
    assert same(split, random_split(20, seed=0))  # the first draw, as if there were no classes


def test_a_draw_that_no_other_improves_on_is_the_first() -> None:
    y = np.r_[np.arange(20), np.full(180, 20)]  # 20 training nodes, 21 classes
    assert same(random_split(y, seed=1), random_split(200, seed=1))
    rare = np.r_[np.arange(19), np.full(181, 20)]  # 20 classes: a thousand draws miss some
    assert same(random_split(rare, seed=1), random_split(200, seed=1))


def test_one_class_is_refused_in_one_line() -> None:
    y = np.zeros(50, np.int64)
    y[:10] = -1
    message = "^expected at least two classes to tell apart, got 1$"
    with pytest.raises(UserError, match=message):
        random_split(y, seed=0)
    with pytest.raises(UserError, match=message):
        holdout_splits(y, 3)
    with pytest.raises(UserError, match=message):
        public_splits(y[:30], *masks())
    with pytest.raises(UserError, match="0 labelled nodes are too few to score"):
        random_split(np.full(50, -1), seed=0)


def test_splits_are_those_of_the_records() -> None:
    split = random_split(labels(40, 3), (0, 1))
    assert split.train.tolist() == [6, 0, 23, 18]
    assert split.val.tolist() == [25, 14, 5, 2]


def test_too_few_labelled_nodes_are_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="2 labelled nodes are too few to score"):
        random_split(np.array([0, 1, -1, -1]), seed=0)
    with pytest.raises(UserError, match="at least one split"):
        holdout_splits(50, 0)


def masks(n: int = 30) -> list[np.ndarray]:
    return [np.isin(np.arange(n) % 3, part) for part in range(3)]


def test_the_public_split_is_what_the_masks_say_without_unlabelled_nodes() -> None:
    y = np.arange(30) % 2
    y[:3] = -1
    (split,) = public_splits(y, *masks())
    assert split.train.tolist() == list(range(3, 30, 3))
    assert split.val.tolist() == list(range(4, 30, 3))
    assert split.test.tolist() == list(range(5, 30, 3))


def test_a_mask_with_columns_gives_a_split_for_each() -> None:
    train, val, test = masks()
    y = np.arange(30) % 2
    one, two = public_splits(y, np.stack([train, val], 1), np.stack([val, train], 1), test)
    assert np.array_equal(one.train, two.val)
    assert np.array_equal(one.test, two.test)


def test_missing_or_overlapping_masks_are_refused() -> None:
    train, val, _ = masks()
    with pytest.raises(UserError, match="has none"):
        public_splits(np.zeros(30, np.int64), None, None, None)
    with pytest.raises(UserError, match="must not share nodes"):
        public_splits(np.arange(30) % 2, train, val, val)


def test_a_large_split_is_cut_to_a_random_sample_and_a_small_one_is_left_alone() -> None:
    whole = holdout_splits(labels(2000), 1)[0]
    few = subsampled(whole, (50, 60, 70))
    assert [len(few.train), len(few.val), len(few.test)] == [50, 60, 70]
    assert few.uncounted is not None
    for part in ("train", "val", "test", "uncounted"):
        some = getattr(few, part)
        assert len(set(some)) == len(some)
        assert set(some) <= set(getattr(whole, part))
    assert same(few, subsampled(whole, (50, 60, 70)))
    assert same(subsampled(whole), whole)


def test_splits_that_are_cut_look_at_the_same_nodes_as_far_as_they_can() -> None:
    whole = holdout_splits(labels(2000), 20)
    few = [subsampled(split, (40, 40, 200)) for split in whole]  # of 200, 200 and about 800
    assert len(nodes_in(whole)) == 2000
    assert len(nodes_in(few)) < 0.4 * 2000
    trained = [set(split.train) for split in few]
    assert len(set.union(*trained)) > 300  # and yet each has its own
    assert len(set.intersection(*trained)) == 0


def test_a_split_of_some_rows_names_the_same_nodes() -> None:
    splits = [subsampled(split, (20, 30, 40)) for split in holdout_splits(labels(500), 3)]
    rows = nodes_in(splits)
    assert len(rows) < 500
    for split in splits:
        there = reindexed(split, rows)
        for part in ("train", "val", "test", "uncounted"):
            assert np.array_equal(rows[getattr(there, part)], getattr(split, part))
    bare = Split(splits[0].train, splits[0].val, splits[0].test)
    assert reindexed(bare, rows).uncounted is None
