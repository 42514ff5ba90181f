"""Time, memory and accuracy against the number of nodes; and what a sampled contrast costs.

    python benchmarks/scale.py --nodes 10000 100000 1000000 --record records/scale.jsonl
    python benchmarks/scale.py --accuracy cora photo --record records/sampled.jsonl

`--nodes` makes a block model of each size, trains `mux-hop` with preset `auto` and a sampled
contrast, embeds all nodes, and probes the embedding and its controls (the features, propagated
over no, one and two hops) on a sample of the nodes, the same for all of them. `--accuracy` trains
preset `best` on benchmark graphs with samples of several sizes and with all nodes, and scores it
on labels of the development half.
"""

import argparse
import json
import resource
import tempfile
import time
from dataclasses import asdict
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import torch

from muxgcl.evaluate import development_hash, development_splits, holdout, probe, summarise
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.files import append_lines
from muxgcl.io.load import load
from muxgcl.io.sbm import Sbm, make_sbm
from muxgcl.runs.cost import estimate
from muxgcl.runs.embedding import embed
from muxgcl.runs.environment import commit, peak_memory, pick_device, versions
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan
from muxgcl.runs.rates import calibrate
from muxgcl.runs.scipy_tables import features_table, scipy_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[])
    parser.add_argument("--classes", type=int, default=40)
    parser.add_argument("--accuracy", nargs="+", default=[], metavar="DATASET")
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 2048, 8192, 16384])
    parser.add_argument("--all-pairs", action="store_true", help="anchors and keys of all sizes")
    parser.add_argument("--anchors", type=int, default=2048, help="and keys, for --nodes")
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--model", nargs="*", default=[], metavar="KEY=NUMBER", help="of the graph")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sample", type=int, default=20_000, help="nodes that are scored")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--backend", default="auto", help="for --accuracy")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    if args.nodes:
        of_sizes(args)
    for name in args.accuracy:
        of_samples(args, name)


