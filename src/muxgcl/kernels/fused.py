r"""Triton twin of `reference.py`: the same functions, without an [n, m] matrix, on a GPU.

With push $e_{ij} = w_{ij} \exp((\langle a_i, b_j\rangle - 1)/\tau)$, forward is one walk over all
pairs (`all_pairs.py`) that keeps the sums $S_i = \sum_j e_{ij}$ and beside them the pulls
$V_i = \sum_j e_{ij} b_j$, [n] and [n, d]. The gradient of anchor i is then $g_i V_i/\tau$, at no
further cost. The gradient of key j, $\sum_i (g_i/\tau)\, e_{ij} a_i$, is one more walk with the
roles swapped.

`contrast` knows more: the positive $p_i$ of anchor i is a key, and its gradients are those of one
number, so all that a row needs follows from its own sums and pulls. With
$x_i = e^{(\langle a_i, p_i\rangle - 1)/\tau}$ for the positive and $W_i = x_i + S_i$,

$$\ell_i = \log W_i/x_i, \qquad
n\tau\,\partial_{a_i} = (V_i - S_i p_i)/W_i, \quad
n\tau\,\partial_{p_i} = -S_i a_i/W_i, \quad
n\tau\,\partial_{b_j} = \textstyle\sum_i e_{ij} a_i/W_i$$

and two small kernels make the gradients out of the parts that the two walks left.

`pair_sum` adds up another function of the cosine: the same walks, with its slope for the push.
"""

from dataclasses import replace
from typing import Any, get_args

import torch
from torch import Tensor
from torch.nn.functional import pad

from muxgcl.errors import UserError

try:
    import triton
except ModuleNotFoundError as missing:
    raise UserError("the fused backend needs Triton, and it is not installed") from missing

from muxgcl.kernels.all_pairs import LARGEST, TF32_BITS, AllPairs, Side
from muxgcl.kernels.blocks import Precision
from muxgcl.kernels.epilogue import gradient_of_keys, losses
from muxgcl.kernels.pair_function import Exponential, LogGap, PairFunction, Sigmoid
from muxgcl.kernels.pair_weight import Ids, PairWeight, check_nodes
from muxgcl.shapes import Candidates, Nodes, PerNode, Scalar

HALF = {"fp16": torch.float16, "bf16": torch.bfloat16}
PRECISION: Precision = "fp16"  # of products, where tables come in 32 bits
WIDEST = 1024  # numbers in a row
NARROW, FEW = 16, 1024  # numbers in a row, and rows: rounding does not even out, 32 bits are cheap


