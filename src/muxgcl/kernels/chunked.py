"""The definitions in row tiles: any device, memory of one tile.

A tile holds a block of nodes (all their stacked anchors) against all keys. It therefore knows each
anchor's whole sum at once, and `contrast` takes loss and all gradients from one pass:

    e = w * exp((a b' - 1) / t)      S = e 1          c = 1 / (t n (S + e^pos))
    d anchor = c * (e b)             d keys = e' (c * a)

Where the temperature is so low that a whole row of e may underflow, each row's largest exponent,
that of the positive included, is taken off first: loss and gradients are quotients of sums.

`negative_sum` cannot know its upstream gradient in forward. It keeps V = e b, since then
d anchor = g V / t costs nothing, and recomputes the tiles once for d keys. `pair_sum` does the same
with f(a b') for the sums and f'(a b') for V.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from muxgcl.kernels.pair_function import PairFunction
from muxgcl.kernels.pair_weight import Ids, PairWeight, check_nodes
from muxgcl.kernels.rounded import is_asked
from muxgcl.shapes import Candidates, Nodes, PerNode, Scalar

TILE_BYTES = 4 << 20  # a tile that stays in the second-level cache; measured best on 2 cores
GPU_TILE_BYTES = 256 << 20  # enough rows to fill a GPU
LEAST_ROUNDED = 0.05  # a temperature from which exp(2 / t) and sums of it are far from overflow
Block = tuple[Tensor, Tensor]


class _Tiles:
    """All tiles of one contrast: `for rows, push in tiles` gives [views * b] and [., m]."""

    def __init__(
        self,
        anchor: Tensor,
        keys: Tensor,
        weight: PairWeight | None,
        temperature: float,
        ids: Ids,
        floor: Tensor | None = None,
    ) -> None:
        """With a `floor`, exponents lose their row's largest (at least the floor) where it is low.

        What a row lost is in `shift`.
        """
        check_nodes(len(anchor), len(keys), ids)
        nodes = ids if isinstance(ids, int) else len(anchor)
        if isinstance(ids, int) and len(anchor) % nodes:  # no whole views: look at every node
            order = torch.arange(max(len(anchor), len(keys)), device=anchor.device) % nodes
            ids, nodes = (order[: len(anchor)], order[: len(keys)]), len(anchor)
        if weight is not None and (len(weight.rows) != nodes or len(keys) % len(weight.cols)):
            weight = weight.expanded(nodes, len(keys))
        self.anchor, self.keys, self.weight, self.ids = anchor, keys, weight, ids
        self.temperature, self.nodes = temperature, nodes
        lowest = -math.log(torch.finfo(anchor.dtype).tiny)
        self.floor = floor if 2 / temperature > lowest else None  # exponents begin at -2 / t
        self.shift = anchor.new_zeros(len(anchor))
        self.views = len(anchor) // self.nodes
        budget = GPU_TILE_BYTES if anchor.is_cuda else TILE_BYTES
        self.block = max(1, budget // (len(keys) * self.views * anchor.element_size()))

    def __iter__(self) -> Iterator[Block]:
        for rows, start, stop in self.blocks():
            yield rows, self.push(rows, start, stop)

    def blocks(self) -> Iterator[tuple[Tensor, int, int]]:
        """The anchors of each tile, and the nodes `start:stop` they belong to."""
        steps = torch.arange(self.views, device=self.anchor.device)[:, None] * self.nodes
        for start in range(0, self.nodes, self.block):
            stop = min(start + self.block, self.nodes)
            yield (
                (torch.arange(start, stop, device=self.anchor.device) + steps).flatten(),
                start,
                stop,
            )

    def push(self, rows: Tensor, start: int, stop: int) -> Tensor:
        """Weight times exp((cosine - 1) / temperature), 0 where a key is the anchor's own node."""
        if self.floor is not None:
            return self._shifted(rows, start, stop, self.floor)
        push = self.exponentials(rows)  # [views * b, m]
        if self.weight is not None:
            tile = self.weight.tile(start, stop)  # [b, nodes of the keys]
            push.view(self.views, stop - start, -1, tile.shape[1]).mul_(tile[None, :, None])
        return self.without_own(push, rows, start, stop)

    def exponentials(self, rows: Tensor) -> Tensor:
        """exp((cosine - 1) / temperature)."""
        return torch.addmm(
            self.anchor.new_full((), -1 / self.temperature),
            self.anchor[rows],
            self.keys.T,
            alpha=1 / self.temperature,
        ).exp_()

    def pulled(
        self, push: Tensor, sums: Tensor, share: Tensor, near: Tensor, d_keys: Tensor
    ) -> Tensor:
        """Each row's share of `push` times the keys; times `near`, it is added to `d_keys`."""
        push.mul_(share[:, None])
        self.add_to(d_keys, push, near)
        return self.times_keys(push, sums)

    def times_keys(self, push: Tensor, sums: Tensor) -> Tensor:
        """`push` times the keys, given its sums over them."""
        return push @ self.keys

    def add_to(self, d_keys: Tensor, push: Tensor, near: Tensor) -> None:
        """Add the transpose of `push` times a table of these rows."""
        d_keys.addmm_(push.T, near)

    def _shifted(self, rows: Tensor, start: int, stop: int, floor: Tensor) -> Tensor:
        """What `push` returns, each row divided by the exponential of its shift."""
        exponent = (self.anchor[rows] @ self.keys.T - 1) / self.temperature
        if self.weight is not None:
            tile = self.weight.tile(start, stop).log_()
            exponent.view(self.views, stop - start, -1, tile.shape[1]).add_(tile[None, :, None])
        self.without_own(exponent, rows, start, stop, fill=-torch.inf)
        self.shift[rows] = torch.maximum(exponent.amax(1), floor[rows])
        return exponent.sub_(self.shift[rows, None]).exp_()

    def without_own(
        self, tile: Tensor, rows: Tensor, start: int, stop: int, fill: float = 0.0
    ) -> Tensor:
        """The tile, in place, with `fill` where a key is the anchor's own node."""
        if isinstance(self.ids, tuple):
            return tile.masked_fill_(self.ids[0][rows, None] == self.ids[1], fill)
        block = stop - start
        for first in range(start, tile.shape[1], self.nodes):  # a diagonal in every key view
            length = min(block, tile.shape[1] - first)
            for view in range(self.views):
                tile[view * block : view * block + length, first:].diagonal().fill_(fill)
        return tile


