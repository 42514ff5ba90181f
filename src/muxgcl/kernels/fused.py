r"""Triton twin of `reference.py`: no [n, m] tile ever leaves the chip.

**What is kept.** With push $e_{ij} = w_{ij} \exp((\langle a_i, b_j\rangle - 1)/\tau)$, forward keeps the sums
$S_i = \sum_j e_{ij}$ and beside them the pulls $V_i = \sum_j e_{ij} b_j$, [n] and [n, d]. The gradient of the
anchors is then $g_i V_i / \tau$, at no further cost. The gradient of the keys, $\sum_i (g_i/\tau) e_{ij} a_i$,
is one more pass that computes the tiles again.

**One kernel for both.** Forward and backward are the same walk with the roles swapped: a program owns a
block of rows (anchors; then keys), meets all the others tile by tile (keys; then anchors), and adds
`push @ others` to a table that stays in registers. Forward also sums the push; backward also multiplies it by
the others' coefficients $g_i/\tau$. Where there are fewer blocks than processors, or a last wave would be
nearly empty, the others are dealt out among several programs; each writes its own part, and the parts are
added in a fixed order. Nothing is added atomically, so two runs give the same bits.

**Own nodes.** A pair of one node with itself does not count. Only the few tiles on the diagonal hold such pairs,
and only the last tile may be ragged: those are done in a second loop, and the first, hot one has no mask.
When the nodes come as index tensors, any tile may hold such pairs, and all go through the second loop.

**Several views.** Stacked tables repeat the nodes, and the pair weight depends on the nodes alone. A tile takes the
same nodes from `shared` views side by side and computes their weights once.

**Half precision.** Unit rows lose little in 16 bits; products are summed in 32. The push is rounded to 16 bits only
as an operand of the second product, times 2^15 so that $e^{-2/\tau}$ to 1 stays in range. In backward
the coefficients are scaled by the largest $|g_i| S_i$, which no entry of a row can exceed.
"""

import math
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torch.nn.functional import pad

from muxgcl.errors import UserError
from muxgcl.kernels import reference
from muxgcl.kernels.pair_weight import Ids, PairWeight
from muxgcl.shapes import Candidates, Nodes, PerNode, Scalar

try:
    import triton
    import triton.language as tl
except ModuleNotFoundError as missing:
    raise UserError("the fused backend needs Triton, and it is not installed") from missing

Precision = Literal["fp16", "bf16", "tf32", "fp32"]
PRECISION: Precision = "fp16"  # of tables that come in 32 bits; half tables are taken as they are
TABLE = {"fp16": torch.float16, "bf16": torch.bfloat16}
LARGEST = (
    2.0**15
)  # what the largest push becomes before it is rounded: half of fp16's largest number
PROCESSORS = 132  # of an H200; programs are dealt out to fill them
MOST_SPLITS = 16


class Block(NamedTuple):
    """How much of the matrix a program works on at a time, and with what."""

    rows: int  # it owns
    cols: int  # nodes it meets at a time, in each of the `shared` views
    shared: int  # views that share a tile of weights, where there are as many
    warps: int
    stages: int


# by the bytes of a row of its two tables, embedding and weight (padded): the first key that is enough
BLOCKS: dict[int, Block] = {
    512: Block(rows=128, cols=64, shared=2, warps=8, stages=3),
    768: Block(rows=128, cols=32, shared=2, warps=8, stages=3),
    1280: Block(rows=64, cols=32, shared=1, warps=4, stages=2),
    2048: Block(rows=64, cols=16, shared=1, warps=4, stages=2),
    4096: Block(rows=16, cols=16, shared=1, warps=4, stages=2),
}
BACKWARD_BLOCKS = BLOCKS


