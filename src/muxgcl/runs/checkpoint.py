"""Checkpoints of a training: read and checked, resumed from, and written every few seconds."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.methods import Method
from muxgcl.runs.embedding import embed
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch, Trainer, load_weights
from muxgcl.runs.plan import Plan, build, check_sizes
from muxgcl.seeding import seeded

CHECKPOINT_SECONDS = 10.0


def restore(run: Run, plan: Plan, graph: Graph) -> Method:
    """The method that a run folder's checkpoint holds, ready to embed `graph`."""
    tensors, _ = checkpoint_of(run, plan)
    check_sizes(plan, 1, graph.num_features)  # of the weights: nodes go through in blocks
    with seeded(plan.seed):
        method = build(plan, graph)
    load_weights(method, tensors)
    return method


def checkpoint_of(run: Run, plan: Plan) -> tuple[dict[str, Tensor], int]:
    """A run's checkpoint and epoch, checked against the plan and for NaN."""
    tensors, facts = run.checkpoint()
    path, epoch = run.checkpoint_file, facts["epoch"]
    if facts.get("method") != plan.method:
        raise UserError(f"{path} is of {facts.get('method')}, not {plan.method}")
    if (seed := facts.get("seed", plan.seed)) != plan.seed:  # another member's, another run's
        raise UserError(f"{path} is of seed {seed}, expected that of seed {plan.seed}")
    if epoch > plan.train.epochs:
        raise UserError(f"{path}: epoch must be at most {plan.train.epochs}, got {epoch}")
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise UserError(f"{path}: {name} must be finite, got NaN or infinity")
    return tensors, epoch


def resume_from(trainer: Trainer, run: Run, plan: Plan) -> None:
    """Resume a trainer from its run's checkpoint, every tensor of which must fit."""
    tensors, epoch = checkpoint_of(run, plan)
    for name, here in trainer.state().items():
        there = tensors.get(name)
        if there is None and name == "random/cuda":  # it was begun on a CPU
            continue
        if there is None or there.shape != here.shape or there.dtype != here.dtype:
            came = "nothing" if there is None else f"{there.dtype} {list(there.shape)}"
            raise UserError(
                f"{run.checkpoint_file} does not fit this {plan.method}: {name} must be "
                f"{here.dtype} {list(here.shape)}, got {came}"
            )
    try:
        trainer.load(tensors, epoch)
    except (RuntimeError, TypeError) as error:  # a state that no random generator can be in
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{run.checkpoint_file} is damaged: {reason}") from None


class CheckpointWriter:
    """Writes metrics at each block and a checkpoint every few seconds."""

    def __init__(
        self,
        trainer: Trainer,
        run: Run | None,
        seed: int,
        start: Callable[[], None] | None = None,
    ) -> None:
        self.trainer, self.run, self.seed, self.start = trainer, run, seed, start
        self.lines: list[dict[str, Any]] = []  # that are not written yet
        self.last = time.monotonic()
        self.saved = trainer.epoch

    def keep(self, block: list[Epoch]) -> None:
        """Log a block of epochs; keep their state too, if the last one kept is old."""
        if self.run is None:
            return
        self.lines += [epoch.line() for epoch in block]
        if self.start is None:
            self._log(self.run)
        if time.monotonic() - self.last > CHECKPOINT_SECONDS:
            self.save()

    def _log(self, run: Run) -> None:
        run.log(self.lines)
        self.lines = []

    def save(self) -> None:
        """Keep this state, unless it is not finite: then the last good one stays."""
        if self.run is None or self.saved == self.trainer.epoch:
            return
        state = self.trainer.state()
        finite = all(torch.isfinite(t).all() for t in state.values() if t.is_floating_point())
        if finite:
            if self.start is not None:
                embed(self.trainer.method, self.trainer.graph)  # refuses what is not finite
                self.start()
                self.start = None
                self._log(self.run)
            epoch, name = self.trainer.epoch, self.trainer.method.name
            self.run.save_checkpoint(state, epoch=epoch, method=name, seed=self.seed)
            self.saved = epoch
        self.last = time.monotonic()
