"""PReLU on a CPU: torch's own, by other means."""

import torch
from torch.autograd import gradcheck
from torch.nn import functional
from torch.testing import assert_close

from muxgcl.nn.prelu import PReLU, prelu


def test_values_and_gradients_are_those_of_torch() -> None:
    draw = torch.Generator().manual_seed(0)
    given = [torch.randn(40, 7, generator=draw), torch.tensor([0.3])]
    upstream = torch.randn(40, 7, generator=draw)
    results = []
    for function in (prelu, functional.prelu):
        leaves = [t.clone().requires_grad_() for t in given]
        value = function(*leaves)
        results.append([value, *torch.autograd.grad(value, leaves, upstream)])
    for got, want in zip(*results, strict=True):
        assert_close(got, want)


def test_gradient() -> None:
    table = torch.tensor([[-2.0, -0.5, 0.7], [1.5, -1.0, 3.0]], dtype=torch.float64)
    slope = torch.tensor([-0.25], dtype=torch.float64)
    assert gradcheck(prelu, (table.requires_grad_(), slope.requires_grad_()))


def test_the_module_has_torchs_parameter_and_learns_it() -> None:
    ours, theirs = PReLU(), torch.nn.PReLU()
    theirs.load_state_dict(ours.state_dict())
    table = torch.linspace(-2, 3, 12).view(4, 3)
    for module in (ours, theirs):
        module(table).square().sum().backward()
    assert_close(ours(table), theirs(table))
    assert ours.weight.grad is not None
    assert_close(ours.weight.grad, theirs.weight.grad)
