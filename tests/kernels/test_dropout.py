"""Dropout of our own: its probability, its mean, its gradient and its seed."""

import pytest
import torch

from muxgcl.kernels.dropout import dropout
from muxgcl.seeding import seeded


@pytest.mark.parametrize("p", [0.0, 0.25, 0.4, 0.9])
def test_dropout_drops_with_its_probability_and_keeps_the_mean(p: float) -> None:
    table = torch.full((501, 401), 3.0, dtype=torch.float64, requires_grad=True)
    with seeded(5):
        got = dropout(table, p)
    assert set(got.detach().unique().tolist()) <= {0.0, 3 / (1 - p)}
    lost = float((got == 0).double().mean())
    assert abs(lost - p) < 5 * (p * (1 - p) / table.numel()) ** 0.5 + 2**-17
    got.sum().backward()
    assert table.grad is not None
    assert torch.equal(table.grad, got.detach() / 3)


def test_dropout_follows_the_seed_and_neighbouring_entries_fall_apart_from_each_other() -> None:
    ones = torch.ones(100_001)
    with seeded(1):
        first, second = dropout(ones, 0.5), dropout(ones, 0.5)
    with seeded(1):
        assert torch.equal(dropout(ones, 0.5), first)
    signs = first - 1  # +1 kept, -1 dropped: no correlation between entries of one draw or of two
    for step in (1, 2, 3, 4):
        assert abs(float((signs[step:] * signs[:-step]).mean())) < 0.02
    assert abs(float((signs * (second - 1)).mean())) < 0.02


def test_dropping_all_leaves_zeros_and_no_gradient() -> None:
    table = torch.full((3, 5), 2.0, requires_grad=True)
    got = dropout(table, 1.0)
    assert torch.equal(got, torch.zeros(3, 5))
    got.sum().backward()
    assert table.grad is not None
    assert torch.equal(table.grad, torch.zeros(3, 5))
    with pytest.raises(ValueError, match="between 0 and 1"):
        dropout(table, 1.5)
