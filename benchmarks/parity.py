"""Is the fast path as accurate as the plain one? Same seeds, same splits, two backends.

    python benchmarks/parity.py cora photo --record records/parity.jsonl

The plain one is slow; with `--parts FILE` a run that was stopped goes on where it was.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from muxgcl.evaluate import holdout, paired_difference, summarise
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.files import append_lines
from muxgcl.io.schema import read_lines
from muxgcl.runs.environment import commit, device_name, pick_device, versions
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan

PATHS = {"fast": ("auto", "auto"), "plain": ("reference/fp32", "off")}  # backend, capture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--preset", default="best")
    parser.add_argument("--paths", nargs="+", default=list(PATHS), choices=list(PATHS))
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--parts", type=Path, help="keeps each training's scores")
    args = parser.parse_args()
    lines = read_lines(args.parts) if args.parts and args.parts.is_file() else []
    done = {tuple(line["key"]): line["accuracies"] for line in lines}
    for name in args.datasets:
        data = open_dataset(name, args.data_root)
        graph = Graph.from_data(data)
        overrides = {} if args.epochs is None else {"epochs": args.epochs}
        scores: dict[str, list[list[float]]] = {}
        for path in args.paths:
            backend, capture = PATHS[path]
            for seed in range(args.seeds):
                plan = Plan.make(
                    "mux-gcl",
                    args.preset,
                    name,
                    overrides,
                    graph=graph,
                    seed=seed,
                    device=args.device,
                    backend=backend,
                    capture=capture,
                )
                key = [name, args.preset, path, seed, plan.train.epochs, args.splits]
                if (found := done.get(tuple(key))) is None:
                    z = fit(plan, graph).embed().numpy()
                    found = holdout(z, data.y.numpy(), count=args.splits).accuracies
                    if args.parts is not None:
                        append_lines(args.parts, [{"key": key, "accuracies": found}])
                scores.setdefault(path, []).append(found)
                print(name, path, seed, f"{summarise(found).mean:.4f}", flush=True)
        means = {path: [summarise(found).mean for found in runs] for path, runs in scores.items()}
        row = {
            "kind": "parity",
            "dataset": name,
            "preset": args.preset,
            "protocol": "holdout",
            "epochs": plan.train.epochs,
            "seeds": args.seeds,
            "splits": args.splits,
            "accuracy": {path: summarise(values).to_dict() for path, values in means.items()},
            "per_split": scores,
            "difference": paired_difference(scores["fast"], scores["plain"]).to_dict()
            if len(scores) == 2
            else None,
            "settings": asdict(plan.settings) | asdict(plan.train),
            "device": device_name(pick_device(args.device)),
            "versions": versions(),
            "commit": commit(),
        }
        append_lines(args.record, [row])


if __name__ == "__main__":
    main()
