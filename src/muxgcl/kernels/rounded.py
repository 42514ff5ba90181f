"""Dense products on a CPU with 16-bit instructions: factors are rounded, sums have 32 bits.

A factor in bfloat16 keeps 8 bits of each number: a product is off by about 0.3 %, in training by
less than the choice of a sample changes it, and takes less time. Where the CPU has no such
instructions, or nobody has asked, a product is torch's own.

Rows are padded with zeros to few different numbers. For every new shape the library behind torch
keeps a kernel and buffers of its own; steps of a sample differ in their rows, and memory would grow
from step to step.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

_asked = False


@contextmanager
def rounded(asked: bool = True) -> Iterator[None]:
    """Round inside, where it pays."""
    global _asked
    before, _asked = _asked, asked and is_fast()
    try:
        yield
    finally:
        _asked = before


@cache
def is_fast() -> bool:
    """Whether this CPU multiplies bfloat16 faster than 32 bits."""
    ask = getattr(torch.cpu, "get_capabilities", None)  # older versions of torch cannot say
    known: dict[str, Any] = {} if ask is None else ask()
    return any(known.get(name, False) for name in ("avx512_bf16", "amx_bf16"))


def product(table: Float[Tensor, "n a"], weight: Float[Tensor, "a b"]) -> Float[Tensor, "n b"]:
    """The product of two tables, of rounded ones where that was asked for."""
    if is_asked(table):
        found: Tensor = _Rounded.apply(table, weight)
        return found
    return table @ weight


def is_asked(table: Tensor) -> bool:
    """Whether products with this table are rounded."""
    return _asked and table.device.type == "cpu" and table.dtype == torch.float32


def padded_rows(rows: int) -> int:
    """At most sixteen numbers between two powers of two, so at most a sixteenth more rows."""
    step = max(64, 1 << max(0, rows.bit_length() - 5))
    return -(-rows // step) * step


def short(table: Float[Tensor, "n a"]) -> Tensor:
    """In bfloat16, with rows of zeros below."""
    rows, columns = table.shape
    found = table.new_empty(padded_rows(rows), columns, dtype=torch.bfloat16)
    found[:rows] = table
    found[rows:] = 0
    return found


class _Rounded(Function):
    """The product of two rounded tables; gradients are such products too."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, weight: Tensor) -> Tensor:
        ctx.rows = len(table)
        factors = short(table), weight.bfloat16()
        ctx.save_for_backward(*factors)
        return (factors[0] @ factors[1])[: ctx.rows].float()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (table, weight), grad = ctx.saved_tensors, short(grads[0])
        wanted = ctx.needs_input_grad
        return (
            (grad @ weight.T)[: ctx.rows].float() if wanted[0] else None,
            (table.T @ grad).float() if wanted[1] else None,
        )
