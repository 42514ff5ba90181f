"""One training, and everything that several measurements want to see of it."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from statistics import median
from typing import Any

import torch

from muxgcl.evaluate import raw_features
from muxgcl.graph import Graph
from muxgcl.kernels import resolve
from muxgcl.methods import Method
from muxgcl.reproduce.artefacts import equal_steps
from muxgcl.reproduce.job import BOUNDS, SIMILARITIES, SOFT_NEGATIVES, Job
from muxgcl.reproduce.proposition import bounds
from muxgcl.reproduce.records import Record, make_record
from muxgcl.reproduce.soft_negatives import soft_negatives
from muxgcl.reproduce.workers import (
    ScoringPool,
    score_assignment,
    score_clusters,
    score_epoch,
    score_splits,
)
from muxgcl.runs.diagnostics import similarities, views_of
from muxgcl.runs.environment import commit, device_name, peak_memory, pick_device, versions
from muxgcl.runs.fit import Fitted, fit
from muxgcl.runs.loop import Trainer
from muxgcl.runs.plan import Plan, build
from muxgcl.seeding import seeded
from muxgcl.shapes import Array

OBSERVED = 100  # last epochs that protocol `paper` chooses from
SHOWN = 300  # the epoch of the paper's Figure 3
DIGITS = 5


@dataclass(slots=True)
class Pending:
    """A measurement whose training is over and whose scores are on their way."""

    job: Job
    facts: dict[str, Any] = field(default_factory=dict)
    pieces: list[Future[dict[str, Any]]] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether nothing is left to wait for."""
        return all(piece.done() for piece in self.pieces)

    def record(self) -> Record:
        """All pieces as one record."""
        result = reduce(_joined, (piece.result() for piece in self.pieces))
        return make_record(self.job, _rounded(result), **self.facts)


def train_and_score(
    jobs: Sequence[Job],
    graph: Graph,
    labels: Array,
    pool: ScoringPool,
    *,
    device: str,
    cache: Path | None,
    meanwhile: Callable[[], None],
) -> list[Pending]:
    """Train once for all jobs, which differ only in what is looked at when training is over."""
    plan = replace(jobs[0].plan(), device=device)
    waiting = [Pending(job) for job in jobs]
    selected = [p for p in waiting if p.job.protocol == "paper"]

    def observe(epoch: int, z: torch.Tensor) -> None:
        for pending in selected:
            given = (z.numpy(), labels, pending.job.split_seed, epoch)
            pending.pieces.append(pool.submit(score_epoch, *given))

    fitted = fit(
        plan,
        graph,
        cache=cache,
        on_block=lambda block: meanwhile(),
        observe=observe if selected else None,
        observe_last=OBSERVED,
    )
    z: Any = fitted.embed().numpy()
    if not fitted.method.trainable:
        z = raw_features(z)  # sparse where it may be
    with torch.no_grad():
        assigned = fitted.method.assignment(fitted.graph)
    own = None if assigned is None else assigned.cpu().numpy()
    for pending in waiting:
        job, pending.facts = pending.job, facts_of(fitted)
        if job.protocol != "paper":
            given = (job.splits, job.split_seed, job.protocol)
            pending.pieces = [pool.submit(score_splits, z, labels, *given)]
            pending.pieces += [
                pool.submit(score_clusters, z, labels, repeat, job.protocol)
                for repeat in range(job.repeats)
            ]
            if job.repeats and own is not None:
                pending.pieces += [ready(score_assignment(own, labels, job.protocol))]
    return waiting


def train_and_look(
    jobs: Sequence[Job],
    graph: Graph,
    *,
    device: str,
    cache: Path | None,
    meanwhile: Callable[[], None],
) -> list[Pending]:
    """Train once and look at the method at several epochs on the way."""
    plan = replace(jobs[0].plan(), device=device)
    points: dict[str, list[dict[str, Any]]] = {job.kind: [] for job in jobs}
    shown = min(SHOWN, plan.train.epochs)

    def look(method: Method, epoch: int) -> None:
        if BOUNDS in points:
            points[BOUNDS].append({"epoch": epoch, **bounds(method, graph)})  # type: ignore[arg-type]
        if SOFT_NEGATIVES in points:
            found = soft_negatives(method, graph)  # type: ignore[arg-type]
            if epoch != shown:
                for values in found.values():
                    del values["edges"], values["counts"]
            points[SOFT_NEGATIVES].append({"epoch": epoch, "pairs": found})
        if SIMILARITIES in points:
            alike = similarities(*views_of(method, graph))  # type: ignore[arg-type]
            if epoch != plan.train.epochs:
                alike = {pair: {"auc": values["auc"]} for pair, values in alike.items()}
            points[SIMILARITIES].append({"epoch": epoch, "pairs": alike})
        meanwhile()

    fitted = _train_in_steps(plan, graph, epochs_to_look_at(plan.train.epochs), cache, look)
    return [Pending(job, facts_of(fitted), [ready({"points": points[job.kind]})]) for job in jobs]


def epochs_to_look_at(epochs: int) -> list[int]:
    """Equal steps through training, and the epoch that the paper shows."""
    return sorted({*equal_steps(epochs)} | ({SHOWN} if epochs > SHOWN else set()))


def _train_in_steps(
    plan: Plan,
    graph: Graph,
    stops: Sequence[int],
    cache: Path | None,
    look: Callable[[Method, int], None],
) -> Fitted:
    place, times = pick_device(plan.device), []
    begin = time.perf_counter()
    with seeded(plan.seed, place), peak_memory(place) as peak:
        method = build(plan, graph, cache)
        method.prepare(graph)
        trainer = Trainer(method, graph, plan.train, capture=plan.capture)
        for stop in stops:
            trainer.cfg = replace(plan.train, epochs=stop)  # the next stretch ends here
            blocks = list(trainer.blocks())
            times += [epoch.seconds for block in blocks for epoch in block]
            with torch.no_grad(), seeded(plan.seed, place):  # a look changes nothing that follows
                look(method, stop)
    return Fitted(
        method,
        graph,
        blocks[-1][-1].loss,
        1000 * median(times),
        peak.mib,
        time.perf_counter() - begin,
        device_name(place),
        resolve(plan.backend, cuda=place.type == "cuda"),
    )


def facts_of(fitted: Fitted) -> dict[str, Any]:
    """What training took and where it ran."""
    return {
        "epoch_ms": round(fitted.epoch_ms, 4),
        "peak_mib": round(fitted.peak_mib, 1),
        "seconds": round(fitted.seconds, 2),
        "device": fitted.device,
        "backend": fitted.backend,
        "versions": versions(),
        "commit": commit(),
    }


def ready(result: dict[str, Any]) -> Future[dict[str, Any]]:
    """A piece that nobody has to wait for."""
    future: Future[dict[str, Any]] = Future()
    future.set_result(result)
    return future


def _joined(one: Any, two: Any) -> Any:
    """Tables side by side, lists end to end."""
    if isinstance(one, list):
        return one + two
    return {**one, **two, **{name: _joined(one[name], two[name]) for name in one if name in two}}


def _rounded(value: Any) -> Any:
    """Finer than one node of any graph here, and no finer."""
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return round(value, DIGITS) if isinstance(value, float) else value