class _RoundedTiles(_Tiles):
    """Tiles in bfloat16, of keys less their mean c: <a, b> = <a, b - c> + <a, c>.

    Where all cosines are large, as they may be in the beginning, their differences keep 8 bits.
    """

    def __init__(
        self,
        anchor: Tensor,
        keys: Tensor,
        weight: PairWeight | None,
        temperature: float,
        ids: Ids,
    ) -> None:
        if weight is not None and weight.curve is None:
            weight = replace(weight, rows=weight.rows.bfloat16(), cols=weight.cols.bfloat16())
        self.centre = keys.mean(0)
        scaled, rest = anchor / temperature, keys - self.centre
        super().__init__(scaled.bfloat16(), rest.bfloat16(), weight, temperature, ids)
        self.shift = scaled @ self.centre - 1 / temperature

    def exponentials(self, rows: Tensor) -> Tensor:
        """exp((cosine - 1) / temperature - shift)."""
        return (self.anchor[rows] @ self.keys.T).exp_()

    def pulled(
        self, push: Tensor, sums: Tensor, share: Tensor, near: Tensor, d_keys: Tensor
    ) -> Tensor:
        """`_Tiles.pulled`, from products whose factors and results have 16 bits."""
        share = share[:, None]
        self.add_to(d_keys, push, share * near)
        return share * self.times_keys(push, sums)

    def times_keys(self, push: Tensor, sums: Tensor) -> Tensor:
        """`push` times the keys, their mean included."""
        return push @ self.keys + sums[:, None] * self.centre

    def add_to(self, d_keys: Tensor, push: Tensor, near: Tensor) -> None:
        """Add the transpose of `push` times a table that is rounded first."""
        d_keys += push.T @ near.bfloat16()


def _rounds(anchor: Tensor, temperature: float) -> bool:
    return is_asked(anchor) and temperature >= LEAST_ROUNDED


