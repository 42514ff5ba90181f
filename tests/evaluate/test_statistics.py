"""Summaries and intervals against loops and closed forms."""

from itertools import product

import numpy as np
import pytest

from muxgcl.errors import UserError
from muxgcl.evaluate import Summary, paired_difference, summarise
from muxgcl.evaluate.statistics import bootstrap_means


def test_a_summary_is_the_textbook_one() -> None:
    values = [3.0, 5.0, 10.0, 2.0]
    mean = sum(values) / 4
    variance = sum((value - mean) ** 2 for value in values) / 3  # n - 1
    got = summarise(values)
    assert (got.mean, got.std, got.n) == pytest.approx((mean, variance**0.5, 4))
    assert got.standard_error == pytest.approx((variance / 4) ** 0.5)


def test_one_repeat_has_no_spread_and_none_are_refused() -> None:
    assert summarise([7.0]) == Summary(7.0, 0.0, 1)
    with pytest.raises(UserError, match="at least one score"):
        summarise([])


def test_a_summary_of_a_table_counts_each_entry() -> None:
    assert summarise(np.arange(6.0).reshape(2, 3)) == summarise(list(np.arange(6.0)))


def test_bootstrap_means_are_spread_as_all_equally_likely_draws() -> None:
    values = np.random.default_rng(0).normal(size=(3, 4)) + np.array([[0.0], [1.0], [3.0]])
    every = np.array(
        [
            np.mean([values[row, column] for row in rows for column in columns])
            for rows in product(range(3), repeat=3)
            for columns in product(range(4), repeat=4)
        ]
    )
    got = bootstrap_means(values, draws=40_000, seed=2)
    for bound in np.linspace(every.min(), every.max(), 9):
        assert (got <= bound + 1e-9).mean() == pytest.approx(
            (every <= bound + 1e-9).mean(), abs=0.01
        )


def test_a_flat_list_has_the_ordinary_paired_bootstrap() -> None:
    rng = np.random.default_rng(3)
    two = rng.normal(80, 2, 40)  # split to split
    one = two + rng.normal(0.5, 0.3, 40)  # the difference is far steadier than either
    got = paired_difference(one, two)
    error = (one - two).std(ddof=0) / 40**0.5  # the bootstrap's own, by the central limit theorem
    assert got.mean == pytest.approx((one - two).mean())
    assert (got.low, got.high) == pytest.approx(
        (got.mean - 1.96 * error, got.mean + 1.96 * error), abs=0.15 * error
    )
    assert got.is_clear
    assert got.n == 40


def test_seeds_that_disagree_widen_the_interval_beyond_what_splits_alone_would() -> None:
    by_seed = np.array([[-1.0], [1.0], [0.2], [-0.6], [0.9]])
    scores = by_seed + 0.01 * np.random.default_rng(0).normal(size=(5, 20))
    nothing = np.zeros((5, 20))
    crossed = paired_difference(scores, nothing)
    flat = paired_difference(scores.ravel(), nothing.ravel())
    assert crossed.high - crossed.low > 2 * (flat.high - flat.low)
    assert not crossed.is_clear


def test_swapping_the_methods_mirrors_the_difference() -> None:
    one, two = np.random.default_rng(0).normal(size=(2, 4, 6))
    there, back = paired_difference(one, two), paired_difference(two, one)
    assert (there.mean, there.low, there.high) == pytest.approx((-back.mean, -back.high, -back.low))


def test_a_constant_difference_has_an_interval_of_no_width() -> None:
    scores = np.random.default_rng(0).normal(size=(5, 20))
    got = paired_difference(scores + 0.25, scores)
    assert (got.mean, got.low, got.high) == pytest.approx((0.25, 0.25, 0.25))


def test_a_lower_confidence_is_a_narrower_interval() -> None:
    one, two = np.random.default_rng(0).normal(size=(2, 5, 20))
    wide, narrow = (paired_difference(one, two, confidence=share) for share in (0.99, 0.8))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_scores_that_do_not_pair_are_refused() -> None:
    with pytest.raises(UserError, match=r"shapes \(1, 3\) and \(1, 2\)"):
        paired_difference([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(UserError, match="confidence"):
        paired_difference([1.0], [2.0], confidence=95.0)
