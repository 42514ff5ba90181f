"""A sparse matrix in CSR times a dense table, in Triton.

A program owns a piece of a row, a run of its entries, and some columns of the result. It reads
the entries a chunk at a time, gathers as many rows of the dense table, and adds them into a tile
of (chunk x columns) that stays in registers; the tile is summed over the chunk once, at the end.
So nothing of size (entries x width) is written. Most rows are one piece. A hub's row is several,
or everybody would wait for the one program that reads it: each leaves its part, and a second
kernel adds the parts. The order of all additions is fixed. The sizes below are the fastest of
those tried on an H200: wide gathers keep memory busy, and on graphs of many nodes the entries
then come at the speed of the second-level cache.
"""

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from muxgcl.kernels.pieces import Pieces

TILE = 4096  # numbers that a program gathers at a time: 32 in each of 128 threads
FEW = 4096  # rows: below that it is the longest piece that everybody waits for
WIDE = 1024  # columns of the parts that are added at a time, at most


@triton.jit
def _pieces(
    row_ptr,  # [p]     row of each piece, or None: every row is one
    begin_ptr,  # [p]   where its entries begin
    end_ptr,  # [p]     and end
    slot_ptr,  # [p]    where it leaves its part; -1: it is the whole row; or None
    col_ptr,  # [e]     the entries' columns
    value_ptr,  # [e]   and values
    dense_ptr,  # [columns, d]
    out_ptr,  # [rows, d]
    part_ptr,  # [slots, d]
    d,
    CHUNK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    piece = tl.program_id(0)
    # indices may be kept in 32 bits, but places in a table need 64
    begin, end = tl.load(begin_ptr + piece).to(tl.int64), tl.load(end_ptr + piece).to(tl.int64)
    across = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)  # columns of the dense table
    wanted = across < d
    total = tl.zeros([CHUNK, WIDTH], dtype=tl.float32)
    for start in range(begin, end, CHUNK):
        entry = start + tl.arange(0, CHUNK)
        there = entry < end
        col = tl.load(col_ptr + entry, mask=there, other=0).to(tl.int64)
        value = tl.load(value_ptr + entry, mask=there, other=0.0).to(tl.float32)
        at = dense_ptr + col[:, None] * d + across
        # a dropped edge is still an entry, but weighs nothing: its row is not fetched
        gathered = tl.load(at, mask=(value != 0)[:, None] & wanted, other=0.0)  # [CHUNK, WIDTH]
        total += value[:, None] * gathered
    found = tl.sum(total, 0)
    if row_ptr is None:
        row = piece.to(tl.int64)
        tl.store(out_ptr + row * d + across, found.to(out_ptr.dtype.element_ty), mask=wanted)
    else:
        row, slot = tl.load(row_ptr + piece).to(tl.int64), tl.load(slot_ptr + piece).to(tl.int64)
        whole = wanted & (slot < 0)
        tl.store(out_ptr + row * d + across, found.to(out_ptr.dtype.element_ty), mask=whole)
        tl.store(part_ptr + slot * d + across, found, mask=wanted & (slot >= 0))


@triton.jit
def _add_parts(
    long_ptr,  # [l]       rows of several pieces
    first_ptr,  # [l + 1]  where their parts begin
    part_ptr,  # [slots, d]
    out_ptr,  # [rows, d]
    d,
    WIDTH: tl.constexpr,
):
    which = tl.program_id(0)
    across = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    wanted = across < d
    total = tl.zeros([WIDTH], dtype=tl.float32)
    first, end = tl.load(first_ptr + which).to(tl.int64), tl.load(first_ptr + which + 1)
    for slot in range(first, end.to(tl.int64)):
        total += tl.load(part_ptr + slot * d + across, mask=wanted, other=0.0)
    row = tl.load(long_ptr + which).to(tl.int64)
    tl.store(out_ptr + row * d + across, total.to(out_ptr.dtype.element_ty), mask=wanted)


def spmm(
    rowptr: Int[Tensor, " rows+1"],
    col: Int[Tensor, " e"],
    value: Float[Tensor, " e"],
    dense: Float[Tensor, "columns d"],
    pieces: Pieces | None = None,
) -> Float[Tensor, "rows d"]:
    """The product of the matrix whose row i holds entries `rowptr[i]:rowptr[i + 1]` and `dense`.

    With `pieces` the longest are begun first and no row is waited for.
    """
    rows, d = len(rowptr) - 1, dense.shape[1]
    out = dense.new_empty((rows, d))
    if out.numel() == 0:
        return out
    if pieces is None:
        row, begin, end, slot, parts = None, rowptr[:-1], rowptr[1:], None, None
    else:
        row, begin, end, slot = pieces.row, pieces.begin, pieces.end, pieces.slot
        parts = dense.new_empty((max(pieces.slots, 1), d), dtype=torch.float32)
    chunk = 8 if len(col) < 8 * rows else 16 if rows > FEW else 64
    width = min(triton.next_power_of_2(d), TILE // chunk)
    wide = min(triton.next_power_of_2(d), WIDE)
    with torch.cuda.device_of(dense):
        _pieces[len(begin), triton.cdiv(d, width)](
            row,
            begin,
            end,
            slot,
            col,
            value,
            dense.contiguous(),
            out,
            parts,
            d,
            CHUNK=chunk,
            WIDTH=width,
            num_warps=4 if width > 16 else 1,
        )
        if pieces is not None and pieces.slots:
            _add_parts[len(pieces.long), triton.cdiv(d, wide)](
                pieces.long, pieces.first, parts, out, d, WIDTH=wide, num_warps=1
            )
    return out
