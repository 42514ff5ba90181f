"""A sparse matrix in CSR times a dense table, in Triton.

A program owns one row of the result and some of its columns. It reads the row's entries a chunk
at a time, gathers as many rows of the dense table, and adds them into a tile of (chunk x columns)
that stays in registers; the tile is summed over the chunk once, at the end. So nothing of size
(entries x width) is written, and the order of the additions is fixed. The sizes
below are the fastest of those tried on an H200: wide gathers keep memory busy, and on graphs of
many nodes the entries then come at the speed of the second-level cache.
"""

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

TILE = 4096  # numbers that a program gathers at a time: 32 in each of 128 threads
FEW = 4096  # rows: below that it is the longest row that everybody waits for


@triton.jit
def _spmm(
    rowptr_ptr,  # [rows + 1]  where a row's entries begin
    col_ptr,  # [e]            their columns
    value_ptr,  # [e]          and values
    dense_ptr,  # [columns, d]
    order_ptr,  # [rows]       in which the rows are begun, or None
    out_ptr,  # [rows, d]
    d,
    CHUNK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    if order_ptr is not None:
        row = tl.load(order_ptr + row)
    begin, end = tl.load(rowptr_ptr + row), tl.load(rowptr_ptr + row + 1)
    across = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)  # columns of the dense table
    wanted = across < d
    total = tl.zeros([CHUNK, WIDTH], dtype=tl.float32)
    for start in range(begin, end, CHUNK):
        entry = start + tl.arange(0, CHUNK)
        there = entry < end
        col = tl.load(col_ptr + entry, mask=there, other=0)
        value = tl.load(value_ptr + entry, mask=there, other=0.0).to(tl.float32)
        at = dense_ptr + col[:, None] * d + across
        # a dropped edge is still an entry, but weighs nothing: its row is not fetched
        gathered = tl.load(at, mask=(value != 0)[:, None] & wanted, other=0.0)  # [CHUNK, WIDTH]
        total += value[:, None] * gathered
    out = out_ptr + row * d + across
    tl.store(out, tl.sum(total, 0).to(out_ptr.dtype.element_ty), mask=wanted)


def spmm(
    rowptr: Int[Tensor, " rows+1"],
    col: Int[Tensor, " e"],
    value: Float[Tensor, " e"],
    dense: Float[Tensor, "columns d"],
    order: Int[Tensor, " rows"] | None = None,
) -> Float[Tensor, "rows d"]:
    """The product of the matrix whose row i holds entries `rowptr[i]:rowptr[i + 1]` and `dense`.

    Rows are begun in the given order: with the longest first nobody waits for them at the end.
    """
    rows, d = len(rowptr) - 1, dense.shape[1]
    out = dense.new_empty((rows, d))
    if out.numel() == 0:
        return out
    chunk = 8 if len(col) < 8 * rows else 16 if rows > FEW else 64
    width = min(triton.next_power_of_2(d), TILE // chunk)
    with torch.cuda.device_of(dense):
        _spmm[rows, triton.cdiv(d, width)](
            rowptr,
            col,
            value,
            dense.contiguous(),
            order,
            out,
            d,
            CHUNK=chunk,
            WIDTH=width,
            num_warps=4 if width > 16 else 1,
        )
    return out
