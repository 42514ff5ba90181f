"""An epoch of `mux-hop` against one of `mux-gcl` that contrasts tables of the same width.

    python benchmarks/hop_epoch.py cora photo --device cuda --record records/hop-epoch.jsonl

`mux-gcl` has preset `paper` at width 256; `mux-hop` has preset `best`, with the projector's widths
of the other. `best` may make every scale an anchor, which is three times the pairs, so it is timed
with the last scale as the anchor too, as `mux-gcl` has it. One training after the other.
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from muxgcl.bench.epoch import open_graph, train_timed
from muxgcl.graph import Graph
from muxgcl.io.files import append_lines
from muxgcl.runs.environment import commit, device_name, pick_device, versions
from muxgcl.runs.plan import Plan

WIDTH = 256
WARM_UP = 0.2  # of the epochs


def timed(
    args: argparse.Namespace, graph: Graph, name: str, method: str, changes: dict[str, Any]
) -> tuple[Plan, float]:
    """Milliseconds of an epoch, and the plan of the training."""
    settings = {"epochs": args.epochs, "affinity_epochs": 1, **changes}
    preset = "paper" if method == "mux-gcl" else "best"
    plan = Plan.make(method, preset, name, settings, graph=graph, device=str(graph.device))
    found = train_timed(plan, graph, warm_up=int(WARM_UP * args.epochs))
    return plan, median(found.milliseconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--epochs", type=int, default=125)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    place = pick_device(args.device)
    same = {"projection": WIDTH, "projection_out": WIDTH}
    for name in args.datasets:
        graph = open_graph(name, args.data_root).to(place)
        _, base = timed(args, graph, name, "mux-gcl", {"width": WIDTH, **same})
        for more in ({}, {"anchors": "last"}):
            plan, ms = timed(args, graph, name, "mux-hop", {**same, **more})
            row = {
                "kind": "hop epoch",
                "dataset": name,
                "anchors": asdict(plan.settings)["anchors"],
                **same,
                "epoch_ms": {"mux-gcl": round(base, 4), "mux-hop": round(ms, 4)},
                "ratio": round(ms / base, 3),
                "epochs": args.epochs,
                "settings": asdict(plan.settings),
                "device": device_name(place),
                "versions": versions(),
                "commit": commit(),
            }
            append_lines(args.record, [row])
            print(name, row["anchors"], row["epoch_ms"], row["ratio"], flush=True)


if __name__ == "__main__":
    main()
