"""How a run trains: one member or several, each from its first epoch or from its checkpoint."""

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from muxgcl.app.log import logged
from muxgcl.app.prepare import Job
from muxgcl.app.start_or_resume import Start, observed_so_far
from muxgcl.errors import UserError
from muxgcl.evaluate import PaperProtocol
from muxgcl.kernels.ring import LostWorker
from muxgcl.runs.committee import mapped, output_map, side_by_side, total_cost
from muxgcl.runs.distributed import all_succeed
from muxgcl.runs.fit import Fitted, Ready, Stopped, make_ready, reporting_interrupts, train
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan

PAPER_EPOCHS = 100  # protocol `paper` looks at this many last epochs


def ready_for(job: Job, plan: Plan, run: Run) -> Ready:
    """The method of a plan, built on the run's graph."""
    cache = run.path.parent / ".affinity"
    step, workers = job.observer.step, job.workers
    return make_ready(plan, job.graph, cache=cache, on_prepare=step, workers=workers)


def paper_protocol(job: Job, plan: Plan, run: Run) -> PaperProtocol | None:
    """Protocol `paper` where it is asked for, with what it saw before a run was resumed."""
    options, y = job.options, job.labels
    if y is None or "paper" not in job.judging.protocols:
        return None
    paper = PaperProtocol(y, seed=options.split_seed)
    if options.resume:
        paper.epochs = observed_so_far(run, plan, options.split_seed, PAPER_EPOCHS)
    return paper


def members_stage(
    job: Job,
    ready: Ready,
    run: Run,
    paper: PaperProtocol | None,
    start: Start | None = None,
    *,
    on_trained: Callable[[], object] = lambda: None,
) -> tuple[Fitted, Tensor]:
    """Train every member, or continue with the one in progress; what it took, the embedding.

    `start` replaces an earlier run, as soon as there is a checkpoint or an embedding to keep.
    `on_trained` is called after the last epoch of the last member.
    """
    plan, members, tables = ready.plan, [], []
    for k, one in enumerate(plan.of_members()):
        if k:
            job.observer.phase("preparing")
            with reporting_interrupts("preparing"):
                ready = ready_for(job, one, run)
        if plan.members > 1:
            job.observer.note(f"member {k + 1} of {plan.members}: seed {one.seed}")
        try:
            one_run = Run(run.path, k)
            members.append(train_stage(job, ready, one_run, paper, None if k else start))
        except Stopped as stop:
            of = f" (member {k + 1} of {plan.members})" if plan.members > 1 else ""
            raise Stopped(f"{stop}{of}", stop.number, resumable=stop.resumable) from None
        if k == plan.members - 1:
            on_trained()
        tables.append(members[-1].embed())
        if k:
            members[-1].method.forget()  # the first is looked at again
    table = side_by_side(tables)
    output = output_map(plan, table, ready.graph.device)
    if start is not None:
        start()
    run.save_output_map(output)
    return total_cost(members), mapped(table, output)


def train_stage(
    job: Job, ready: Ready, run: Run, paper: PaperProtocol | None, start: Start | None = None
) -> Fitted:
    """Train or resume; what fails before its first epoch leaves the folder as it was."""
    observer, total = job.observer, ready.plan.train.epochs

    def look(epoch: int, z: Tensor) -> None:
        assert paper is not None
        if start is not None:
            start()
        run.log_observed(epoch, paper.observe(epoch, z.numpy()), paper.seed)

    def tell(block: list[Epoch]) -> None:
        if start is not None and job.options.log is not None:  # which may write in the folder
            start()
        observer.epochs(block, total)

    observer.phase("training")
    try:
        with (
            reporting_interrupts("training", resumable=lambda: start is None or start.done),
            logged(run, job.options.log, tell) as on_block,
        ):
            fitted = train(
                ready,
                run=run,
                resume=job.options.resume,
                start=start,
                on_block=on_block,
                on_stop=observer.stopping,
                observe=None if paper is None else look,
                observe_last=PAPER_EPOCHS,
            )
    except Stopped:
        raise
    except UserError as error:
        begun = start is None or start.done
        if isinstance(error, LostWorker):
            error.resumable = begun and run.checkpoint_file.is_file()
        if begun and not run.member and not run.metrics() and not run.checkpoint_file.is_file():
            run.clear()  # nothing was done: what is mended may be tried in the same folder
        raise
    return replace(fitted, peak_mib=max(fitted.peak_mib, _peak_before(run)))


def _peak_before(run: Run) -> float:
    """The peak memory of an earlier stretch of this run."""
    return float(run.diagnostics().get("peak_mib", 0.0))


def train_beside(job: Job, ready: Ready, run: Run) -> Fitted:
    """Train in a worker that is not the first; the first one alone writes and scores."""
    with all_succeed(ready.workers):
        pass
    # stop where the first one does
    watched = job.labels is not None and "paper" in job.judging.protocols
    look = (lambda epoch, z: None) if watched else None
    try:
        with reporting_interrupts("training"):
            return train(ready, observe=look, observe_last=PAPER_EPOCHS)
    except LostWorker as lost:  # where the folder can be seen from here
        lost.resumable = not job.options.overwrite and run.checkpoint_file.is_file()
        raise
