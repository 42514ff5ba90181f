r"""Two views should agree in every column, and no two columns should say the same.

$$\mathcal L = \sum_i (1 - C_{ii})^2 + \frac1d \sum_{i \ne j} C_{ij}^2, \qquad
C = \frac1N Z_1^\top Z_2$$

with the columns of each view standardised by their own mean and (unbiased) deviation.

Paper: Bielak et al. 2022, <https://arxiv.org/abs/2106.02466>, equations 1 and 2.
"""

import torch

from muxgcl.shapes import Nodes, Scalar

SMALLEST_DEVIATION = 1e-6  # a dead column is divided by this and stays 0 instead of exploding


def decorrelation(one: Nodes, two: Nodes) -> tuple[Scalar, Scalar]:
    """How far the views disagree, and how far columns repeat each other."""
    nodes, width = one.shape
    cross = standardised(one).T @ standardised(two) / nodes  # [d, d]
    diagonal = cross.diagonal()
    repeats = cross.square().sum() - diagonal.square().sum()
    return (1 - diagonal).square().sum(), repeats / width


def standardised(table: Nodes) -> Nodes:
    """Columns of mean 0 and deviation 1."""
    variance, mean = torch.var_mean(table, dim=0)
    # the floor is inside the root: the root of 0 has no gradient
    return (table - mean) * (variance + SMALLEST_DEVIATION**2).rsqrt()
