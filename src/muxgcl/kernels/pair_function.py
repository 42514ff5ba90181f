r"""What `pair_sum` adds up: a function of the cosine of two rows, and its slope.

| function | $f(c)$ | $f'(c)$ |
| --- | --- | --- |
| `Exponential` | $e^{(c - 1)/\tau}$ | $f(c)/\tau$ |
| `LogGap` | $\log\big(\tfrac12(1 - c) + \epsilon\big)$ | $-1/(1 - c + 2\epsilon)$ |
| `Sigmoid` | $1/(1 + e^{-(c - s)/\tau})$ | $f(c)\,(1 - f(c))/\tau$ |

A function knows its steepest slope: divided by it slopes lie between -1 and 1, and 16 bits can hold
them.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from muxgcl.errors import UserError


@dataclass(frozen=True, slots=True)
class Exponential:
    """The push of a negative in a contrast: 1 where rows are equal."""

    name: ClassVar = "exp"
    temperature: float

    def __post_init__(self) -> None:
        _check(temperature=self.temperature)

    @property
    def steepest(self) -> float:
        """The largest slope: where rows are equal."""
        return 1 / self.temperature

    def value(self, cosine: Tensor) -> Tensor:
        """The function's value at each cosine."""
        return ((cosine - 1) / self.temperature).exp()

    def slope(self, cosine: Tensor) -> Tensor:
        """Its derivative at each cosine."""
        return self.value(cosine) * self.steepest


@dataclass(frozen=True, slots=True)
class LogGap:
    """The logarithm of how far two rows are from equal; it is steep where they nearly are.

    Rounding may bring a cosine above 1. It then counts as 1 and has no slope.
    """

    name: ClassVar = "log-gap"
    eps: float = 1e-6

    def __post_init__(self) -> None:
        _check(eps=self.eps)

    @property
    def steepest(self) -> float:
        """The size of the largest slope: where rows are equal."""
        return 1 / (2 * self.eps)

    def value(self, cosine: Tensor) -> Tensor:
        """The function's value at each cosine."""
        return ((1 - cosine).clamp(min=0) / 2 + self.eps).log()

    def slope(self, cosine: Tensor) -> Tensor:
        """Its derivative at each cosine."""
        return torch.where(cosine <= 1, -1 / (1 - cosine + 2 * self.eps), 0)


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """Whether a cosine is above a threshold, softly."""

    name: ClassVar = "sigmoid"
    threshold: float
    temperature: float

    def __post_init__(self) -> None:
        _check(temperature=self.temperature)

    @property
    def steepest(self) -> float:
        """The largest slope: at the threshold."""
        return 1 / (4 * self.temperature)

    def value(self, cosine: Tensor) -> Tensor:
        """The function's value at each cosine."""
        return ((cosine - self.threshold) / self.temperature).sigmoid()

    def slope(self, cosine: Tensor) -> Tensor:
        """Its derivative at each cosine."""
        value = self.value(cosine)
        return value * (1 - value) / self.temperature


PairFunction = Exponential | LogGap | Sigmoid


def _check(**given: float) -> None:
    for name, number in given.items():
        if number <= 0:
            raise UserError(f"{name} must be positive, got {number}")
