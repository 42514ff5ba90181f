"""Search settings for a preset: judged on validation nodes alone, test is never read out.

Every candidate sees the same seeds and the same splits (their seeds are not those that results are
reported with). Appends one JSON line a candidate.

    python benchmarks/search.py cora --out records/search.jsonl --seeds 2
"""

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.evaluate import holdout
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.files import append_lines
from muxgcl.runs.environment import commit, device_name, pick_device
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan

SPLIT_SEED = 1000  # results are reported with other splits
FIRST_SEED = 100  # and other training seeds
SPACE: dict[str, list[Any]] = {
    "width": [256, 512],
    "temperature": [0.3, 0.4, 0.5, 0.7, 1.0],
    "scale_weights": [(0.2, 0.2, 0.6), (0.2, 0.6, 0.2), (0.8, 0.1, 0.1), (0, 0, 1)],
    "epochs": [150, 250, 400, 700],
    "lr": [5e-4, 1e-3],
    "activation": ["relu", "prelu", "rrelu"],
    "drop_edges": [(0.2, 0.4), (0.3, 0.5), (0.4, 0.5)],
    "mask_features": [(0.3, 0.4), (0.1, 0.1), (0.4, 0.5)],
    "affinity": ["deepwalk", "vgae"],
}


def candidates(space: dict[str, list[Any]], count: int, seed: int) -> list[dict[str, Any]]:
    """The preset as it is, then random draws from the space."""
    draw = random.Random(seed)
    drawn = [{key: draw.choice(values) for key, values in space.items()} for _ in range(count - 1)]
    return [{}, *drawn]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--method", default="mux-gcl")
    parser.add_argument("--preset", default="best")
    parser.add_argument("--space", default="{}", help="JSON: keys and the values to draw from")
    parser.add_argument("--try", dest="tried", help="JSON: a list of candidates, not drawn")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--draw", type=int, default=0, help="seed of the draws")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no candidate after that")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    data = open_dataset(args.dataset, args.data_root)
    y = data.y.numpy()
    graph = Graph.from_data(data)
    space = json.loads(args.space) or SPACE
    begin = time.monotonic()
    drawn = candidates(space, args.count, args.draw)
    for settings in json.loads(args.tried) if args.tried else drawn:
        if time.monotonic() - begin > args.seconds:
            break
        if "width" in settings and "projection" not in settings:
            settings |= {"projection": settings["width"], "projection_out": 128}
        scores, ms = [], 0.0
        for seed in range(FIRST_SEED, FIRST_SEED + args.seeds):
            plan = Plan.make(
                args.method, args.preset, args.dataset, settings, seed=seed, device=args.device
            )
            fitted = fit(plan, graph)
            result = holdout(fitted.embed().numpy(), y, count=args.splits, seed=SPLIT_SEED)
            scores.append([split.validation for split in result.splits])
            ms = fitted.epoch_ms
        row = {
            "method": args.method,
            "dataset": args.dataset,
            "preset": args.preset,
            "settings": settings,
            "validation": float(np.mean(scores)),
            "standard_error": float(np.std(np.mean(scores, 0), ddof=1) / np.sqrt(args.splits)),
            "per_seed": np.mean(scores, 1).tolist(),
            "splits": args.splits,
            "epoch_ms": ms,
            "device": device_name(pick_device(args.device)),
            "commit": commit(),
        }
        append_lines(args.out, [row])
        print(f"{row['validation']:.2f} {settings}", flush=True)


if __name__ == "__main__":
    main()
