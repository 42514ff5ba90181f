"""Compare readouts of one training of mux-hop, by labels of the development half alone.

Trains preset `best` once for each graph and seed and judges many ways to make an embedding of it:
which scales, with which weights, beside which tables without training, and with which spectrum.
With unit rows Z of the readout and Z^T Z = V diag(s) V^T, a spectrum of power a is Z V s^(-a / 2):
0 turns the axes alone, 1 whitens. Appends one JSON line a readout.

    python benchmarks/readouts.py cora photo --seeds 2 --out records/readout-search.jsonl
"""

import argparse
import json
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SPLIT_SEED, FIRST_SEED = 4000, 400  # those of the search


def spectrum(table: Any, power: float, width: int = 0) -> Any:
    """Unit rows along their leading axes, each axis divided by its size to a power."""
    import torch

    unit = torch.nn.functional.normalize(table, dim=1)
    size, axes = torch.linalg.eigh((unit.T @ unit).double())
    size, axes = size.flip(0).clamp(min=1e-9), axes.flip(1)
    width = min(width or len(size), len(size), len(unit))
    scaled = axes[:, :width] * (size[:width] / size[0]).clamp(min=1e-6) ** (-power / 2)
    return unit @ scaled.to(unit.dtype)


def candidates(f: Any, graph: Any, walks: Any, weights: Any, features: float) -> Iterator[Any]:
    """(name, table, whether to cluster it) of each readout."""
    import torch

    from muxgcl.nn.perceptron import spread

    unit = torch.nn.functional.normalize
    hat = graph.adjacency.propagation()
    u = [unit(scale, dim=1) for scale in spread(hat, f, 6)]
    x = [unit(scale, dim=1) for scale in spread(hat, graph.dense_features(), 4)]
    w = unit(walks.float(), dim=1)
    scales = [rho * u[k] for k, rho in enumerate(weights)]

    def beside(*blocks: Any) -> Any:
        return torch.cat(blocks, 1)

    base = beside(*scales, features * x[2])
    yield "base", base, True
    for k in (0, 1, 2, 3, 4, 6):
        yield f"U{k}", u[k], True
    for weight in (0.0, 0.25, 1.0, 2.0):
        yield f"features {weight}", beside(*scales, weight * x[2]), weight == 0
    for k in (0, 1, 3, 4):
        yield f"A^{k} X", beside(*scales, features * x[k]), False
    yield "X, A^2 X", beside(*scales, features * x[0], features * x[2]), False
    yield "+U3", beside(base, u[3]), False
    yield "+U3,U4", beside(base, u[3], u[4]), True
    yield "+U4", beside(base, u[4]), False
    yield "+U6", beside(base, u[6]), False
    yield "U2,U3,U4", beside(*u[2:5], features * x[2]), True
    for weight in (0.25, 0.5, 1.0):
        yield f"walks {weight}", beside(base, weight * w), True
    yield "walks .5, U4", beside(base, u[4], 0.5 * w), True
    for power in (0.25, 0.5, 0.75):
        yield f"spectrum {power}", spectrum(base, power), True
        yield f"spectrum {power} of 512", spectrum(base, power, 512), power == 0.5
        yield f"spectrum {power} of 128", spectrum(base, power, 128), power == 0.5
    for width in (16, 64, 256):
        yield f"width {width}", spectrum(base, 0.0, width), True
        yield f"width {width} of U2", spectrum(u[2], 0.0, width), True
    yield "mean removed", base - base.mean(0), True


def look(job: dict[str, Any]) -> None:
    """One graph: train, judge, append."""
    import numpy as np
    import torch
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    torch.set_num_threads(2)
    from muxgcl.augment import clean
    from muxgcl.evaluate import development_hash, development_splits
    from muxgcl.evaluate.development import development_labels
    from muxgcl.evaluate.device_probe import answers
    from muxgcl.evaluate.probe import STRENGTHS
    from muxgcl.graph import Graph
    from muxgcl.io import open_dataset
    from muxgcl.runs.environment import commit, device_name, pick_device
    from muxgcl.runs.loop import Trainer
    from muxgcl.runs.plan import Plan, build
    from muxgcl.seeding import seeded

    dataset = job["dataset"]
    data = open_dataset(dataset, job["data_root"])
    labels = data.y.numpy()
    y = development_labels(labels)
    splits = development_splits(labels, 20, SPLIT_SEED)
    known = np.unique(np.concatenate([np.concatenate([s.train, s.val, s.test]) for s in splits]))
    device = pick_device(job["device"])
    graph = Graph.from_data(data).to(device)
    facts = {
        "kind": "readout-search",
        "dataset": dataset,
        "labels": "development",
        "development": development_hash(labels),
        "split_seed": SPLIT_SEED,
        "splits": 20,
        "device": device_name(device),
        "commit": commit(),
    }
    for seed in range(FIRST_SEED, FIRST_SEED + job["seeds"]):
        plan = Plan.make("mux-hop", "best", dataset, job["set"], seed=seed, device=job["device"])
        with seeded(seed, graph.device):
            method = build(plan, graph, Path(job["cache"]))
            method.prepare(graph)
            for _ in Trainer(method, graph, plan.train).blocks():
                pass
        method.eval()
        cfg = method.cfg
        with torch.no_grad():
            f = method.network.embed(clean(method.scaled(graph))).float()
        found = candidates(f, graph, method.patches[0], cfg.readout_weights, cfg.readout_features)
        for name, table, cluster in found:
            answer = answers(table, y, splits, STRENGTHS)
            right = [
                float((a.predicted == y[s.test]).mean())
                for a, s in zip(answer, splits, strict=True)
            ]
            row = {**facts, "seed": seed, "readout": name}
            row["accuracy"] = round(100 * sum(right) / len(right), 4)
            if cluster and job["cluster"] and seed == FIRST_SEED:
                rows = torch.nn.functional.normalize(table, dim=1).cpu().numpy()
                classes = len(np.unique(y[known]))
                given = [
                    KMeans(classes, n_init=1, random_state=k).fit_predict(rows)[known]
                    for k in range(2)
                ]
                truth = y[known]
                row["nmi"] = np.mean([normalized_mutual_info_score(truth, g) for g in given])
                row["ari"] = np.mean([adjusted_rand_score(truth, g) for g in given])
            with Path(job["out"]).open("a") as file:
                file.write(json.dumps(row) + "\n")


def main() -> None:
    """One process a graph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--cache", type=Path, default=Path("runs/.affinity"))
    parser.add_argument("--epochs", type=int, help="instead of the preset's")
    parser.add_argument("--no-cluster", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    os.environ["LOKY_MAX_CPU_COUNT"] = "2"
    shared = {
        "seeds": args.seeds,
        "set": {"epochs": args.epochs} if args.epochs else {},
        "device": args.device,
        "data_root": args.data_root,
        "cache": str(args.cache),
        "cluster": not args.no_cluster,
        "out": str(args.out),
    }
    spawn = multiprocessing.get_context("spawn")
    jobs = [{**shared, "dataset": name} for name in args.datasets]
    workers = [spawn.Process(target=look, args=(job,)) for job in jobs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
