"""From a graph to a finished run folder, stage by stage: prepare, train, read out, score, report.

`run` is what the command line's `run` and `train` call; Python users call it too.
"""

from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from muxgcl.app.budget import Budget
from muxgcl.app.folder_graph import save_encoding, save_graph, save_nodes
from muxgcl.app.judge import controls_stage, forget_stale_scores, report_stage, score_stage
from muxgcl.app.members import members_stage, paper_protocol, ready_for, train_beside
from muxgcl.app.observer import Observer
from muxgcl.app.options import LoadOptions, RunOptions
from muxgcl.app.prepare import Job, prepare
from muxgcl.app.result import Result, SeedsResult
from muxgcl.app.show import edges_of
from muxgcl.app.start_or_resume import (
    begin,
    refuse_foreign,
    with_decided_sample,
    with_original_epochs,
    with_original_sample,
    with_original_width,
)
from muxgcl.errors import UserError
from muxgcl.evaluate import PaperProtocol, Verdict, verdict
from muxgcl.io.load import Loaded
from muxgcl.io.safety import how_many
from muxgcl.kernels.ring import Workers
from muxgcl.runs.committee import check_output
from muxgcl.runs.distributed import all_succeed, first_alone, from_first
from muxgcl.runs.embedding import collapse_warning
from muxgcl.runs.fit import Fitted, Ready, reporting_interrupts
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import labels_of


def run(
    graph: Any,
    options: RunOptions | None = None,
    *,
    load: LoadOptions | None = None,
    observer: Observer | None = None,
    command: str | None = None,
    workers: Workers | None = None,
) -> Result:
    """Train on a graph, embed its nodes and, where there are labels, score and report.

    Everything is kept in a run folder, as `muxgcl run` does. Labels are used for scores alone.

    Args:
        graph: a dataset's name, a path, or whatever `muxgcl.load` takes or returns.
        options: what to train, where to keep it and how to judge it.
        load: columns and files, where the graph does not say it all by itself.
        observer: called at every event; none by default.
        command: the command line of this run, kept with its settings.
        workers: the processes that train together (`muxgcl.runs.distributed.joined`), each of
            which calls this; the first alone writes and scores, and has the embedding.

    Example:
        >>> options = RunOptions(method="sgc", out="runs/sgc", splits=2, report=False)
        >>> load = LoadOptions(features="nodes.csv", label_column="topic")
        >>> result = run("edges.csv", options, load=load)
        >>> result.embedding.shape
        (60, 48)
        >>> result.ids[:3].tolist()
        ['n0', 'n1', 'n2']
        >>> list(result.scores)
        ['holdout', 'clustering', 'controls']
    """
    job = prepare(graph, options or RunOptions(), load, observer, workers=workers)
    return _run_one(job, job.plan, job.folder(job.plan), command)


def dry_run(
    graph: Any,
    options: RunOptions | None = None,
    *,
    load: LoadOptions | None = None,
    observer: Observer | None = None,
    workers: Workers | None = None,
) -> Budget:
    """What a run would take, and the sample that it would have; nothing is trained or written.

    Notes to the observer say how the graph was read.
    """
    options = replace(options or RunOptions(), resume=False)
    job = prepare(graph, options, load, observer, workers=workers, always=True)
    read = job.graph
    entries = len(read.adjacency.col) - read.num_nodes
    edges = edges_of(entries, directed=read.edge_kinds is not None and read.edge_kinds.directed)
    nodes, features = how_many(read.num_nodes, "node"), how_many(read.num_features, "feature")
    for note in (f"{nodes}, {edges}, {features}", *job.notes):
        if note not in job.budget.notes:
            job.observer.note(note)
    return job.budget


def run_seeds(
    graph: Any,
    seeds: int,
    options: RunOptions | None = None,
    *,
    load: LoadOptions | None = None,
    observer: Observer | None = None,
    command: str | None = None,
    workers: Workers | None = None,
) -> SeedsResult:
    """Make several runs, one for each seed from that of the options on; each has its own folder.

    The arguments are those of `run`, and the number of seeds.

    Example:
        >>> options = RunOptions(method="sgc", splits=2, controls=False, report=False)
        >>> load = LoadOptions(features="nodes.csv", label_column="topic")
        >>> found = run_seeds("edges.csv", 2, options, load=load)
        >>> [one.path.name for one in found.runs]
        ['edges-sgc-auto-seed0', 'edges-sgc-auto-seed1']
        >>> found.scores["holdout"]["accuracy"]["n"]
        2
    """
    if seeds < 1:
        raise UserError(f"seeds must be at least 1, got {seeds}")
    several = seeds > 1
    job = prepare(graph, options or RunOptions(), load, observer, workers=workers, seeds=seeds)
    step = job.plan.members  # no two runs share a member
    plans = [replace(job.plan, seed=job.plan.seed + k * step) for k in range(seeds)]
    return SeedsResult(
        tuple(
            _run_one(
                job,
                plan,
                job.folder(plan, several=several),
                command,
                first=k == 0,
                last=k == seeds - 1,
            )
            for k, plan in enumerate(plans)
        )
    )


