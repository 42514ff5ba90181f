r"""A contrast over a sample of the nodes: B anchors against M keys instead of all N against all N.

The nodes of a step are the first of one random order: the first B are its anchors, the first M its
keys. An anchor i then meets $m_i = M - [i \text{ is a key}]$ other nodes, drawn uniformly without
replacement from the N - 1 there are, so

$$\hat S_i = \frac{N - 1}{m_i} \sum_{j \in \text{keys},\, j \ne i} e_{ij}, \qquad
\mathbb E\,\hat S_i = S_i$$

and the same holds for its gradient. The loss is the logarithm of $x_i + \hat S_i$, which is not
linear: its expectation lies below the exact loss by about
$\mathrm{Var}(\hat S_i) / 2 (x_i + S_i)^2$, which falls as 1/M.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.kernels.pair_function import PairFunction
from muxgcl.kernels.pair_weight import PairWeight
from muxgcl.kernels.reference import info_nce
from muxgcl.shapes import Candidates, NodeIndex, Nodes, Scalar

PerAnchor = Float[Tensor, " b"]  # of the nodes at hand, some are anchors
Functions = Callable[[str], Callable[..., Tensor]]  # a backend's functions, by name


@runtime_checkable
class Selection(Protocol):
    """Nodes that this process contrasts at one step, and how."""

    def take(self, table: Nodes) -> Candidates:
        """Their rows, in every view that is stacked in the table."""

    def rows(self, views: int) -> NodeIndex:
        """Where these rows are in a table of so many views."""

    def contrast(
        self,
        functions: Functions,
        anchor: Nodes,
        keys: Nodes,
        weight: PairWeight | None,
        *,
        temperature: float,
    ) -> Scalar:
        """This process's share of the loss, from tables that hold their rows."""


