"""The losses of a run as TensorBoard, MLflow or Weights & Biases show them, beside metrics.jsonl.

MLflow and W&B know a run by its folder and the time it was created, so a run that is resumed goes
on there. Where they keep things is set by their own variables (`MLFLOW_TRACKING_URI`,
`WANDB_PROJECT`, `WANDB_MODE`); the experiment, or project, is `muxgcl` by default.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, Protocol

from muxgcl.errors import UserError, reason_of
from muxgcl.runs.fit import Stopped
from muxgcl.runs.folder import CURVES, Run
from muxgcl.runs.loop import Epoch

ALLOW = "MLFLOW_ALLOW_FILE_STORE"
OnBlock = Callable[[list[Epoch]], None]
Ending = Literal["finished", "stopped", "failed"]
STATUS: dict[Ending, str] = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}


class Board(Protocol):
    """Takes blocks of epochs."""

    def __call__(self, block: list[Epoch]) -> None:
        """Write one block of epochs."""

    def close(self, ending: Ending) -> None:
        """Say how training ended, and let go of what is open."""


def check_log(log: str | None) -> None:
    """Refuse a log that cannot be written, before any work."""
    if log is None:
        return
    if log not in BOARDS:
        raise UserError(f"log must be one of {', '.join(BOARDS)}, got {log!r}")
    load, _, name = BOARDS[log]
    try:
        load()
    except ImportError:
        raise UserError(f"--log {log} needs {name}: pip install {log}") from None


@contextmanager
def logged(run: Run, log: str | None, on_block: OnBlock) -> Iterator[OnBlock]:
    """Pass each block of epochs to `on_block` and to the log that was asked for."""
    if log is None:
        yield on_block
        return
    check_log(log)
    with _in_one_line(log):
        board = BOARDS[log][1](run)

    def both(block: list[Epoch]) -> None:
        on_block(block)
        with _in_one_line(log):
            board(block)

    try:
        yield both
    except BaseException as error:
        stopped = isinstance(error, Stopped | KeyboardInterrupt)
        with suppress(Exception):  # a person is told what ended the training
            board.close("stopped" if stopped else "failed")
        raise
    with _in_one_line(log):
        board.close("finished")


@contextmanager
def _in_one_line(log: str) -> Iterator[None]:
    """Turn an error of the log's package (no server, no login) into one line."""
    try:
        yield
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:
        reason = reason_of(error)
        if ALLOW in reason:  # whose remedy stands at the end of a long message
            reason = (
                f"MLflow refuses to keep runs in a folder: set {ALLOW}=true, or "
                "MLFLOW_TRACKING_URI=sqlite:///mlflow.db"
            )
        raise UserError(f"--log {log}: {reason[:200]}") from error


def _numbers(epoch: Epoch) -> dict[str, float]:
    """What is logged of an epoch, by name."""
    terms = {f"terms/{name}": value for name, value in epoch.terms.items()}
    return {"loss": epoch.loss, "ms per epoch": 1000 * epoch.seconds, **terms}


def _prefix(run: Run) -> str:
    return f"member {run.member + 1}/" if run.member else ""


def _key(run: Run) -> str:
    """An id of the run: the same when it is resumed, another for any other run."""
    created = run.config()["run"].get("created", "")
    return hashlib.sha256(f"{run.path.resolve()} {created}".encode()).hexdigest()[:16]


def _settings(run: Run) -> dict[str, Any]:
    """What the run was asked to do."""
    tables = run.config()
    facts = {name: tables["run"].get(name) for name in ("dataset", "method", "preset", "seed")}
    return {**facts, **tables.get("train", {}), **tables.get("method", {})}