class _NegativeSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, anchor: Tensor, keys: Tensor, weight: Any, temperature: float, ids: Ids
    ) -> Tensor:
        kind = _RoundedTiles if _rounds(anchor, temperature) else _Tiles
        tiles = kind(anchor, keys, weight, temperature, ids)
        sums, pulls = anchor.new_empty(len(anchor)), torch.empty_like(anchor)
        for rows, push in tiles:
            sums[rows] = push.sum(1, dtype=anchor.dtype)
            pulls[rows] = tiles.times_keys(push, sums[rows])
        lost = tiles.shift.exp()  # what each row was divided by
        ctx.save_for_backward(anchor, pulls.mul_(lost[:, None]), lost)
        ctx.tiles = tiles
        return sums.mul_(lost)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        anchor, pulls, lost = ctx.saved_tensors
        upstream = grads[0] / ctx.tiles.temperature
        near = (upstream * lost)[:, None] * anchor
        d_keys = anchor.new_zeros(ctx.tiles.keys.shape)
        if ctx.needs_input_grad[1]:
            for rows, push in ctx.tiles:
                ctx.tiles.add_to(d_keys, push, near[rows])
        return upstream[:, None] * pulls, d_keys, None, None, None


class _PairSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, keys: Tensor, function: PairFunction, ids: Ids) -> Tensor:
        tiles = _Tiles(anchor, keys, None, 1.0, ids)
        sums, pulls = anchor.new_empty(len(anchor)), torch.empty_like(anchor)
        for block in tiles.blocks():
            rows = block[0]
            cosine = anchor[rows] @ keys.T
            sums[rows] = tiles.without_own(function.value(cosine), *block).sum(1)
            pulls[rows] = tiles.without_own(function.slope(cosine), *block) @ keys
        ctx.save_for_backward(pulls)
        ctx.tiles, ctx.function = tiles, function
        return sums

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (upstream,), (pulls,) = grads, ctx.saved_tensors
        tiles = ctx.tiles
        d_keys = torch.zeros_like(tiles.keys)
        if ctx.needs_input_grad[1]:
            for block in tiles.blocks():
                rows = block[0]
                slope = ctx.function.slope(tiles.anchor[rows] @ tiles.keys.T)
                slope = tiles.without_own(slope, *block)
                d_keys.addmm_(slope.T, upstream[rows, None] * tiles.anchor[rows])
        return upstream[:, None] * pulls, d_keys, None, None


class _Contrast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        anchor: Tensor,
        keys: Tensor,
        weight: Any,
        t: float,
        nodes: int | None,
        extra: float,
    ) -> Tensor:
        step = nodes or len(anchor)
        positive = keys.roll(-step, 0)
        # log(e^pull + S e^extra) - pull depends on the difference of pull and extra alone
        pull = ((anchor * positive).sum(1) - 1) / t - extra
        d_anchor, d_positive = torch.empty_like(anchor), torch.empty_like(positive)
        d_keys = torch.zeros_like(keys)
        loss = anchor.new_zeros(())
        tiles = (
            _RoundedTiles(anchor, keys, weight, t, nodes)
            if _rounds(anchor, t)
            else _Tiles(anchor, keys, weight, t, nodes, floor=pull)
        )
        for rows, push in tiles:
            match = (pull[rows] - tiles.shift[rows]).exp()
            sums = push.sum(1, dtype=anchor.dtype)
            whole = sums + match
            share = (1 / (t * len(anchor))) / whole  # of the gradient, per unit of push
            excess = (match * share - 1 / (t * len(anchor)))[:, None]
            near, far = anchor[rows], positive[rows]
            loss += (whole.log() + tiles.shift[rows] - pull[rows]).sum()
            d_anchor[rows] = excess * far + tiles.pulled(push, sums, share, near, d_keys)
            d_positive[rows] = excess * near
        ctx.save_for_backward(d_anchor, d_keys.add_(d_positive.roll(step, 0)))
        return loss / len(anchor)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return (*(grads[0] * d for d in ctx.saved_tensors), None, None, None, None)


def negative_sum(
    anchor: Nodes,
    keys: Candidates,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: Ids = None,
) -> PerNode:
    """Row-tiled twin of `reference.negative_sum`."""
    found: Tensor = _NegativeSum.apply(anchor, keys, weight, temperature, nodes)
    return found


def pair_sum(
    anchor: Nodes, keys: Candidates, function: PairFunction, *, nodes: Ids = None
) -> PerNode:
    """Row-tiled twin of `reference.pair_sum`."""
    found: Tensor = _PairSum.apply(anchor, keys, function, nodes)
    return found


def contrast(
    anchor: Nodes,
    keys: Nodes,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: int | None = None,
    extra: float = 0.0,
) -> Scalar:
    """Row-tiled twin of `reference.contrast`; forward already holds every gradient."""
    found: Tensor = _Contrast.apply(anchor, keys, weight, temperature, nodes, extra)
    return found
