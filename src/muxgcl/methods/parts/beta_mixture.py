r"""Two Beta distributions fitted to numbers between 0 and 1 by expectation maximisation.

The M-step is by weighted moments: mean m and variance v give $a = m\,(m(1-m)/v - 1)$ and
$b = a\,(1-m)/m$. It runs in float64, and in logarithms: far from both distributions their densities
vanish, but which of the two is the likelier is still known.
"""

from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Float
from torch import Tensor

EDGE = 1e-12  # numbers are kept that far from 0 and 1
CONCENTRATION = (1e-3, 1e8)  # bounds of a + b: a point mass has none, two points at 0 and 1 have 0
UPPER_BETA = 1.01  # the upper component must not rise to infinity at 1
Pair = Float[Tensor, "2 1"]


@dataclass(frozen=True, slots=True, eq=False)
class BetaMixture:
    """Component 0 has the smaller mean."""

    share: Pair
    alpha: Pair
    beta: Pair

    def posterior(self, x: Float[Tensor, " m"]) -> Float[Tensor, "2 m"]:
        """How likely each number is to come from each component."""
        x = x.clamp(EDGE, 1 - EDGE)
        a, b = self.alpha, self.beta
        log_norm = torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b)
        log_density = (a - 1) * x.log() + (b - 1) * (-x).log1p() + log_norm
        return (self.share.log() + log_density).softmax(0)

    @classmethod
    def fit(cls, x: Float[Tensor, " m"], upper_share: float, steps: int) -> Self:
        """From Beta(1, 2) and Beta(2, 1), the second with this share of the numbers."""
        x = x.double().clamp(EDGE, 1 - EDGE)
        pair = x.new_tensor
        found = cls(
            share=pair([[1 - upper_share], [upper_share]]),
            alpha=pair([[1.0], [2.0]]),
            beta=pair([[2.0], [1.0]]),
        )
        for _ in range(steps):
            part = found.posterior(x)
            mass = part.sum(1, keepdim=True).clamp(min=EDGE)
            mean = ((part * x).sum(1, keepdim=True) / mass).clamp(EDGE, 1 - EDGE)
            variance = (part * (x - mean).square()).sum(1, keepdim=True) / mass
            sharpness = (mean * (1 - mean) / variance.clamp(min=EDGE) - 1).clamp(*CONCENTRATION)
            beta = sharpness * (1 - mean)
            beta[1] = torch.where(beta[1] < 1, UPPER_BETA, beta[1])
            found = cls(share=mass / mass.sum(), alpha=sharpness * mean, beta=beta)
        mean = found.alpha / (found.alpha + found.beta)
        order = mean.flatten().argsort()  # the components may have changed places
        return cls(share=found.share[order], alpha=found.alpha[order], beta=found.beta[order])
