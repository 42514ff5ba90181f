r"""What is left once the walks are done, in Triton: the loss of each anchor, and the gradients.

Two small kernels add up the parts that the programs of a walk left, always in the same order.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from muxgcl.kernels.all_pairs import LARGEST

TILE = 4096  # numbers of a table that a program holds
LARGE = tl.constexpr(1e9)  # beside which 1 is nothing in 32 bits


@triton.jit(do_not_specialize=["n", "parts", "step"])
def _loss(
    anchor_ptr,  # [n, d]
    key_ptr,  # [n, d]          the positive of row i is key (i + step) % n
    sum_ptr,  # [parts, n]      S, times lift
    pull_ptr,  # [parts, n, D]  V, times lift, or None
    loss_ptr,  # [n]            out
    whole_ptr,  # [n]           out: W
    push_ptr,  # [n]            out: S / W, the share of the negatives
    d_anchor_ptr,  # [n, d]     out: (V - S p) / W, where V is given
    n,
    d,
    parts,
    step,
    rate,  # 1 / temperature
    extra,  # the logarithm of how often a negative counts
    drop,  # 1 / lift
    D: tl.constexpr,
    ROWS: tl.constexpr,
):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    across = tl.arange(0, D)
    here = row < n
    inside = here[:, None] & (across < d)
    at = row[:, None] * d + across
    match_at = ((row + step) % n)[:, None] * d + across
    anchor = tl.load(anchor_ptr + at, mask=inside, other=0.0).to(tl.float32)
    positive = tl.load(key_ptr + match_at, mask=inside, other=0.0).to(tl.float32)
    sums = tl.zeros([ROWS], dtype=tl.float32)
    pulls = tl.zeros([ROWS, D], dtype=tl.float32)
    for part in range(parts):  # always in this order
        part_row = part * n + row
        sums += tl.load(sum_ptr + part_row, mask=here, other=0.0)
        if pull_ptr is not None:
            pulls += tl.load(pull_ptr + part_row[:, None] * D + across, mask=inside, other=0.0)
    sums *= drop
    pull = (tl.sum(anchor * positive, 1) - 1) * rate - extra  # as if each counted once
    match = tl.exp(pull)
    whole = match + sums
    push = sums / whole
    far = sums >= match * LARGE  # the positive's share is nothing, or was rounded to nothing
    ratio = sums / tl.where(far, 1.0, match)
    more = 1 + ratio
    kept = tl.where(more == 1, 1.0, more - 1)  # of the ratio, which may be small beside 1
    loss = tl.where(more == 1, ratio, tl.log(more) * (ratio / kept))
    loss = tl.where(far, tl.log(whole) - pull, loss)
    tl.store(loss_ptr + row, loss, mask=here)
    tl.store(whole_ptr + row, whole, mask=here)
    tl.store(push_ptr + row, push, mask=here)
    if pull_ptr is not None:
        d_anchor = pulls * (drop / whole)[:, None] - push[:, None] * positive
        tl.store(d_anchor_ptr + at, d_anchor, mask=inside)


@triton.jit(do_not_specialize=["n", "parts", "step"])
def _gradient_of_keys(
    anchor_ptr,  # [n, d]       key j is the positive of row (j - step) % n
    push_ptr,  # [n]            S / W
    pull_ptr,  # [parts, n, D]  the sum over i of e_ij a_i / W_i, times lift
    share_ptr,  # []            the upstream gradient over n tau
    d_key_ptr,  # [n, d]        out
    n,
    d,
    parts,
    step,
    drop,  # 1 / lift
    D: tl.constexpr,
    ROWS: tl.constexpr,
    BOTH: tl.constexpr,  # whether the keys are the anchors, and the pulls those of both roles
):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    across = tl.arange(0, D)
    here = row < n
    inside = here[:, None] & (across < d)
    match = (row + n - step) % n
    anchor = tl.load(anchor_ptr + match[:, None] * d + across, mask=inside, other=0.0)
    push = tl.load(push_ptr + match, mask=here, other=0.0)
    near = push[:, None] * anchor.to(tl.float32)
    if BOTH:
        positive_at = ((row + step) % n)[:, None] * d + across
        positive = tl.load(anchor_ptr + positive_at, mask=inside, other=0.0).to(tl.float32)
        near += tl.load(push_ptr + row, mask=here, other=0.0)[:, None] * positive
    pulls = tl.zeros([ROWS, D], dtype=tl.float32)
    for part in range(parts):  # always in this order
        part_row = part * n + row
        pulls += tl.load(pull_ptr + part_row[:, None] * D + across, mask=inside, other=0.0)
    gradient = (pulls * drop - near) * tl.load(share_ptr)
    at = row[:, None] * d + across
    tl.store(d_key_ptr + at, gradient.to(d_key_ptr.dtype.element_ty), mask=inside)


def losses(
    anchor: Tensor,
    keys: Tensor,
    step: int,
    temperature: float,
    most: float,
    sums: Tensor,
    pulls: Tensor | None = None,
    d_anchor: Tensor | None = None,
    extra: float = 0.0,
) -> Tensor:
    """Loss, W and S / W of every anchor [3, n].

    Args:
        anchor: unit rows.
        keys: as many; the positive of anchor i is key i + `step`.
        step: how many nodes there are.
        temperature: of the exponentials.
        most: what weights were divided by.
        sums: parts of S, from a walk.
        pulls: parts of V, from the same walk.
        d_anchor: where the anchors' gradient goes; that needs the pulls.
        extra: every negative counts `exp(extra)` times.
    """
    n, d = anchor.shape
    width = max(16, triton.next_power_of_2(d))
    found = sums.new_empty((3, n))
    with torch.cuda.device_of(anchor):
        _loss[(triton.cdiv(n, TILE // width),)](
            anchor.contiguous(),
            keys.contiguous(),
            sums,
            pulls,
            *found,
            d_anchor,
            n,
            d,
            len(sums),
            step,
            1 / temperature,
            float(extra),
            most / LARGEST,
            D=width,
            ROWS=TILE // width,
        )
    return found


def gradient_of_keys(
    anchor: Tensor,
    push: Tensor,
    pulls: Tensor,
    share: Tensor,
    step: int,
    lift: float,
    dtype: torch.dtype,
    *,
    both: bool = False,
) -> Tensor:
    """The gradient of every key, or of every row where the keys are the anchors (`both`).

    Args:
        anchor: unit rows.
        push: S / W of every anchor.
        pulls: parts of the keys' pulls, from a walk.
        share: the upstream gradient over n tau, on the device.
        step: how many nodes there are.
        lift: what the pulls come multiplied by.
        dtype: of the gradient.
        both: whether the pulls are those of both roles.
    """
    n, d = anchor.shape
    width = pulls.shape[2]
    out = torch.empty_like(anchor, dtype=dtype)
    with torch.cuda.device_of(anchor):
        _gradient_of_keys[(triton.cdiv(n, TILE // width),)](
            anchor.contiguous(),
            push,
            pulls,
            share,
            out,
            n,
            d,
            len(pulls),
            step,
            1 / lift,
            D=width,
            ROWS=TILE // width,
            BOTH=both,
        )
    return out
