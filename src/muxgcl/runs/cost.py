"""An estimate of time and memory before a training: work that is counted, over measured rates.

`estimate` divides the counts of `runs/work.py` by the rates that `runs/rates.py` measures. Those of
scores are in `runs/score_work.py`.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import Sampling
from muxgcl.runs.auto import LARGE
from muxgcl.runs.environment import pick_device
from muxgcl.runs.plan import Plan, find_method
from muxgcl.runs.rates import SLOW, Rates, calibrate, counted
from muxgcl.runs.score_work import scoring
from muxgcl.runs.scoring import Judging
from muxgcl.runs.work import (
    NUMBER,
    Shape,
    Work,
    autoencoding,
    embedding,
    of_autoencoder,
    of_epoch,
    tables,
    walking,
)

GIB = 2**30
_CGROUP = Path("/sys/fs/cgroup")
SIZES = (16384, 8192, 4096, 3072, 2048, 1536, 1024, 768, 512, 384, 256)  # that `auto` tries
ROUGH_SECONDS = 60.0  # by slow rates: a training below is not worth an estimate
PATIENCE = 480.0  # seconds that a training may take before it samples; scores come after it
MORE_PATIENCE = 1200.0  # where the graph is large
BRIEF = 60.0  # the same where a sample is as good
SHARE = 4  # the part of all nodes from which a larger sample is no better: a quarter
OF_LARGE = 1024  # nodes in a sample of a large graph: 100,000 nodes stay below 4 GiB
BACKWARD = 1.7  # tables at the peak, relative to those that are kept for the backward pass
UNUSED = 1.35  # the same on a CPU, relative to the tables: freed memory that no table fits into
SUSTAINED = 1.2  # minutes of a CPU's work take longer than pieces of it that are timed alone


@dataclass(frozen=True, slots=True)
class Cost:
    """Time and memory of one training, and of the scores after it."""

    seconds: float
    bytes: float  # at the peak, of the process or of the GPU
    prepare: float  # of the seconds, those before the first epoch
    device: str  # "CPU" or "GPU"
    scores: float = 0.0  # of the seconds, those of scores, controls and a report afterwards
    workers: int = 1  # each of which takes these bytes

    def __str__(self) -> str:
        training = self.seconds - self.scores
        parts = f" (training {duration(training)}, scoring {duration(self.scores)})"
        scores = parts if self.scores >= 1 else ""
        size = f"{self.bytes / GIB:.1f} GiB on this {self.device}"
        each = f" for each of {self.workers} workers" if self.workers > 1 else ""
        return f"about {duration(self.seconds)}{scores}, {size}{each}"


def duration(seconds: float) -> str:
    """A length of time in a unit that suits it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36 * 3600 else f"{seconds / 86400:.1f} days"


def estimate(plan: Plan, graph: Graph, rates: Rates | None = None) -> Cost:
    """Time and memory of this training; without rates they are measured first."""
    rates = rates or calibrate(plan, graph)
    work, shape = of_epoch(counted(plan), graph), Shape.of(plan, graph)
    device = pick_device(plan.device)
    on_gpu = device.type == "cuda"
    sustained = 1.0 if on_gpu else SUSTAINED
    epoch = epoch_seconds(plan, graph, rates) * sustained
    prepare = graph.num_nodes * rounds_of_walks(plan) / rates.walks
    if shape.affinity and plan.settings.affinity == "vgae":
        epochs = plan.settings.embedding_settings()["epochs"]
        prepare = epochs * autoencoder_seconds(plan, graph, rates) * sustained
    here = torch.cuda.memory_allocated(device) if on_gpu else resident()
    peak = BACKWARD * (1.0 if on_gpu else UNUSED)
    needed = max(NUMBER * peak * work.kept, embedding(plan, graph, shape))
    needed += NUMBER * 5 * work.weights + tables(graph, shape)
    if shape.affinity and plan.settings.affinity == "vgae":
        needed = max(needed, autoencoding(graph, shape.affinity, peak))
    needed = max(needed, walking(plan, graph, shape))
    prepare *= plan.members  # each has a seed, and so an affinity, of its own
    total = plan.members * plan.train.epochs * epoch + prepare
    where = "GPU" if on_gpu else "CPU"
    return Cost(total, here + needed, prepare, where, workers=rates.workers)


def rounds_of_walks(plan: Plan) -> int:
    """How many walks start from each node before the first epoch."""
    if getattr(plan.settings, "affinity", "none") in ("none", "vgae"):
        return 0
    settings = plan.settings.embedding_settings()
    return int(settings["epochs"] * settings["walks_per_node"])


def epoch_seconds(plan: Plan, graph: Graph, rates: Rates) -> float:
    """The time of one epoch."""
    if plan.rounds(graph) and rates.rounded:
        rates = replace(rates, flops=rates.rounded, pairs=rates.rounded_pairs)
    return _seconds(of_epoch(counted(plan), graph), rates)


def autoencoder_seconds(plan: Plan, graph: Graph, rates: Rates) -> float:
    """The time of one epoch of the VGAE that affinities come from; it rounds nothing."""
    return _seconds(of_autoencoder(graph, plan.settings.affinity_width), rates)


def _seconds(work: Work, rates: Rates) -> float:
    return (
        work.flops / rates.flops
        + work.gathers / rates.gathers
        + work.touches / rates.touches
        + work.pairs / rates.workers / rates.pairs
        + rates.overhead
    )