@runtime_checkable
class Chooser(Protocol):
    """What decides on the nodes of a step."""

    def draw(self, nodes: int, device: torch.device | str = "cpu") -> Selection | None:
        """The nodes of the next step; None where they are all, and all here."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many nodes a step contrasts, and with how many; None is all of them."""

    anchors: int | None = None
    keys: int | None = None

    def __post_init__(self) -> None:
        if self.anchors is not None and self.anchors < 1:
            raise UserError(f"anchors must be at least 1, got {self.anchors}")
        if self.keys is not None and self.keys < 2:
            raise UserError(
                f"negatives (keys) must be at least 2: one may be the anchor; got {self.keys}"
            )

    def __bool__(self) -> bool:
        return self.anchors is not None or self.keys is not None

    def leaves_out(self, nodes: int) -> bool:
        """Whether a step on so many nodes contrasts fewer than all of them."""
        return min(self.anchors or nodes, self.keys or nodes) < nodes

    def draw(self, nodes: int, device: torch.device | str = "cpu") -> "Sample | None":
        """The nodes of one step, from torch's random numbers; None where it is all of them."""
        if not self.leaves_out(nodes):
            return None
        anchors, keys = min(self.anchors or nodes, nodes), min(self.keys or nodes, nodes)
        # a sorted topk is a random order; randperm waits for the device, this can be captured.
        # In 64 bits, where ties are rare for any number of nodes
        chance = torch.rand(nodes, device=device, dtype=torch.float64)
        return Sample(chance.topk(max(anchors, keys)).indices, anchors, keys, nodes)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The nodes of one step: the first `anchors` are its anchors, the first `keys` its keys.

    Of several workers each has some of the anchors, from `begin` to `end`.
    """

    nodes: NodeIndex
    anchors: int
    keys: int
    of: int  # how many nodes there are
    begin: int = 0
    end: int | None = None

    def part(self, begin: int, end: int) -> "Sample":
        """The same sample, of which only these anchors count in the loss."""
        return replace(self, begin=begin, end=end)

    @property
    def own(self) -> tuple[int, int]:
        """The anchors that count in the loss."""
        return self.begin, self.anchors if self.end is None else self.end

    def take(self, table: Nodes) -> Candidates:
        """The rows of these nodes, in every view that is stacked in the table."""
        views: Tensor = table.unflatten(0, (-1, self.of))
        return views[:, self.nodes].flatten(0, 1)

    def rows(self, views: int) -> NodeIndex:
        """Where these rows are in a table of so many views."""
        steps = torch.arange(views, device=self.nodes.device)[:, None] * self.of
        return (self.nodes + steps).flatten()

    def contrast(
        self,
        functions: Functions,
        anchor: Nodes,
        keys: Nodes,
        weight: PairWeight | None,
        *,
        temperature: float,
    ) -> Scalar:
        """`contrast`, estimated from tables that hold the rows of these nodes."""
        # all anchors, and as many as keys: a small exact contrast whose negatives count for more
        if self.anchors == self.keys and self.own == (0, self.anchors):
            return functions("contrast")(
                anchor,
                keys,
                weight,
                temperature=temperature,
                nodes=self.keys,
                extra=log((self.of - 1) / (self.keys - 1)),
            )
        negatives = self.negative_sum(functions, anchor, keys, weight, temperature=temperature)
        positive = keys.roll(-len(self.nodes), 0)
        near, far = self.take_own(anchor), self.take_own(positive)
        losses = info_nce(near, far, negatives, temperature=temperature)
        return losses.sum() / (len(anchor) // len(self.nodes) * self.anchors)

    def negative_sum(
        self,
        functions: Functions,
        anchor: Nodes,
        keys: Candidates,
        weight: PairWeight | None,
        *,
        temperature: float,
    ) -> PerAnchor:
        """`negative_sum` of the anchors, estimated from tables with the rows of these nodes."""
        if weight is not None:
            weight = weight.between(self.own, (0, self.keys))
        sums = partial(functions("negative_sum"), weight=weight, temperature=temperature)
        return self._estimate(sums, anchor, keys)

    def pair_sum(
        self, functions: Functions, anchor: Nodes, keys: Candidates, function: PairFunction
    ) -> PerAnchor:
        """`pair_sum` of the anchors, estimated from tables with the rows of these nodes."""
        return self._estimate(partial(functions("pair_sum"), function=function), anchor, keys)

    def _estimate(self, sums: Callable[..., Tensor], anchor: Nodes, keys: Candidates) -> PerAnchor:
        """The sums over the keys, each times how many nodes a key stands for."""
        place = torch.arange(len(self.nodes), device=anchor.device)
        of_anchor, of_key = place[slice(*self.own)], place[: self.keys]
        views = len(anchor) // len(place), len(keys) // len(place)
        met = sums(
            self.take_own(anchor),
            self._some(keys, 0, self.keys),
            nodes=(of_anchor.repeat(views[0]), of_key.repeat(views[1])),
        )
        return met * self.lift.to(met.dtype).repeat(views[0])

    @property
    def lift(self) -> PerAnchor:
        """(N - 1) / m_i: what a key counts in the sum of each anchor."""
        place = torch.arange(*self.own, device=self.nodes.device)
        others: Tensor = self.keys - (place < self.keys).double()  # m_i
        return (self.of - 1) / others

    @property
    def anchor_nodes(self) -> NodeIndex:
        """The nodes of the anchors that count."""
        return self.nodes[slice(*self.own)]

    def is_key(self, nodes: NodeIndex) -> Bool[Tensor, " n"]:
        """Which of these nodes are keys."""
        flags = torch.zeros(self.of, dtype=torch.bool, device=self.nodes.device)
        return flags.index_fill_(0, self.nodes[: self.keys], True)[nodes]

    def take_own(self, table: Nodes) -> Candidates:
        """The rows of the anchors that count, out of those of the sample."""
        return self._some(table, *self.own)

    def _some(self, table: Nodes, begin: int, end: int) -> Candidates:
        """These rows of every view."""
        views: Tensor = table.unflatten(0, (-1, len(self.nodes)))
        return views[:, begin:end].flatten(0, 1)


ALL = Sampling()


def taken(table: Nodes, sample: Selection | None) -> Candidates:
    """The rows of the sample's nodes; without one, all rows."""
    return table if sample is None else sample.take(table)
