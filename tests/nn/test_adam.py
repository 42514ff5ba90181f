"""Adam against torch's own classes, step by step."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from muxgcl.nn.adam import Adam


def parameters() -> list[nn.Parameter]:
    draw = torch.Generator().manual_seed(1)
    shapes = [(3, 4), (4,), (2,)]
    return [nn.Parameter(torch.randn(s, generator=draw, dtype=torch.float64)) for s in shapes]


def run(optimizer: Any, weights: list[nn.Parameter]) -> None:
    draw = torch.Generator().manual_seed(2)
    for step in range(20):
        optimizer.zero_grad()
        for k, weight in enumerate(weights):
            grad = 10.0 ** (k - 1) * torch.randn(weight.shape, generator=draw, dtype=torch.float64)
            weight.grad = grad if k < 2 or step % 3 == 0 else None  # one is not always asked
        optimizer.step()


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("rate", [0.01, torch.tensor(0.01)])
@pytest.mark.parametrize("decoupled", [False, True])
def test_it_does_what_torch_does(decay: float, rate: float | Tensor, decoupled: bool) -> None:
    mine, theirs = parameters(), parameters()
    run(Adam(mine, rate, decay, decoupled=decoupled), mine)
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    run(kind(theirs, float(rate), weight_decay=decay), theirs)
    assert_close(mine, theirs, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(mine[2], parameters()[2])


def test_a_parameter_without_a_gradient_is_left_alone() -> None:
    weights = parameters()
    optimizer = Adam(weights, 0.1, 0.5)
    weights[0].grad = torch.ones_like(weights[0])
    optimizer.step()
    assert torch.equal(weights[1], parameters()[1])
    assert [float(slot["step"]) for slot in optimizer.slots] == [1, 0, 0]
    optimizer.zero_grad()
    optimizer.step()  # with nothing to do
    assert [float(slot["step"]) for slot in optimizer.slots] == [1, 0, 0]


def test_it_does_not_load_the_compiler() -> None:
    code = (
        "import sys, torch; from torch import nn; from muxgcl.nn.adam import Adam;"
        "p = nn.Parameter(torch.ones(2)); p.grad = torch.ones(2); o = Adam([p], 0.1); o.step();"
        "print('torch._dynamo' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
