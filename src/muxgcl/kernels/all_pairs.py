r"""The walk over all pairs of two tables, in Triton: what both passes of `fused.py` are made of.

A program owns a block of rows (anchors, say) and meets all the others (keys) tile by tile. Of a
tile it computes the cosines, from them the push
$e_{ij} = w_{ij} \exp((\langle a_i, b_j\rangle - 1)/\tau)$, adds the push up row by row, and adds
`push @ others` to a table that stays in registers. The tile itself is forgotten: no [n, m] matrix
ever leaves the chip. Backward is the same walk with the roles swapped (blocks of keys meet all
anchors), and there every anchor's push is multiplied by a coefficient, its share of the gradient.

**Own nodes.** A node is no negative of itself. Only the few tiles on the diagonal hold such
pairs, and only the last tile may be ragged: they are peeled into a second loop, and the first,
hot one has no mask and no branch, which would keep the tensor cores waiting. Where the nodes come
as index tensors, any tile may hold such pairs, and all of them go through the second loop.

**Several views.** Stacked tables repeat the nodes, and the pair weight depends on the nodes
alone. A tile takes the same nodes from `shared` views side by side and computes their weights
once.

**Parts.** Where there are fewer blocks than SMs, or the last wave of programs would be
nearly empty, the tiles of a block are divided among several programs. Each writes its own part,
and the parts are added in a fixed order: nothing is added atomically, so two runs give the same
bits.

**Half precision.** Unit rows lose little in 16 bits, and products are summed in 32. The push is
rounded to 16 bits only as an operand of the second product, and multiplied before by what brings
the largest possible one to 2^15, so that fp16's range is used from its upper end. For TF32 tensor
cores would cut the last 13 bits of every number off; here they are rounded off before.

**Even pushes.** At a high temperature all pushes of a row are nearly equal, and rounding may err
the same way in all of them. What it took from a row in all is summed up and given back along the
mean of the other rows.

**Other functions.** Where another function of the cosine is summed (`pair_function.py`), its value
is added up, and its slope takes the push's place in the second product: the push of a contrast is
both. The choice is made when the kernel is compiled.

**Small gaps.** Rounding makes a row a little longer or shorter, and that alone may be more than
what two rows lack to a cosine of 1. Where a function looks at that gap, half of what rounding added
to the squared lengths of both rows is taken off their product. The gap is then half the squared
distance of the rounded rows: equal rows have none, and it errs by a small part of itself.
"""

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from muxgcl.kernels.blocks import FORWARD, SUMS, Precision, Table, chip, choose, split
from muxgcl.kernels.pair_function import LogGap, Sigmoid
from muxgcl.kernels.pair_tile import pair_weight, value_and_slope

LARGEST = 2.0**15  # what the largest push, 1, becomes before it is rounded; fp16 ends at 2^16
SHARP = 0.1  # a temperature below which rounding of a cosine near 1 shows in the push
EVEN = 1.0  # a temperature from which pushes may be nearly equal
TF32_BITS = 13  # of a 32-bit number, which TF32 leaves out


