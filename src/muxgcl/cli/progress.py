"""What a person sees while training: a bar with the loss of each scale, on standard error."""

from collections.abc import Iterator, Sequence
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
from rich.table import Column

from muxgcl.runs.loop import Epoch

# what is told may hold names of files and columns: brackets in them are no markup, paths stay whole
console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
results = Console(highlight=False, markup=False, soft_wrap=True)  # what was asked for
WIDE = 110  # columns, from which there is room for more


class TrainingBar:
    """Told of each block of epochs; shows loss, its terms, and time per epoch."""

    def __init__(self, bar: Progress, epochs: int) -> None:
        self.bar, self.epochs = bar, epochs
        self.tasks: dict[str, TaskID] = {}

    def _task(self, name: str, total: int) -> TaskID:
        self.bar.start()
        if name not in self.tasks:
            self.tasks[name] = self.bar.add_task(name, total=total, losses="", speed="")
        return self.tasks[name]

    def prepare(self, done: int, total: int) -> None:
        """Move on in what comes before the first epoch."""
        self.bar.update(self._task("affinity", total), completed=done)

    def __call__(self, block: list[Epoch]) -> None:
        """Move on by one block."""
        last = block[-1]
        terms = " + ".join(f"{value:.2f}" for value in last.terms.values())
        names = " + ".join(last.terms)
        losses = f"loss {last.loss:.2f}"
        if len(last.terms) > 1:
            losses += f" = {terms} ({names})" if console.width > WIDE else f" = {terms}"
        speed = f"{1000 * last.seconds:.3g} ms"
        task = self._task("training", self.epochs)
        self.bar.update(task, completed=last.number, losses=losses, speed=speed)


@contextmanager
def _shown(bar: Progress) -> Iterator[Progress]:
    """Stopped at the end, if it was started: an empty bar would leave an empty line."""
    try:
        yield bar
    finally:
        if bar.tasks:
            bar.stop()


@contextmanager
def training_bar(epochs: int, *, quiet: bool = False) -> Iterator[TrainingBar]:
    """A bar that stays where it ended; nothing where standard error is no terminal."""
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=8)),
        BarColumn(bar_width=24 if console.width > WIDE else 6),
        MofNCompleteColumn(),
        TextColumn("{task.fields[losses]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(compact=True),
    )
    with _shown(Progress(*columns, console=console, disable=quiet)) as bar:
        yield TrainingBar(bar, epochs)


class SearchBar:
    """Told of each trial of a search and of each block of epochs; shows the best so far."""

    def __init__(self, bar: Progress, trials: int, notes: Sequence[str]) -> None:
        self.bar, self.trials, self.notes = bar, trials, notes
        self.done = 0
        self.task: TaskID | None = None  # until the search has begun

    def trial(self, done: int, best: str) -> None:
        """So many trials are done; none, when it begins."""
        self.done = done
        if self.task is None:
            for note in self.notes:
                console.print(note, style="dim")
            self.bar.start()
            self.task = self.bar.add_task("tuning", total=self.trials, best="", now="")
        self.bar.update(self.task, completed=done, best=best, now="")

    def block(self, block: list[Epoch]) -> None:
        """How far the trial in hand is."""
        assert self.task is not None
        now = f"trial {self.done + 1}: epoch {block[-1].number}, loss {block[-1].loss:.3f}"
        self.bar.update(self.task, now=now)


@contextmanager
def search_bar(
    trials: int, notes: Sequence[str] = (), *, quiet: bool = False
) -> Iterator[SearchBar]:
    """A bar of trials, below notes that are told once the search begins."""
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=8)),
        BarColumn(bar_width=24 if console.width > WIDE else 6),
        MofNCompleteColumn(),
        TextColumn("{task.fields[best]}"),
        TextColumn("{task.fields[now]}"),
        TimeElapsedColumn(),
    )
    with _shown(Progress(*columns, console=console, disable=quiet)) as bar:
        yield SearchBar(bar, trials, notes)