@triton.jit
def _walk(
    own_ptr,  # [own views * owns, D]  rows of the blocks: anchors forward, keys backward
    other_ptr,  # [VIEWS * others, D]  rows they meet
    own_weight_ptr,  # [owns, R]       pair weights, one row a node, or None
    other_weight_ptr,  # [others, R]   or None
    own_node_ptr,  # [owns]            node of every row, or None: the row's place in its view
    other_node_ptr,  # [others]        or None
    coefficient_ptr,  # [VIEWS * others]  a factor of each other row, or None
    sum_ptr,  # [splits, own views * owns]      out, or None
    pull_ptr,  # [splits, own views * owns, D]  out
    owns,
    others,
    offset,
    slope,
    scale,  # push = weight * 2^(scale * cosine + shift)
    shift,
    D: tl.constexpr,
    R: tl.constexpr,
    VIEWS: tl.constexpr,
    SHARED: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    GROUPS: tl.constexpr = VIEWS // SHARED
    WIDTH: tl.constexpr = SHARED * COLS  # of a tile: `COLS` nodes in each of `SHARED` views
    block, own_view, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    splits = tl.num_programs(2)
    row = block * ROWS + tl.arange(0, ROWS)  # [ROWS] nodes, or rows of the one view
    here = row < owns
    place = tl.arange(0, WIDTH)  # [WIDTH] of a tile
    node = place % COLS
    across = tl.arange(0, D)
    own_row = own_view * owns + row
    own = tl.load(own_ptr + own_row[:, None] * D + across, mask=here[:, None], other=0.0)
    other_row = place // COLS * others + node  # [WIDTH] rows of the first tile
    other_at = other_row[:, None] * D + across  # [WIDTH, D]
    own_node = row
    if own_node_ptr is not None:
        own_node = tl.load(own_node_ptr + row, mask=here, other=-1)
    if own_weight_ptr is not None:
        along = tl.arange(0, R)
        weight_at = tl.arange(0, COLS)[:, None] * R + along  # [COLS, R]
        own_weight = tl.load(
            own_weight_ptr + row[:, None] * R + along, mask=here[:, None], other=0.0
        )

    last = tl.cdiv(others, COLS) - 1  # the tile that may be ragged
    first_own = tl.minimum(block * ROWS // COLS, last)
    end_own = tl.minimum(tl.cdiv(block * ROWS + ROWS, COLS), last)
    if own_node_ptr is not None:
        first_own = 0
        end_own = last
    peeled = end_own - first_own  # tiles, and the last one

    pull = tl.zeros([ROWS, D], dtype=tl.float32)
    total = tl.zeros([ROWS], dtype=tl.float32)
    for PEELED in tl.static_range(2):
        tiles = peeled + 1 if PEELED else last - peeled
        for step in range(split, tiles * GROUPS, splits):
            index = step // GROUPS
            if PEELED:
                tile = tl.where(index < peeled, first_own + index, last)
            else:
                tile = tl.where(index < first_own, index, index + peeled)
            start = tile * COLS  # node
            begin = (step % GROUPS * SHARED * others + start).to(tl.int64)  # row
            there = node < others - start  # [WIDTH], all of them in the hot loop
            at = other_ptr + begin * D + other_at
            other = tl.load(at, mask=there[:, None], other=0.0) if PEELED else tl.load(at)
            cosine = tl.dot(own, tl.trans(other), input_precision=PRECISION)  # [ROWS, WIDTH]
            push = tl.exp2(cosine * scale + shift)
            if own_weight_ptr is not None:
                at = other_weight_ptr + start * R + weight_at
                if PEELED:
                    inside = tl.arange(0, COLS) < others - start
                    other_weight = tl.load(at, mask=inside[:, None], other=0.0)
                else:
                    other_weight = tl.load(at)
                weight = tl.dot(own_weight, tl.trans(other_weight), input_precision=PRECISION)
                weight = tl.maximum(weight * slope + offset, 0.0)  # [ROWS, COLS]
                if SHARED > 1:
                    weight = tl.broadcast_to(weight[:, None, :], [ROWS, SHARED, COLS])
                    weight = tl.reshape(weight, [ROWS, WIDTH])
                push *= weight
            if coefficient_ptr is not None:
                at = coefficient_ptr + begin + other_row
                push *= tl.load(at, mask=there, other=0.0) if PEELED else tl.load(at)
            if PEELED:
                other_node = start + node  # [WIDTH]
                if other_node_ptr is not None:
                    other_node = tl.load(other_node_ptr + other_node, mask=there, other=-1)
                push = tl.where((own_node[:, None] != other_node) & there, push, 0.0)
            if sum_ptr is not None:
                total += tl.sum(push, 1)
            pull = tl.dot(push.to(other.dtype), other, pull, input_precision=PRECISION)

    out = (split * tl.num_programs(1) * owns).to(tl.int64) + own_row  # [ROWS]
    tl.store(pull_ptr + out[:, None] * D + across, pull, mask=here[:, None])
    if sum_ptr is not None:
        tl.store(sum_ptr + out, total, mask=here)


class _Side(NamedTuple):
    """Anchors or keys as the kernel reads them."""

    table: Tensor  # [views * count, D]
    weight: Tensor | None  # [count, R]
    node: Tensor | None  # [count], where the row's place in its view does not say it
    count: int
    views: int


class _Pairs(NamedTuple):
    """All pairs of anchors and keys, and how they are weighed."""

    anchors: _Side
    keys: _Side
    offset: float
    slope: float
    temperature: float
    precision: Precision

    @property
    def lift(self) -> float:
        """What forward's results are multiplied by: the largest weight brings them to `LARGEST`."""
        return LARGEST / max(1.0, self.offset + abs(self.slope))

    def walk(self, coefficient: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Sums [n] and pulls [n, D] of the anchors, times `lift`; with a coefficient, pulls of the keys."""
        forward = coefficient is None
        own, other = (self.anchors, self.keys) if forward else (self.keys, self.anchors)
        rate = math.log2(math.e) / self.temperature
        width, rank = own.table.shape[1], 0 if own.weight is None else own.weight.shape[1]
        row_bytes = own.table.element_size() * (width + rank)
        blocks = BLOCKS if forward else BACKWARD_BLOCKS
        block = blocks[min(size for size in blocks if size >= row_bytes)]
        grid = triton.cdiv(own.count, block.rows), own.views
        splits = _splits(grid[0] * grid[1], triton.cdiv(other.count, block.cols))
        pulls = own.table.new_empty((splits, *own.table.shape), dtype=torch.float32)
        sums = pulls.new_empty(pulls.shape[:2])
        with torch.cuda.device_of(own.table):
            _walk[*grid, splits](
                own.table,
                other.table,
                own.weight,
                other.weight,
                own.node,
                other.node,
                coefficient,
                sums if forward else None,
                pulls,
                own.count,
                other.count,
                self.offset,
                self.slope,
                rate,
                math.log2(self.lift) - rate if forward else -rate,
                D=width,
                R=rank,
                VIEWS=other.views,
                SHARED=math.gcd(block.shared, other.views),
                ROWS=block.rows,
                COLS=block.cols,
                PRECISION="ieee" if self.precision == "fp32" else "tf32",
                num_warps=block.warps,
                num_stages=block.stages,
            )
        return (sums[0], pulls[0]) if splits == 1 else (sums.sum(0), pulls.sum(0))


def _splits(blocks: int, tiles: int) -> int:
    """Among how many programs a block's tiles are dealt out: the least time in whole waves."""

    def time(splits: int) -> float:
        parts = 1 + splits / 100  # each part is written once and read once
        return math.ceil(blocks * splits / PROCESSORS) / splits * parts

    return min(range(1, min(tiles, MOST_SPLITS) + 1), key=time)


def _pairs(
    anchor: Tensor,
    keys: Tensor,
    weight: PairWeight | None,
    temperature: float,
    ids: Ids,
    precision: Precision | None,
) -> _Pairs:
    """Check what came, and bring it into the kernel's form."""
    precision = precision or PRECISION
    if precision not in get_args(Precision):
        raise UserError(f"precision must be one of {get_args(Precision)}, got {precision!r}")
    if weight is not None and weight.curve is not None:
        raise UserError("the fused backend knows no weight curve; use backend chunked")
    if not anchor.is_cuda and not triton.knobs.runtime.interpret:
        raise UserError(f"the fused backend needs a CUDA device, got tensors on {anchor.device}")
    nodes = ids if isinstance(ids, int) else len(anchor)
    stacked = not isinstance(ids, tuple) and len(anchor) % nodes == 0 and len(keys) % nodes == 0
    if weight is not None:
        stacked = stacked and len(weight.rows) == nodes and len(weight.cols) == nodes

    def side(rows: Tensor, weights: Tensor | None, place: int) -> _Side:
        table = _table(rows, precision)
        if stacked:
            form = None if weights is None else _table(weights, precision)
            return _Side(table, form, None, nodes, len(rows) // nodes)
        order = torch.arange(len(rows), device=rows.device)
        node = ids[place] if isinstance(ids, tuple) else order % nodes
        form = None if weights is None else _table(weights[order % len(weights)], precision)
        return _Side(table, form, node.contiguous(), len(rows), 1)

    return _Pairs(
        side(anchor, None if weight is None else weight.rows, 0),
        side(keys, None if weight is None else weight.cols, 1),
        offset=1.0 if weight is None else weight.offset,
        slope=0.0 if weight is None else weight.slope,
        temperature=temperature,
        precision=precision,
    )


def _table(rows: Tensor, precision: Precision) -> Tensor:
    """Rows in the kernel's precision, their width padded with zeros to a power of two."""
    width = max(16, triton.next_power_of_2(rows.shape[1]))
    if width > 512:
        raise UserError(f"the fused backend takes rows of up to 512 numbers, got {rows.shape[1]}")
    if rows.dtype not in TABLE.values():
        rows = rows.to(TABLE.get(precision, torch.float32))
    if width > rows.shape[1]:
        rows = pad(rows, (0, width - rows.shape[1]))
    return rows.contiguous()


class _NegativeSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, keys: Tensor, *settings: Any) -> Tensor:
        ctx.pairs = _pairs(anchor, keys, *settings)
        sums, ctx.pulls = ctx.pairs.walk()
        sums = sums / ctx.pairs.lift
        ctx.save_for_backward(anchor, keys, sums)
        return sums

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        anchor, keys, sums = ctx.saved_tensors
        upstream = grads[0] / ctx.pairs.temperature
        d_anchor = (upstream / ctx.pairs.lift)[:, None] * ctx.pulls[:, : anchor.shape[1]]
        d_keys = None
        if ctx.needs_input_grad[1]:
            lift = LARGEST / (upstream * sums).abs().amax().clamp(min=1e-30)  # never leaves the GPU
            _, pulls = ctx.pairs.walk(upstream * lift)
            d_keys = (pulls[:, : keys.shape[1]] / lift).to(keys.dtype)
        return d_anchor.to(anchor.dtype), d_keys, None, None, None, None


def negative_sum(
    anchor: Nodes,
    keys: Candidates,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: Ids = None,
    precision: Precision | None = None,
) -> PerNode:
    """Fused twin of `reference.negative_sum`, for rows of up to 512 numbers."""
    return _NegativeSum.apply(anchor, keys, weight, temperature, nodes, precision)


def contrast(
    anchor: Nodes,
    positive: Nodes,
    keys: Candidates,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: Ids = None,
    precision: Precision | None = None,
) -> Scalar:
    """Fused twin of `reference.contrast`."""
    negatives = negative_sum(
        anchor, keys, weight, temperature=temperature, nodes=nodes, precision=precision
    )
    return reference.info_nce(anchor, positive, negatives, temperature=temperature).mean()
