"""Does the default beat every control on graphs of any kind? Each kind of graph is made here.

Each kind says how edges and features go with the classes: alike neighbours or opposite ones, edges
or features that say nothing, words, measurements, a table of independent columns, hubs, islands.
`muxgcl run` trains on each as it does on a graph of a user's own (preset `auto`) and scores the
controls. One draw of the graphs is for choosing settings, others are for reporting. Appends one
JSON line a run; what is recorded is not run again.

    python benchmarks/any_graph.py --draws 100 101 --record records/any-graph.jsonl
"""

import argparse
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch_geometric.data import Data

from muxgcl import RunOptions, run
from muxgcl.io.files import append_lines
from muxgcl.runs.environment import commit, device_name, pick_device, versions

WORDS, PER_NODE = 400, 18  # how many there are, and how many a node has
COLUMNS = 32  # of measurements, and of a table
LEVELS = 20  # of a category that has nothing to do with the class


@dataclass(frozen=True, slots=True)
class Kind:
    """How a graph is made.

    Attributes:
        edges: "alike" (to the own class), "opposite" (to the next class) or "random".
        features: "words" (a topic a class), "measured" (a cloud of points a class), "table" (the
            class is a function of independent columns), "categories" (three columns: one names the
            class in a part of the nodes, one halves the classes, one says nothing) or "none".
        pure: the share of edges that go where `edges` says; the others go anywhere.
        signal: how much of a node's features its class decides.
        nodes: how many.
        classes: how many.
        degree: neighbours of a node, in the mean; edges that are drawn twice count once.
        heavy: whether degrees have a heavy tail.
        islands: the share of nodes that have no edge.
        rare: whether each class is half as large as the one before.
        columns: of measurements, and of a table.
    """

    edges: Literal["alike", "opposite", "random"] = "alike"
    features: Literal["words", "measured", "table", "categories", "none"] = "words"
    pure: float = 0.75
    signal: float = 0.4
    nodes: int = 2000
    classes: int = 6
    degree: float = 5.0
    heavy: bool = False
    islands: float = 0.0
    rare: bool = False
    columns: int = COLUMNS


KINDS = {
    "words, alike neighbours": Kind(),
    "faint words, alike neighbours": Kind(signal=0.1, degree=8),
    "words, hardly alike neighbours": Kind(pure=0.25),
    "words, random edges": Kind(edges="random"),
    "words, opposite neighbours": Kind(edges="opposite"),
    "faint words, opposite neighbours": Kind(edges="opposite", signal=0.1, degree=8),
    "measurements, alike neighbours": Kind(features="measured"),
    "measurements, random edges": Kind(edges="random", features="measured"),
    "measurements, opposite neighbours": Kind(edges="opposite", features="measured"),
    "a table, alike neighbours": Kind(features="table"),
    "a table, random edges": Kind(edges="random", features="table"),
    "no features, alike neighbours": Kind(features="none", degree=8),
    "hubs": Kind(heavy=True),
    "a dense graph": Kind(degree=60, pure=0.4),
    "rare classes": Kind(rare=True),
    "islands": Kind(islands=0.5),
    "a small graph": Kind(nodes=150, classes=3),
    "many classes": Kind(classes=30),
    "four measurements, alike neighbours": Kind(features="measured", columns=4, signal=0.7),
    "four measurements, opposite neighbours": Kind(
        edges="opposite", features="measured", columns=4, signal=0.7
    ),
    "four measurements, random edges": Kind(
        edges="random", features="measured", columns=4, signal=0.7
    ),
    "two measurements, a small graph": Kind(
        features="measured", columns=2, signal=1.0, nodes=300, classes=3
    ),
    "categories, alike neighbours": Kind(features="categories"),
    "categories, random edges": Kind(edges="random", features="categories"),
}


def make(kind: Kind, seed: int | list[int]) -> Data:
    """A graph of this kind, the same for the same seed."""
    chance = np.random.default_rng(seed)
    share = 0.5 ** np.arange(kind.classes) if kind.rare else np.ones(kind.classes)
    x, y = _features(kind, chance, share / share.sum())
    members = [np.flatnonzero(y == c) for c in range(kind.classes)]
    linked = np.flatnonzero(chance.random(kind.nodes) >= kind.islands)
    weight = chance.pareto(1.5, kind.nodes) + 0.2 if kind.heavy else np.ones(kind.nodes)
    mass = weight[linked] / weight[linked].sum()
    source = chance.choice(linked, int(kind.nodes * kind.degree / 2), p=mass)
    target = chance.choice(linked, len(source), p=mass)
    if kind.edges != "random":
        step = 1 if kind.edges == "opposite" else 0
        led = chance.random(len(source)) < kind.pure
        for c in range(kind.classes):
            there = np.intersect1d(members[(c + step) % kind.classes], linked)
            mine = np.flatnonzero(led & (y[source] == c))
            if len(there):
                p = weight[there] / weight[there].sum()
                target[mine] = chance.choice(there, len(mine), p=p)
    edges = np.stack([source, target])[:, source != target]
    index = np.unique(np.concatenate([edges, edges[::-1]], 1), axis=1)
    data = Data(edge_index=torch.from_numpy(index), y=torch.from_numpy(y), num_nodes=kind.nodes)
    if x is not None:
        data.x = torch.from_numpy(x)
    return data