@triton.jit(do_not_specialize=["owns", "others"])  # one binary for graphs of any size
def _walk(
    own_ptr,  # [own views * owns, D]  rows of the blocks: anchors forward, keys backward
    other_ptr,  # [VIEWS * others, D]  rows they meet
    own_weight_ptr,  # [owns, R]       pair weights, one row a node, or None
    other_weight_ptr,  # [others, R]   or None
    own_node_ptr,  # [owns]            node of every row, or None: the row's place in its view
    other_node_ptr,  # [others]        or None
    curve_ptr,  # [KNOTS]              the weight as a function of the cosine of its rows, or None
    own_factor_ptr,  # [own views * owns]  added to the factors of the other rows, or None
    factor_ptr,  # [VIEWS * others]    a factor of each other row, or None
    sum_ptr,  # [parts, own views * owns]      out, or None
    pull_ptr,  # [parts, own views * owns, D]  out, or None
    rest_ptr,  # [parts, own views * owns]     out: what rounding took from the push, or None
    own_excess_ptr,  # [own views * owns]  to be taken off the cosines of a row, or None
    excess_ptr,  # [VIEWS * others]    and off those of each other row
    owns,
    others,
    offset,
    slope,
    scale,  # push = weight * 2^(scale * cosine + shift), or with cosine - 1/2 where CENTRED
    shift,
    lift,  # of the push where it is the slope of another function; see `pair_tile.py`
    D: tl.constexpr,
    R: tl.constexpr,
    VIEWS: tl.constexpr,
    SHARED: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    PRECISION: tl.constexpr,
    CENTRED: tl.constexpr,  # whether cosines are summed up from -1/2: small on their way to 1/2
    LOGARITHMS: tl.constexpr,  # whether the factors, all positive, come as logarithms to base 2
    KNOTS: tl.constexpr,
    ROUNDED_BITS: tl.constexpr,  # last bits of the push to round off
    FUNCTION: tl.constexpr,  # "exp", "log-gap" or "sigmoid"
):
    GROUPS: tl.constexpr = VIEWS // SHARED
    WIDTH: tl.constexpr = SHARED * COLS  # of a tile: `COLS` nodes in each of `SHARED` views
    block, own_view, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    parts = tl.num_programs(2)
    row = block * ROWS + tl.arange(0, ROWS)  # [ROWS] nodes, or rows of the one view
    here = row < owns
    place = tl.arange(0, WIDTH)  # [WIDTH] of a tile
    node = place % COLS
    across = tl.arange(0, D)
    own_row = own_view * owns + row
    own = tl.load(own_ptr + own_row[:, None] * D + across, mask=here[:, None], other=0.0)
    other_row = place // COLS * others + node  # [WIDTH] rows of the first tile
    other_at = other_row[:, None] * D + across  # [WIDTH, D]
    if own_factor_ptr is not None:
        own_factor = tl.load(own_factor_ptr + own_row, mask=here, other=0.0)
    if own_excess_ptr is not None:
        own_excess = tl.load(own_excess_ptr + own_row, mask=here, other=0.0)
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
    rest = tl.zeros([ROWS], dtype=tl.float32)
    for PEELED in tl.static_range(2):
        tiles = peeled + 1 if PEELED else last - peeled
        for step in range(part, tiles * GROUPS, parts):
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
            cosine = tl.full([ROWS, WIDTH], -0.5 if CENTRED else 0.0, dtype=tl.float32)
            cosine = tl.dot(own, tl.trans(other), cosine, input_precision=PRECISION)
            exponent = shift
            if factor_ptr is not None:
                at = factor_ptr + begin + other_row
                factor = tl.load(at, mask=there, other=0.0) if PEELED else tl.load(at)
                if LOGARITHMS:  # a sum in the exponent is free, a product is not
                    exponent = factor + shift
            if FUNCTION == "exp":
                push = tl.exp2(cosine * scale + exponent)
            else:
                if own_excess_ptr is not None:
                    at = excess_ptr + begin + other_row
                    excess = tl.load(at, mask=there, other=0.0) if PEELED else tl.load(at)
                    cosine -= own_excess[:, None] + excess
                value, push = value_and_slope(cosine, scale, shift, FUNCTION)
                push *= lift
            if own_weight_ptr is not None:
                at = other_weight_ptr + start * R + weight_at
                if PEELED:
                    inside = tl.arange(0, COLS) < others - start
                    other_weight = tl.load(at, mask=inside[:, None], other=0.0)
                else:
                    other_weight = tl.load(at)
                weight = tl.dot(own_weight, tl.trans(other_weight), input_precision=PRECISION)
                weight = pair_weight(weight, curve_ptr, offset, slope, KNOTS)  # [ROWS, COLS]
                if SHARED > 1:
                    weight = tl.broadcast_to(weight[:, None, :], [ROWS, SHARED, COLS])
                    weight = tl.reshape(weight, [ROWS, WIDTH])
                push *= weight
            if own_factor_ptr is not None:
                push *= own_factor[:, None] + factor
            elif factor_ptr is not None and not LOGARITHMS:
                push *= factor
            if PEELED:
                other_node = start + node  # [WIDTH]
                if other_node_ptr is not None:
                    other_node = tl.load(other_node_ptr + other_node, mask=there, other=-1)
                apart = (own_node[:, None] != other_node) & there
                push = tl.where(apart, push, 0.0)
                if FUNCTION != "exp":
                    value = tl.where(apart, value, 0.0)
            if sum_ptr is not None:
                total += tl.sum(push if FUNCTION == "exp" else value, 1)
            if pull_ptr is not None:
                if ROUNDED_BITS:
                    bits = push.to(tl.int32, bitcast=True) + (1 << ROUNDED_BITS - 1)
                    rounded = (bits & -(1 << ROUNDED_BITS)).to(tl.float32, bitcast=True)
                else:
                    rounded = push.to(other.dtype)
                pull = tl.dot(rounded, other, pull, input_precision=PRECISION)
                if rest_ptr is not None:
                    rest += tl.sum(push - rounded.to(tl.float32), 1)

    out = (part * tl.num_programs(1) * owns).to(tl.int64) + own_row  # [ROWS]
    if pull_ptr is not None:
        tl.store(pull_ptr + out[:, None] * D + across, pull, mask=here[:, None])
    if sum_ptr is not None:
        tl.store(sum_ptr + out, total, mask=here)
    if rest_ptr is not None:
        tl.store(rest_ptr + out, rest, mask=here)


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Anchors or keys as the kernel reads them."""

    table: Tensor  # [views * count, D]
    weight: Tensor | None  # [count, R]
    node: Tensor | None  # [count], where a row's place in its view does not say it
    count: int
    views: int
    excess: Tensor | None = None  # [views * count]: half of what rounding added to |row|^2


@dataclass(frozen=True, slots=True, eq=False)
class AllPairs:
    """All pairs of anchors and keys, and how they are weighed."""

    anchors: Side
    keys: Side
    offset: float
    slope: float
    curve: Tensor | None  # [knots], instead of the offset and the slope
    temperature: float
    precision: Precision
    function: LogGap | Sigmoid | None = None  # instead of the push; its sums come as they are
    most: float = 1.0  # what weights were divided by: those of a walk end at 1

    def sums(self) -> Tensor:
        """Parts of the anchors' sums [parts, n] alone, times `LARGEST / most`."""
        found = self._launch(self.anchors, self.keys, SUMS, math.log2(LARGEST), pulls=False)[0]
        assert found is not None
        return found

    def forward(self) -> tuple[Tensor, Tensor]:
        """Parts of the anchors' sums [parts, n] and pulls [parts, n, D], `LARGEST / most` fold."""
        sums, pulls = self._launch(self.anchors, self.keys, FORWARD, math.log2(LARGEST))
        assert sums is not None
        assert pulls is not None
        return sums, pulls

    def backward(
        self, factor: Tensor, *, logarithms: bool = False, own_too: bool = False
    ) -> Tensor:
        """Parts of the keys' pulls [parts, m, D], each anchor's push times its factor.

        Where anchors and keys are the same, `own_too` adds the key's own factor to the anchor's.
        """
        own = factor if own_too else None
        pulls = self._launch(self.keys, self.anchors, FORWARD, 0.0, factor, own, logarithms)[1]
        assert pulls is not None
        return pulls

    def _launch(
        self,
        own: Side,
        other: Side,
        blocks: Table,
        lift: float,
        factor: Tensor | None = None,
        own_factor: Tensor | None = None,
        logarithms: bool = False,
        *,
        pulls: bool = True,
    ) -> tuple[Tensor | None, Tensor | None]:
        width, rank = own.table.shape[1], 0 if own.weight is None else own.weight.shape[1]
        sms, memory = chip(own.table.device)
        block = choose(blocks, own.table.dtype, self.precision, width, rank, memory)
        grid = triton.cdiv(own.count, block.rows), own.views
        parts = split(grid[0] * grid[1], triton.cdiv(other.count, block.cols), sms)
        shape = parts, *own.table.shape
        total = None if factor is not None else _empty(own.table, shape[:2])
        pull = _empty(own.table, shape) if pulls else None
        even = self.temperature >= EVEN or self.function is not None
        rest = _empty(own.table, shape[:2]) if pulls and even and self.precision != "fp32" else None
        scale, shift, centred = self._coefficients(lift)
        with torch.cuda.device_of(own.table):
            _walk[*grid, parts](
                own.table,
                other.table,
                own.weight,
                other.weight,
                own.node,
                other.node,
                self.curve,
                own_factor,
                factor,
                total,
                pull,
                rest,
                own.excess,
                other.excess,
                own.count,
                other.count,
                self.offset,
                self.slope,
                scale,
                shift,
                2.0**lift,
                D=width,
                R=rank,
                VIEWS=other.views,
                SHARED=math.gcd(block.shared, other.views),
                ROWS=block.rows,
                COLS=block.cols,
                PRECISION="ieee" if self.precision == "fp32" else "tf32",
                CENTRED=centred,
                LOGARITHMS=logarithms,
                KNOTS=0 if self.curve is None else len(self.curve),
                ROUNDED_BITS=TF32_BITS if self.precision == "tf32" else 0,
                FUNCTION="exp" if self.function is None else self.function.name,
                num_warps=block.warps,
                # the compiler cannot fetch ahead where a product decides what to fetch
                num_stages=block.stages if self.curve is None else 1,
            )
        if pull is not None and rest is not None:
            pull[0].addr_(rest.sum(0), other.table.mean(0, dtype=torch.float32))
        return total, pull

    def _coefficients(self, lift: float) -> tuple[float, float, bool]:
        """Scale and shift as the kernel takes them, and whether cosines are summed from -1/2."""
        if isinstance(self.function, LogGap):
            return 2 * self.function.eps, 0.0, True
        function = self.function
        temperature = self.temperature if function is None else function.temperature
        rate, centred = math.log2(math.e) / temperature, temperature < SHARP
        if function is None:
            return rate, lift - rate / 2 if centred else lift - rate, centred
        return rate, rate * ((0.5 if centred else 0.0) - function.threshold), centred


def _empty(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    return like.new_empty(shape, dtype=torch.float32)
