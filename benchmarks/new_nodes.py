"""What is lost on nodes that training has not seen? One line for each graph, seed and table.

A tenth of the nodes is hidden with all their edges, a model is trained on the rest, and the hidden
nodes are embedded as `muxgcl embed RUN --new-nodes nodes.csv --new-edges edges.csv` embeds them:
with all their edges, with those to known nodes alone, and with none. A linear probe learns from
known nodes and classifies the hidden ones. Beside it stands the same probe on a model that was
trained on the whole graph. The features and A^2 X are scored in the same way.

    python benchmarks/new_nodes.py cora citeseer --seeds 3 --record records/new-nodes.jsonl

Labels: the probe learns from a tenth of the known nodes and chooses C on another tenth, of both
halves, as in protocol `holdout`; hidden nodes of the report half are counted (`accuracy`), in
`everywhere` those of both halves. Nothing is chosen here.
"""

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from muxgcl.app.new_nodes import grown
from muxgcl.app.options import LoadOptions
from muxgcl.app.source import known
from muxgcl.evaluate import (
    STRENGTHS,
    Split,
    development_hash,
    feature_controls,
    probe,
    random_split,
    report_half,
)
from muxgcl.evaluate.device_probe import answers
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.files import append_lines
from muxgcl.runs.committee import Committee, fit_members
from muxgcl.runs.environment import commit, device_name, pick_device, versions
from muxgcl.runs.plan import Plan
from muxgcl.runs.scipy_tables import features_table, scipy_rows
from muxgcl.tensors import Tensors

FIRST_SEED, SPLIT_SEED = 900, 9000  # no search and no table has these
PARTS = 10  # the k-th seed hides the k-th tenth of one random order of the nodes
CONTROLS = ("A^2 X", "raw")
Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Parted:
    """A graph without its hidden nodes, and what the hidden ones bring along."""

    kept: Array  # the known nodes, by their numbers in the whole graph
    hidden: Array
    rest: Tensors  # known node `kept[i]` is node i
    x: Array
    links: dict[str, Array | None]  # by case; hidden node `hidden[i]` is node `len(kept) + i`


def hide(data: Tensors, part: int) -> Parted:
    """Hide one tenth of the nodes."""
    nodes = data.num_nodes
    order = np.random.default_rng(SPLIT_SEED).permutation(nodes)
    hidden = np.sort(np.array_split(order, PARTS)[part])
    kept = np.setdiff1d(np.arange(nodes), hidden)
    place = np.empty(nodes, np.int64)
    place[kept], place[hidden] = np.arange(len(kept)), len(kept) + np.arange(len(hidden))
    ends = place[data.edge_index.numpy()]
    new = ends >= len(kept)
    rest = Tensors(x=data.x[kept], edge_index=torch.from_numpy(ends[:, ~new.any(0)]))
    links = {
        "all edges": ends[:, new.any(0)],
        "edges to known nodes": ends[:, new[0] ^ new[1]],
        "no edges": None,
    }
    return Parted(kept, hidden, rest, data.x[hidden].numpy(), links)


def grown_graphs(parted: Parted) -> Iterator[tuple[str, Graph]]:
    """Known and hidden nodes as one graph, case by case; the hidden ones come last."""
    rest = known(parted.rest)
    for case, links in parted.links.items():
        found = grown(rest, parted.x, links, LoadOptions())
        yield case, Graph.from_data(found.tensors)


def embed_hidden(committee: Committee, parted: Parted, device: torch.device) -> dict[str, Array]:
    """The hidden nodes' embeddings, case by case."""
    return {
        case: committee.embed(graph.to(device))[len(parted.kept) :].numpy()
        for case, graph in grown_graphs(parted)
    }


def control(graph: Graph, name: str) -> Any:
    """A table that needs no training, in numpy's or scipy's form."""
    propagation = scipy_rows(graph.adjacency.propagation().matrix)
    return feature_controls(features_table(graph.features), propagation)[name]


def splits_of(labels: Array, parted: Parted, count: int) -> list[Split]:
    """Train and validation among known nodes; test is the hidden nodes of the report half."""
    y = labels.copy()
    y[parted.hidden] = -1
    counted = report_half(labels)[parted.hidden]
    test, uncounted = parted.hidden[counted], parted.hidden[~counted & (labels[parted.hidden] >= 0)]
    drawn = [random_split(y, (SPLIT_SEED, number)) for number in range(count)]
    return [Split(split.train, split.val, test, uncounted) for split in drawn]


