"""The progress bar of a search."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column

from muxgcl.app.screen import WIDE, console
from muxgcl.runs.loop import Epoch


@contextmanager
def _shown(bar: Progress) -> Iterator[Progress]:
    """Stop the bar at the end, if it was started: an empty bar would leave an empty line."""
    try:
        yield bar
    finally:
        if bar.tasks:
            bar.stop()


class SearchBar:
    """Shows how far a search is, and the best trial so far."""

    def __init__(self, bar: Progress, trials: int, notes: Sequence[str]) -> None:
        self.bar, self.trials, self.notes = bar, trials, notes
        self.done = 0
        self.task: TaskID | None = None  # until the search has begun

    def trial(self, done: int, best: str) -> None:
        """Show that so many trials are done; 0 begins the bar."""
        self.done = done
        if self.task is None:
            for note in self.notes:
                console.print(note, style="dim")
            self.bar.start()
            self.task = self.bar.add_task("tuning", total=self.trials, best="", now="")
        self.bar.update(self.task, completed=done, best=best, now="")

    def block(self, block: list[Epoch]) -> None:
        """Show how far the current trial is."""
        assert self.task is not None
        now = f"trial {self.done + 1}: epoch {block[-1].number}, loss {block[-1].loss:.3f}"
        self.bar.update(self.task, now=now)


@contextmanager
def search_bar(
    trials: int, notes: Sequence[str] = (), *, quiet: bool = False
) -> Iterator[SearchBar]:
    """A bar of trials; the notes are printed above it when the search begins."""
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
