"""Rows of length one by the kernel, against plain torch."""

import pytest
import torch
import triton_interpreter  # noqa: F401  (before Triton runs on a CPU)
from torch.testing import assert_close

from muxgcl.kernels.unit import unit_rows as fused
from muxgcl.projector import ZERO, unit_rows


@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 16), (33, 100), (5, 300)])
def test_the_kernel_scales_rows_as_plain_torch_does(n: int, d: int) -> None:
    x, upstream = torch.randn(n, d), torch.randn(n, d)
    x[0] = 0  # without direction: stays zero, gets no gradient
    outcomes = []
    for function in (unit_rows, lambda rows: fused(rows, ZERO)):
        leaf = x.clone().requires_grad_()
        y = function(leaf)
        outcomes.append((y, *torch.autograd.grad(y, leaf, upstream)))
    assert_close(outcomes[1], outcomes[0])
    assert not outcomes[1][0][0].any()
    assert not outcomes[1][1][0].any()
