"""A call whose shapes are not as annotated fails, in functions, modules and dataclasses."""

import pytest
import torch
from jaxtyping import TypeCheckError

from muxgcl import kernels
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


@pytest.mark.parametrize("name", ["negative_sum", "pair_sum", "contrast"])
def test_the_functions_of_a_package_itself_are_checked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_function", None)  # no backend is asked, which would check, too
    how = {"function": None} if name == "pair_sum" else {"temperature": 0.5}
    with pytest.raises(TypeCheckError):  # widths that differ
        getattr(kernels, name)(torch.ones(4, 2), torch.ones(4, 3), **how)