def overrides(args: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {} if args.epochs is None else {"epochs": args.epochs}
    return found | pairs_of(args.settings)


def pairs_of(given: list[str]) -> dict[str, Any]:
    """`KEY=VALUE`, with values as JSON writes them, or plain words."""
    found = {}
    for pair in given:
        key, value = pair.split("=", 1)
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
        if isinstance(found[key], list):
            found[key] = tuple(found[key])
    return found


# time and memory ---------------------------------------------------------------------------------


def of_sizes(args: argparse.Namespace) -> None:
    rows = [of_size(args, nodes) for nodes in args.nodes]
    for name in ("epoch_ms", "train_s", "process_mib") if len(rows) > 1 else ():
        x, y = ([log(row[key]) for row in rows] for key in ("nodes", name))
        print(f"{name} grows as nodes ** {np.polyfit(x, y, 1)[0]:.2f}")


def of_size(args: argparse.Namespace, nodes: int) -> dict[str, Any]:
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        model = Sbm(nodes=nodes, classes=args.classes, **pairs_of(args.model))
        make_sbm(Path(folder) / "graph", model)
        clock.stop("make_s")
        loaded = load(Path(folder) / "graph").tensors
    graph = Graph.from_data(loaded)
    clock.stop("load_s")
    plan = Plan.make(
        "mux-hop",
        "auto",
        "sbm",
        overrides(args),
        graph=graph,
        device=args.device,
        anchors=args.anchors,
        keys=args.anchors,
    )
    device = pick_device(plan.device)
    expected = estimate(plan, graph, calibrate(plan, graph))
    clock.stop("estimate_s")
    print(f"{nodes:,} nodes: {expected}", flush=True)
    fitted = fit(plan, graph, on_block=progress(plan.train.epochs))
    clock.stop("train_s")
    with peak_memory(device) as peak:
        z = embed(fitted.method, fitted.graph).numpy()
        clock.stop("embed_s")
    sample, scores = scored(graph, loaded.y.numpy(), z, args)
    clock.stop("score_s")
    row = {
        "kind": "scale",
        "nodes": nodes,
        "edges": (len(graph.adjacency.col) - nodes) // 2,
        "model": asdict(model),
        "anchors": plan.anchors,
        "keys": plan.keys,
        "columns": z.shape[1],
        **clock.seconds,
        "epoch_ms": round(fitted.epoch_ms, 2),
        "peak_mib": round(fitted.peak_mib),  # of training, above what was there when it began
        "embed_mib": round(peak.mib),
        "process_mib": round(held(device)),  # at the end: what was ever taken from the device
        "estimate": {"seconds": round(expected.seconds, 1), "mib": round(expected.bytes / 2**20)},
        "scored_nodes": sample,
        "accuracy": scores,
        "loss": fitted.loss,
        "settings": asdict(plan.settings) | asdict(plan.train),
        "device": fitted.device,
        "versions": versions(),
        "commit": commit(),
    }
    append_lines(args.record, [row])
    means = {name: round(summarise(found).mean, 2) for name, found in scores.items()}
    print(f"{nodes:,} nodes: {clock.seconds}, {row['process_mib']} MiB, {means}", flush=True)
    return row


def scored(
    graph: Graph, y: np.ndarray[Any, Any], z: np.ndarray[Any, Any], args: argparse.Namespace
) -> tuple[int, dict[str, list[float]]]:
    """Test accuracies of the embedding and of the controls, on a sample of the nodes.

    A tenth of it is to learn from, a tenth to choose C on, 40 % to test.
    """
    nodes = np.random.default_rng(0).permutation(len(y))[: args.sample]
    nodes.sort()
    x, propagation = (
        features_table(graph.features),
        scipy_rows(graph.adjacency.propagation().matrix),
    )
    once = propagation[nodes]
    tables = {"mux-hop": z[nodes], "raw": x[nodes], "A X": once @ x}
    tables["A^2 X"] = (once @ propagation) @ x
    found = {}
    for name, table in tables.items():
        found[name] = [round(a, 4) for a in holdout(table, y[nodes], count=args.splits).accuracies]
        print(f"  {name}: {summarise(found[name]).mean:.2f}", flush=True)
    return len(nodes), found


def held(device: torch.device) -> float:
    """MiB of GPU memory that this process has taken, or its largest resident memory."""
    if device.type == "cuda":
        return torch.cuda.memory_reserved(device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


class Clock:
    """Seconds between one stop and the next."""

    def __init__(self) -> None:
        self.last, self.seconds = time.perf_counter(), dict[str, float]()

    def stop(self, name: str) -> None:
        """Note the seconds since the last stop under a name."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds[name] = round(now - self.last, 2)
        self.last = now


def progress(epochs: int) -> Any:
    def tell(block: list[Any]) -> None:
        last = block[-1]
        if last.number % 25 == 0 or last.number == epochs:
            print(f"  epoch {last.number}: {last.loss:.4f}, {1000 * last.seconds:.0f} ms")

    return tell


# accuracy ----------------------------------------------------------------------------------------


def of_samples(args: argparse.Namespace, name: str) -> None:
    data = open_dataset(name, args.data_root)
    graph, y = Graph.from_data(data), data.y.numpy()
    sizes = [size for size in args.sizes if size < graph.num_nodes]
    pairs: list[tuple[int | None, int | None]] = [(None, None)]
    pairs += [(b, m) for b in sizes for m in sizes if args.all_pairs or b == m]
    lines = args.record.read_text().splitlines() if args.record.exists() else []
    known = (json.loads(line) for line in lines)
    names = ("dataset", "anchors", "keys", "seed", "backend")
    done = {tuple(row.get(key, "auto") for key in names) for row in known}
    for anchors, keys in pairs:
        for seed in range(args.seeds):
            if (name, anchors, keys, seed, args.backend) in done:
                continue
            plan = Plan.make(
                "mux-hop",
                "best",
                name,
                overrides(args),
                graph=graph,
                seed=seed,
                device=args.device,
                backend=args.backend,
                anchors=anchors,
                keys=keys,
            )
            fitted = fit(plan, graph)
            on = str(fitted.graph.device) if fitted.graph.device.type == "cuda" else None
            splits = development_splits(y, args.splits)
            found = probe(fitted.embed().numpy(), y, splits, device=on)
            row = {
                "kind": "sampled",
                "dataset": name,
                "nodes": graph.num_nodes,
                "anchors": anchors,
                "keys": keys,
                "seed": seed,
                "backend": args.backend,
                "labels": "development",
                "development": development_hash(y),
                "split_seed": 0,
                "accuracy": [round(a, 4) for a in found.accuracies],
                "seconds": round(fitted.seconds, 2),
                "epoch_ms": round(fitted.epoch_ms, 3),
                "peak_mib": round(fitted.peak_mib),
                "settings": asdict(plan.settings) | asdict(plan.train),
                "device": fitted.device,
                "versions": versions(),
                "commit": commit(),
            }
            append_lines(args.record, [row])
            mean = summarise(found.accuracies).mean
            print(f"{name} B={anchors} M={keys} seed {seed}: {mean:.2f} ({row['seconds']} s)")


if __name__ == "__main__":
    main()
