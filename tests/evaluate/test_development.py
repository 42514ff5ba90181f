"""Labels that choose settings and labels that scores are counted on are two fixed halves."""

import numpy as np
import pytest

from muxgcl.errors import UserError
from muxgcl.evaluate import (
    development_half,
    development_hash,
    development_splits,
    holdout_splits,
    random_split,
    report_half,
)
from muxgcl.evaluate.development import SEED, development_labels, node_keys
from muxgcl.io import open_dataset


def labels(n: int = 500, k: int = 5) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.where(rng.random(n) < 0.1, -1, rng.integers(0, k, n))


def key(node: int) -> int:
    """SplitMix64 with Python's integers."""
    mask = (1 << 64) - 1
    z = (SEED + (node + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_keys_are_those_of_splitmix64() -> None:
    first = [6457827717110365317, 3203168211198807973, 9817491932198370423]  # its published test
    assert node_keys(np.arange(3), 1234567).tolist() == first
    assert node_keys(np.arange(50)).tolist() == [key(node) for node in range(50)]


def test_the_half_is_every_other_node_of_the_classes_in_the_order_of_their_keys() -> None:
    y = labels()
    by_class = {c: sorted(np.flatnonzero(y == c).tolist(), key=key) for c in range(5)}
    listed = [n for c in sorted(by_class, key=lambda c: key(by_class[c][0])) for n in by_class[c]]
    assert sorted(listed[::2]) == np.flatnonzero(development_half(y)).tolist()
    assert sorted(listed[1::2]) == np.flatnonzero(report_half(y)).tolist()


def test_halves_part_every_class_to_within_one_node_and_so_the_whole() -> None:
    y = np.r_[labels(501, 40), np.arange(100, 110)]  # odd classes, and ten of a single node
    for part in [y >= 0, *(y == c for c in np.unique(y[y >= 0]))]:
        assert abs(int(development_half(y)[part].sum()) - int(report_half(y)[part].sum())) <= 1
    singles = development_half(y)[501:]
    assert 0 < singles.sum() < 10
    assert np.array_equal(development_half(y) ^ report_half(y), y >= 0)


def test_names_of_classes_do_not_move_a_node_and_other_numbers_do() -> None:
    y = labels()
    renamed = np.where(y < 0, -1, 10 * (4 - y))
    assert np.array_equal(development_half(y), development_half(renamed))
    assert development_hash(y) == development_hash(renamed)
    assert development_hash(y) != development_hash(y[::-1].copy())
    assert development_hash(y) != development_hash(np.where(np.arange(500) == 3, -1, y))


def test_halves_of_the_packaged_graphs_are_those_of_the_records() -> None:
    found = {name: development_hash(open_dataset(name).y.numpy()) for name in ("cora", "citeseer")}
    assert found == {"cora": "15b24c331e3ea421", "citeseer": "184f372293c6898e"}


def test_a_search_split_lies_in_the_development_half_and_covers_it() -> None:
    y = labels()
    inside = np.flatnonzero(development_half(y))
    tenth = round((y >= 0).sum() / 10)
    for split in development_splits(y, 6, seed=3):
        parts = np.concatenate([split.train, split.val, split.test])
        assert sorted(parts) == inside.tolist()
        assert len(split.train) == len(split.val) == tenth
        assert set(y[split.train]) == set(range(5))


def test_a_search_needs_no_label_of_the_report_half() -> None:
    y = labels()
    known = development_labels(y)
    assert (known[report_half(y)] == -1).all()
    alone = [random_split(known, (0, number), train=0.2, val=0.2) for number in range(3)]
    for one, two in zip(development_splits(y, 3), alone, strict=True):
        for part in ("train", "val", "test"):
            assert np.array_equal(getattr(one, part), getattr(two, part))


def test_reported_splits_are_the_old_ones_less_the_test_nodes_of_the_development_half() -> None:
    y = labels()
    half = development_half(y)
    for one, old in zip(
        holdout_splits(y, 5, 7), holdout_splits(y, 5, 7, everywhere=True), strict=True
    ):
        assert np.array_equal(one.train, old.train)
        assert np.array_equal(one.val, old.val)
        assert np.array_equal(one.test, old.test[~half[old.test]])
        assert np.array_equal(one.uncounted, old.test[half[old.test]])
        assert len(one.test) == pytest.approx(0.4 * (y >= 0).sum(), rel=0.1)


def test_too_few_labelled_nodes_are_refused_in_one_line() -> None:
    two = np.array([0, 1, *[-1] * 10])
    with pytest.raises(UserError, match=r"at least two classes .* chosen on, got 1"):
        development_splits(two)
    five = np.array([0, 1, 0, 1, 0])
    assert len(holdout_splits(five, 50, everywhere=True)) == 50
    with pytest.raises(UserError, match=r"5 labelled nodes are too few .* at least 6"):
        holdout_splits(five, 1)
    assert all(len(split.test) for split in holdout_splits(np.array([0, 1, 0, 1, 0, 1]), 200))
    with pytest.raises(UserError, match="at least one split"):
        development_splits(labels(), 0)


@pytest.mark.usefixtures("unchecked")
def test_labels_that_are_no_whole_numbers_are_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="one integer label a node"):
        development_half(np.zeros(3))
