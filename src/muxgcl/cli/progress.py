"""Where things are printed, and the bar of a search."""

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
)
from rich.table import Column

from muxgcl.runs.loop import Epoch

# what is told may hold names of files and columns: brackets in them are no markup, paths stay whole
console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
results = Console(highlight=False, markup=False, soft_wrap=True)  # what was asked for
WIDE = 110  # columns, from which there is room for more


def draws(console: Console) -> bool:
    """Whether a bar can be drawn: on a terminal, and in a notebook that has widgets."""
    if not console.is_jupyter:
        return console.is_terminal
    try:
        import ipywidgets  # noqa: F401  (whether it is there, and loads)
    except ImportError:
        return False
    return True


@contextmanager
def _shown(bar: Progress) -> Iterator[Progress]:
    """Stopped at the end, if it was started: an empty bar would leave an empty line."""
    try:
        yield bar
    finally:
        if bar.tasks:
            bar.stop()


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
