"""The losses of a run as TensorBoard reads them, beside metrics.jsonl."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from muxgcl.errors import UserError
from muxgcl.runs.folder import CURVES, Run
from muxgcl.runs.loop import Epoch


def check_log(log: str | None) -> None:
    """Refuse a log that cannot be written, before any work."""
    if log == "tensorboard":
        _writer()
    elif log is not None:
        raise UserError(f"log must be tensorboard, got {log!r}")


def _writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError("--log tensorboard needs TensorBoard: pip install 'muxgcl[log]'") from None
    return SummaryWriter


@contextmanager
def logged(
    run: Run, log: str | None, on_block: Callable[[list[Epoch]], None]
) -> Iterator[Callable[[list[Epoch]], None]]:
    """Tell `on_block` of each block of epochs, and the log that was asked for as well."""
    if log is None:
        yield on_block
        return
    board = TensorBoard(run)

    def both(block: list[Epoch]) -> None:
        on_block(block)
        board(block)

    try:
        yield both
    finally:
        board.close()


class TensorBoard:
    """Loss, its terms and the time of every epoch, in the run's folder `tensorboard`."""

    def __init__(self, run: Run) -> None:
        self.folder = run.path / CURVES
        self.prefix = f"member {run.member + 1}/" if run.member else ""
        self.file: Any = None

    def __call__(self, block: list[Epoch]) -> None:
        """Write one block of epochs."""
        if self.file is None:
            # a resumed run begins at its checkpoint: what was logged past that is hidden
            self.file = _writer()(str(self.folder), purge_step=block[0].number)
        for epoch in block:
            self.file.add_scalar(f"{self.prefix}loss", epoch.loss, epoch.number)
            self.file.add_scalar(f"{self.prefix}ms per epoch", 1000 * epoch.seconds, epoch.number)
            for name, value in epoch.terms.items():
                self.file.add_scalar(f"{self.prefix}terms/{name}", value, epoch.number)

    def close(self) -> None:
        """Finish the file."""
        if self.file is not None:
            self.file.close()
