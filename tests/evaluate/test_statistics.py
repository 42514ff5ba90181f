"""Summaries and intervals against loops and closed forms."""

import numpy as np
import pytest
from scipy import stats

from muxgcl.errors import UserError
from muxgcl.evaluate import Summary, paired_difference, summarise


def test_a_summary_is_the_textbook_one() -> None:
    values = [3.0, 5.0, 10.0, 2.0]
    mean = sum(values) / 4
    variance = sum((value - mean) ** 2 for value in values) / 3  # n - 1
    got = summarise(values)
    assert (got.mean, got.std, got.n) == pytest.approx((mean, variance**0.5, 4))


def test_one_repeat_has_no_spread_and_none_are_refused() -> None:
    assert summarise([7.0]) == Summary(7.0, 0.0, 1)
    with pytest.raises(UserError, match="at least one score"):
        summarise([])


def test_a_summary_of_a_table_counts_each_entry() -> None:
    assert summarise(np.arange(6.0).reshape(2, 3)) == summarise(list(np.arange(6.0)))


def crossed(
    seeds: int, splits: int, variances: tuple[float, float, float], rng: np.random.Generator
) -> np.ndarray:
    """Differences of mean zero: an effect of the seed, one of the split, and the rest."""
    by_seed, by_split, rest = np.sqrt(variances)
    shared = by_seed * rng.normal(size=(seeds, 1)) + by_split * rng.normal(size=splits)
    return shared + rest * rng.normal(size=(seeds, splits))


@pytest.mark.parametrize("seeds", [5, 10])
@pytest.mark.parametrize(
    "variances",
    [
        (0.0, 0.0, 1.0),  # noise alone
        (1.0, 0.01, 0.05),  # seeds dominate
        (0.01, 1.0, 0.05),  # splits dominate
        (1.0, 1.0, 1.0),
        (0.03, 0.0, 1.0),
        (0.1, 0.1, 1.0),  # MUX-GCL minus GRACE on Cora
        (0.8, 0.02, 1.0),  # and on Computers
    ],
)
def test_an_interval_of_95_percent_covers_the_mean_93_to_97_times_in_100(
    seeds: int, variances: tuple[float, float, float]
) -> None:
    rng, nothing, count = np.random.default_rng(0), np.zeros((seeds, 20)), 3000
    held = 0
    for _ in range(count):
        found = paired_difference(crossed(seeds, 20, variances, rng), nothing)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high
    assert 0.93 <= held / count <= 0.97


def test_the_interval_is_satterthwaites_from_three_mean_squares() -> None:
    values = crossed(6, 8, (1.0, 0.5, 0.3), np.random.default_rng(5))
    mean = sum(values[i, j] for i in range(6) for j in range(8)) / 48
    rows = [sum(values[i]) / 8 for i in range(6)]
    columns = [sum(values[:, j]) / 6 for j in range(8)]
    a = 8 * sum((row - mean) ** 2 for row in rows) / 5
    b = 6 * sum((column - mean) ** 2 for column in columns) / 7
    rest = [values[i, j] - rows[i] - columns[j] + mean for i in range(6) for j in range(8)]
    e = sum(value**2 for value in rest) / 35
    freedom = (a + b - e) ** 2 / (a**2 / 5 + b**2 / 7 + e**2 / 35)
    reach = stats.t.ppf(0.975, freedom) * ((a + b - e) / 48) ** 0.5
    got = paired_difference(values, np.zeros((6, 8)))
    assert (got.low, got.high) == pytest.approx((mean - reach, mean + reach))


def test_where_rows_and_columns_agree_by_chance_noise_is_still_counted() -> None:
    rest = np.random.default_rng(1).normal(size=(5, 20))
    rest -= rest.mean(1, keepdims=True)
    rest -= rest.mean(0, keepdims=True)  # no effect of seed or split is left at all
    got = paired_difference(rest + 0.5, np.zeros((5, 20)))
    error = (0.75 * (rest**2).sum() / 76 / 100) ** 0.5
    reach = stats.t.ppf(0.975, 76) * error
    assert (got.low, got.high) == pytest.approx((0.5 - reach, 0.5 + reach))


def test_seeds_all_alike_leave_the_t_interval_over_splits() -> None:
    by_split = np.random.default_rng(2).normal(0.5, 1, 20)
    got = paired_difference(np.tile(by_split, (5, 1)), np.zeros((5, 20)))
    want = stats.t.interval(0.95, 19, by_split.mean(), stats.sem(by_split))
    assert (got.low, got.high) == pytest.approx(want)


@pytest.mark.parametrize("shape", [(1, 20), (4, 20), (5, 4)])
def test_fewer_than_five_seeds_or_splits_have_no_interval_and_are_never_clear(
    shape: tuple[int, int],
) -> None:
    got = paired_difference(np.full(shape, 9.0), np.zeros(shape))
    assert (got.mean, got.low, got.high, got.seeds, got.n) == (
        9.0,
        None,
        None,
        shape[0],
        shape[0] * shape[1],
    )
    assert not got.is_clear
    assert not got.is_above
    assert "no interval" in str(got)


def test_a_flat_list_is_one_seed() -> None:
    got = paired_difference([2.0] * 20, [1.0] * 20)
    assert (got.seeds, got.n, got.low) == (1, 20, None)


def test_seeds_that_disagree_leave_zero_inside() -> None:
    by_seed = np.array([[-1.0], [1.0], [0.2], [-0.6], [0.9]])
    scores = by_seed + 0.01 * np.random.default_rng(0).normal(size=(5, 20))
    got = paired_difference(scores, np.zeros((5, 20)))
    want = stats.t.interval(0.95, 4, scores.mean(), stats.sem(scores.mean(1)))
    assert (got.low, got.high) == pytest.approx(want, rel=0.01)
    assert not got.is_clear


def test_swapping_the_methods_mirrors_the_difference() -> None:
    one, two = np.random.default_rng(0).normal(size=(2, 5, 6))
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
