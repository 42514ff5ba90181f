"""How sure a figure is: mean and spread of repeats, and intervals of paired differences."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Float

from muxgcl.errors import UserError

Scores = Sequence[float] | Sequence[Sequence[float]] | Float[np.ndarray, "..."]


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean, standard deviation and number of repeats.

    The deviation divides by n - 1 (`ddof=1`: the repeats are a sample); a single repeat has 0.

    Example:
        >>> summarise([1.0, 2.0, 3.0])
        Summary(mean=2.0, std=1.0, n=3)
    """

    mean: float
    std: float
    n: int

    @property
    def standard_error(self) -> float:
        """Deviation of the mean itself, were the repeats independent."""
        return self.std / self.n**0.5

    def to_dict(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.std:.2f} (n = {self.n})"


def summarise(values: Scores) -> Summary:
    """Mean, standard deviation and count of all entries."""
    values = np.asarray(values, np.float64)
    if not values.size:
        raise UserError("expected at least one score, got none")
    std = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return Summary(float(values.mean()), std, values.size)


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of paired differences, with a bootstrap interval."""

    mean: float
    low: float
    high: float
    confidence: float
    n: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0

    def to_dict(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.mean:+.2f} [{self.low:+.2f}, {self.high:+.2f}] (n = {self.n})"


def paired_difference(
    one: Scores, two: Scores, *, confidence: float = 0.95, draws: int = 10_000, seed: int = 0
) -> Difference:
    """`one - two` on the same training seeds and the same splits, with a percentile interval.

    Scores on one split are not independent across training seeds, nor those of one seed across
    splits. So seeds and splits are drawn again, each with replacement, and every draw averages the
    pairs where they cross; one row, or a flat list, is the ordinary paired bootstrap.

    Args:
        one: scores [seeds, splits], or a flat list for a single seed.
        two: scores of the other method at the same places.
        confidence: share of the draws that lie inside the interval.
        draws: number of bootstrap draws.
        seed: of the draws.
    """
    first, second = (np.atleast_2d(np.asarray(scores, np.float64)) for scores in (one, two))
    if first.shape != second.shape or first.ndim != 2 or not first.size:
        raise UserError(f"expected scores in pairs, got shapes {first.shape} and {second.shape}")
    if not 0 < confidence < 1:
        raise UserError(f"confidence must lie between 0 and 1, got {confidence}")
    differences = first - second
    means = bootstrap_means(differences, draws=draws, seed=seed)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Difference(
        float(differences.mean()), float(low), float(high), confidence, differences.size
    )


def bootstrap_means(
    values: Float[np.ndarray, "seeds splits"], *, draws: int, seed: int
) -> Float[np.ndarray, " draws"]:
    """Means over rows and columns that are both drawn again with replacement."""
    rng = np.random.default_rng(seed)
    seeds, splits = values.shape
    rows = rng.multinomial(seeds, np.full(seeds, 1 / seeds), draws)  # how often each was drawn
    columns = rng.multinomial(splits, np.full(splits, 1 / splits), draws)
    return ((rows @ values) * columns).sum(1) / values.size
