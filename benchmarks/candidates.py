"""Train listed settings on several graphs, by labels of the development half alone.

    python benchmarks/candidates.py general --device cuda --record records/general-search.jsonl
    python benchmarks/candidates.py sampled --device cuda --record records/sampled-search.jsonl
    python benchmarks/candidates.py fanout --device cpu --record records/fanout-search.jsonl
    python benchmarks/candidates.py short --device cpu --record records/short-search.jsonl
    python benchmarks/candidates.py everyday --device cpu --record records/everyday-search.jsonl
    python benchmarks/candidates.py layers --device cuda --record records/layers-search.jsonl

`general` asks which settings suit any graph: each candidate is trained on all five, and `auto`
takes the one that is best on average. `sampled` asks what a small sample of nodes a step needs to
learn soon: norms, widths and sizes of the sample, judged several times on the way. `fanout` lets
its nodes look at some of their neighbours. `short` compares what `auto` has for an exact training
with settings for a short sampled one. `everyday` is `general` for a CPU, where steps sample nodes.
All of these train mux-hop; `layers` is `general` for mux-gcl and grace.
Appends one JSON line a look; what is recorded is not trained again.
"""

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

SPLIT_SEED, FIRST_SEED = 4000, 400  # those of the search
GRAPHS = ("pubmed", "computers", "photo", "citeseer", "cora")
SMALL = ("cora", "citeseer")
BY_LAYERS = ("mux-gcl", "grace")

Job = dict[str, Any]  # method, dataset, preset, settings, anchors, seed, looks


