"""Products of two rows for every entry of a sparse pattern, in Triton.

A program owns a few entries and gathers both ends' rows some columns at a time: nothing of size
(entries x width) is written.
"""

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

CHUNK, WIDEST = 16, 128  # entries of a program, and columns that it gathers at a time


@triton.jit(do_not_specialize=["entries"])
def _dots(
    row_ptr,  # [e]      the entries' rows
    col_ptr,  # [e]      and columns
    left_ptr,  # [n, d]
    right_ptr,  # [m, d]
    out_ptr,  # [e]
    entries,
    d,
    CHUNK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    entry = tl.program_id(0).to(tl.int64) * CHUNK + tl.arange(0, CHUNK)
    there = entry < entries
    row = tl.load(row_ptr + entry, mask=there, other=0).to(tl.int64)
    col = tl.load(col_ptr + entry, mask=there, other=0).to(tl.int64)
    total = tl.zeros([CHUNK, WIDTH], dtype=tl.float32)
    for start in range(0, d, WIDTH):
        across = start + tl.arange(0, WIDTH)
        inside = there[:, None] & (across < d)
        left = tl.load(left_ptr + row[:, None] * d + across, mask=inside, other=0.0)
        right = tl.load(right_ptr + col[:, None] * d + across, mask=inside, other=0.0)
        total += left.to(tl.float32) * right.to(tl.float32)
    tl.store(out_ptr + entry, tl.sum(total, 1).to(out_ptr.dtype.element_ty), mask=there)


def edge_dot(
    left: Float[Tensor, "n d"],
    right: Float[Tensor, "m d"],
    row: Int[Tensor, " e"],
    col: Int[Tensor, " e"],
) -> Float[Tensor, " e"]:
    """Row `row[k]` of `left` times row `col[k]` of `right`, for every k."""
    out = left.new_empty(len(row))
    if len(row):
        width = min(max(16, triton.next_power_of_2(left.shape[1])), WIDEST)
        with torch.cuda.device_of(left):
            _dots[(triton.cdiv(len(row), CHUNK),)](
                row,
                col,
                left.contiguous(),
                right.contiguous(),
                out,
                len(row),
                left.shape[1],
                CHUNK=CHUNK,
                WIDTH=width,
            )
    return out
