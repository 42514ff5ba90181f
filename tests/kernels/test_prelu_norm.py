"""Bias, PReLU and LayerNorm by one kernel, against plain torch in float64."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import layer_norm, prelu
from torch.testing import assert_close

pytest.importorskip("triton", reason="Triton is not installed")
if not torch.cuda.is_available():
    import triton_interpreter  # noqa: F401  mends the interpreter before a kernel runs
from muxgcl.kernels import prelu_norm as module
from muxgcl.kernels.prelu_norm import prelu_norm

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def plain(x: Tensor, bias: Tensor, slope: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    return layer_norm(prelu(x + bias, slope), x.shape[1:], gamma, beta, 1e-5)


@pytest.mark.parametrize(("n", "d"), [(1, 2), (7, 16), (33, 100), (5, 300), (70, 2048), (0, 8)])
def test_the_kernel_and_its_gradients_are_those_of_plain_torch(
    n: int, d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROGRAMS", 4)  # each reads several blocks of rows
    x = torch.randn(n, d) - 0.3
    weights = [torch.randn(d), torch.tensor([0.2]), 1 + torch.randn(d) / 4, torch.randn(d)]
    upstream = torch.randn(n, d)
    outcomes = []
    for kind in (torch.float64, torch.float32):
        leaves = [t.to(DEVICE, kind).requires_grad_() for t in (x, *weights)]
        found = plain(*leaves) if kind == torch.float64 else prelu_norm(*leaves, 1e-5)
        grads = torch.autograd.grad(found, leaves, upstream.to(found))
        outcomes.append([t.float() for t in (found, *grads)])
    assert_close(outcomes[1], outcomes[0], rtol=1e-4, atol=1e-4)


def test_a_row_of_equal_numbers_has_no_direction_and_no_huge_gradient() -> None:
    leaves = [torch.zeros(3, 8), torch.zeros(8), torch.tensor([0.2]), torch.ones(8), torch.ones(8)]
    leaves = [t.to(DEVICE).requires_grad_() for t in leaves]
    found = prelu_norm(*leaves, 1e-5)
    assert_close(found, torch.ones_like(found))
    found.square().sum().backward()
    assert all(leaf.grad.isfinite().all() for leaf in leaves)
