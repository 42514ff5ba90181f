"""Search a method's settings by labels of the development half; no other label is handed over.

Asynchronous successive halving: workers draw new candidates (at random, or by changing a few
settings of a good one), train them with one seed, and give the best third of each rung one seed
more, up to five. Every candidate sees the same seeds and splits, which no reported score uses: a
split's train, val and test nodes are all of the development half. One training may be read out in
several ways. Appends one JSON line a training, so a search that was stopped goes on.

    python benchmarks/search.py mux-hop --datasets cora=3 photo=3 --minutes 8 --out records/x.jsonl
"""

import argparse
import fcntl
import hashlib
import json
import multiprocessing
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SPLIT_SEED = 4000  # results are reported with other splits
FIRST_SEED = 400  # and other training seeds
MOST_SEEDS = 5
DRAWS = 1000  # that may all be known before a space counts as tried
# for methods with several scales: kind, weight of the scales before L, of propagated features, of
# the features as they are
READOUTS = {
    "last": ("last", 0.0, 0.0, 0.0),
    "late": ("all", 0.5, 0.0, 0.0),
    "all+x": ("all", 1.0, 0.5, 0.0),
    "late+x": ("all", 0.5, 0.5, 0.0),
    "all+xr": ("all", 1.0, 0.5, 0.5),
    "late+xr": ("all", 0.5, 0.5, 0.5),
}


def lines(path: Path) -> list[dict[str, Any]]:
    """The records so far."""
    if not path.is_file():
        return []
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        return [json.loads(line) for line in file if line.strip()]


