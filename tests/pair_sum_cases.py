"""Sums of functions of a cosine, compared with the definition in float64."""

from typing import Any

import torch
from contrast_cases import error
from torch import Tensor

from muxgcl.kernels import reference


def evaluate(
    backend: Any, tables: list[Tensor], upstream: Tensor, dtype: torch.dtype, **how: Any
) -> list[Tensor]:
    """The sums, and the gradient of every table; one table alone meets itself."""
    leaves = [table.to(dtype).requires_grad_() for table in tables]
    sums = backend.pair_sum(leaves[0], leaves[-1], **how)
    return [sums, *torch.autograd.grad(sums, leaves, upstream.to(sums.dtype))]


def assert_agrees(
    backend: Any,
    tables: list[Tensor],
    upstream: Tensor,
    *,
    value: float = 1e-5,
    gradient: float = 5e-4,
    precision: str | None = None,
    **how: Any,
) -> None:
    """Within `value` and `gradient` of the definition in float64."""
    want = evaluate(reference, tables, upstream, torch.float64, **how)
    got = evaluate(backend, tables, upstream, torch.float32, precision=precision, **how)
    errors = [error(ours, theirs) for ours, theirs in zip(got, want, strict=True)]
    assert errors[0] <= value, errors  # NaN fails too
    assert max(errors[1:]) <= gradient, errors
