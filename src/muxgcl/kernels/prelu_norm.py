r"""Bias, PReLU and LayerNorm in Triton: one kernel each way instead of a dozen.

With $s = x + b$ and $a = s$ where $s > 0$, else $\rho s$,

$$y = \gamma\, \hat a + \beta, \qquad \hat a = (a - \bar a) / \sqrt{\mathrm{var}(a) + \epsilon}$$

over each row. Forward keeps x and two numbers a row; backward makes a again. Its sums over the
rows, the gradients of the four weights, are left in parts, one a program, and added in fixed order.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from muxgcl.shapes import Nodes

TILE = 4096  # numbers that a program holds of each table
PROGRAMS = 512  # of the backward kernel: as many parts of each sum over the rows


@triton.jit
def _forward(
    x_ptr,  # [n, d]
    bias_ptr,  # [d]
    slope_ptr,  # [1]
    gamma_ptr,  # [d]
    beta_ptr,  # [d]
    y_ptr,  # [n, d]   out
    mean_ptr,  # [n]   out
    inverse_ptr,  # [n]  out: 1 / standard deviation
    n,
    d,
    epsilon,
    D: tl.constexpr,
    ROWS: tl.constexpr,
):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    across = tl.arange(0, D)
    wide = across < d
    inside = (row < n)[:, None] & wide
    at = row[:, None] * d + across
    slope = tl.load(slope_ptr)
    s = tl.load(x_ptr + at, mask=inside, other=0.0)
    s += tl.load(bias_ptr + across, mask=wide, other=0.0)
    a = tl.where(s > 0, s, slope * s)
    mean = tl.sum(a, 1) / d
    centred = tl.where(wide, a - mean[:, None], 0.0)
    inverse = 1 / tl.sqrt(tl.sum(centred * centred, 1) / d + epsilon)
    gamma = tl.load(gamma_ptr + across, mask=wide, other=0.0)
    beta = tl.load(beta_ptr + across, mask=wide, other=0.0)
    tl.store(y_ptr + at, centred * inverse[:, None] * gamma + beta, mask=inside)
    tl.store(mean_ptr + row, mean, mask=row < n)
    tl.store(inverse_ptr + row, inverse, mask=row < n)


@triton.jit
def _backward(
    x_ptr,  # [n, d]
    bias_ptr,  # [d]
    slope_ptr,  # [1]
    gamma_ptr,  # [d]
    mean_ptr,  # [n]
    inverse_ptr,  # [n]
    g_ptr,  # [n, d]    upstream
    out_ptr,  # [n, d]  out: gradient of x
    part_ptr,  # [4, programs, d]  out: parts of those of bias, slope, gamma, beta
    n,
    d,
    D: tl.constexpr,
    ROWS: tl.constexpr,
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    across = tl.arange(0, D)
    wide = across < d
    slope = tl.load(slope_ptr)
    bias = tl.load(bias_ptr + across, mask=wide, other=0.0)
    gamma = tl.load(gamma_ptr + across, mask=wide, other=0.0)
    of_bias = tl.zeros([D], dtype=tl.float32)
    of_slope = tl.zeros([D], dtype=tl.float32)
    of_gamma = tl.zeros([D], dtype=tl.float32)
    of_beta = tl.zeros([D], dtype=tl.float32)
    for start in range(program * ROWS, n, programs * ROWS):
        row = (start + tl.arange(0, ROWS)).to(tl.int64)
        inside = (row < n)[:, None] & wide
        at = row[:, None] * d + across
        s = tl.load(x_ptr + at, mask=inside, other=0.0) + bias
        g = tl.load(g_ptr + at, mask=inside, other=0.0)
        mean = tl.load(mean_ptr + row, mask=row < n, other=0.0)
        inverse = tl.load(inverse_ptr + row, mask=row < n, other=0.0)
        a = tl.where(s > 0, s, slope * s)
        hat = tl.where(inside, (a - mean[:, None]) * inverse[:, None], 0.0)
        pull = g * gamma
        along, level = tl.sum(pull * hat, 1) / d, tl.sum(pull, 1) / d
        of_a = tl.where(inside, pull - hat * along[:, None] - level[:, None], 0.0)
        of_a *= inverse[:, None]
        of_s = tl.where(s > 0, of_a, slope * of_a)
        tl.store(out_ptr + at, of_s, mask=inside)
        of_bias += tl.sum(of_s, 0)
        of_slope += tl.sum(tl.where(s > 0, 0.0, of_a * s), 0)
        of_gamma += tl.sum(g * hat, 0)
        of_beta += tl.sum(g, 0)
    part = part_ptr + program * d + across
    tl.store(part, of_bias, mask=wide)
    tl.store(part + programs * d, of_slope, mask=wide)
    tl.store(part + 2 * programs * d, of_gamma, mask=wide)
    tl.store(part + 3 * programs * d, of_beta, mask=wide)


class _PreluNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        bias: Tensor,
        slope: Tensor,
        gamma: Tensor,
        beta: Tensor,
        epsilon: float,
    ) -> Tensor:
        x = x.contiguous()
        y, mean, inverse = torch.empty_like(x), x.new_empty(len(x)), x.new_empty(len(x))
        sizes = _sizes(x)
        with torch.cuda.device_of(x):
            _forward[(triton.cdiv(len(x), sizes["ROWS"]),)](
                x, bias, slope, gamma, beta, y, mean, inverse, *x.shape, epsilon, **sizes
            )
        ctx.save_for_backward(x, bias, slope, gamma, mean, inverse)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, bias, slope, gamma, mean, inverse = ctx.saved_tensors
        out, g, sizes = torch.empty_like(x), grads[0].contiguous(), _sizes(x)
        programs = min(PROGRAMS, triton.cdiv(len(x), sizes["ROWS"]))
        parts = x.new_empty(4, programs, x.shape[1])
        with torch.cuda.device_of(x):
            _backward[(programs,)](
                x, bias, slope, gamma, mean, inverse, g, out, parts, *x.shape, **sizes
            )
        of_bias, of_slope, of_gamma, of_beta = parts.sum(1)
        return out, of_bias, of_slope.sum().reshape(slope.shape), of_gamma, of_beta, None


def _sizes(x: Tensor) -> dict[str, int]:
    width = triton.next_power_of_2(x.shape[1])
    return {"D": width, "ROWS": max(1, TILE // width), "num_warps": 8}


def prelu_norm(
    x: Nodes,
    bias: Float[Tensor, " d"],
    slope: Float[Tensor, " 1"],
    gamma: Float[Tensor, " d"],
    beta: Float[Tensor, " d"],
    epsilon: float,
) -> Nodes:
    """LayerNorm of PReLU of `x + bias`; `slope` is PReLU's, `gamma` and `beta` the norm's."""
    found: Tensor = _PreluNorm.apply(x, bias, slope, gamma, beta, epsilon)
    return found