def with_scores(cost: Cost, plan: Plan, graph: Graph, asked: Judging) -> Cost:
    """The same with the cost of its scores, which are computed on the CPU."""
    seconds, needed = scoring(plan, graph, asked)
    most = cost.bytes
    if cost.device == "CPU":
        most = max(most, resident() + tables(graph, Shape.of(plan, graph)) + needed)
    return replace(cost, seconds=cost.seconds + seconds, bytes=most, scores=seconds)


def quick(plan: Plan, graph: Graph) -> bool:
    """Whether a training is so short, on any machine, that an estimate is not worth its time."""
    try:
        return estimate(plan, graph, SLOW).seconds < ROUGH_SECONDS
    except OverflowError:  # no method has such a size: building it says what is wrong
        return True


def share_of(nodes: int) -> int:
    """The largest sample of so many nodes that is worth its time; the smallest has no limit."""
    most = OF_LARGE if nodes > LARGE else nodes // SHARE
    return max((size for size in SIZES if size <= most), default=SIZES[-1])


@dataclass(frozen=True, slots=True)
class Chosen:
    """Exact or sampled, and why."""

    sampling: Sampling
    cost: Cost
    reason: str


def choose_sampling(
    plan: Plan,
    graph: Graph,
    rates: Rates | None = None,
    *,
    exact: bool = True,
    brief: bool = False,
    patience: float | None = None,
    memory: float | None = None,
) -> Chosen:
    """The exact contrast if its time and memory are acceptable, else the largest sample that is.

    Args:
        plan: what is to be trained; its own sampling is not looked at.
        graph: on which.
        rates: what `calibrate` found.
        exact: whether the exact contrast may be chosen.
        brief: sample wherever the exact contrast takes more than a minute, a quarter of the nodes
            at most, and 1,024 of a large graph.
        patience: seconds that a training may take; eight minutes by default, twenty for a large
            graph, where a small sample has seen few nodes by then.
        memory: bytes that it may take; by default what is free.
    """
    rates = rates or calibrate(plan, graph)
    memory = available(plan, rates.workers) if memory is None else memory
    nodes = graph.num_nodes
    brief = brief and nodes >= SHARE * SIZES[-1]
    if patience is None:
        patience = MORE_PATIENCE if nodes > LARGE else PATIENCE
    whole = estimate(replace(plan, anchors=None, keys=None), graph, rates)
    if exact and whole.seconds <= (BRIEF if brief else patience) and whole.bytes <= memory:
        return Chosen(Sampling(), whole, "the exact contrast of all nodes is affordable")
    if not find_method(plan.method).samples:
        return Chosen(Sampling(), whole, f"{plan.method} has no sampled contrast")
    why = f"the exact contrast would take {str(whole).removeprefix('about ')}"
    most = share_of(nodes) if brief else nodes - 1
    for size in SIZES:
        if size <= most:
            cost = estimate(replace(plan, anchors=size, keys=size), graph, rates)
            if cost.seconds <= patience and cost.bytes <= memory:
                break
    else:
        size = SIZES[-1]
        if size >= nodes:  # a sample of all nodes is none
            return Chosen(Sampling(), whole, "the graph is too small for a sample")
        cost = estimate(replace(plan, anchors=size, keys=size), graph, rates)
    return Chosen(Sampling(size, size), cost, why)


def check_memory(plan: Plan, graph: Graph, cost: Cost, rates: Rates) -> None:
    """Refuse what will not fit, and say what would."""
    free = available(plan, rates.workers)
    if cost.bytes <= free:
        return
    other = choose_sampling(plan, graph, rates, patience=float("inf"), memory=free)
    told = f"this needs {cost.bytes / GIB:.1f} GiB, and {free / GIB:.1f} GiB are there"
    if other.cost.bytes <= free and other.sampling.anchors:
        size = other.sampling.anchors
        told += f"; {size} anchors and negatives need {other.cost.bytes / GIB:.1f} GiB"
    else:
        told += "; a smaller width needs less"
    raise UserError(told)


def check_scores(cost: Cost, plan: Plan, graph: Graph, asked: Judging) -> None:
    """Refuse scores that will not fit after a training that does, and say how to do without."""
    free = available(plan, cost.workers)
    if cost.bytes <= free or cost.device != "CPU":
        return
    told = f"scores need {cost.bytes / GIB:.1f} GiB, and {free / GIB:.1f} GiB are there"
    _, embedding_alone = scoring(plan, graph, replace(asked, controls=False), slow=1.0)
    here = resident() + tables(graph, Shape.of(plan, graph))
    fits = asked.controls and here + embedding_alone <= free
    way_out = "--no-controls needs less" if fits else "muxgcl train computes none"
    raise UserError(f"{told}; {way_out}")


def available(plan: Plan, workers: int = 1) -> float:
    """Bytes that this process may have in all: its own and its share of what is free.

    Of several workers those on this machine share its memory; each has a GPU of its own.
    """
    device = pick_device(plan.device)
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_allocated(device))
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
        left = min(1024 * free, _left_to_container())
        return resident() + left / int(os.environ.get("LOCAL_WORLD_SIZE", workers))
    except (OSError, StopIteration, ValueError):
        return float("inf")


def _left_to_container() -> float:
    """Bytes below a container's limit; files that the system has read ahead may go."""
    with suppress(OSError, ValueError):  # no container, or "max": no limit
        limit, used = (
            int((_CGROUP / f"memory.{name}").read_text(encoding="ascii"))
            for name in ("max", "current")
        )
        lines = (_CGROUP / "memory.stat").read_text(encoding="ascii").splitlines()
        cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
        return float(max(0, limit - used + cached))
    return float("inf")


def resident() -> float:
    """Bytes of memory that this process has now."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return float(pages * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError):
        return 0.0
