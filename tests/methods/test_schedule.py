"""The learning rate's way up and down."""

import math

import pytest
import torch
from torch import nn

from muxgcl.methods.parts.schedule import WarmUpCosine


def rate(step: int, highest: float, rising: int, steps: int) -> float:
    if step < rising:
        return highest * step / rising
    return highest * (1 + math.cos(math.pi * (step - rising) / (steps - rising))) / 2


@pytest.mark.parametrize(("steps", "warm_up"), [(50, 0.1), (50, 0.0), (20, 0.5)])
def test_the_optimizer_sees_the_rate_of_every_step(steps: int, warm_up: float) -> None:
    schedule = WarmUpCosine(steps, warm_up)
    optimizer = schedule.optimizer([nn.Parameter(torch.ones(1))], lr=0.3, weight_decay=0)
    for step in range(steps + 1):
        got = float(optimizer.lr)
        assert got == pytest.approx(rate(step, 0.3, int(warm_up * steps), steps), abs=1e-6)
        schedule.advance()


def test_the_first_step_of_a_warm_up_changes_nothing() -> None:
    schedule = WarmUpCosine(50, 0.1)
    weight = nn.Parameter(torch.ones(3))
    optimizer = schedule.optimizer([weight], lr=0.3, weight_decay=0.1)
    for moves in (False, True):
        weight.grad = torch.ones(3)
        optimizer.step()
        schedule.advance()
        assert torch.equal(weight, torch.ones(3)) is not moves


def test_a_loaded_schedule_goes_on_where_it_stopped() -> None:
    one, two = WarmUpCosine(50, 0.1), WarmUpCosine(50, 0.1)
    one.optimizer([nn.Parameter(torch.ones(1))], lr=0.3, weight_decay=0)
    optimizer = two.optimizer([nn.Parameter(torch.ones(1))], lr=0.3, weight_decay=0)
    for _ in range(7):
        one.advance()
    two.load_state_dict(one.state_dict())
    assert float(optimizer.lr) == float(one.rate) > 0
