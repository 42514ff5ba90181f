"""What training minimises, out of the named terms of a loss."""

from collections.abc import Mapping

import torch
from torch import Tensor

from muxgcl.shapes import Scalar


def total(terms: Mapping[str, Tensor]) -> Scalar:
    """The objective: the sum of its terms."""
    return torch.stack(list(terms.values())).sum()