def append(path: Path, row: dict[str, Any]) -> None:
    """One more, whole."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(row) + "\n")


def name_of(preset: str, settings: dict[str, Any]) -> str:
    """A short hash of a candidate: what differs from a preset."""
    text = json.dumps([preset, settings], sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Search:
    """What is known of one method on one graph, and what to train next."""

    def __init__(
        self, method: str, dataset: str, preset: str, out: Path, draw: int, blank: bool = False
    ) -> None:
        from spaces import SPACES, start

        self.method, self.dataset, self.preset, self.out = method, dataset, preset, out
        self.space = SPACES[method](dataset)
        self.start = [] if blank else start(method, dataset)
        self.random = random.Random(draw)
        self.claims = out.with_suffix(".claims") / f"{method}-{dataset}"
        self.claims.mkdir(parents=True, exist_ok=True)
        for row in self.rows():  # of an earlier search, whose claims may be gone
            self.claim(row["settings"], row["seed"] - FIRST_SEED)

    def rows(self) -> list[dict[str, Any]]:
        """The records so far of this method, graph and preset."""
        mine = (self.method, self.dataset, self.preset)
        return [r for r in lines(self.out) if (r["method"], r["dataset"], r["preset"]) == mine]

    def claim(self, settings: dict[str, Any], rung: int) -> bool:
        """Whether this training is ours to do."""
        try:
            name = f"{name_of(self.preset, settings)}-{rung}"
            (self.claims / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def ranked(self) -> list[tuple[float, int, dict[str, Any]]]:
        """(mean accuracy of the best readout, seeds, settings), best first."""
        found: dict[str, tuple[dict[str, Any], list[dict[str, float]]]] = {}
        for row in self.rows():
            name = name_of(self.preset, row["settings"])
            found.setdefault(name, (row["settings"], []))[1].append(row["accuracy"])
        rows = []
        for settings, scores in found.values():
            best = max(sum(s.get(k, 0.0) for s in scores) / len(scores) for k in scores[0])
            rows.append((best, len(scores), settings))
        return sorted(rows, key=lambda row: -row[0])

    def next(self) -> tuple[dict[str, Any], int] | None:
        """Settings and the rung (how many seeds they had before); nothing where all is tried."""
        for settings in self.start:
            if self.claim(settings, 0):
                return dict(settings), 0
        ranked = self.ranked()
        for rung in range(MOST_SEEDS - 1, 0, -1):
            there = [row for row in ranked if row[1] >= rung]
            for _, seeds, settings in there[: max(1, len(there) // 3)] if len(there) >= 3 else []:
                if seeds == rung and self.claim(settings, rung):
                    return settings, rung
        for _ in range(DRAWS):
            settings = self.draw(ranked)
            if self.claim(settings, 0):
                return settings, 0
        for _, seeds, settings in ranked:  # a small space: every candidate has all seeds
            if seeds < MOST_SEEDS and self.claim(settings, seeds):
                return settings, seeds
        return None

    def draw(self, ranked: list[tuple[float, int, dict[str, Any]]]) -> dict[str, Any]:
        """A candidate that is new, or a good one with a few settings changed."""
        from spaces import scale_weights

        draw = self.random
        if not ranked or draw.random() < 0.25:
            settings = {key: draw.choice(values) for key, values in self.space.items()}
        else:
            best = sorted(ranked, key=lambda row: -(row[0] - 0.3 / row[1]))
            settings = dict(draw.choice(best[:6])[2])
            changes = min(draw.choice((1, 1, 2, 2, 3, 4)), len(self.space))
            for key in draw.sample(sorted(self.space), changes):
                settings[key] = draw.choice(self.space[key])
        if self.method == "mux-hop":
            hops = settings.get("hops", 2)
            if len(settings.get("scale_weights", (0,) * 3)) != hops + 1 or draw.random() < 0.2:
                settings["scale_weights"] = draw.choice(scale_weights(hops))
        return settings


def work(job: dict[str, Any]) -> None:
    """One worker: train, judge, append, until time is up."""
    os.environ["LOKY_MAX_CPU_COUNT"] = "2"
    sys.stderr = Path(job["log"]).open("a", buffering=1)  # noqa: SIM115
    import torch

    torch.set_num_threads(1)
    from muxgcl.evaluate import development_hash, development_splits
    from muxgcl.evaluate.development import development_labels
    from muxgcl.graph import Graph
    from muxgcl.io import open_dataset
    from muxgcl.runs.environment import commit, device_name, pick_device

    mine = (job["method"], job["dataset"], job["preset"])
    search = Search(*mine, Path(job["out"]), job["draw"], job["blank"])
    data = open_dataset(job["dataset"], job["data_root"])
    labels = data.y.numpy()
    splits = development_splits(labels, job["splits"], SPLIT_SEED)
    y = development_labels(labels)
    device = pick_device(job["device"])
    graph = Graph.from_data(data).to(device)
    facts = {
        "labels": "development",
        "development": development_hash(labels),
        "split_seed": SPLIT_SEED,
        "splits": job["splits"],
        "device": device_name(device),
        "commit": commit(),
    }
    while time.time() < job["until"] and (found := search.next()) is not None:
        settings, rung = found
        seed = FIRST_SEED + rung
        try:
            for done, judged in train(job, settings, seed, graph, y, splits):
                row = {**of_job(job), "settings": {**settings, **done}, "seed": seed}
                append(search.out, {**row, **judged, **facts})
        except Exception as error:  # a candidate that cannot be trained loses
            print(f"{job['dataset']} {settings}: {error}", file=sys.stderr)
            torch.cuda.empty_cache()
            lost = {"accuracy": dict.fromkeys(job["readouts"], 0.0), "error": str(error)[:200]}
            append(search.out, {**of_job(job), "settings": settings, "seed": seed, **lost, **facts})


def of_job(job: dict[str, Any]) -> dict[str, Any]:
    """What all records of a worker share."""
    return {"kind": "search", **{key: job[key] for key in ("method", "dataset", "preset")}}


def train(
    job: dict[str, Any], settings: dict[str, Any], seed: int, graph: Any, y: Any, splits: Any
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """One training, judged for each readout; at a constant rate a shorter one is part of it."""
    from muxgcl.runs.loop import Trainer
    from muxgcl.runs.plan import Plan, build
    from muxgcl.seeding import seeded

    plan = Plan.make(
        job["method"], job["preset"], job["dataset"], settings, seed=seed, device=job["device"]
    )
    epochs = plan.train.epochs
    constant = job["method"] in ("mux-hop", "mux-gcl", "grace")  # others may plan their rate
    looks = {epochs * k // job["looks"] for k in range(1, job["looks"])} if constant else set()
    begin, spent = time.perf_counter(), 0.0
    with seeded(seed, graph.device):
        method = build(plan, graph, Path(job["cache"]))
        method.prepare(graph)
        method.milestones = tuple(sorted({*method.milestones, *looks}))
        trainer = Trainer(method, graph, plan.train)
        times: list[float] = []
        for block in trainer.blocks():
            times += [epoch.seconds for epoch in block]
            if trainer.epoch in looks or trainer.epoch == epochs:
                so_far = time.perf_counter() - begin - spent
                found = judge(job, method, graph, y, splits)
                spent = time.perf_counter() - begin - so_far
                facts = {
                    "epochs": trainer.epoch,
                    "seconds": round(so_far, 2),
                    "epoch_ms": round(1000 * statistics.median(times), 3),
                }
                yield {"epochs": trainer.epoch} if looks else {}, {**found, **facts}


def judge(job: dict[str, Any], method: Any, graph: Any, y: Any, splits: Any) -> dict[str, Any]:
    """The linear probe for each readout, on splits of the development half."""
    import torch
    from signs import label_free

    from muxgcl.evaluate.device_probe import answers
    from muxgcl.evaluate.probe import STRENGTHS
    from muxgcl.nn.readout import Readout

    tables = {}
    method.eval()
    with torch.no_grad():
        if method.readout is not None:
            before, last = method.readout, method.readout.last
            for name in job["readouts"]:
                kind, early, features, raw = READOUTS[name]
                weights = () if kind == "last" else (*[early] * last, 1.0)
                method.readout = Readout(kind, weights, features, last, raw)
                tables[name] = method.embed(graph).float()
            method.readout = before
        else:
            tables["last"] = method.embed(graph).float()
    method.train()
    accuracy, signs = {}, {}
    for name, table in tables.items():
        found = answers(table, y, splits, STRENGTHS)
        right = [
            float((a.predicted == y[s.test]).mean()) for a, s in zip(found, splits, strict=True)
        ]
        accuracy[name] = round(100 * sum(right) / len(right), 4)
        if name == job["readouts"][-1] or len(tables) == 1:
            signs = label_free(table, graph)
    return {"accuracy": accuracy, "label_free": signs}


def main() -> None:
    """Start the workers and wait."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="+")
    parser.add_argument("--datasets", nargs="+", default=["cora=2"], help="name=workers, ...")
    parser.add_argument("--preset", default="best")
    parser.add_argument("--readouts", nargs="+", default=list(READOUTS))
    parser.add_argument("--looks", type=int, default=1, help="times to judge one training")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--draw", type=int, default=0, help="seed of the draws")
    parser.add_argument("--blank", action="store_true", help="begin with random draws alone")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--cache", type=Path, default=Path("runs/.affinity"))
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    until = time.time() + 60 * args.minutes
    spawn = multiprocessing.get_context("spawn")
    workers = []
    for method in args.methods:
        for given in args.datasets:
            dataset, _, count = given.partition("=")
            for number in range(int(count or 1)):
                job = {
                    "method": method,
                    "dataset": dataset,
                    "preset": args.preset,
                    "splits": args.splits,
                    "readouts": args.readouts,
                    "looks": args.looks,
                    "draw": 1000 * args.draw + len(workers),
                    "blank": args.blank,
                    "device": args.device,
                    "data_root": args.data_root,
                    "cache": str(args.cache),
                    "out": str(args.out),
                    "log": str(args.out.with_suffix(".log")),
                    "until": until,
                    "number": number,
                }
                workers.append(spawn.Process(target=work, args=(job,)))
                workers[-1].start()
    for worker in workers:
        worker.join()
    from collections import Counter

    count = Counter((row["method"], row["dataset"]) for row in lines(args.out))
    for (method, dataset), trainings in sorted(count.items()):
        best = Search(method, dataset, args.preset, args.out, 0).ranked()[:5]
        print(f"{method} {dataset}: {trainings} trainings")
        for score, seeds, settings in best:
            print(f"  {score:.2f} ({seeds}) {settings}")


if __name__ == "__main__":
    main()