def _pairs(
    anchor: Tensor,
    keys: Tensor,
    weight: PairWeight | None,
    temperature: float,
    ids: Ids,
    precision: Precision,
) -> AllPairs:
    """Check what came, and bring all pairs into the kernel's form."""
    if precision not in get_args(Precision):
        raise UserError(f"precision must be one of {get_args(Precision)}, got {precision!r}")
    if not anchor.is_cuda and not triton.knobs.runtime.interpret:
        raise UserError(f"the fused backend needs a CUDA device, got tensors on {anchor.device}")
    if anchor.shape[1] <= NARROW or max(len(anchor), len(keys)) <= FEW:
        precision = "fp32"
    check_nodes(len(anchor), len(keys), ids)
    nodes = ids if isinstance(ids, int) else len(anchor)
    stacked = not isinstance(ids, tuple) and len(anchor) % nodes == 0 and len(keys) % nodes == 0
    if weight is not None:
        stacked = stacked and len(weight.rows) == nodes and len(weight.cols) == nodes

    def side(rows: Tensor, weights: Tensor | None, given: Tensor | None) -> Side:
        if stacked:
            form = None if weights is None else _table(weights, precision)
            return Side(_table(rows, precision), form, None, nodes, len(rows) // nodes)
        order = torch.arange(len(rows), device=rows.device)
        node = order % nodes if given is None else given.contiguous()
        form = None if weights is None else _table(weights[order % len(weights)], precision)
        return Side(_table(rows, precision), form, node, len(rows), 1)

    of_anchor, of_key = ids if isinstance(ids, tuple) else (None, None)
    rows, cols = (None, None) if weight is None else (weight.rows, weight.cols)
    of_anchors = side(anchor, rows, of_anchor)
    same = anchor is keys and rows is cols and of_anchor is of_key
    sides = of_anchors, of_anchors if same else side(keys, cols, of_key)
    if weight is None:
        return AllPairs(*sides, 1.0, 0.0, None, temperature, precision)
    if weight.curve is not None:
        curve = weight.curve.float().contiguous()
        return AllPairs(*sides, 1.0, 0.0, curve, temperature, precision)
    line = weight.offset / weight.most, weight.slope / weight.most
    return AllPairs(*sides, *line, None, temperature, precision, most=weight.most)


def _table(rows: Tensor, precision: Precision) -> Tensor:
    """Rows in the kernel's precision, padded with zeros to a power of two.

    Rows that come in 16 bits stay so, unless 32 are wanted.
    """
    width = max(16, triton.next_power_of_2(rows.shape[1]))
    if width > WIDEST:
        raise UserError(
            f"the fused backend takes rows of up to {WIDEST} numbers, got {rows.shape[1]}"
        )
    if precision == "fp32" or rows.dtype not in HALF.values():
        rows = rows.to(HALF.get(precision, torch.float32))
    if precision == "tf32" and rows.dtype == torch.float32:
        bits = rows.view(torch.int32) + (1 << TF32_BITS - 1)
        rows = (bits & -(1 << TF32_BITS)).view(torch.float32)
    if width > rows.shape[1]:
        rows = pad(rows, (0, width - rows.shape[1]))
    return rows.contiguous()


class _Contrast(torch.autograd.Function):
    """`d_anchor` is ready after forward, up to the one upstream number."""

    @staticmethod
    def forward(
        ctx: Any,
        anchor: Tensor,
        keys: Tensor,
        weight: PairWeight | None,
        temperature: float,
        nodes: int | None,
        precision: Precision,
        extra: float,
    ) -> Tensor:
        pairs = _pairs(anchor, keys, weight, temperature, nodes, precision)
        sums, pulls = pairs.forward()  # [parts, n], [parts, n, D]
        d_anchor = torch.empty_like(anchor, dtype=torch.float32)
        step = nodes or len(anchor)
        found = losses(anchor, keys, step, temperature, pairs.most, sums, pulls, d_anchor, extra)
        loss, whole, push = found
        ctx.save_for_backward(anchor, whole, push, d_anchor)
        ctx.pairs, ctx.step, ctx.dtype = pairs, step, keys.dtype
        return loss.mean()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        anchor, whole, push, d_anchor = ctx.saved_tensors
        share = grads[0] / (len(anchor) * ctx.pairs.temperature)
        d_keys = None
        if ctx.needs_input_grad[1]:
            # no push exceeds the whole, so LARGEST / whole is the most that it can be lifted by
            pulls = ctx.pairs.backward((LARGEST / whole).log2(), logarithms=True)
            lift = LARGEST / ctx.pairs.most
            d_keys = gradient_of_keys(anchor, push, pulls, share, ctx.step, lift, ctx.dtype)
        return (d_anchor * share).to(anchor.dtype), d_keys, *[None] * 5


class _SelfContrast(torch.autograd.Function):
    r"""Anchors that are their own keys, as in GRACE: pushes are symmetric, and one walk less does.

    $$n\tau\,\partial_{a_i} = \textstyle\sum_j e_{ij} (1/W_i + 1/W_j)\, a_j
      - (S_i/W_i)\, p_i - (S_{i'}/W_{i'})\, a_{i'}, \qquad p_{i'} = a_i$$

    so forward needs the sums alone, three products a pair in all instead of four.
    """

    @staticmethod
    def forward(
        ctx: Any,
        anchor: Tensor,
        weight: PairWeight | None,
        temperature: float,
        nodes: int | None,
        precision: Precision,
        extra: float,
    ) -> Tensor:
        pairs = _pairs(anchor, anchor, weight, temperature, nodes, precision)
        step = nodes or len(anchor)
        sums, most = pairs.sums(), pairs.most
        loss, whole, push = losses(anchor, anchor, step, temperature, most, sums, extra=extra)
        ctx.save_for_backward(anchor, whole, push)
        ctx.pairs, ctx.step = pairs, step
        return loss.mean()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        anchor, whole, push = ctx.saved_tensors
        share = grads[0] / (len(anchor) * ctx.pairs.temperature)
        lift = LARGEST / 2  # no push exceeds either whole, and there are two of them
        pulls = ctx.pairs.backward(lift / whole, own_too=True)
        rest = ctx.step, lift / ctx.pairs.most, anchor.dtype
        return gradient_of_keys(anchor, push, pulls, share, *rest, both=True), *[None] * 5


class _NegativeSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        anchor: Tensor,
        keys: Tensor,
        weight: PairWeight | None,
        temperature: float,
        *settings: Any,
    ) -> Tensor:
        ctx.pairs = _pairs(anchor, keys, weight, temperature, *settings)
        parts, pulls = ctx.pairs.forward()
        sums = parts.sum(0) * (ctx.pairs.most / LARGEST)
        ctx.save_for_backward(anchor, keys, sums, _total(pulls, anchor))
        return sums

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        anchor, keys, sums, pulls = ctx.saved_tensors
        upstream = grads[0] / ctx.pairs.temperature
        most = ctx.pairs.most
        d_anchor = ((upstream * (most / LARGEST))[:, None] * pulls).to(anchor.dtype)
        d_keys = None
        if ctx.needs_input_grad[1]:
            # no push exceeds its row's sum; the largest stays on the device, nobody waits for it
            lift = LARGEST / (upstream * sums).abs().amax().clamp(min=1e-30)
            pulls = ctx.pairs.backward(upstream * lift)
            d_keys = (_total(pulls, keys) * (most / lift)).to(keys.dtype)
        return d_anchor, d_keys, None, None, None, None