class TensorBoard:
    """Loss, its terms and the time of every epoch, in the run's folder `tensorboard`."""

    def __init__(self, run: Run) -> None:
        self.folder, self.prefix = run.path / CURVES, _prefix(run)
        if self.folder.is_symlink():
            raise UserError(f"{self.folder} is a link; expected a folder of muxgcl, or none")
        self.file: Any = None

    def __call__(self, block: list[Epoch]) -> None:
        """Write one block of epochs."""
        if self.file is None:
            # a resumed run begins at its checkpoint: what was logged past that is hidden
            self.file = _tensorboard()(str(self.folder), purge_step=block[0].number)
        for epoch in block:
            for name, value in _numbers(epoch).items():
                self.file.add_scalar(f"{self.prefix}{name}", value, epoch.number)

    def close(self, ending: Ending) -> None:
        """Finish the file, which has no place for how training ended."""
        if self.file is not None:
            self.file.close()


class MLflow:
    """Loss, its terms and the time of every epoch as metrics of an MLflow run, settings as params.

    The store is asked at once, so that one that cannot be used is told before any work. The run is
    begun with the first epochs: until then the folder may hold an earlier run.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.prefix = run, _prefix(run)
        self.client: Any = _mlflow().MlflowClient()
        self.experiment = os.environ.get("MLFLOW_EXPERIMENT_NAME", "muxgcl")
        self.client.get_experiment_by_name(self.experiment)
        self.id = ""

    def _begin(self) -> None:
        mlflow, key, name = _mlflow(), _key(self.run), self.experiment
        known = self.client.get_experiment_by_name(name)
        place = self.client.create_experiment(name) if known is None else known.experiment_id
        before = self.client.search_runs([place], filter_string=f"tags.`muxgcl.run` = '{key}'")
        if before:
            self.id = before[0].info.run_id
            self.client.update_run(self.id, status="RUNNING")
            return
        title = self.run.path.resolve().name
        begun = self.client.create_run(place, tags={"muxgcl.run": key}, run_name=title)
        self.id = begun.info.run_id
        params = [mlflow.entities.Param(k, str(v)) for k, v in _settings(self.run).items()]
        self.client.log_batch(self.id, params=params)

    def __call__(self, block: list[Epoch]) -> None:
        """Send one block of epochs."""
        if not self.id:
            self._begin()
        now, metric = int(1000 * time.time()), _mlflow().entities.Metric
        self.client.log_batch(
            self.id,
            metrics=[
                metric(f"{self.prefix}{name}", value, now, epoch.number)
                for epoch in block
                for name, value in _numbers(epoch).items()
            ],
        )

    def close(self, ending: Ending) -> None:
        """Mark the run as finished, killed or failed."""
        if self.id:
            self.client.set_terminated(self.id, STATUS[ending])


class WeightsAndBiases:
    """Loss, its terms and the time of every epoch as a run of W&B, with the settings as config."""

    def __init__(self, run: Run) -> None:
        self.run, self.prefix = run, _prefix(run)
        self.session: Any = None

    def __call__(self, block: list[Epoch]) -> None:
        """Send one block of epochs."""
        if self.session is None:
            self.session = _wandb().init(
                project=os.environ.get("WANDB_PROJECT", "muxgcl"),
                name=self.run.path.resolve().name,
                id=_key(self.run) + (f"-{self.run.member + 1}" if self.run.member else ""),
                resume="allow",
                config=_settings(self.run),
            )
        for epoch in block:
            found = {f"{self.prefix}{name}": value for name, value in _numbers(epoch).items()}
            self.session.log(found, step=epoch.number)

    def close(self, ending: Ending) -> None:
        """Finish the session; W&B calls a run failed whose exit code is not 0."""
        if self.session is not None:
            self.session.finish(exit_code=0 if ending == "finished" else 1)


def _tensorboard() -> Any:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter


def _mlflow() -> Any:
    import mlflow
    import mlflow.entities

    return mlflow


def _wandb() -> Any:
    import wandb

    return wandb


# by the name of the package: how to load it, what writes to it, and its name in messages
BOARDS: dict[str, tuple[Callable[[], Any], Callable[[Run], Board], str]] = {
    "tensorboard": (_tensorboard, TensorBoard, "TensorBoard"),
    "mlflow": (_mlflow, MLflow, "MLflow"),
    "wandb": (_wandb, WeightsAndBiases, "Weights & Biases"),
}
