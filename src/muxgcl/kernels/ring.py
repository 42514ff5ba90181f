r"""The exact contrast on many workers: anchors stay where they are, keys go round in a ring.

Every worker has its own nodes' rows. Step s of the first round finds worker r with the keys of
worker r - s: it adds their pushes to its anchors' sums while the next keys are already on their
way. Once the sums are whole, so are the gradients' factors, and a second round does the same with
the gradients of the keys: those of worker b start at worker b + 1, collect every worker's part and
come home last. With $W_i = x_i + S_i$ as in `fused.py`, over all n anchors,

$$\ell = \frac1n \sum_i \log W_i/x_i, \qquad \partial \ell/\partial S_i = \frac1{n W_i}$$

so that a worker's share of the loss, and the gradients of its own rows, are those of one process.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.kernels.pair_weight import PairWeight
from muxgcl.kernels.sampling import Functions, Sample, Sampling
from muxgcl.shapes import Candidates, NodeIndex, Nodes, Scalar

# where in a library an error arose, such as [/gloo/transport/tcp/pair.cc:538]
PLACE = re.compile(r"\[?[\w./-]+\.(?:cc|cpp|cu|h|hpp):\d+\]?[,:]?\s*")

LARGEST_EXPONENT = 15  # of a power of two that 16 bits can hold


class LostWorker(UserError):
    """A worker is gone or does not answer.

    Attributes:
        reason: what the network said.
        resumable: whether there is a checkpoint to go on from.
    """

    resumable = False

    def __init__(self, reason: object, then: str = "") -> None:
        # the first sentence: advice on logs of other programs may follow
        self.reason = PLACE.sub("", " ".join(str(reason).split())).split(". ")[0][:120]
        super().__init__(f"a worker was lost or does not answer ({self.reason}){then}")


@dataclass(frozen=True, slots=True)
class Workers:
    """The processes of one training, and which of them this is.

    Args:
        rank: the number of this one.
        world: how many there are.
        sampling: whom a step contrasts; by default all with all.
        wire: how tables and gradients travel; by default those of 32 bits on a GPU as
            torch.float16, others as they are.
        group: the process group; the default one where it is None.
    """

    rank: int
    world: int
    sampling: Sampling = field(default_factory=Sampling)
    wire: torch.dtype | None = None
    group: dist.ProcessGroup | None = None

    def wire_of(self, table: Tensor) -> torch.dtype:
        """How a table travels."""
        halved = table.is_cuda and table.dtype == torch.float32
        return self.wire or (torch.float16 if halved else table.dtype)

    def draw(self, nodes: int, device: torch.device | str = "cpu") -> "Shard | Sample | None":
        """This worker's nodes, or its part of a sample that all workers draw alike."""
        sample = self.sampling.draw(nodes, device)
        if sample is not None:
            return sample.part(*bounds(sample.anchors, self.rank, self.world))
        return None if self.world == 1 else Shard(self, nodes)


def bounds(count: int, rank: int, world: int) -> tuple[int, int]:
    """Where the share of a worker begins and ends; shares differ by one at most."""
    whole, rest = divmod(count, world)
    begin = rank * whole + min(rank, rest)
    return begin, begin + whole + (rank < rest)


@dataclass(frozen=True, slots=True)
class Shard:
    """The nodes of one worker, out of so many."""

    workers: Workers
    of: int

    def of_rank(self, rank: int) -> tuple[int, int]:
        """The first node of a worker, and the first that is not its own any more."""
        return bounds(self.of, rank % self.workers.world, self.workers.world)

    def take(self, table: Nodes) -> Candidates:
        """The rows of this worker's nodes, in every view that is stacked in the table."""
        begin, end = self.of_rank(self.workers.rank)
        views: Tensor = table.unflatten(0, (-1, self.of))
        return views[:, begin:end].flatten(0, 1)

    def contrast(
        self,
        functions: Functions,
        anchor: Nodes,
        keys: Nodes,
        weight: PairWeight | None,
        *,
        temperature: float,
    ) -> Scalar:
        """This worker's share of the loss: the sum over all workers is what one process finds."""
        sums = functions("negative_sum")
        found: Tensor = _RingContrast.apply(anchor, keys, weight, temperature, sums, self)
        return found

    def rows(self, views: int) -> NodeIndex:
        """Where this worker's rows are in a table of so many views."""
        steps = torch.arange(views)[:, None] * self.of
        return (torch.arange(*self.of_rank(self.workers.rank)) + steps).flatten()

    def nodes(self, rank: int, views: int, device: torch.device) -> NodeIndex:
        """The node of every stacked row of a worker."""
        return torch.arange(*self.of_rank(rank), device=device).repeat(views)


