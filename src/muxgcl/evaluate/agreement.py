r"""How far answers agree with labels: F1 from a confusion matrix, NMI and ARI of two groupings.

$$\mathrm{NMI} = \frac{2\, I(a; b)}{H(a) + H(b)}, \qquad
\mathrm{ARI} = \frac{\sum_{ij} \binom{c_{ij}}2 - e}
    {\tfrac12 \big(\sum_i \binom{a_i}2 + \sum_j \binom{b_j}2\big) - e}, \qquad
e = \sum_i \binom{a_i}2 \sum_j \binom{b_j}2 \Big/ \binom n2$$

with counts $c_{ij}$ of rows in group i of the one and group j of the other, $a_i$ and $b_j$ their
sums. Both are 1 where the groupings are the same.
"""

import numpy as np
from jaxtyping import Int

from muxgcl.evaluate.arrays import Labels

Counts = Int[np.ndarray, "k l"]


def contingency(one: Labels, other: Labels) -> Counts:
    """How many rows are in group i of the one and in group j of the other."""
    names, i = np.unique(one, return_inverse=True)
    others, j = np.unique(other, return_inverse=True)
    return np.bincount(i * len(others) + j, minlength=len(names) * len(others)).reshape(
        len(names), len(others)
    )


def confusion(truth: Labels, answer: Labels, classes: Labels) -> Counts:
    """True class by answered class; `classes` is sorted and has them all."""
    i, j = np.searchsorted(classes, truth), np.searchsorted(classes, answer)
    count = len(classes)
    return np.bincount(i * count + j, minlength=count**2).reshape(count, count)


def macro_f1(counts: Counts) -> float:
    """The mean F1 of the classes that are there, as truth or as answer."""
    right, there = np.diag(counts), counts.sum(0) + counts.sum(1)
    return float((2 * right[there > 0] / there[there > 0]).mean())


def mutual_information(one: Labels, other: Labels) -> float:
    """NMI: how much of the one grouping the other tells, as a share of what there is to tell."""
    share = contingency(one, other) / len(one)
    rows, cols = share.sum(1), share.sum(0)
    to_tell = _entropy(rows) + _entropy(cols)
    if to_tell == 0:  # both have one group
        return 1.0
    return float(2 * (_entropy(rows) + _entropy(cols) - _entropy(share.ravel())) / to_tell)


def rand_index(one: Labels, other: Labels) -> float:
    """ARI: how often two rows are together in both groupings, less what chance would give."""
    counts = contingency(one, other).astype(np.float64)
    together = _pairs(counts).sum()
    rows, cols = _pairs(counts.sum(1)).sum(), _pairs(counts.sum(0)).sum()
    by_chance = rows * cols / max(len(one) * (len(one) - 1) / 2, 1)
    most = (rows + cols) / 2
    return 1.0 if most == by_chance else float((together - by_chance) / (most - by_chance))


def _entropy(share: np.ndarray) -> float:
    share = share[share > 0]
    return float(-(share * np.log(share)).sum())


def _pairs(count: np.ndarray) -> np.ndarray:
    return count * (count - 1) / 2
