"""Rows of a table by number, with a gradient that adds up in a fixed order."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from muxgcl.sparse import Csr


class _Pick(torch.autograd.Function):
    """`table[index]`; in backward each row of the table sums up what its picks got."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows = len(table)
        return table[index]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (index,), (grad,) = ctx.saved_tensors, grads
        picked, order = index.flatten().sort(stable=True)
        row = torch.arange(ctx.rows + 1, device=index.device)
        each = Csr(
            rowptr=torch.searchsorted(picked, row),
            col=order,
            value=grad.new_ones(len(order)),
            columns=len(order),
        )
        return each.multiply(grad.reshape(len(order), grad.shape[-1])), None


def pick(table: Float[Tensor, "n d"], index: Int[Tensor, "*picks"]) -> Float[Tensor, "*picks d"]:
    """The table's rows of these numbers; two runs on a GPU give the same gradient to the bit."""
    found: Tensor = _Pick.apply(table, index)
    return found
