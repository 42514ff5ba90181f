"""How much of the ring's communication hides behind the arithmetic, on several processes.

    python benchmarks/ring.py --workers 2 4 --record records/ring.jsonl

Starts `torchrun` for each number of processes, with one thread each unless OMP_NUM_THREADS says
otherwise. An epoch of `mux-gcl` is timed in turn in three ways: tables are sent before a block of
pairs is computed (as in training), after it, and not at all. Gloo carries the tables, from a GPU
through the host's memory, so that two processes can share one GPU (`--device cuda`).
"""

import argparse
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from muxgcl.graph import Graph
from muxgcl.io.files import append_lines
from muxgcl.kernels import ring
from muxgcl.kernels.ring import Passing, Workers
from muxgcl.runs import distributed, divided
from muxgcl.runs.environment import commit, device_name, versions
from muxgcl.runs.fit import make_ready
from muxgcl.runs.loop import Trainer
from muxgcl.runs.plan import Plan
from muxgcl.tensors import Tensors

WARM_UP = 2  # epochs in each way


class Early(Passing):
    """As in training; counts what is sent."""

    sent_bytes = 0

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        Early.sent_bytes += sum(table.nbytes for table in self.sent)


class Late(Passing):
    """Sends nothing before the tables of the neighbour are asked for."""

    def __init__(self, *given: Any) -> None:
        self.given = given

    def arrived(self) -> list[Tensor]:
        """Send, and wait."""
        super().__init__(*self.given)
        return super().arrived()


class Still(Passing):
    """Sends nothing at all: zeros stand for what would have come."""

    def __init__(self, workers: Workers, tables: list[Tensor], shapes: list[torch.Size]) -> None:
        pairs = zip(tables, shapes, strict=True)
        self.zeros = [table.new_zeros(shape) for table, shape in pairs]

    def arrived(self) -> list[Tensor]:
        """Zeros."""
        return self.zeros


WAYS: dict[str, type[Passing]] = {"early": Early, "late": Late, "alone": Still}


def random_graph(nodes: int) -> Graph:
    """The same in every process."""
    chance = torch.Generator().manual_seed(1)
    x = torch.rand(nodes, 64, generator=chance)
    edges = torch.randint(nodes, (2, 5 * nodes), generator=chance)
    return Graph.from_data(Tensors(x=x, edge_index=edges))


def epochs(workers: Workers, nodes: int, width: int, rounds: int, device: str) -> dict[str, Any]:
    """Milliseconds of every epoch, by the way in which tables are sent."""
    settings = {"width": width, "projection": width, "affinity_width": width, "affinity_epochs": 1}
    settings |= {"epochs": 3 * (rounds + WARM_UP)}
    plan = Plan.make("mux-gcl", "quick", overrides=settings, device=device)
    ready = make_ready(plan, random_graph(nodes), workers=workers)
    assert ready.workers is not None
    divided.prepare(ready.workers, ready.method, ready.graph)
    trainer = Trainer(ready.method, ready.graph, plan.train, capture="off", block=1)
    divided.start_alike(ready.workers, trainer)
    trainer.sum_up = partial(divided.sum_up, ready.workers, ready.method)
    blocks = trainer.blocks()
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    Early.sent_bytes = 0
    for k in range(rounds + WARM_UP):
        for way in [*WAYS][k % 3 :] + [*WAYS][: k % 3]:  # none of them is always the first
            ring.Passing = WAYS[way]  # type: ignore[misc]
            dist.barrier()
            begin = time.perf_counter()
            next(blocks)  # ends with a sum over all workers
            found[way].append(1000 * (time.perf_counter() - begin))
    ring.Passing = Passing  # type: ignore[misc]
    sent = Early.sent_bytes / (rounds + WARM_UP) / 2**20
    timed = {way: [round(ms, 3) for ms in times[WARM_UP:]] for way, times in found.items()}
    return {"ms": timed, "sent_mib": round(sent, 3), "device": device_name(ready.graph.device)}


def median(times: list[float]) -> float:
    """Of any number."""
    return quantiles(times, n=4, method="inclusive")[1] if len(times) > 1 else times[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 1500])
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    if not distributed.launched():
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        for count in args.workers:
            words = ["--nproc-per-node", str(count), __file__, *sys.argv[1:]]
            subprocess.run([*torchrun, *words], check=True)
        return
    own = not dist.is_initialized()
    if own:
        dist.init_process_group("gloo")
    workers = distributed.callers_workers()
    assert workers is not None
    for nodes in args.nodes:
        found = epochs(workers, nodes, args.width, args.rounds, args.device)
        early, late, alone = (median(found["ms"][way]) for way in WAYS)
        row = {
            "kind": "ring",
            "workers": workers.world,
            "threads": torch.get_num_threads(),
            "nodes": nodes,
            "width": args.width,
            **found,
            "early_over_alone": round(early / alone, 4),
            "late_over_alone": round(late / alone, 4),
            "versions": versions(),
            "commit": commit(),
        }
        if workers.rank == 0:
            append_lines(args.record, [row])
            print(nodes, {way: round(median(t), 1) for way, t in found["ms"].items()}, flush=True)
    if own:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