# one run ----------------------------------------------------------------------------------------


def _run_one(
    job: Job,
    plan: Plan,
    folder: Path,
    command: str | None,
    *,
    first: bool = True,
    last: bool = True,
) -> Result:
    """One seed: start or resume its run folder, train, embed, score, report."""
    run, options, observer, workers = Run(folder), job.options, job.observer, job.workers
    waiting = None if last else workers  # for worker 0, which does alone what follows training
    plan = from_first(workers, lambda: _resumed_plan(job, plan, run))
    job = replace(job, budget=replace(job.budget, plan=plan))
    observer.phase("preparing")
    with reporting_interrupts("preparing", resumable=False):
        ready = ready_for(job, plan, run)
        check_output(plan, ready)
    if workers is not None and workers.rank > 0:
        fitted = train_beside(job, ready, run)
        with first_alone(waiting):
            pass
        return _result(job, ready, folder, fitted, torch.empty(0, 0), {}, None)
    with ExitStack() as held:
        with all_succeed(workers):
            held.enter_context(run.locked())
            notes, start = begin(
                run,
                ready,
                job.source,
                job.loaded,
                resume=options.resume,
                overwrite=options.overwrite,
                command=_repeatable(job, plan, command),
                output_width=options.output_width,
            )
            paper = paper_protocol(job, plan, run)
        for note in [*job.notes, *notes] if first else notes:
            observer.note(note)
        fitted, z = members_stage(
            job,
            ready,
            run,
            paper,
            start,
            on_trained=lambda: held.enter_context(first_alone(waiting)),
        )
        if (warning := collapse_warning(z)) is not None:
            observer.note(warning)
        if dropped := forget_stale_scores(run, z, labels_of(job.loaded.tensors)):
            observer.note(dropped)
        save_stage(run, job.loaded, z, keep_graph=not job.source.is_dataset)
        observer.wrote("embeddings", run.embeddings_file)
        scores = _score(job, plan, run, fitted, z, paper) if options.score else {}
        judged = verdict(plan.method, scores, asdict(plan.settings))
        if scores:
            observer.scores(plan.method, scores, judged)
        if options.score and options.report:
            report_stage(run, observer)
        if scores and job.labels is not None and (job.labels < 0).any():
            observer.note(f"classes of the nodes without a label: muxgcl predict {folder}")
    return _result(job, ready, folder, fitted, z, scores, judged)


def _resumed_plan(job: Job, plan: Plan, run: Run) -> Plan:
    """The plan with what a run that goes on was begun with."""
    refuse_foreign(run)
    if not job.options.resume:
        return plan
    given = job.options.overrides
    plan = with_original_epochs(run, plan, given)
    plan = with_original_sample(run, plan, exact=job.options.exact, given=given)
    return with_original_width(run, plan, job.options.output_width)


def _repeatable(job: Job, plan: Plan, command: str | None) -> str | None:
    """The command, with its sample where that was decided by the measured speed."""
    options = job.options
    asked = options.exact or options.anchors is not None or options.negatives is not None
    if asked or job.budget.cost is None:
        return command
    return with_decided_sample(command, plan, options.overrides)


def _result(
    job: Job,
    ready: Ready,
    folder: Path,
    fitted: Fitted,
    z: Tensor,
    scores: dict[str, Any],
    judged: Verdict | None,
) -> Result:
    return Result(
        path=folder,
        plan=ready.plan,
        ids=job.loaded.ids,
        embedding=z.numpy(),
        scores=scores,
        verdict=judged,
        loss=fitted.loss,
        epoch_ms=fitted.epoch_ms,
        peak_mib=fitted.peak_mib,
        seconds=fitted.seconds,
        device=fitted.device,
        backend=fitted.backend,
    )


def save_stage(run: Run, loaded: Loaded, z: Tensor, *, keep_graph: bool = True) -> None:
    """Keep the embeddings, and what a report, a later graph and new nodes need."""
    run.save_embeddings(loaded.ids, z)
    save_nodes(run, loaded)
    save_encoding(run, loaded.encoding)
    if keep_graph:
        save_graph(run, loaded)


def _score(
    job: Job, plan: Plan, run: Run, fitted: Fitted, z: Tensor, paper: PaperProtocol | None
) -> dict[str, Any]:
    """Scores, then controls; what is scored is kept before the next thing is tried."""
    scores = score_stage(run, fitted, z, job.judging, paper, job.observer)
    if job.judging.controls:
        scores |= controls_stage(run, plan, job.graph, job.judging, job.observer)
    return scores