def _pairs_of(
    anchor: Tensor, keys: Tensor, function: LogGap | Sigmoid, ids: Ids, precision: Precision
) -> AllPairs:
    """All pairs in the kernel's form, for a function of the cosine other than the push."""
    pairs = _pairs(anchor, keys, None, 1.0, ids, precision)
    anchors, others = pairs.anchors, pairs.keys
    if isinstance(function, LogGap) and pairs.precision != "fp32":
        anchors = replace(anchors, excess=_excess(anchors.table, anchor))
        others = anchors if anchor is keys else replace(others, excess=_excess(others.table, keys))
    return replace(pairs, anchors=anchors, keys=others, function=function)


def _excess(rounded: Tensor, rows: Tensor) -> Tensor:
    """Half of what rounding added to the squared length of every row."""
    before, after = (table.float().square().sum(1) for table in (rows, rounded))
    return (after - before) / 2


class _PairSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, anchor: Tensor, keys: Tensor, function: LogGap | Sigmoid, *settings: Any
    ) -> Tensor:
        ctx.pairs = _pairs_of(anchor, keys, function, *settings)
        parts, pulls = ctx.pairs.forward()
        ctx.save_for_backward(anchor, keys, _total(pulls, anchor))
        return parts.sum(0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        anchor, keys, pulls = ctx.saved_tensors
        steepest, upstream = ctx.pairs.function.steepest, grads[0]
        d_anchor = ((upstream * (steepest / LARGEST))[:, None] * pulls).to(anchor.dtype)
        d_keys = None
        if ctx.needs_input_grad[1]:
            lift = LARGEST / upstream.abs().amax().clamp(min=1e-30)
            pulls = ctx.pairs.backward(upstream * lift)
            d_keys = (_total(pulls, keys) * (steepest / lift)).to(keys.dtype)
        return d_anchor, d_keys, None, None, None


class _SelfPairSum(torch.autograd.Function):
    r"""Anchors that are their own keys: $\partial_{a_i} = \sum_j (g_i + g_j)\, f'_{ij} a_j$."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, function: LogGap | Sigmoid, *settings: Any) -> Tensor:
        ctx.pairs = _pairs_of(anchor, anchor, function, *settings)
        ctx.save_for_backward(anchor)
        return ctx.pairs.sums().sum(0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (anchor,), upstream = ctx.saved_tensors, grads[0]
        lift = LARGEST / 2 / upstream.abs().amax().clamp(min=1e-30)  # there are two factors
        pulls = ctx.pairs.backward(upstream * lift, own_too=True)
        gradient = _total(pulls, anchor) * (ctx.pairs.function.steepest / lift)
        return gradient.to(anchor.dtype), None, None, None


def _total(parts: Tensor, like: Tensor) -> Tensor:
    """The sum of the parts, without the padding."""
    total = parts[0] if len(parts) == 1 else parts.sum(0)
    return total[:, : like.shape[1]]


def negative_sum(
    anchor: Nodes,
    keys: Candidates,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: Ids = None,
    precision: Precision | None = None,
) -> PerNode:
    """Fused twin of `reference.negative_sum`, for unit rows of up to 1024 numbers."""
    return _NegativeSum.apply(anchor, keys, weight, temperature, nodes, precision or PRECISION)


def pair_sum(
    anchor: Nodes,
    keys: Candidates,
    function: PairFunction,
    *,
    nodes: Ids = None,
    precision: Precision | None = None,
) -> PerNode:
    """Fused twin of `reference.pair_sum`, for unit rows of up to 1024 numbers."""
    if isinstance(function, Exponential):
        how: dict[str, Any] = {"temperature": function.temperature, "precision": precision}
        return negative_sum(anchor, keys, nodes=nodes, **how)
    how_exact = precision or PRECISION
    if anchor is keys and not isinstance(nodes, tuple):
        return _SelfPairSum.apply(anchor, function, nodes, how_exact)
    return _PairSum.apply(anchor, keys, function, nodes, how_exact)


def contrast(
    anchor: Nodes,
    keys: Nodes,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: int | None = None,
    precision: Precision | None = None,
    extra: float = 0.0,
) -> Scalar:
    """Fused twin of `reference.contrast`, for unit rows of up to 1024 numbers."""
    precision = precision or PRECISION
    if anchor is keys and (weight is None or weight.rows is weight.cols):
        return _SelfContrast.apply(anchor, weight, temperature, nodes, precision, extra)
    return _Contrast.apply(anchor, keys, weight, temperature, nodes, precision, extra)
