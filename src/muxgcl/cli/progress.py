"""What a person sees while training: a bar with the loss of each scale, on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from muxgcl.train import Epoch

console = Console(stderr=True, highlight=False)


class TrainingBar:
    """Told of each block of epochs; shows loss, its terms, and time per epoch."""

    def __init__(self, bar: Progress, epochs: int) -> None:
        self.bar, self.epochs = bar, epochs
        self.tasks: dict[str, TaskID] = {}

    def _task(self, name: str, total: int) -> TaskID:
        if name not in self.tasks:
            self.tasks[name] = self.bar.add_task(name, total=total, losses="", speed="")
        return self.tasks[name]

    def prepare(self, done: int, total: int) -> None:
        """Move on in what comes before the first epoch."""
        self.bar.update(self._task("affinity", total), completed=done)

    def __call__(self, block: list[Epoch]) -> None:
        """Move on by one block."""
        last = block[-1]
        terms = "  ".join(f"{name} {value:.3f}" for name, value in last.terms.items())
        losses = f"loss {last.loss:.3f}" + (f" = {terms}" if len(last.terms) > 1 else "")
        speed = f"{1000 * last.seconds:.3g} ms/epoch"
        task = self._task("training", self.epochs)
        self.bar.update(task, completed=last.number, losses=losses, speed=speed)


@contextmanager
def training_bar(epochs: int, *, quiet: bool = False) -> Iterator[TrainingBar]:
    """A bar that stays where it ended; nothing where standard error is no terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[losses]}"),
        TextColumn("{task.fields[speed]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=quiet) as bar:
        yield TrainingBar(bar, epochs)
