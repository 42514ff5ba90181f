"""One run from plan to trained method: build, train, stop and resume cleanly."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import resolve
from muxgcl.kernels.ring import Workers
from muxgcl.methods import Method
from muxgcl.runs import distributed, divided
from muxgcl.runs.checkpoint import CheckpointWriter, resume_from
from muxgcl.runs.embedding import embed
from muxgcl.runs.environment import device_name, peak_memory, pick_device
from muxgcl.runs.folder import Run
from muxgcl.runs.heap import reused_memory
from muxgcl.runs.loop import (
    Epoch,
    Trainer,
    check_capture,
    method_state,
    random_state,
    set_random_state,
    settled_ms,
)
from muxgcl.runs.plan import Plan, build, check_plan
from muxgcl.seeding import seeded


class Stopped(UserError):
    """A run was asked to stop and did.

    Attributes:
        number: of the signal that asked.
        resumable: whether the same run can go on from its folder.
    """

    def __init__(
        self, message: str, number: int = signal.SIGINT, *, resumable: bool = True
    ) -> None:
        super().__init__(message)
        self.number, self.resumable = number, resumable


@contextmanager
def reporting_interrupts(
    phase: str, *, resumable: bool | Callable[[], bool] = True
) -> Iterator[None]:
    """Turn Ctrl-C or a signal into one line that says what it interrupted."""
    try:
        yield
    except KeyboardInterrupt as stop:
        resumable = resumable if isinstance(resumable, bool) else resumable()
        left = "what was done before is kept" if resumable else "nothing was written"
        number = getattr(stop, "number", signal.SIGINT)
        raise Stopped(f"stopped while {phase}; {left}", number, resumable=resumable) from None


@dataclass(frozen=True, slots=True)
class Ready:
    """A method that is built and checked, on its device, and the random state after that."""

    plan: Plan
    graph: Graph
    method: Method
    backend: str
    random: dict[str, Tensor]
    workers: Workers | None = None  # that train together, this process among them


@dataclass(frozen=True, slots=True)
class Fitted:
    """A trained method and what training took."""

    method: Method
    graph: Graph
    loss: float | None
    epoch_ms: float
    peak_mib: float
    seconds: float
    device: str
    backend: str

    def embed(self) -> Tensor:
        """The embedding of every node, on the CPU."""
        return embed(self.method, self.graph)


def make_ready(
    plan: Plan,
    graph: Graph,
    *,
    cache: Path | None = None,
    on_prepare: Callable[[int, int], None] | None = None,
    workers: Workers | None = None,
) -> Ready:
    """Build a plan's method; what is wrong with the plan is found here, before any work.

    Args:
        plan: what to train and how.
        graph: on any device; it is moved to the plan's.
        cache: a folder for what is computed once a graph.
        on_prepare: called with the steps done, and all steps, of what comes before the first epoch.
        workers: the processes that train together, each of which calls this.
    """
    if workers is not None:
        workers = replace(workers, sampling=plan.sampling)
        divided.check(workers, plan, graph)
        plan = replace(plan, device=distributed.place(plan.device))
        if workers.rank == 0:
            on_prepare = distributed.beating(workers, on_prepare)
    with distributed.all_succeed(workers):
        device = pick_device(plan.device)
        backend = resolve(plan.backend, cuda=device.type == "cuda")
        check_plan(plan, graph)
        if backend.startswith("fused") and device.type != "cuda":
            raise UserError(f"backend {plan.backend} needs a CUDA device, got {device}")
        graph = graph.to(device)
    with distributed.all_succeed(workers), seeded(plan.seed, device):
        method = build(plan, graph, cache, on_prepare, workers)
        check_capture(plan.capture, method, device)
        return Ready(plan, graph, method, backend, random_state(device), workers)


def fit(
    plan: Plan,
    graph: Graph,
    *,
    run: Run | None = None,
    resume: bool = False,
    cache: Path | None = None,
    on_block: Callable[[list[Epoch]], None] | None = None,
    on_prepare: Callable[[int, int], None] | None = None,
    observe: Callable[[int, Tensor], object] | None = None,
    observe_last: int = 0,
    workers: Workers | None = None,
) -> Fitted:
    """Train one method on one graph: `make_ready`, then `train`."""
    return train(
        make_ready(plan, graph, cache=cache, on_prepare=on_prepare, workers=workers),
        run=run,
        resume=resume,
        on_block=on_block,
        observe=observe,
        observe_last=observe_last,
    )


def train(
    ready: Ready,
    *,
    run: Run | None = None,
    resume: bool = False,
    start: Callable[[], None] | None = None,
    on_block: Callable[[list[Epoch]], None] | None = None,
    on_stop: Callable[[int], None] | None = None,
    observe: Callable[[int, Tensor], object] | None = None,
    observe_last: int = 0,
) -> Fitted:
    """Train what `make_ready` has built; a `Ready` is good for one training.

    Of several workers each calls this; the first alone may have a `run`.

    Args:
        ready: the method, its graph and its plan.
        run: where to keep metrics and checkpoints; nothing is written without it.
        resume: go on from the run's checkpoint, to the same result as without the pause.
        start: called before the first checkpoint is written, if its embedding is finite; nothing is
            written before, so that an earlier run stays in the folder.
        on_block: called with each block of epochs.
        on_stop: called at once with the number of a signal that ends training after this epoch.
        observe: called with the epoch and the embedding after each of the last epochs.
        observe_last: how many last epochs `observe` looks at.
    """
    plan, graph, method, workers = ready.plan, ready.graph, ready.method, ready.workers
    device = graph.device
    begin = time.perf_counter()
    with seeded(plan.seed, device), reused_memory(device):
        set_random_state(ready.random, device)
        with (
            nullcontext()
            if run is None
            else reporting_interrupts("preparing the first epoch", resumable=start is None)
        ):
            if workers is None:
                method.prepare(graph)
            else:
                divided.prepare(workers, method, graph)
        if not method.trainable:
            return _untrained(ready, run, start)
        tf32 = not plan.backend.endswith("/fp32")
        rounds = plan.rounds(graph)
        capture = plan.capture if workers is None else "off"
        trainer = Trainer(method, graph, plan.train, capture=capture, tf32=tf32, rounds=rounds)
        with distributed.all_succeed(workers):
            before = _epochs_before(trainer, run, plan, resume=resume, fresh=start is not None)
        if workers is not None:
            divided.start_alike(workers, trainer)
            trainer.sum_up = partial(divided.sum_up, workers, method)
        observe_from = max(0, plan.train.epochs - observe_last) if observe else None
        times = [line.get("ms", 0.0) / 1000 for line in before]
        begin -= sum(times)
        loss = before[-1]["loss"] if before else None
        listen = run is not None or workers is not None
        with peak_memory(device) as peak, _stop_requests(listen, on_stop) as stop:
            writer = CheckpointWriter(trainer, run, plan.seed, start)
            for block in trainer.blocks(observe_from):
                times += [epoch.seconds for epoch in block]
                loss = block[-1].loss
                if observe is not None and trainer.epoch > (observe_from or 0):
                    observe(trainer.epoch, embed(method, graph))  # before a checkpoint counts it
                writer.keep(block)
                if on_block is not None:
                    on_block(block)
                if workers is not None:
                    stop.number = distributed.largest(workers, stop.number or 0) or None
                    divided.check_weights(workers, trainer)
                if stop.number is not None:
                    writer.save()
                    message = f"stopped after epoch {trainer.epoch} of {plan.train.epochs}"
                    raise Stopped(message, stop.number)
            writer.save()
    return Fitted(
        method,
        graph,
        loss,
        settled_ms(times),
        peak.mib,
        time.perf_counter() - begin,
        device_name(device),
        ready.backend,
    )


def _untrained(ready: Ready, run: Run | None, start: Callable[[], None] | None) -> Fitted:
    """A method that has nothing to train; its folder holds a checkpoint of epoch 0 all the same."""
    method, seed = ready.method, ready.plan.seed
    if run is not None:
        if start is not None:
            start()
        run.save_checkpoint(method_state(method), epoch=0, method=method.name, seed=seed)
    device = device_name(ready.graph.device)
    return Fitted(method, ready.graph, None, 0.0, 0.0, 0.0, device, ready.backend)


def _epochs_before(
    trainer: Trainer, run: Run | None, plan: Plan, *, resume: bool, fresh: bool
) -> list[dict[str, Any]]:
    """Resume a trainer where its run has a checkpoint; the metrics of the epochs up to there.

    A fresh run has none: what is in the folder belongs to the run that it will replace.
    """
    if run is None:
        return []
    if resume and run.checkpoint_file.is_file():
        resume_from(trainer, run, plan)
    return [] if fresh else run.keep_metrics(trainer.epoch)


@dataclass(slots=True)
class _Stop:
    number: int | None = None  # of the signal that asked


@contextmanager
def _stop_requests(listen: bool, on_stop: Callable[[int], None] | None) -> Iterator[_Stop]:
    """The first Ctrl-C or SIGTERM stops training between two epochs, the second one at once."""
    stop = _Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.number is not None:
            raise KeyboardInterrupt
        stop.number = number
        if on_stop is not None:
            on_stop(number)

    before: dict[signal.Signals, Any] = {}
    if listen and threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
