"""Rows by number, and their gradient against torch's own."""

import pytest
import torch
from torch.autograd import gradcheck
from torch.nn.functional import embedding
from torch.testing import assert_close

from muxgcl.affinity.pick import pick


@pytest.mark.parametrize("shape", [(0,), (7,), (4, 5), (2, 3, 4)])
def test_rows_and_gradient_are_those_of_an_embedding(shape: tuple[int, ...]) -> None:
    table = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    index = torch.randint(6, shape)
    weight = torch.randn(*shape, 3, dtype=torch.float64)
    found, want = pick(table, index), embedding(index, table)
    assert torch.equal(found, want)
    one, other = (torch.autograd.grad((z * weight).sum(), table)[0] for z in (found, want))
    assert_close(one, other)


def test_rows_that_nobody_picks_get_no_gradient() -> None:
    table = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    pick(table, torch.tensor([1, 1, 3])).sum().backward()
    assert table.grad is not None
    assert table.grad.tolist() == [[0, 0], [2, 2], [0, 0], [1, 1], [0, 0]]


def test_gradcheck() -> None:
    table = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda t: pick(t, torch.tensor([[0, 3], [3, 2]])).sin(), (table,))