def _features(kind: Kind, chance: np.random.Generator, share: Any) -> tuple[Any, Any]:
    n, classes = kind.nodes, kind.classes
    if kind.features == "table":  # the class is the largest of some sums of columns
        x = chance.standard_normal((n, kind.columns)).astype(np.float32)
        return x, (x @ chance.standard_normal((kind.columns, classes)) + np.log(share)).argmax(1)
    y = chance.choice(classes, n, p=share)
    if kind.features == "none":
        return None, y
    if kind.features == "measured":
        centre = kind.signal * chance.standard_normal((classes, kind.columns))
        return (centre[y] + chance.standard_normal((n, kind.columns))).astype(np.float32), y
    if kind.features == "categories":
        named = np.where(chance.random(n) < kind.signal, y, chance.integers(classes, size=n))
        half = np.where(chance.random(n) < kind.signal, y % 2, chance.integers(2, size=n))
        columns = (named, classes), (half, 2), (chance.integers(LEVELS, size=n), LEVELS)
        return np.hstack([np.eye(k, dtype=np.float32)[one] for one, k in columns]), y
    common = 1 / np.arange(1, WORDS + 1)
    topics = chance.dirichlet(np.full(WORDS, 0.05), classes)
    x = np.zeros((n, WORDS), np.float32)
    for i in range(n):
        topical = chance.binomial(PER_NODE, kind.signal)
        said = chance.choice(WORDS, topical, p=topics[y[i]])
        rest = chance.choice(WORDS, PER_NODE - topical, p=common / common.sum())
        x[i, said] = x[i, rest] = 1
    return x, y


def judged(graph: Data, seed: int, settings: dict[str, Any], splits: int) -> dict[str, Any]:
    """One run, as a user would start it, and its controls on the same splits."""
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions(
            preset="auto", settings=settings, seed=seed, splits=splits, out=folder, report=False
        )
        begin = time.perf_counter()
        result = run(graph, options)
    found = {"mux-hop": result.scores["holdout"]}
    found |= {k: one["holdout"] for k, one in result.scores["controls"].items() if "holdout" in one}
    return {
        "seconds": round(time.perf_counter() - begin, 1),
        "settings": asdict(result.plan.settings),
        "sample": result.plan.anchors,
        "accuracy": {k: round(one["accuracy"]["mean"], 3) for k, one in found.items()},
        "verdict": None if result.verdict is None else result.verdict.to_dict(),
    }


def _name(graph: str, draw: int, given: dict[str, Any], splits: int) -> str:
    return json.dumps([graph, draw, given, splits], sort_keys=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS, metavar="KIND")
    parser.add_argument("--draws", type=int, nargs="+", default=[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--set", type=json.loads, default={}, help="settings, as JSON")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    known = set()
    if args.record.is_file():
        rows = [json.loads(line) for line in args.record.read_text().splitlines()]
        known = {_name(row["graph"], row["draw"], row["given"], row["splits"]) for row in rows}
    for draw in args.draws:
        for name in args.kinds:
            if _name(name, draw, args.set, args.splits) in known:
                continue
            graph = make(KINDS[name], [draw, list(KINDS).index(name)])
            row = {
                "kind": "any graph",
                "graph": name,
                "draw": draw,
                "given": args.set,
                **judged(graph, draw, args.set, args.splits),
                "splits": args.splits,
                "made": asdict(KINDS[name]),
                "edges": graph.num_edges,
                "device": device_name(pick_device("auto")),
                "versions": versions(),
                "commit": commit(),
            }
            append_lines(args.record, [row])
            best = max(row["accuracy"], key=lambda k: (k != "mux-hop", row["accuracy"][k]))
            print(
                f"{draw:3d} {name:36s} {row['seconds']:6.1f} s  {row['accuracy']['mux-hop']:6.2f}  "
                f"{row['accuracy'][best]:6.2f} ({best})",
                flush=True,
            )


if __name__ == "__main__":
    main()
