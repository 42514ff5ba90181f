r"""Rows scaled to length 1, in Triton: one small kernel each way instead of a dozen.

$y = x / |x|$, and its gradient is what is left of the upstream one across y,
$(g - \langle g, y\rangle y) / |x|$.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from muxgcl.shapes import Nodes

TILE = 4096  # numbers that a program holds


@triton.jit
def _scale(
    x_ptr,  # [n, d]
    y_ptr,  # [n, d]    out: unit rows
    inverse_ptr,  # [n] out: 1 / length, 0 for a row without direction
    n,
    d,
    zero,
    D: tl.constexpr,
    ROWS: tl.constexpr,
):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    across = tl.arange(0, D)
    inside = (row < n)[:, None] & (across < d)
    at = row[:, None] * d + across
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    length = tl.sqrt(tl.sum(x * x, 1))
    inverse = tl.where(length > zero, 1 / tl.maximum(length, zero), 0.0)
    tl.store(y_ptr + at, x * inverse[:, None], mask=inside)
    tl.store(inverse_ptr + row, inverse, mask=row < n)


@triton.jit
def _gradient(
    y_ptr,  # [n, d]
    inverse_ptr,  # [n]
    g_ptr,  # [n, d]   upstream
    out_ptr,  # [n, d] out
    n,
    d,
    D: tl.constexpr,
    ROWS: tl.constexpr,
):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    across = tl.arange(0, D)
    inside = (row < n)[:, None] & (across < d)
    at = row[:, None] * d + across
    y = tl.load(y_ptr + at, mask=inside, other=0.0)
    g = tl.load(g_ptr + at, mask=inside, other=0.0)
    inverse = tl.load(inverse_ptr + row, mask=row < n, other=0.0)
    along = tl.sum(y * g, 1)
    tl.store(out_ptr + at, (g - along[:, None] * y) * inverse[:, None], mask=inside)


class _UnitRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, zero: float) -> Tensor:
        x = x.contiguous()
        y, inverse = torch.empty_like(x), x.new_empty(len(x))
        with torch.cuda.device_of(x):
            _scale[_grid(x)](x, y, inverse, *x.shape, zero, **_sizes(x))
        ctx.save_for_backward(y, inverse)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        y, inverse = ctx.saved_tensors
        out = torch.empty_like(y)
        with torch.cuda.device_of(y):
            _gradient[_grid(y)](y, inverse, grads[0].contiguous(), out, *y.shape, **_sizes(y))
        return out, None


def _sizes(x: Tensor) -> dict[str, int]:
    width = triton.next_power_of_2(x.shape[1])
    return {"D": width, "ROWS": max(1, TILE // width)}


def _grid(x: Tensor) -> tuple[int]:
    return (triton.cdiv(len(x), _sizes(x)["ROWS"]),)


def unit_rows(nodes: Nodes, zero: float) -> Nodes:
    """Rows scaled to length 1; one no longer than `zero` becomes 0 and gets no gradient."""
    found: Tensor = _UnitRows.apply(nodes, zero)
    return found
