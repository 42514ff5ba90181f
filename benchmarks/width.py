"""How many columns does an embedding need? One line for each graph, seed and width.

Every training is compressed to each width (`runs/compress.py`) and scored beside what is read out
in full, on the same splits: of the development half, to choose a width, or of the report half.
`--anchors 1536` trains as `muxgcl run` does where a step contrasts so many nodes.

    python benchmarks/width.py cora photo --seeds 3 --record records/width.jsonl
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from muxgcl.app.budget import sampled_settings
from muxgcl.evaluate import (
    STRENGTHS,
    Split,
    development_hash,
    development_splits,
    holdout_splits,
    probe,
)
from muxgcl.evaluate.development import development_labels
from muxgcl.evaluate.device_probe import answers
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.files import append_lines
from muxgcl.runs.committee import fit_members
from muxgcl.runs.compress import learn_map
from muxgcl.runs.environment import commit, device_name, pick_device, versions
from muxgcl.runs.plan import Plan

WIDTHS = (64, 128, 256, 512, 1024, 2048, 3072)
SPLIT_SEED = 5000  # no search and no table has these splits


def score(z: torch.Tensor, y: Any, splits: Sequence[Split], device: torch.device) -> list[float]:
    """Accuracy in percent on every split."""
    if device.type != "cuda":
        return probe(z.numpy(), y, splits).accuracies
    found = answers(z.to(device), y, splits, STRENGTHS)
    pairs = zip(found, splits, strict=True)
    return [100 * float((answer.predicted == y[split.test]).mean()) for answer, split in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--method", default="mux-hop")
    parser.add_argument("--preset", default="best")
    parser.add_argument("--members", type=int, default=1)
    parser.add_argument("--seed", type=int, default=500, help="the first one")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--labels", choices=["development", "report"], default="development")
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument(
        "--anchors", type=int, help="nodes a step, with the settings that `run` gives a sample"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    device = pick_device(args.device)
    for name in args.datasets:
        data = open_dataset(name, args.data_root)
        labels, graph = data.y.numpy(), Graph.from_data(data)
        if args.labels == "development":
            splits = development_splits(labels, args.splits, SPLIT_SEED)
            y = development_labels(labels)
        else:
            splits, y = holdout_splits(labels, args.splits, SPLIT_SEED), labels
        for seed in range(args.seed, args.seed + args.seeds * args.members, args.members):
            plan = Plan.make(
                args.method,
                args.preset,
                name,
                {} if args.epochs is None else {"epochs": args.epochs},
                graph=graph,
                seed=seed,
                device=args.device,
                members=args.members,
            )
            if args.anchors is not None:
                settings = replace(plan.settings, **sampled_settings(plan))
                plan = replace(plan, settings=settings, anchors=args.anchors, keys=args.anchors)
            _, z, fitted = fit_members(plan, graph)
            columns = z.shape[1]
            facts = {
                "kind": "width",
                "method": args.method,
                "dataset": name,
                "preset": args.preset,
                "members": args.members,
                "seed": seed,
                "labels": args.labels,
                "development": development_hash(labels),
                "split_seed": SPLIT_SEED,
                "columns": columns,
                "epochs": plan.train.epochs,
                "anchors": args.anchors,
                "seconds": round(fitted.seconds, 2),
                "device": device_name(device),
                "versions": versions(),
                "commit": commit(),
            }
            widths = [width for width in WIDTHS if width < columns]
            # the leading eigenvectors of a wide map are those of a narrow one
            columns_of = learn_map(z, max(widths), device) if widths else None
            for width in [*widths, None]:
                table = z if width is None or columns_of is None else z @ columns_of[:, :width]
                found = score(table, y, splits, device)
                row = {**facts, "width": width, "accuracy": [round(one, 5) for one in found]}
                append_lines(args.record, [row])
                print(f"{name} seed {seed} width {width or columns}: {np.mean(found):.2f}")


if __name__ == "__main__":
    main()
