"""Rows of length one by the kernel, against plain torch."""

import pytest
import torch
from torch.testing import assert_close

from muxgcl.nn.projector import ZERO, unit_rows

pytest.importorskip("triton", reason="Triton is not installed")
if not torch.cuda.is_available():
    import triton_interpreter  # noqa: F401  mends the interpreter before a kernel runs
from muxgcl.kernels.unit import unit_rows as fused

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 16), (33, 100), (5, 300)])
def test_the_kernel_scales_rows_as_plain_torch_does(n: int, d: int) -> None:
    x, upstream = torch.randn(n, d, device=DEVICE), torch.randn(n, d, device=DEVICE)
    x[0] = 0  # without direction: stays zero, gets no gradient
    outcomes = []
    for function in (unit_rows, lambda rows: fused(rows, ZERO)):
        leaf = x.clone().requires_grad_()
        y = function(leaf)
        outcomes.append((y, *torch.autograd.grad(y, leaf, upstream)))
    assert_close(outcomes[1], outcomes[0])
    assert not outcomes[1][0][0].any()
    assert not outcomes[1][1][0].any()
