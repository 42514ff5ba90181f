"""PReLU with one slope, whose backward pass costs a CPU far less than that of torch."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from muxgcl.shapes import Scale


class _Prelu(torch.autograd.Function):
    """relu(x) and a share `slope` of the way from there to x; its gradient likewise.

    The slope's gradient is one product, where torch writes a table of its parts and adds them up.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(table, slope)
        return table.relu().lerp_(table, slope)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        (grad,), (table, slope) = grads, ctx.saved_tensors
        d_slope = table.clamp(max=0).flatten() @ grad.flatten()
        above = torch.ops.aten.threshold_backward(grad, table, 0)  # 0 where the table is below
        return above.lerp_(grad, slope), d_slope.expand_as(slope)


def prelu(table: Scale, slope: Float[Tensor, " 1"]) -> Scale:
    """`table` where it is positive, `slope` times it elsewhere."""
    if table.device.type != "cpu":
        return functional.prelu(table, slope)
    found: Tensor = _Prelu.apply(table, slope)
    return found


class PReLU(nn.PReLU):
    """torch's module of one slope, computed as above."""

    def forward(self, input: Scale) -> Scale:
        """`prelu` with the slope that was learned."""
        return prelu(input, self.weight)
