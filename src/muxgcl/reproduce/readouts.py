"""`hops`: one training read out in several ways, committees, controls; each table scored."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from muxgcl.evaluate import assign, development_hash
from muxgcl.evaluate.development import report_labels
from muxgcl.graph import Graph
from muxgcl.kernels import resolve
from muxgcl.methods import Method
from muxgcl.nn.readout import Readout
from muxgcl.reproduce.hops import members_of
from muxgcl.reproduce.job import BESIDE, BLOCKS, CONTROLS, READOUTS, Job
from muxgcl.reproduce.training import Pending, facts_of, ready
from muxgcl.reproduce.workers import ScoringPool, score_splits
from muxgcl.runs.committee import side_by_side
from muxgcl.runs.control_scores import control_tables
from muxgcl.runs.embedding import embed
from muxgcl.runs.environment import commit, device_name, pick_device, versions
from muxgcl.runs.fit import fit
from muxgcl.shapes import Array

AS_SET = "preset"  # read out as the settings say
WITH_FEATURES = "features"  # the same, and the features beside it
Tables = dict[str, Any]  # by name, each [n, d]


class Reader:
    """Trains and scores on one device; keeps the embeddings that another job waits for."""

    def __init__(
        self, pool: ScoringPool, *, device: str, cache: Path | None, meanwhile: Callable[[], None]
    ) -> None:
        self.pool, self.device, self.cache, self.meanwhile = pool, device, cache, meanwhile
        self.awaited: set[Job] = set()
        self.kept: dict[Job, tuple[Tensor, dict[str, Any]]] = {}

    def expect(self, job: Job) -> None:
        """Embeddings of the trainings that this job consists of are kept from now on."""
        self.awaited |= set(members_of(job))

    def measure(self, job: Job, graph: Graph, labels: Array) -> Pending:
        """Make the tables of a job, and score each."""
        if job.kind == CONTROLS:
            tables, facts = self._controls(job, graph)
        elif job.kind == READOUTS:
            tables, facts = self._train(job, graph)
        else:
            tables, facts = self._together(job, graph)
        pending = Pending(job, facts, [ready({"development": development_hash(labels)})])
        for name, table in tables.items():
            pending.pieces += self._scores(job, name, table, labels)
        return pending

    def _train(self, job: Job, graph: Graph) -> tuple[Tables, dict[str, Any]]:
        plan = replace(job.plan(), device=self.device)
        fitted = fit(plan, graph, cache=self.cache, on_block=lambda block: self.meanwhile())
        tables = readouts(fitted.method, graph, several=job.variant == "full")
        if job in self.awaited:
            self.kept[job] = tables[AS_SET], facts_of(fitted)
        return tables, facts_of(fitted)

    def _together(self, job: Job, graph: Graph) -> tuple[Tables, dict[str, Any]]:
        """One after the other; a training that an earlier run has recorded is made again."""
        self.expect(job)
        for member in members_of(job):
            if member not in self.kept:
                self._train(member, graph)
        tables, facts = zip(*(self.kept.pop(member) for member in members_of(job)), strict=True)
        together = {
            name: round(sum(each[name] for each in facts), 4) for name in ("epoch_ms", "seconds")
        }
        peak = max(each["peak_mib"] for each in facts)
        found = {AS_SET: side_by_side(tables)}
        if job.kind == BESIDE:
            found[WITH_FEATURES] = with_features(found[AS_SET], graph)
        return found, facts[0] | together | {"peak_mib": peak}

    def _controls(self, job: Job, graph: Graph) -> tuple[Tables, dict[str, Any]]:
        begin, device = time.perf_counter(), pick_device(self.device)
        tables = control_tables(job.plan(), graph)
        return tables, {
            "epoch_ms": 0.0,
            "peak_mib": 0.0,
            "seconds": round(time.perf_counter() - begin, 2),
            "device": device_name(device),
            "backend": resolve("auto", cuda=device.type == "cuda"),
            "versions": versions(),
            "commit": commit(),
        }

    def _scores(self, job: Job, name: str, table: Any, labels: Array) -> list[Any]:
        """The probe, on a GPU where there is one; k-means beside it."""
        device, table = pick_device(self.device), as_numpy(table)
        repeats = job.repeats if name == AS_SET or job.kind == CONTROLS else 0
        pieces = [
            self.pool.submit(clusters_of, table, labels, seed, name) for seed in range(repeats)
        ]
        splits = (labels, job.splits, job.split_seed, name)
        if device.type == "cuda":
            return [ready(scores_of(table, *splits, device=str(device))), *pieces]
        return [self.pool.submit(scores_of, table, *splits), *pieces]


def readouts(method: Method, graph: Graph, *, several: bool) -> dict[str, Tensor]:
    """The embedding as set; also the last scale alone, and all scales without features."""
    tables = {AS_SET: embed(method, graph)}
    before = method.readout
    if not several or before is None:
        return tables
    alone = set(before.weights) == {before.last}  # then all scales weigh the same beside it
    weights = () if alone else tuple(before.weights.get(k, 0.0) for k in range(before.last + 1))
    others = {
        "last": Readout("last", (), 0.0, before.last),
        "all": Readout("all", weights, 0.0, before.last),
    }
    try:
        for name, other in others.items():
            if vars(other) != vars(before):
                method.readout = other
                tables[name] = embed(method, graph)
    finally:
        method.readout = before
    return tables


def with_features(table: Tensor, graph: Graph) -> Tensor:
    """Unit rows of an embedding, and beside them those of the features by `BLOCKS`."""
    readout = Readout("last", (), BLOCKS["propagated"], int(BLOCKS["hops"]), BLOCKS["raw"])
    return readout({readout.last: table.to(graph.device)}, graph).cpu()


def as_numpy(table: Any) -> Any:
    """A tensor as numpy's table; numpy's and scipy's stay."""
    return table.numpy() if isinstance(table, Tensor) else table


def scores_of(
    z: Any, y: Array, splits: int, seed: int, name: str, device: str | None = None
) -> dict[str, Any]:
    """The linear probe of one table, by its name."""
    found = score_splits(z, y, splits, seed, "holdout", device)
    found.pop("development")
    return {"tables": {name: found}}


def clusters_of(z: Any, y: Array, seed: int, name: str) -> dict[str, Any]:
    """One k-means, compared with the classes of the report half and of all nodes."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    groups = assign(z, len(np.unique(y[y >= 0])), seed=seed)
    found = {}
    for ending, truth in (("", report_labels(y)), ("_everywhere", y)):
        known = truth >= 0
        pair = truth[known], groups[known]
        found[f"nmi{ending}"] = [float(normalized_mutual_info_score(*pair))]
        found[f"ari{ending}"] = [float(adjusted_rand_score(*pair))]
    return {"tables": {name: found}}
