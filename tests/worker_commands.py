"""What each of several workers does with commands, `run` and estimators in a group of its own."""

import io
import json
import sys
import threading
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any

import torch
import torch.distributed as dist
from worker_cases import GRAPH, plan, trained

import muxgcl
from muxgcl.app import LoadOptions, RunOptions, dry_run, pipeline
from muxgcl.app import budget as budgeting
from muxgcl.cli import commands  # noqa: F401  (declares the commands)
from muxgcl.cli.app import run as command_line
from muxgcl.errors import UserError
from muxgcl.kernels.ring import Workers
from muxgcl.methods.parts import patch_tables
from muxgcl.runs import cost, distributed

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "ring.py"
FAST = ["--method", "grace", "--preset", "quick", "--epochs", "2", "--set", "width=8", "--quiet"]
MORE = ["--epochs", "4", "--resume"]


def asked(*words: str) -> tuple[int, str]:
    """The status of a command, and what it wrote on standard error."""
    with redirect_stderr(io.StringIO()) as told:
        status = command_line([*words, "--device", "cpu"])
    return status, told.getvalue()


def all_commands(workers: Workers, folder: str, files: str) -> dict[str, Any]:
    """What came of each."""
    mine = Path(folder, f"edges-{workers.rank}.csv")
    if workers.rank != 1:
        mine.write_bytes(Path(files, "edges.csv").read_bytes())
    edges, features = str(Path(files, "edges.csv")), ["--features", str(Path(files, "nodes.csv"))]
    out = ["--out", str(Path(folder, "command"))]
    return {
        "unreadable": asked("train", str(mine), *features, *FAST, *out),
        "trained": asked("train", edges, *features, *FAST, *out),
        "again": asked("train", edges, *features, *FAST, *out),
        "gone on": asked(
            "train", edges, *features, *FAST, *MORE, "--out", str(Path(folder, "one"))
        ),
        "seeds": asked("run", edges, *features, *FAST, "--seeds", str(2 + workers.rank)),
        "dry run": asked("run", edges, *features, *FAST, *["--dry-run"] * workers.rank),
        "run": run(workers, folder, edges, features[1]),
        "estimator": estimators(),
        "budget": budget(workers, edges, features[1]),
        "affinities": affinities(workers),
        "patience": patience(workers, folder, edges, features[1]),
        "benchmark": benchmark(folder),
    }


def options(out: Path | None = None, **changes: Any) -> RunOptions:
    return RunOptions(
        method="grace",
        preset="quick",
        settings={"width": 8},
        epochs=2,
        device="cpu",
        out=out,
        score=False,
        **changes,
    )


def run(workers: Workers, folder: str, edges: str, features: str) -> dict[str, Any]:
    """`muxgcl.run` in a group that the caller made."""
    load = LoadOptions(features=features)
    found = muxgcl.run(edges, options(Path(folder, "own")), load=load, workers=workers)
    return {"loss": found.loss, "shape": list(found.embedding.shape)}


def estimators() -> dict[str, Any]:
    """What an estimator learns where all processes of a group fit it, with a seed of chance."""
    found = {}
    for name in ("grace", "homogcl"):  # the second cannot be divided
        embedder = muxgcl.NodeEmbedder(
            name, preset="quick", params={"width": 8}, epochs=2, device="cpu", random_state=None
        )
        embedder.fit(GRAPH)
        found[name] = {"seed": embedder.seed_, "embedding": torch.tensor(embedder.embedding_)}
    try:
        muxgcl.NodeEmbedder("grace", epochs=2 + dist.get_rank(), device="cpu").fit(GRAPH)
    except UserError as error:
        found["other"] = str(error)
    return found


def budget(workers: Workers, edges: str, features: str) -> dict[str, Any]:
    """A sample that the first worker chooses: its clock alone is looked at."""
    cost.PATIENCE, cost.SIZES, before = (
        0.0,
        (16, 8),
        (cost.PATIENCE, cost.SIZES, budgeting.calibrate),
    )
    if workers.rank > 0:
        budgeting.calibrate = None  # type: ignore[assignment]
    found = dry_run(edges, options(), load=LoadOptions(features=features), workers=workers)
    cost.PATIENCE, cost.SIZES, budgeting.calibrate = before
    return {"anchors": found.plan.anchors, "notes": [*found.notes]}


def patience(workers: Workers, folder: str, edges: str, features: str) -> list[int]:
    """Two seeds where the first worker estimates and saves for longer than the others wait."""
    group = dist.new_group(timeout=timedelta(seconds=3))

    def late(work: Any) -> Any:
        def done(*arguments: Any, **more: Any) -> Any:
            time.sleep(5)
            return work(*arguments, **more)

        return done

    slow = [(import_module("muxgcl.app.prepare"), "budget"), (pipeline, "save_stage")]
    before = [getattr(module, name) for module, name in slow]
    for (module, name), work in zip(slow, before, strict=True):
        setattr(module, name, late(work))
    found = pipeline.run_seeds(
        edges,
        2,
        options(Path(folder, "patience")),
        load=LoadOptions(features=features),
        workers=replace(workers, group=group),
    )
    for (module, name), work in zip(slow, before, strict=True):
        setattr(module, name, work)
    return [len(one.embedding) for one in found.runs]


def benchmark(folder: str) -> list[Any]:
    """What `benchmarks/ring.py` records of a tiny graph."""
    record = Path(folder, "ring.jsonl")
    words = ["--nodes", "40", "--width", "8", "--rounds", "2", "--record", str(record)]
    sys.argv, before = ["ring.py", *words], sys.argv
    with redirect_stdout(io.StringIO()):
        run_path(str(BENCHMARK), run_name="__main__")
    sys.argv = before
    dist.barrier()
    return [json.loads(line) for line in record.read_text().splitlines()]


def affinities(workers: Workers) -> dict[str, Any]:
    """Walks that the first worker alone trains on, while the others are told that it does."""
    beats, largest, patches = [0], distributed.largest, patch_tables.patches

    def counted(workers: Workers, number: int) -> int:
        if threading.current_thread() is threading.main_thread():
            beats[0] += number
        return largest(workers, number)

    distributed.BEAT, before = 0.0, distributed.BEAT
    distributed.largest = counted
    if workers.rank > 0:
        patch_tables.patches = None  # type: ignore[assignment]
    found = trained(workers, plan(epochs=2))
    distributed.BEAT, distributed.largest, patch_tables.patches = before, largest, patches
    return {"beats": beats[0], **found}
