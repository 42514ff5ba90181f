"""How good is a preset, beside another? One line for each preset, graph and seed.

python benchmarks/presets.py cora photo --presets best auto --record records/presets.jsonl
"""

import argparse
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from muxgcl.evaluate import development_hash, holdout, summarise
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.files import append_lines
from muxgcl.runs.environment import commit, versions
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan


def score(z: Any, y: Any, splits: int) -> list[float]:
    return holdout(z, y, count=splits).accuracies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--presets", nargs="+", default=["best", "auto"])
    parser.add_argument("--method", default="mux-gcl")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=2, help="processes that score")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
        for name in args.datasets:
            data = open_dataset(name, args.data_root)
            graph = Graph.from_data(data)
            for preset in args.presets:
                for seed in range(args.seeds):
                    plan = Plan.make(
                        args.method, preset, name, graph=graph, seed=seed, device=args.device
                    )
                    fitted = fit(plan, graph)
                    row = {
                        "kind": "preset",
                        "method": args.method,
                        "dataset": name,
                        "preset": preset,
                        "protocol": "holdout",
                        "development": development_hash(data.y.numpy()),
                        "seed": seed,
                        "settings": asdict(plan.settings) | asdict(plan.train),
                        "epoch_ms": round(fitted.epoch_ms, 4),
                        "seconds": round(fitted.seconds, 2),
                        "device": fitted.device,
                        "versions": versions(),
                        "commit": commit(),
                    }
                    future = pool.submit(score, fitted.embed().numpy(), data.y.numpy(), args.splits)
                    future.add_done_callback(keeper(args.record, row))


def keeper(file: Path, row: dict[str, Any]) -> Any:
    def keep(future: "Future[list[float]]") -> None:
        found = future.result()
        append_lines(file, [row | {"accuracy": [round(score, 5) for score in found]}])
        title = f"{row['dataset']} {row['preset']} seed {row['seed']}"
        print(f"{title}: {summarise(found).mean:.2f} ({row['seconds']} s)", flush=True)

    return keep


if __name__ == "__main__":
    main()