class Passing:
    """Tables on their way: to the next worker, and from the one before."""

    def __init__(self, workers: Workers, tables: list[Tensor], shapes: list[torch.Size]) -> None:
        self.like = [(table.device, table.dtype) for table in tables]
        group, rank, world = workers.group, workers.rank, workers.world
        # Gloo sends what is in the memory of the host
        home = torch.device("cpu") if dist.get_backend(group) == "gloo" else tables[0].device
        packed = [pack(table, workers.wire_of(table)) for table in tables]
        self.sent = [table.to(home).contiguous() for table, _ in packed]
        self.coming = [sent.new_empty(shape) for sent, shape in zip(self.sent, shapes, strict=True)]
        self.sent.append(torch.stack([factor for _, factor in packed]).to(home))
        self.coming.append(torch.empty_like(self.sent[-1]))
        after, before = (rank + 1) % world, (rank - 1) % world
        if group is not None:
            after, before = (dist.get_global_rank(group, rank) for rank in (after, before))
        try:
            self.work = dist.batch_isend_irecv(
                [dist.P2POp(dist.isend, table, after, group) for table in self.sent]
                + [dist.P2POp(dist.irecv, table, before, group) for table in self.coming]
            )
        except RuntimeError as error:
            raise LostWorker(error) from None

    def arrived(self) -> list[Tensor]:
        """What came, once it is there."""
        try:
            for work in self.work:
                work.wait()
        except RuntimeError as error:
            raise LostWorker(error) from None
        *tables, factors = self.coming
        return [
            unpack(table.to(device), factor.to(device), dtype)
            for table, factor, (device, dtype) in zip(tables, factors, self.like, strict=True)
        ]


def pack(table: Tensor, wire: torch.dtype) -> tuple[Tensor, Scalar]:
    """A table in fewer bits, and the power of two that it was multiplied by.

    Its largest number comes close to the largest of 16 bits: gradients of many nodes are small, and
    would lose their digits, or be zero.
    """
    one = torch.ones((), device=table.device)
    if wire == table.dtype:
        return table, one
    exponent = LARGEST_EXPONENT - torch.frexp(table.abs().amax().float()).exponent
    factor = torch.ldexp(one, exponent.clamp(-100, 100))
    return (table * factor).to(wire), factor


def unpack(table: Tensor, factor: Scalar, dtype: torch.dtype) -> Tensor:
    """What `pack` was given, up to rounding."""
    return table if table.dtype == dtype else table.to(dtype) / factor


class _RingContrast(torch.autograd.Function):
    """Forward is both rounds: it ends with the gradients of this worker's rows."""

    @staticmethod
    def forward(
        ctx: Any,
        anchor: Tensor,
        keys: Tensor,
        weight: PairWeight | None,
        t: float,
        negative_sum: Any,
        shard: Shard,
    ) -> Tensor:
        workers, device = shard.workers, anchor.device
        rank, world = workers.rank, workers.world
        begin, end = shard.of_rank(rank)
        views = len(anchor) // (end - begin)
        own = anchor.detach().requires_grad_()
        ids = shard.nodes(rank, views, device)

        def shapes(owner: int) -> list[torch.Size]:
            first, last = shard.of_rank(owner)
            found = [torch.Size((views * (last - first), keys.shape[1]))]
            if weight is not None:
                found.append(torch.Size((last - first, weight.cols.shape[1])))
            return found

        # first round: sums
        here = [keys.detach()] if weight is None else [keys.detach(), weight.cols]
        rounds: list[tuple[Tensor, Tensor]] = []  # step s: the keys of worker rank - s, and sums
        for step in range(world):
            owner = (rank - step) % world
            last = step == world - 1
            passing = None if last else Passing(workers, here, shapes(owner - 1))
            others = here[0].detach().requires_grad_()
            weights = None if weight is None else replace(weight, cols=here[1])
            with torch.enable_grad():
                sums = negative_sum(
                    own,
                    others,
                    weights,
                    temperature=t,
                    nodes=end - begin
                    if owner == rank
                    else (ids, shard.nodes(owner, views, device)),
                )
            rounds.append((others, sums))
            here = here if passing is None else passing.arrived()

        count = views * shard.of
        positive = keys.roll(begin - end, 0)
        pull = ((anchor * positive).sum(1) - 1) / t
        match = pull.exp()
        whole = match + torch.stack([sums.detach() for _, sums in rounds]).sum(0)
        share = 1 / (count * whole)  # of the gradient, per unit of push
        excess = ((match * share - 1 / count) / t)[:, None]

        # second round: the gradients of the keys come home
        d_anchor = excess * positive
        d_keys = torch.zeros_like(keys)
        passing = None
        for step in range(1, world + 1):  # begins with the keys of the worker before
            others, sums = rounds[step % world]
            with torch.enable_grad():
                total = sums @ share  # torch loads its compiler where gradients are handed in
            part, d_keys = torch.autograd.grad(total, (own, others))
            d_anchor += part
            if passing is not None:
                d_keys = d_keys + passing.arrived()[0]
            if step < world:
                passing = Passing(workers, [d_keys], shapes(rank - step - 1)[:1])
        d_keys = d_keys + (excess * anchor).roll(end - begin, 0)
        ctx.save_for_backward(d_anchor, d_keys)
        return (whole.log() - pull).sum() / count

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return (*(grads[0] * d for d in ctx.saved_tensors), None, None, None, None)
