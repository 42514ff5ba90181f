"""What a person sees while training: a bar with the loss of each scale, on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from muxgcl.train import Epoch

console = Console(stderr=True, highlight=False)


class TrainingBar:
    """Told of each block of epochs; shows loss, its terms, and time per epoch."""

    def __init__(self, bar: Progress, epochs: int) -> None:
        self.bar = bar
        self.task = bar.add_task("training", total=epochs, losses="", speed="")

    def __call__(self, block: list[Epoch]) -> None:
        """Move on by one block."""
        last = block[-1]
        terms = "  ".join(f"{name} {value:.3f}" for name, value in last.terms.items())
        losses = f"loss {last.loss:.3f}" + (f" = {terms}" if len(last.terms) > 1 else "")
        speed = f"{1000 * last.seconds:.3g} ms/epoch"
        self.bar.update(self.task, completed=last.number, losses=losses, speed=speed)


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
