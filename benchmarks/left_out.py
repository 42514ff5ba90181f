"""How does `auto` do on a benchmark graph that it must not know, by labels of its development half?

    python benchmarks/left_out.py cora citeseer --seeds 2 --record records/left-out-search.jsonl
    python benchmarks/left_out.py cora --set anchors=last ema=0 --record ...

`--set` changes what `auto` picks, to try another rule. Appends one JSON line a training.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from muxgcl.evaluate import STRENGTHS, development_hash, development_splits
from muxgcl.evaluate.development import development_labels
from muxgcl.evaluate.device_probe import answers
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.files import append_lines
from muxgcl.runs.auto import hop_settings
from muxgcl.runs.environment import commit, versions
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan
from muxgcl.runs.settings import parse_pairs

FIRST_SEED, SPLIT_SEED = 400, 4000  # those of the search


def main() -> None:
    """Train and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--cache", type=Path, default=Path("runs/.affinity"))
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    for name in args.datasets:
        data = open_dataset(name, args.data_root)
        graph, labels = Graph.from_data(data), data.y.numpy()
        y, splits = development_labels(labels), development_splits(labels, args.splits, SPLIT_SEED)
        settings, _ = hop_settings(graph, leave_out=[name])
        settings |= parse_pairs(args.settings)
        for seed in range(FIRST_SEED, FIRST_SEED + args.seeds):
            plan = Plan.make("mux-hop", "best", name, settings, seed=seed, device=args.device)
            fitted = fit(plan, graph, cache=args.cache)
            table = fitted.embed().to(fitted.graph.device)
            found = answers(table, y, splits, STRENGTHS)
            right = [
                100 * float((a.predicted == y[s.test]).mean())
                for a, s in zip(found, splits, strict=True)
            ]
            row = {
                "kind": "left-out",
                "dataset": name,
                "tried": args.settings,
                "seed": seed,
                "accuracy": round(sum(right) / len(right), 4),
                "settings": asdict(plan.settings) | asdict(plan.train),
                "seconds": round(fitted.seconds, 2),
                "labels": "development",
                "development": development_hash(labels),
                "split_seed": SPLIT_SEED,
                "splits": args.splits,
                "device": fitted.device,
                "versions": versions(),
                "commit": commit(),
            }
            append_lines(args.record, [row])
            print(name, args.settings, seed, row["accuracy"], row["seconds"], flush=True)


if __name__ == "__main__":
    main()
