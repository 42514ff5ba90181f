"""The progress bar of a search."""

import time
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

from muxgcl.app.screen import WIDE, Lines, console, draws
from muxgcl.app.show import say
from muxgcl.runs.environment import human_time
from muxgcl.runs.loop import Epoch


class SearchBar:
    """Shows how far a search is, and the best trial so far."""

    def __init__(
        self, bar: Progress, lines: Lines | None, trials: int, notes: Sequence[str]
    ) -> None:
        self.bar, self.lines, self.trials, self.notes = bar, lines, trials, notes
        self.done = self.before = 0  # trials, and those of an earlier search
        self.best, self.begun = "", 0.0
        self.task: TaskID | None = None  # until the search has begun

    def trial(self, done: int, best: str) -> None:
        """Show that so many trials are done; 0 begins the bar."""
        self.done, self.best = done, best
        if self.task is None:
            for note in self.notes:
                say(note, console, style="dim")
            self.bar.start()
            self.task = self.bar.add_task("tuning", total=self.trials, best="", now="")
            self.before, self.begun = done, time.monotonic()
            if self.lines is not None:
                self.lines.begin(f"tuning: trial {done + 1} of {self.trials}")
        now = f"{self._left()} left" if done < self.trials else "scoring controls"
        now = now if done > self.before or done >= self.trials else ""
        self._show(now)

    def _left(self) -> str:
        """What the other trials will take, if they take as long as those of this search."""
        each = (time.monotonic() - self.begun) / max(1, self.done - self.before)
        return f"about {human_time(each * (self.trials - self.done))}"

    def _show(self, now: str) -> None:
        assert self.task is not None
        self.bar.update(self.task, completed=self.done, best=self.best, now=now)
        if self.lines is not None:
            parts = [f"tuning: {self.done} of {self.trials} trials done", self.best, now]
            self.lines.tell(", ".join(filter(None, parts)))

    def block(self, block: list[Epoch]) -> None:
        """Show how far the current trial is."""
        now = f"trial {self.done + 1}: epoch {block[-1].number}, loss {block[-1].loss:.3f}"
        self._show(f"{now}, {self._left()} left" if self.done > self.before else now)


@contextmanager
def search_bar(
    trials: int, notes: Sequence[str] = (), *, quiet: bool = False
) -> Iterator[SearchBar]:
    """A bar of trials, or lines; the notes are printed above it when the search begins."""
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=8)),
        BarColumn(bar_width=24 if console.width > WIDE else 6),
        MofNCompleteColumn(),
        TextColumn("{task.fields[best]}"),
        TextColumn("{task.fields[now]}"),
        TimeElapsedColumn(),
    )
    drawn = draws(console)
    lines = None if quiet or drawn else Lines()
    bar = Progress(*columns, console=console, disable=quiet or not drawn)
    try:
        yield SearchBar(bar, lines, trials, notes)
    finally:
        if lines is not None:
            lines.close()
        if bar.tasks:  # it was started: an empty bar would leave an empty line
            bar.stop()