def half(fourth: dict[str, tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
    """Half of all combinations of four settings, such that no main effect hides another."""
    rates, edges, temperatures = (0.4, 0.6), (0.4, 0.7), (0.2, 0.3)
    ((name, values),) = fourth.items()
    for a, b, c, d in product(range(2), repeat=4):
        if (a + b + c + d) % 2 == 0:
            yield {
                "zero_bias": True,
                "drop_features": rates[a],
                "dropout": rates[a],
                "drop_edges": (edges[b], edges[b]),
                "temperature": temperatures[c],
                name: values[d],
            }


def length(dataset: str) -> dict[str, Any]:
    """How long `auto` trains, and how fast."""
    return {"epochs": 200, "lr": 5e-4} if dataset in SMALL else {"epochs": 400, "lr": 1e-3}


def seeds(dataset: str) -> range:
    """Of the trainings of a candidate: two where they are short."""
    return range(FIRST_SEED, FIRST_SEED + (2 if dataset in SMALL else 1))


def general() -> Iterator[Job]:
    """What suits every graph, where all nodes are contrasted."""
    for changes, name in product(half({"anchors": ("last", "all")}), GRAPHS):
        for seed in seeds(name):
            epochs = length(name)["epochs"]
            looks = (epochs * 2 // 3, epochs)
            yield job(name, "default", changes | length(name), None, seed, looks)


def everyday() -> Iterator[Job]:
    """What suits every graph on a CPU, where a step samples nodes.

    Half of all combinations with the last scale as anchors; what a sample had before; the two best
    of the first with every scale as an anchor.
    """
    sizes = {"cora": 512, "citeseer": 768, "photo": 1024, "computers": 1024, "pubmed": 2048}
    common = {"hidden": 1024, "fanout": 5}
    first = [one | {"anchors": "last"} for one in half({"norm": ("layer", "batch")})]
    mild = {"drop_features": 0.4, "dropout": 0.4, "temperature": 0.3, "zero_bias": True}
    before = mild | {"drop_edges": (0.7, 0.7), "norm": "batch", "anchors": "last"}
    then = [
        mild | {"drop_edges": (edges, edges), "norm": norm, "anchors": "all"}
        for norm, edges in (("layer", 0.7), ("batch", 0.4))
    ]
    for changes, name in product([*first, before, *then], GRAPHS):
        for seed in seeds(name):
            epochs = length(name)["epochs"]
            settings = common | changes | length(name)
            yield job(name, "default", settings, sizes[name], seed, (epochs,))


def sampled() -> Iterator[Job]:
    """Norm, width and size of the sample; biases begin at zero."""
    widths = ((2048, 1024), (1024, 1024), (512, 1024), (1024, 512), (512, 256))
    for name, sizes in {"pubmed": (256, 512, 1024), "computers": (512,), "photo": (512,)}.items():
        for norm, (hidden, width), size in product(("layer", "batch"), widths, sizes):
            changes = {"zero_bias": True, "norm": norm, "hidden": hidden, "width": width}
            changes |= {"lr": 1e-3, "epochs": 600}
            yield job(name, name, changes, size, FIRST_SEED, (150, 300, 600))
    for size in (256, 512):  # the preset as it is
        yield job("pubmed", "pubmed", {"epochs": 600}, size, FIRST_SEED, (150, 300, 600))


def fanout() -> Iterator[Job]:
    """All neighbours of a node, or some: on a CPU, where only what a sample needs is computed."""
    for name, some in product(("pubmed", "photo"), (0, 3, 5)):
        changes = {"zero_bias": True, "fanout": some, "hidden": 512, "width": 256}
        changes |= {"lr": 1e-3, "epochs": 200}
        yield job(name, "default", changes, 256, FIRST_SEED, (200,))


def short() -> Iterator[Job]:
    """A sampled training of few steps: the settings of an exact one, or less to learn from."""
    common = {"zero_bias": True, "hidden": 1024, "fanout": 5, "lr": 1e-3, "epochs": 300}
    exact = {"drop_features": 0.6, "dropout": 0.6, "drop_edges": (0.4, 0.4), "anchors": "all"}
    sooner = {"drop_features": 0.4, "dropout": 0.4, "drop_edges": (0.7, 0.7), "anchors": "last"}
    exact |= {"temperature": 0.2, "norm": "layer"}
    sooner |= {"temperature": 0.3, "norm": "batch"}
    for name, changes in product(("pubmed", "computers"), (sooner, exact)):
        yield job(name, "default", common | changes, 512, FIRST_SEED, (300,))


def layers() -> Iterator[Job]:
    """What suits every graph where the network is inside the propagation."""
    drops = (
        {"drop_edges": (0.3, 0.5), "mask_features": (0.1, 0.1)},
        {"drop_edges": (0.4, 0.5), "mask_features": (0.3, 0.4)},
        {"drop_edges": (0.6, 0.7), "mask_features": (0.5, 0.5)},
    )
    for method, drop, temperature, name in product(BY_LAYERS, drops, (0.3, 0.5), GRAPHS):
        width = 512 if name in SMALL else 256
        widths = {"width": width, "projection": width, "projection_out": 128}
        changes = {**drop, "temperature": temperature, **widths, **length(name)}
        for seed in seeds(name):
            epochs = length(name)["epochs"]
            yield job(name, "default", changes, None, seed, (epochs,), method)


DESIGNS = {
    "general": general,
    "sampled": sampled,
    "fanout": fanout,
    "short": short,
    "everyday": everyday,
    "layers": layers,
}


def job(
    dataset: str,
    like: str,
    changes: dict[str, Any],
    anchors: int | None,
    seed: int,
    looks: tuple[int, ...],
    method: str = "mux-hop",
) -> Job:
    """One training: what preset `best` has for a graph, changed."""
    return {
        "method": method,
        "dataset": dataset,
        "like": like,
        "changes": changes,
        "anchors": anchors,
        "seed": seed,
        "looks": looks,
    }


def name_of(row: Job) -> str:
    """What tells one training from another."""
    keys = ("dataset", "like", "changes", "anchors", "seed")
    method = row.get("method", "mux-hop")  # which early records do not name
    return json.dumps([method, *(row[key] for key in keys)], sort_keys=True)


def train(todo: Job, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One record for each look."""
    from muxgcl.evaluate import development_hash, development_splits, probe
    from muxgcl.evaluate.development import development_labels
    from muxgcl.graph import Graph
    from muxgcl.io import open_dataset
    from muxgcl.runs.embedding import embed
    from muxgcl.runs.environment import commit, device_name, pick_device, versions
    from muxgcl.runs.heap import reused_memory
    from muxgcl.runs.loop import Trainer
    from muxgcl.runs.plan import Plan, build
    from muxgcl.seeding import seeded

    name, size = todo["dataset"], todo["anchors"]
    data = open_dataset(name, args.data_root)
    device = pick_device(args.device)
    graph, labels = Graph.from_data(data).to(device), data.y.numpy()
    y, splits = development_labels(labels), development_splits(labels, args.splits, SPLIT_SEED)
    given = {"seed": todo["seed"], "device": args.device, "anchors": size, "keys": size}
    plan = Plan.make(todo["method"], "best", todo["like"], todo["changes"], **given)
    begin, spent = time.perf_counter(), 0.0
    with seeded(plan.seed, device), reused_memory(device):
        method = build(plan, graph, args.cache)
        method.prepare(graph)
        method.milestones = tuple(sorted({*method.milestones, *todo["looks"]}))
        trainer = Trainer(method, graph, plan.train, rounds=plan.rounds(graph))
        for _ in trainer.blocks():
            if trainer.epoch not in todo["looks"]:
                continue
            so_far = time.perf_counter() - begin - spent
            table = embed(method, graph).float().numpy()
            on = str(device) if device.type == "cuda" else None
            right = probe(table, y, splits, device=on).accuracies
            yield {
                "kind": args.design,
                **{key: todo[key] for key in todo if key != "looks"},
                "epochs": trainer.epoch,
                "accuracy": round(sum(right) / len(right), 4),
                "seconds": round(so_far, 2),
                "labels": "development",
                "development": development_hash(labels),
                "split_seed": SPLIT_SEED,
                "splits": args.splits,
                "device": device_name(device),
                "versions": versions(),
                "commit": commit(),
            }
            spent = time.perf_counter() - begin - so_far


def work(number: int, todo: Any, lock: Any, args: argparse.Namespace, until: float) -> None:
    """One process: the longest trainings first if its number is small, else the shortest."""
    import torch

    from muxgcl.io.files import append_lines

    torch.set_num_threads(1)
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"
    while time.time() < until:
        with lock:
            if not len(todo):
                return
            mine = todo.pop(0 if number < args.long else -1)
        try:
            for row in train(mine, args):
                append_lines(args.record, [row])
        except Exception as error:
            print(f"{name_of(mine)}: {error}", flush=True)


def main() -> None:
    """Share the trainings out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("design", choices=tuple(DESIGNS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--long", type=int, default=1, help="workers that begin with the longest")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing after them")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--cache", type=Path, default=Path("runs/.affinity"))
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    until = time.time() + 60 * args.minutes
    known = set()
    if args.record.is_file():
        known = {name_of(json.loads(line)) for line in args.record.read_text().splitlines()}
    jobs = DESIGNS[args.design]()
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager:
        left = [todo for todo in jobs if name_of(json.loads(json.dumps(todo))) not in known]
        todo = manager.list(sorted(left, key=lambda row: GRAPHS.index(row["dataset"])))
        shared = (todo, manager.Lock(), args, until)
        workers = [spawn.Process(target=work, args=(k, *shared)) for k in range(args.workers)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        print(f"{len(todo)} trainings left")


if __name__ == "__main__":
    main()
