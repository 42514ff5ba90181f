"""A whole training epoch: the dense step against ours, time and peak memory."""

import gc
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.safety import check_size
from muxgcl.kernels import resolve
from muxgcl.runs.environment import (
    MIB,
    commit,
    device_name,
    peak_memory,
    pick_device,
    versions,
)
from muxgcl.runs.loop import GPU_BLOCK, Trainer
from muxgcl.runs.plan import Plan, build
from muxgcl.seeding import seeded
from muxgcl.tensors import Tensors

WIDTHS = {"cora": 128}  # 256 elsewhere
DENSE_NODES = 25_000  # above this the dense step does not fit
DEGREE, FEATURES = 7, 128  # of a synthetic graph: edges a node, columns


def bench_epoch(
    datasets: Iterable[str],
    device: str = "auto",
    *,
    backends: tuple[str, ...] = ("reference", "auto"),
    epochs: int | None = None,
    data_root: Path | None = None,
    on_row: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Three scales, soft negatives, the paper's settings at width 256 (Cora: 128).

    A dataset is a known name, or `random-N` for a synthetic graph of N nodes with 7 neighbours each
    and 128 features. Peak memory is counted above the graph's own tensors.
    """
    if epochs is not None and epochs < 1:
        raise UserError(f"epochs must be at least 1, got {epochs}")
    rows: list[dict[str, Any]] = []
    place = pick_device(device)
    for name in datasets:
        graph = open_graph(name, data_root).to(place)
        for backend in backends:
            if backend == "reference" and graph.num_nodes > DENSE_NODES:
                continue
            row = _measure(name, graph, backend, place, epochs)
            rows.append(row)
            if on_row is not None:
                on_row(row)
    return rows


def _measure(
    name: str, graph: Graph, backend: str, place: torch.device, epochs: int | None
) -> dict[str, Any]:
    width = WIDTHS.get(name, 256)
    default = 200 if graph.num_nodes < DENSE_NODES else 4
    settings = {
        "width": width,
        "projection": width,
        "epochs": epochs or (default if place.type == "cuda" else 3),
        "affinity_epochs": 1,  # its values do not change the work
    }
    dense = backend == "reference"
    plan = Plan.make(
        "mux-gcl",
        "paper",
        name,
        settings,
        device=str(place),
        backend=backend,
        capture="off" if dense else "auto",
    )
    found = train_timed(plan, graph, warm_up=plan.train.epochs // 3)
    name_of_backend, _, precision = resolve(backend, cuda=place.type == "cuda").partition("/")
    on_gpu = place.type == "cuda"
    default_precision = "fp16" if name_of_backend == "fused" else "tf32" if on_gpu else "fp32"
    return {
        "kind": "epoch",
        "dataset": name,
        "nodes": graph.num_nodes,
        "width": width,
        "backend": name_of_backend,
        "precision": precision or default_precision,
        "capture": found.captured,
        "epoch_ms": round(median(found.milliseconds), 4),
        "peak_mib": round(found.peak_mib, 1),
        "epochs": plan.train.epochs,
        "device": device_name(place),
        "versions": versions(),
        "commit": commit(),
    }


@dataclass(frozen=True, slots=True)
class Timed:
    """What a training took, alone on its device."""

    milliseconds: list[float]  # of every epoch after the warm-up
    peak_mib: float  # above the graph's own tensors
    prepare_s: float  # weights, affinities, diffusions: all that comes before the first epoch
    captured: bool


def train_timed(plan: Plan, graph: Graph, *, warm_up: int, block: int = GPU_BLOCK) -> Timed:
    """Train on the graph's device; nothing else should run there.

    Args:
        plan: what to train.
        graph: on its device.
        warm_up: how many of the plan's epochs do not count. A method whose step becomes another
            one at a later epoch is timed from there, for as many epochs.
        block: epochs between two looks at a GPU; each has the block's mean time.
    """
    place = graph.device
    gc.collect()
    if place.type == "cuda":
        torch.cuda.empty_cache()
    before = _allocated(place)
    begin = time.perf_counter()
    with seeded(plan.seed, place):
        method = build(plan, graph)
        method.prepare(graph)
        own = (_allocated(place) - before) / MIB
        prepare_s = time.perf_counter() - begin
        first = max(warm_up, *method.milestones, 0)
        train = replace(plan.train, epochs=first + plan.train.epochs - warm_up)
        tf32 = not plan.backend.endswith("/fp32")
        trainer = Trainer(method, graph, train, capture=plan.capture, tf32=tf32, block=block)
        times: list[float] = []
        with peak_memory(place) as peak:
            for epochs in trainer.blocks():
                times += [1000 * epoch.seconds for epoch in epochs if epoch.number > first]
    return Timed(times, peak.mib + own, prepare_s, trainer.captures)


def _allocated(place: torch.device) -> int:
    return torch.cuda.memory_allocated(place) if place.type == "cuda" else 0


def open_graph(name: str, data_root: Path | None = None) -> Graph:
    """A known dataset, or a synthetic graph of a given size."""
    if found := re.fullmatch(r"random-(\d{1,18})", name):
        if int(found[1]) < 1:
            raise UserError(f"a synthetic graph needs at least 1 node, got {name}")
        return random_graph(int(found[1]))
    return Graph.from_data(open_dataset(name, data_root))


def random_graph(nodes: int) -> Graph:
    """Random edges and dense features: the size of a real graph, without its meaning."""
    check_size(f"a synthetic graph of {nodes:,} nodes", nodes * (4 * FEATURES + 60 * DEGREE))
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(nodes, (2, nodes * DEGREE), generator=generator)
    x = torch.randn(nodes, FEATURES, generator=generator)
    return Graph.from_data(Tensors(x=x, edge_index=edges))