def score(z: Any, y: Array, splits: list[Split], device: torch.device) -> dict[str, list[float]]:
    """Accuracy in percent of each split, on test and with what is not counted."""
    if device.type != "cuda" or not isinstance(z, np.ndarray):
        found = probe(z, y, splits).splits
        pairs = [(one.accuracy, one.everywhere) for one in found]
    else:
        both = [Split(s.train, s.val, np.r_[s.test, s.uncounted]) for s in splits]
        there = answers(torch.from_numpy(z).to(device), y, both, STRENGTHS)
        right = [a.predicted == y[s.test] for a, s in zip(there, both, strict=True)]
        counts = [len(s.test) for s in splits]
        pairs = [
            (100 * float(r[:n].mean()), 100 * float(r.mean()))
            for r, n in zip(right, counts, strict=True)
        ]
    return {
        "accuracy": [round(accuracy, 5) for accuracy, _ in pairs],
        "everywhere": [round(everywhere, 5) for _, everywhere in pairs],
    }


def in_order(known_rows: Any, hidden_rows: Any, parted: Parted) -> Any:
    """One table in the order of the whole graph."""
    order = np.argsort(np.r_[parted.kept, parted.hidden])
    if isinstance(known_rows, np.ndarray) and isinstance(hidden_rows, np.ndarray):
        return np.concatenate([known_rows, hidden_rows])[order]
    return sparse.csr_array(sparse.vstack([sparse.csr_array(known_rows), hidden_rows]))[order]


def tables_of(
    data: Tensors, parted: Parted, plan: Plan, device: torch.device
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each method's name, its tables by case, and what training it took."""
    whole, rest = Graph.from_data(data), Graph.from_data(parted.rest)
    _, full, before = fit_members(plan, whole)
    committee, z, fitted = fit_members(plan, rest)
    hidden = embed_hidden(committee, parted, device)
    cases = {case: in_order(z.numpy(), rows, parted) for case, rows in hidden.items()}
    took = {
        "preset": plan.preset,
        "settings": asdict(plan.settings) | asdict(plan.train),
        "sample": plan.anchors,
        "seconds": [round(before.seconds, 2), round(fitted.seconds, 2)],
    }
    yield plan.method, {"in training": full.numpy(), **cases}, took
    for name in CONTROLS:
        rows, count = control(rest, name), len(parted.kept)
        cases = {
            case: in_order(rows, control(graph, name)[count:], parted)
            for case, graph in grown_graphs(parted)
        }
        yield name, {"in training": control(whole, name), **cases}, {}


def main() -> None:
    """Hide, train, embed, score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--method", default="mux-hop")
    parser.add_argument("--preset", default="best")
    parser.add_argument("--seeds", type=int, default=3, help=f"at most {PARTS}")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--sample", type=int, default=None, help="as --anchors and --negatives")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    device = pick_device(args.device)
    for name in args.datasets:
        data = open_dataset(name, args.data_root)
        labels = data.y.numpy()
        for part in range(args.seeds):
            parted = hide(data, part)
            splits = splits_of(labels, parted, args.splits)
            plan = Plan.make(
                args.method,
                args.preset,
                name,
                {} if args.epochs is None else {"epochs": args.epochs},
                graph=Graph.from_data(parted.rest),
                seed=FIRST_SEED + part,
                device=args.device,
                anchors=args.sample,
                keys=args.sample,
            )
            for method, tables, took in tables_of(data, parted, plan, device):
                row = {
                    "kind": "new-nodes",
                    "method": method,
                    "dataset": name,
                    "seed": plan.seed,
                    "hidden": len(parted.hidden),
                    "counted": len(splits[0].test),
                    "cases": {
                        case: score(table, labels, splits, device) for case, table in tables.items()
                    },
                    "labels": "report",
                    "development": development_hash(labels),
                    "split_seed": SPLIT_SEED,
                    "splits": args.splits,
                    **took,
                    "device": device_name(device),
                    "versions": versions(),
                    "commit": commit(),
                }
                append_lines(args.record, [row])
                means = {
                    case: round(float(np.mean(found["accuracy"])), 2)
                    for case, found in row["cases"].items()
                }
                print(name, plan.seed, method, means, flush=True)


if __name__ == "__main__":
    main()
