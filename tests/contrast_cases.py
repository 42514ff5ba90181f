"""Inputs and the yardstick for kernels that answer to the definition in float64."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from muxgcl.kernels import PairWeight, reference

INTERPRETED = [  # marks of tests whose kernels run through Triton's interpreter
    pytest.mark.skipif(torch.cuda.is_available(), reason="tests/gpu states it on the device"),
    pytest.mark.usefixtures("rounded", "poisoned"),
    # rows that only pad the last block of keys may leave fp16's range; they are never written
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning"),
]


def unit(n: int, d: int, device: str = "cpu") -> Tensor:
    """Random unit rows that 16 bits hold exactly, so that every backend sees the same numbers."""
    return normalize(torch.randn(n, d, device=device), dim=1).half().float()


def clustered(n: int, d: int, device: str = "cpu") -> Tensor:
    """Rows around one direction: all cosines near 1."""
    centre = torch.ones(d, device=device)
    return normalize(centre + 0.1 * torch.randn(n, d, device=device), dim=1).half().float()


def pair_weight(n: int, m: int, r: int, device: str = "cpu") -> PairWeight:
    return PairWeight(unit(n, r, device), unit(m, r, device))


def spread(n: int, device: str = "cpu") -> Tensor:
    """Upstream gradients over six orders of magnitude, of either sign, in no order."""
    size = torch.logspace(-6, 0, n, device=device)[torch.randperm(n, device=device)]
    return size * torch.randn(n, device=device).sign()


def evaluate(
    function: Callable[..., Tensor],
    tables: list[Tensor],
    weight: PairWeight | None,
    upstream: Tensor,
    dtype: torch.dtype = torch.float32,
    **settings: Any,
) -> list[Tensor]:
    """The value, and the gradient of every table."""
    leaves = [table.detach().to(dtype).requires_grad_() for table in tables]
    if weight is not None:
        rows = weight.rows.to(dtype)
        cols = rows if weight.cols is weight.rows else weight.cols.to(dtype)
        curve = None if weight.curve is None else weight.curve.to(dtype)
        weight = replace(weight, rows=rows, cols=cols, curve=curve)
    value = function(*leaves, weight, **settings)
    return [value, *torch.autograd.grad(value, leaves, upstream.to(value.dtype))]


def _with_itself(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda table, *rest, **settings: function(table, table, *rest, **settings)


def error(got: Tensor, want: Tensor) -> float:
    """Norm of the difference relative to what is wanted; absolute where that is 0."""
    assert got.shape == want.shape
    size = want.norm()
    return ((got.double() - want).norm() / (size if size > 1e-12 else 1)).item()


def assert_agrees(
    function: Callable[..., Tensor],
    tables: list[Tensor],
    weight: PairWeight | None,
    upstream: Tensor,
    *,
    dtype: torch.dtype = torch.float32,
    value: float = 1e-5,
    gradient: float = 5e-4,
    precision: str = "fp16",
    **settings: Any,
) -> None:
    """Within `value` and `gradient` of the definition in float64.

    One table alone is contrasted with itself.
    """
    definition = getattr(reference, function.__name__)
    if len(tables) == 1:
        function, definition = _with_itself(function), _with_itself(definition)
    want = evaluate(definition, tables, weight, upstream, torch.float64, **settings)
    got = evaluate(function, tables, weight, upstream, dtype, precision=precision, **settings)
    errors = [error(ours, theirs) for ours, theirs in zip(got, want, strict=True)]
    assert errors[0] <= value, errors  # NaN fails too
    assert max(errors[1:]) <= gradient, errors
