"""A call whose shapes are not as annotated fails, in functions, modules and dataclasses."""

import pytest
import torch
from jaxtyping import TypeCheckError

from muxgcl.kernels import PairWeight, reference
from muxgcl.nn.projector import Projector, unit_rows


def test_a_wrong_shape_is_noticed() -> None:
    with pytest.raises(TypeCheckError):
        unit_rows(torch.ones(3))
    with pytest.raises(TypeCheckError):
        Projector(4, 4)(torch.ones(2, 3, 4))
    with pytest.raises(TypeCheckError):
        PairWeight(torch.ones(3, 2), torch.ones(3, 4))
    with pytest.raises(TypeCheckError):  # widths that differ
        reference.negative_sum(torch.ones(3, 2), torch.ones(3, 4), temperature=0.5)
