r"""Two views should agree in every column, and no two columns should say the same.

The columns of each view are standardised by their own mean and (unbiased) deviation; then

$$C = \frac1N Z_1^\top Z_2, \qquad C_v = \frac1N Z_v^\top Z_v$$

`cross_correlation`: Bielak et al. 2022, <https://arxiv.org/abs/2106.02466>, equations 1 and 2:

$$\mathcal L = \sum_i (1 - C_{ii})^2 + \frac1d \sum_{i \ne j} C_{ij}^2$$

`canonical_correlation`, softly: Zhang et al. 2021, <https://arxiv.org/abs/2106.12484>:

$$\mathcal L = -\operatorname{tr} C + \lambda\big(\|I - C_1\|_F^2 + \|I - C_2\|_F^2\big)$$

With $\|Z_1 - Z_2\|_F^2 / N$ for its first term, as often written, $\lambda$ is twice as large.
"""

import torch

from muxgcl.shapes import Nodes, Scalar

SMALLEST_DEVIATION = 1e-6  # a dead column is divided by this and stays 0 instead of exploding


def cross_correlation(one: Nodes, two: Nodes) -> tuple[Scalar, Scalar]:
    """How far the views disagree, and how far columns repeat each other."""
    nodes, width = one.shape
    cross = standardised(one).T @ standardised(two) / nodes  # [d, d]
    diagonal = cross.diagonal()
    repeats = cross.square().sum() - diagonal.square().sum()
    return (1 - diagonal).square().sum(), repeats / width


def canonical_correlation(one: Nodes, two: Nodes) -> tuple[Scalar, Scalar]:
    """Minus the trace of C, and how far both views' own correlations are from the identity."""
    nodes, width = one.shape
    views = standardised(one), standardised(two)
    identity = torch.eye(width, dtype=one.dtype, device=one.device)
    apart = [(identity - z.T @ z / nodes).square().sum() for z in views]
    return -(views[0] * views[1]).sum() / nodes, apart[0] + apart[1]


def standardised(table: Nodes) -> Nodes:
    """Columns of mean 0 and deviation 1."""
    variance, mean = torch.var_mean(table, dim=0)
    # the floor is inside the root: the root of 0 has no gradient
    return (table - mean) * (variance + SMALLEST_DEVIATION**2).rsqrt()
