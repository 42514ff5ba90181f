"""Every method, one training at a time: the time of an epoch and peak memory."""

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import quantiles
from typing import Any

from muxgcl.bench.epoch import open_graph, train_timed
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import resolve
from muxgcl.methods import METHODS
from muxgcl.runs.auto import BENCHMARKS
from muxgcl.runs.environment import commit, device_name, pick_device, versions
from muxgcl.runs.plan import Plan, find_method
from muxgcl.runs.settings import hints

FIRST = ("mux-gcl", "grace", "mux-hop")  # what a table is read for
WARM_UP = 25  # epochs
TIMED = 125
BLOCK = 5  # epochs that a GPU is timed over at once: it hardly waits for the host

Key = tuple[str, ...]


def bench_methods(
    methods: Iterable[str] | None = None,
    datasets: Iterable[str] = BENCHMARKS,
    device: str = "auto",
    *,
    epochs: int = TIMED,
    warm_up: int = WARM_UP,
    time_limit: float | None = None,
    done: Iterable[dict[str, Any]] = (),
    data_root: Path | None = None,
    on_row: Callable[[dict[str, Any]], None] | None = None,
    on_failure: Callable[[Plan, Exception], None] | None = None,
) -> list[dict[str, Any]]:
    """The settings that the method's preset `paper` has, or `best` where it has no other.

    Weights, affinities and diffusions are made before the clock starts. Affinities are trained for
    one epoch: their values do not change the work. Nothing is scored.

    Args:
        methods: by name; every method that trains by default, graph after graph for each.
        datasets: known names, or `random-N`.
        device: to measure on.
        epochs: that are timed.
        warm_up: epochs before them that are not.
        time_limit: seconds after which no further pair is begun.
        done: rows of an earlier call; their pairs are left out.
        data_root: where datasets lie.
        on_row: called with each row.
        on_failure: called with a plan that could not be trained and its error, which is raised
            otherwise.
    """
    if epochs < 1 or warm_up < 0:
        raise UserError(
            f"epochs must be at least 1 and warm_up at least 0, got {epochs} and {warm_up}"
        )
    methods = None if methods is None else list(methods)
    for name in methods or ():
        if not find_method(name).trainable:
            raise UserError(f"{name} is not trained: nothing to time")
    place, begin = pick_device(device), time.monotonic()
    here = device_name(place)
    known = {_key(row) for row in done if row.get("kind") == "method"}
    graphs: dict[str, Graph] = {}
    rows: list[dict[str, Any]] = []
    for plan in _plans(methods, list(datasets)):
        if _key(_stated(plan, here)) in known:
            continue
        if time_limit is not None and time.monotonic() - begin > time_limit:
            break
        if plan.dataset not in graphs:
            graphs[plan.dataset] = open_graph(plan.dataset, data_root).to(place)
        try:
            row = _measure(plan, graphs[plan.dataset], epochs, warm_up)
        except Exception as error:
            if on_failure is None:
                raise
            on_failure(plan, error)
            continue
        rows.append(row)
        if on_row is not None:
            on_row(row)
    return rows


def _plans(methods: Iterable[str] | None, datasets: Collection[str]) -> Iterator[Plan]:
    names = [*FIRST, *(name for name in METHODS if name not in FIRST)]
    trained = [name for name in names if METHODS[name].trainable]
    for method in trained if methods is None else methods:
        for dataset in datasets:
            yield Plan.make(method, _preset(method), dataset)


def _preset(method: str) -> str:
    try:
        Plan.make(method, "paper", "default")
    except UserError:
        return "best"
    return "paper"


def _stated(plan: Plan, device: str) -> dict[str, Any]:
    """What a row is of: its settings are the preset's, as JSON has them."""
    settings = json.loads(
        json.dumps({"train": asdict(plan.train), "settings": asdict(plan.settings)})
    )
    names = {name: getattr(plan, name) for name in ("method", "preset", "dataset")}
    return {"kind": "method", **names, **settings, "device": device}


def _key(row: dict[str, Any]) -> Key:
    names = ("method", "preset", "dataset", "train", "settings", "device")
    return tuple(json.dumps(row.get(name), sort_keys=True) for name in names)


def _measure(plan: Plan, graph: Graph, epochs: int, warm_up: int) -> dict[str, Any]:
    short: dict[str, Any] = {"epochs": epochs + warm_up}
    if "affinity_epochs" in hints(type(plan.settings)):
        short["affinity_epochs"] = 1
    timed = Plan.make(plan.method, plan.preset, plan.dataset, short, device=str(graph.device))
    found = train_timed(timed, graph, warm_up=warm_up, block=BLOCK)
    times = found.milliseconds
    quarter, middle, three = (
        quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
    )
    return {
        **_stated(plan, device_name(graph.device)),
        "nodes": graph.num_nodes,
        "epoch_ms": round(middle, 4),
        "quartiles_ms": [round(quarter, 4), round(three, 4)],
        "timed": len(times),
        "warm_up": warm_up,
        "peak_mib": round(found.peak_mib, 1),
        "prepare_s": round(found.prepare_s, 2),
        "capture": found.captured,
        "backend": resolve(plan.backend, cuda=graph.device.type == "cuda"),
        "versions": versions(),
        "commit": commit(),
    }
