r"""Random walks over a graph, all at once: DeepWalk's, and Node2Vec's with return and in-out.

Having come from t to v, a second-order walk goes on to the neighbour x of v with probability
proportional to $\alpha(t, x)\, w_{vx}$, where $\alpha$ is $1/p$ if x = t, 1 if x is a neighbour of
t, and $1/q$ otherwise (Grover and Leskovec 2016, <https://arxiv.org/abs/1607.00653>). The usual
tables hold these for every pair of adjacent edges; here a neighbour is proposed by its edge weight
and accepted with probability $\alpha / \max \alpha$, which needs no table and is exact. Static
walks make so many proposals at once that all are rejected once in 10^9 steps at most: a GPU then
need not be asked whether another round is wanted.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from muxgcl.graph import Adjacency
from muxgcl.sparse import entry_number

Steps = Int[Tensor, " *w"]  # one node a walk
Walks = Int[Tensor, "w t"]
MISS = 1e-9  # how likely all proposals that are made at once may be rejected
MOST_AT_ONCE = 512  # proposals; with fewer accepted ones they are made in rounds


@dataclass(frozen=True, slots=True, eq=False)
class WalkGraph:
    """The edges as a walker needs them: no self-loops, and only those that weigh something."""

    first: Int[Tensor, " n"]  # where a node's edges begin
    degree: Int[Tensor, " n"]
    target: Int[Tensor, " e"]
    key: Int[Tensor, " e"]  # source * n + target, ascending: what a binary search finds an edge by
    mass: Float[Tensor, " e+1"] | None  # running sum of the weights; None where all are equal

    @classmethod
    def of(cls, adjacency: Adjacency) -> Self:
        """Build it from an adjacency: positive weights, no self-loops."""
        keep = ~adjacency.loop & (adjacency.weight > 0)
        source, target = adjacency.row[keep], adjacency.col[keep]
        weight = adjacency.weight[keep].double()  # float32 loses track of a long running sum
        degree = torch.bincount(source, minlength=adjacency.nodes)
        equal = len(weight) == 0 or bool((weight == weight[0]).all())
        return cls(
            first=degree.cumsum(0) - degree,
            degree=degree,
            target=target,
            key=entry_number(source, target, adjacency.nodes),
            mass=None if equal else torch.cat([weight.new_zeros(1), weight.cumsum(0)]),
        )

    @property
    def linked(self) -> Int[Tensor, " m"]:
        """The nodes that have somewhere to go."""
        return self.degree.nonzero().squeeze(1)

    def step(self, here: Steps) -> Steps:
        """A neighbour of each node, drawn by edge weight; a node without any stays."""
        if len(self.target) == 0:
            return here
        first, degree = self.first[here], self.degree[here]
        chance = torch.rand(here.shape, dtype=torch.float64, device=here.device)
        last = (first + degree - 1).clamp(min=0)  # rounding must not lead into the next row
        if self.mass is None:
            edge = first + (chance * degree).long()
        else:
            low, high = self.mass[first], self.mass[first + degree]
            edge = torch.searchsorted(self.mass, low + chance * (high - low), right=True) - 1
        return torch.where(degree > 0, self.target[edge.clamp(min=first).clamp(max=last)], here)

    def adjacent(self, source: Steps, target: Steps) -> Bool[Tensor, " *w"]:
        """Whether there is an edge."""
        return contains(self.key, source * len(self.degree) + target)

    def biased_step(self, before: Steps, here: Steps, p: float, q: float) -> Steps:
        """A neighbour of `here` for each walk that came from `before`, by rejection."""
        there = self.step(here)
        # nothing to choose with one neighbour or none
        open_walks = (self.degree[here] > 1).nonzero().squeeze(1)
        while len(open_walks):
            accepted = self._accepts(before[open_walks], there[open_walks], p, q)
            open_walks = open_walks[~accepted]
            there[open_walks] = self.step(here[open_walks])
        return there

    def at_once(self, p: float, q: float) -> int | None:
        """How many proposals are enough for a step; None if that would be too many."""
        most, back, away = max(1 / p, 1.0, 1 / q), 1 / p, min(1.0, 1 / q)
        # at worst one of two neighbours is the way back, and edge weights may make it weigh all
        least = min(away, (back + away) / 2 if self.mass is None else back) / most
        count = math.ceil(math.log(MISS) / math.log1p(-least)) if least < 1 else 1
        return count if count <= MOST_AT_ONCE else None

    def static_step(self, before: Steps, here: Steps, p: float, q: float) -> Steps:
        """`biased_step` without asking what was rejected: the first accepted of many proposals."""
        proposals = self.step(here[:, None].expand(-1, self.at_once(p, q) or 1))  # [w, count]
        accepted = self._accepts(before[:, None].expand_as(proposals), proposals, p, q)
        first = accepted.int().argmax(1, keepdim=True)
        return proposals.gather(1, first).squeeze(1)

    def _accepts(self, before: Steps, proposal: Steps, p: float, q: float) -> Bool[Tensor, " *w"]:
        near = self.adjacent(before, proposal)
        bias = torch.where(proposal == before, 1 / p, torch.where(near, 1.0, 1 / q))
        return torch.rand(bias.shape, device=bias.device) * max(1 / p, 1.0, 1 / q) < bias


def contains(ascending: Int[Tensor, " e"], wanted: Int[Tensor, " *w"]) -> Bool[Tensor, " *w"]:
    """Which of the wanted numbers are in a sorted list, by binary search."""
    if len(ascending) == 0:
        return torch.zeros_like(wanted, dtype=torch.bool)
    place = torch.searchsorted(ascending, wanted).clamp(max=len(ascending) - 1)
    return ascending[place] == wanted


def walks(
    adjacency: Adjacency | WalkGraph,
    starts: Steps,
    length: int,
    p: float = 1.0,
    q: float = 1.0,
    *,
    static: bool = False,
) -> Walks:
    """Walks of `length` nodes, the start included, one from each entry of `starts`.

    Args:
        adjacency: the graph, or its `WalkGraph` where many walks are drawn.
        starts: the first node of each walk.
        length: how many nodes a walk has.
        p: return parameter; above 1 a walk seldom turns back.
        q: in-out parameter; below 1 a walk moves away from where it came from.
        static: propose often enough at once instead of until something is accepted.
    """
    walk_graph = adjacency if isinstance(adjacency, WalkGraph) else WalkGraph.of(adjacency)
    first_order = p == q == 1
    path = [starts]
    while len(path) < length:
        if first_order or len(path) == 1:
            path.append(walk_graph.step(path[-1]))
        else:
            step = walk_graph.static_step if static else walk_graph.biased_step
            path.append(step(path[-2], path[-1], p, q))
    return torch.stack(path, 1)
