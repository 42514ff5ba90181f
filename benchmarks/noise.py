"""What helps where features are mostly noise: settings and weights of scales, on block models.

Makes degree-corrected block models (`muxgcl datasets make sbm`) whose words say little of a node's
class, trains `mux-hop` as `auto` has it with some settings changed, and reads every training out
with several weights of its scales. Appends one JSON line a training.

    python benchmarks/noise.py --signals 0.05 0.08 --record records/noise.jsonl
    python benchmarks/noise.py --signals 0.05 0.08 0.12 0.2 --agreement cora photo --record ...

With `--agreement` nothing is trained: how far two halves of the features agree is measured, and how
far edges are from what chance gives, on the block models and on the named graphs.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import normalize

from muxgcl.augment import clean
from muxgcl.evaluate import development_splits, probe
from muxgcl.evaluate.development import development_labels
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.files import append_lines
from muxgcl.io.load import load
from muxgcl.io.sbm import Sbm, make_sbm
from muxgcl.nn.perceptron import spread
from muxgcl.runs.agreement import agreement
from muxgcl.runs.auto import FOR_NOISE, OF_FEATURES, settings_for
from muxgcl.runs.edge_signal import edge_signal
from muxgcl.runs.environment import commit, device_name, pick_device, versions
from muxgcl.runs.loop import Trainer
from muxgcl.runs.plan import Plan, build
from muxgcl.seeding import seeded

CHANGES: dict[str, dict[str, Any]] = {
    "auto": {},
    "less on scale 0": {"scale_weights": (0.1, 0.3, 0.6)},
    "none on scale 0": {"scale_weights": (0.0, 0.5, 0.5)},
    "four hops": {"hops": 4, "scale_weights": (0.2, 0.2, 0.2, 0.2, 0.2)},
    "four hops, none on scale 0": {"hops": 4, "scale_weights": (0.0, 0.1, 0.2, 0.3, 0.4)},
    "one convolution": {"convolutions": 1},
    "two convolutions": {"convolutions": 2},
    "batch norm": {key: FOR_NOISE[key] for key in ("norm", "anchors")},
}
WEIGHTS = {  # of scales 0, 1 and 2, of propagated features, of the features as they are
    "equal": (1.0, 1.0, 1.0, 0.5, 0.5),
    "last": (0.0, 0.0, 1.0, 0.0, 0.0),
    "last, features": (0.0, 0.0, 1.0, 0.5, 0.0),
    "a quarter of scale 0": (0.25, 0.75, 1.0, 0.5, 0.125),
    "auto": (*FOR_NOISE["readout_weights"], *(FOR_NOISE[key] for key in OF_FEATURES)),
    "a tenth of scale 0": (0.1, 0.5, 1.0, 0.5, 0.05),
    "none of scale 0": (0.0, 0.5, 1.0, 0.5, 0.0),
    "none of scale 0, more features": (0.0, 0.5, 1.0, 1.0, 0.0),
}


def judged(tables: dict[str, Any], y: Any, splits: Any, device: Any) -> dict[str, float]:
    """Accuracy of each table on splits of the development half."""
    on = str(device) if device.type == "cuda" else None
    found = {}
    for name, table in tables.items():
        right = probe(table.float().cpu().numpy(), y, splits, device=on).accuracies
        found[name] = round(sum(right) / len(right), 3)
    return found


def agreed(graph: Graph, facts: dict[str, Any], record: Path) -> None:
    """How far halves of the features agree, and how far edges are from chance, for a few draws."""
    each = [found for seed in range(4) if (found := agreement(graph, 2, seed)) is not None]
    shares = [round(before / after, 4) for before, after in each]
    signals = [found for seed in range(4) if (found := edge_signal(graph, seed)) is not None]
    edges = [[round(one.features, 2), round(one.edges, 2)] for one in signals]
    row = {"kind": "agreement", **facts, "pairs": each, "shares": shares, "edges": edges}
    append_lines(record, [row | {"commit": commit()}])
    print(facts, shares, edges, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--signals", type=float, nargs="+", default=[0.05, 0.08])
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--changes", nargs="+", default=list(CHANGES), choices=CHANGES)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sample", type=int, help="nodes a step; by default all")
    parser.add_argument("--agreement", nargs="*", metavar="GRAPH")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    device = pick_device(args.device)
    for name in args.agreement or ():
        graph = Graph.from_data(open_dataset(name, args.data_root))
        agreed(graph, {"dataset": name}, args.record)
    for signal in args.signals:
        model = Sbm(nodes=args.nodes, classes=args.classes, signal=signal)
        with tempfile.TemporaryDirectory() as folder:
            make_sbm(Path(folder) / "sbm", model)
            data = load(Path(folder) / "sbm").tensors
            graph, labels = Graph.from_data(data).to(device), data.y.numpy()
        facts: dict[str, Any] = {"nodes": args.nodes, "classes": args.classes, "signal": signal}
        if args.agreement is not None:
            agreed(graph, facts, args.record)
            continue
        sizes = (graph.num_nodes, graph.num_features, len(graph.adjacency.col))
        y, splits = development_labels(labels), development_splits(labels, args.splits, 4000)
        hat = graph.adjacency.propagation()
        with torch.no_grad():
            x = [normalize(t, dim=1) for t in spread(hat, graph.dense_features(), 3)]
        facts |= {
            "kind": "noise",
            "splits": args.splits,
            "device": device_name(device),
            "commit": commit(),
        }
        controls = {f"A^{k} X": table for k, table in enumerate(x)}
        controls["side by side"] = torch.cat(x[:3], 1)
        row = {**facts, "training": "none", "accuracy": judged(controls, y, splits, device)}
        append_lines(args.record, [row])
        print(signal, row["accuracy"], flush=True)
        for name in args.changes:
            settings = settings_for(*sizes)[0] | {"readout_weights": ()} | CHANGES[name]
            settings |= {"epochs": args.epochs} if args.epochs else {}
            given = {"seed": 400, "device": args.device}
            given |= {"anchors": args.sample, "keys": args.sample}
            plan = Plan.make("mux-hop", "best", "default", settings, **given)
            begin = time.perf_counter()
            with seeded(plan.seed, device):
                method = build(plan, graph, None)
                method.prepare(graph)
                for _ in Trainer(method, graph, plan.train, rounds=plan.rounds(graph)).blocks():
                    pass
            took = time.perf_counter() - begin
            method.eval()
            with torch.no_grad():
                f = method.network.embed(clean(method.scaled(graph))).float()
                u = [normalize(scale, dim=1) for scale in spread(hat, f, 4)]
            tables = {f"U{k}": scale for k, scale in enumerate(u)}
            for told, (*scales, propagated, raw) in WEIGHTS.items():
                blocks = [w * u[k] for k, w in enumerate(scales) if w]
                blocks += [w * t for w, t in ((propagated, x[2]), (raw, x[0])) if w]
                tables[told] = torch.cat(blocks, 1)
            row = {**facts, "training": name, "changes": CHANGES[name], "seed": plan.seed}
            row |= {"epochs": plan.train.epochs, "sample": args.sample, "seconds": round(took, 2)}
            row |= {"accuracy": judged(tables, y, splits, device), "versions": versions()}
            append_lines(args.record, [row])
            print(signal, name, row["accuracy"], f"{took:.1f} s", flush=True)


if __name__ == "__main__":
    main()
