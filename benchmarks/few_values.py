"""Where a node has few values: which weights of scales suit, on graphs that are made here.

Makes graphs of some kinds of `any_graph.py`, trains `mux-hop` on each as `auto` does on a CPU, and
reads every training out with several weights of scales and features. Appends one JSON line a
training.

    python benchmarks/few_values.py --draws 0 1 --record records/few-values.jsonl
"""

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean

import torch
from any_graph import KINDS, make

from muxgcl.evaluate import holdout
from muxgcl.graph import Graph
from muxgcl.io.files import append_lines
from muxgcl.io.load import load
from muxgcl.nn.readout import Readout, propagated_features
from muxgcl.runs.auto import FOR_NOISE, OF_FEATURES, of_sample
from muxgcl.runs.cost import share_of
from muxgcl.runs.edge_signal import edge_signal, neighbours_alike
from muxgcl.runs.environment import commit, device_name, pick_device, versions
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan

KIND = [name for name in KINDS if name.startswith(("four", "two", "categories"))]
WEIGHTS = {  # of scales 0, 1 and 2, of propagated features, of the features as they are
    "equal": (1.0, 1.0, 1.0, 0.5, 0.5),
    "half": (0.5, 0.5, 1.0, 0.5, 0.25),
    "a third of scale 0": (0.3, 0.6, 1.0, 0.5, 0.1),
    "as for noise": (*FOR_NOISE["readout_weights"], *(FOR_NOISE[key] for key in OF_FEATURES)),
    "last, features": (0.0, 0.0, 1.0, 1.0, 0.0),
    "as for silence": (1.0, 0.1, 0.1, 0.05, 1.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=KIND, choices=KINDS, metavar="KIND")
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for draw in args.draws:
        for name in args.kinds:
            data = load(make(KINDS[name], [draw, list(KINDS).index(name)])).tensors
            graph, y = Graph.from_data(data), data.y.numpy()
            plan = Plan.make("mux-hop", "auto", graph=graph, seed=draw, device="cpu")
            size = share_of(graph.num_nodes)
            settings = replace(plan.settings, **of_sample("mux-hop", "auto"))
            method = fit(replace(plan, settings=settings, anchors=size, keys=size), graph).method
            method.eval()
            with torch.no_grad():
                tables = {"A^2 X": propagated_features(graph, 2), "X": graph.dense_features()}
                for told, (*weights, features, raw) in WEIGHTS.items():
                    method.readout = Readout("all", tuple(weights), features, 2, raw)
                    tables[told] = method.embed(graph)
            accuracy = {
                told: round(fmean(holdout(table.numpy(), y, count=args.splits).accuracies), 3)
                for told, table in tables.items()
            }
            signal = edge_signal(graph)
            row = {
                "kind": "few values",
                "graph": name,
                "draw": draw,
                "made": asdict(KINDS[name]),
                "sample": size,
                "splits": args.splits,
                "accuracy": accuracy,
                "edge_signal": None if signal is None else asdict(signal),
                "alike": round(neighbours_alike(graph), 2),
                "device": device_name(pick_device("cpu")),
                "versions": versions(),
                "commit": commit(),
            }
            append_lines(args.record, [row])
            print(draw, name, row["alike"], accuracy, flush=True)


if __name__ == "__main__":
    main()
