"""How sure a figure is: mean and spread of repeats, and intervals of paired differences."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from muxgcl.errors import UserError

Scores = Sequence[float] | Sequence[Sequence[float]] | Float[np.ndarray, "..."]
LEAST = 0.75  # of the variance that noise alone leaves: an estimate below it is raised to it
FEWEST = 5  # seeds, and splits, below which no interval is given: the spread of fewer is a guess


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
    """Mean of paired differences and its interval; with fewer than `FEWEST` seeds there is none."""

    mean: float
    low: float | None
    high: float | None
    confidence: float
    seeds: int
    n: int

    @property
    def is_clear(self) -> bool:
        """Whether there is an interval and it leaves out zero."""
        return self.is_above or (self.high is not None and self.high < 0)

    @property
    def is_above(self) -> bool:
        """Whether there is an interval and it lies above zero."""
        return self.low is not None and self.low > 0

    def to_dict(self) -> dict[str, float | None]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.mean:+.2f} (n = {self.n}; no interval: too few seeds or splits)"
        return f"{self.mean:+.2f} [{self.low:+.2f}, {self.high:+.2f}] (n = {self.n})"


def paired_difference(one: Scores, two: Scores, *, confidence: float = 0.95) -> Difference:
    r"""`one - two` on the same training seeds and the same splits, with a t interval.

    The difference at seed $i$ of $S$ and split $j$ of $P$ is taken as
    $d_{ij} = \mu + a_i + b_j + e_{ij}$: a random effect of the seed, one of the split, and the
    rest. From the mean squares of rows, columns and rest, $A$, $B$ and $E$,

    $$\widehat{\mathrm{Var}}(\bar d) = \frac{\max(A + B - E,\; \tfrac34 E)}{S P}, \qquad
      \nu = \frac{(A + B - E)^2}
                 {A^2 / (S - 1) + B^2 / (P - 1) + E^2 / ((S - 1)(P - 1))}$$

    (Satterthwaite 1946), and the interval is $\bar d \pm t_\nu$ standard errors. $A + B - E$ is
    unbiased, but by chance it can fall to zero or below. Without effects of seed and split its mean
    is $E$; where it is less than three quarters of $E$, these and the degrees of freedom of $E$
    take over. Over all shares of the three variances, five or more seeds by twenty splits cover the
    mean 93 to 97 times in a hundred (`benchmarks/coverage.py`).

    What is covered is $\mu$: the mean over all seeds and all random splits *of this graph*. Splits
    of one graph share nodes, which is part of $\mu$ and not of the noise; nothing is said about
    another graph.

    Args:
        one: scores [seeds, splits], or a flat list for a single seed.
        two: scores of the other method at the same places; rows of a method without seeds (a
            control) are repeated, since the other method's seeds still vary.
        confidence: how often the interval is to cover the mean.
    """
    first, second = (np.atleast_2d(np.asarray(scores, np.float64)) for scores in (one, two))
    if first.shape != second.shape or first.ndim != 2 or not first.size:
        raise UserError(f"expected scores in pairs, got shapes {first.shape} and {second.shape}")
    if not 0 < confidence < 1:
        raise UserError(f"confidence must lie between 0 and 1, got {confidence}")
    differences = first - second
    mean, seeds = float(differences.mean()), len(differences)
    low = high = None
    if min(differences.shape) >= FEWEST:
        error, freedom = _error_of_mean(differences)
        reach = error * float(stdtrit(freedom, (1 + confidence) / 2))
        low, high = mean - reach, mean + reach
    return Difference(mean, low, high, confidence, seeds, differences.size)


def _error_of_mean(values: Float[np.ndarray, "seeds splits"]) -> tuple[float, float]:
    """Standard error of the grand mean, and the degrees of freedom that it is known to."""
    seeds, splits = values.shape
    rows, columns = values.mean(1, keepdims=True), values.mean(0, keepdims=True)
    rest = values - rows - columns + values.mean()
    free = np.array([seeds - 1, splits - 1, (seeds - 1) * (splits - 1)])
    squares = np.array(
        [
            splits * rows.var() * seeds,
            seeds * columns.var() * splits,
            (rest**2).sum(),
        ]
    )
    of_seeds, of_splits, of_rest = squares / free
    total = of_seeds + of_splits - of_rest
    if total <= LEAST * of_rest:
        return float((LEAST * of_rest / values.size) ** 0.5), float(free[2])
    freedom = total**2 / float(((squares / free) ** 2 / free).sum())
    return float((total / values.size) ** 0.5), max(1.0, freedom)
