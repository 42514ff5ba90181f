r"""Canonical correlation, softly: columns of two views agree, columns of a view are uncorrelated.

$$\mathcal L = -\operatorname{tr} C + \lambda\big(\|I - C_1\|_F^2 + \|I - C_2\|_F^2\big), \qquad
C = \frac1N Z_1^\top Z_2, \quad C_v = \frac1N Z_v^\top Z_v$$

with the columns of each view standardised by their own mean and (unbiased) deviation.

Paper: Zhang et al. 2021, <https://arxiv.org/abs/2106.12484>. With $\|Z_1 - Z_2\|_F^2 / N$ for the
first term, as it is often written, $\lambda$ is twice as large.
"""

import torch

from muxgcl.losses.decorrelation import standardised
from muxgcl.shapes import Nodes, Scalar


def canonical_correlation(one: Nodes, two: Nodes) -> tuple[Scalar, Scalar]:
    """Minus the trace of C, and how far both views' own correlations are from the identity."""
    nodes, width = one.shape
    views = standardised(one), standardised(two)
    identity = torch.eye(width, dtype=one.dtype, device=one.device)
    apart = [(identity - z.T @ z / nodes).square().sum() for z in views]
    return -(views[0] * views[1]).sum() / nodes, apart[0] + apart[1]
