"""What a person sees of a run: a bar on a terminal or in a notebook, else a line now and then."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from muxgcl.app.observer import Observer
from muxgcl.app.show import say, show_scores
from muxgcl.evaluate import Verdict
from muxgcl.runs.environment import human_time
from muxgcl.runs.loop import Epoch

# messages may hold names of files and columns: brackets in them are no markup, paths stay whole
console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
results = Console(highlight=False, markup=False, soft_wrap=True)  # what was asked for
WIDE = 110  # columns, from which there is room for more
FIRST_LINE, NEXT_LINES = 2.0, 30.0  # seconds of silence where there is no terminal
WORDS = {
    "loading": "loading the graph",
    "estimating": "estimating time and memory",
    "preparing": "preparing",
    "training": "training",
    "scoring": "scoring the embeddings",
    "diagnosing": "measuring similarities",
    "controls": "scoring controls",
    "predicting": "predicting classes",
    "report": "writing the report",
}


def draws(console: Console) -> bool:
    """Whether a bar can be drawn: on a terminal, and in a notebook that has widgets."""
    if not console.is_jupyter:
        return console.is_terminal
    try:
        import ipywidgets  # noqa: F401  (whether it is there, and loads)
    except ImportError:
        return False
    return True


class Count(MofNCompleteColumn):
    """`done/total`; empty while the total is unknown."""

    def render(self, task: Task) -> Text:
        """The text of the column."""
        return Text() if task.total is None else super().render(task)


class TimeLeft(TimeRemainingColumn):
    """The time that is left, once it is known."""

    def render(self, task: Task) -> Text:
        """The text of the column."""
        known = task.total is not None and task.time_remaining is not None and not task.finished
        return super().render(task).append(" left") if known else Text()


class Screen(Observer):
    """Shows phases, losses and notes on standard error, scores on standard output.

    Example:
        >>> with Screen(quiet=True) as screen:
        ...     screen.phase("training")  # or: muxgcl.run("edges.csv", observer=screen)
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.scores_to = console if as_json else results
        drawn = draws(console)
        self.bar = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=8)),
            BarColumn(bar_width=24 if console.width > WIDE else 6),
            Count(),
            TextColumn("{task.fields[losses]}"),
            TextColumn("{task.fields[speed]}"),
            TimeLeft(compact=True),
            console=console,
            disable=quiet or not drawn,
        )
        self.lines = None if quiet or drawn else Lines()
        self.task: TaskID | None = None
        self.stays = False  # whether the bar is left where it ended
        self.name = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
        if self.lines is not None:
            self.lines.close()

    def _end(self) -> None:
        """Take the phase's bar away, or leave it where training ended."""
        if self.task is not None:
            if not self.stays:
                self.bar.update(self.task, visible=False)
            self.bar.stop()
        self.task, self.stays = None, False

    def phase(self, name: str) -> None:
        """Show at once that something has begun."""
        self._end()
        self.name = WORDS.get(name, name)
        if self.lines is not None:
            self.lines.begin(self.name)
        if self.bar.disable:
            return
        for task in self.bar.task_ids:
            self.bar.remove_task(task)
        self.task = self.bar.add_task(self.name, total=None, losses="", speed="")
        self.bar.start()

    def step(self, done: int, total: int) -> None:
        """Move on in scoring controls, or in what comes before the first epoch."""
        name = self.name if self.name == WORDS["controls"] else "affinity"
        if self.lines is not None:
            self.lines.tell(f"{name}: {done} of {total}")
        if self.task is not None:
            self.bar.update(self.task, description=name, completed=done, total=total)

    def epochs(self, block: list[Epoch], total: int) -> None:
        """Show loss, its terms and the time of an epoch."""
        last = block[-1]
        each = human_time(last.seconds)
        if self.lines is not None:
            left = human_time(last.seconds * (total - last.number))
            self.lines.tell(
                f"training: epoch {last.number} of {total}, loss {last.loss:.2f}, "
                f"{each} an epoch, {left} left"
            )
        if self.task is None:
            return
        losses = f"loss {last.loss:.2f}"
        if len(last.terms) > 1:
            terms = " + ".join(f"{value:.2f}" for value in last.terms.values())
            names = " + ".join(last.terms)
            losses += f" = {terms} ({names})" if console.width > WIDE else f" = {terms}"
        self.stays = True
        self.bar.update(
            self.task,
            description="training",
            completed=last.number,
            total=total,
            losses=losses,
            speed=f"{each} an epoch",
        )

    def stopping(self, number: int) -> None:
        """Say at once that the signal was heard."""
        say("stopping at the end of this epoch; the same signal again stops at once", console)

    def note(self, text: str) -> None:
        """A sentence, dimmed."""
        say(text, console, style="dim")

    def scores(self, method: str, scores: Mapping[str, Any], verdict: Verdict | None) -> None:
        """The table of scores, and whether training paid off."""
        self._end()
        judged = None if verdict is None else verdict.to_dict()
        show_scores(method, scores, judged, self.scores_to)

    def over_seeds(
        self, method: str, seeds: int, scores: Mapping[str, Any], verdict: Verdict | None
    ) -> None:
        """The scores over several seeds, as `scores` shows those of one."""
        self.scores_to.print(f"over {seeds} seeds (mean and spread of their means):")
        self.scores(method, scores, verdict)

    def wrote(self, what: str, path: Path) -> None:
        """Where a result is."""
        self._end()
        console.print(f"{what + ':':<12}{path}")


class Lines:
    """Prints progress lines where no bar can be drawn: after two seconds, then twice a minute."""

    def __init__(self) -> None:
        self.text = ""
        self.due = float("inf")
        self.changed, self.over = threading.Event(), False
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def begin(self, text: str) -> None:
        """A phase begins."""
        self.text, self.due = f"{text} ...", time.monotonic() + FIRST_LINE
        if self.thread.ident is None:
            self.thread.start()
        self.changed.set()

    def tell(self, text: str) -> None:
        """How far it is, for the next line."""
        self.text = text

    def close(self) -> None:
        """No more lines."""
        self.over = True
        self.changed.set()
        if self.thread.ident is not None:
            self.thread.join()

    def _watch(self) -> None:
        while not self.over:
            left = self.due - time.monotonic()
            if left <= 0:
                say(self.text, console, style="dim")
                self.due = time.monotonic() + NEXT_LINES
                continue
            self.changed.wait(min(left, threading.TIMEOUT_MAX))
            self.changed.clear()


@contextmanager
def fit_progress(
    epochs: int, verbose: bool, note: str = ""
) -> Iterator[tuple[Callable[[list[Epoch]], None], Callable[[int, int], None] | None]]:
    """Show the progress of an embedder's `fit`: with a bar, in some lines, or not at all.

    Yields a function to call with each block of epochs, and one, or None, for the steps before
    the first epoch.
    """
    if not verbose:
        yield lambda block: None, None
        return
    with Screen() as screen:
        if note:
            screen.note(note)
        screen.phase("preparing")
        if draws(console):
            yield lambda block: screen.epochs(block, epochs), screen.step
            return
        lines = tenths(epochs)

        def tell(block: list[Epoch]) -> None:
            screen.epochs(block, epochs)
            lines(block)

        yield tell, screen.step


def tenths(epochs: int) -> Callable[[list[Epoch]], None]:
    """A function that prints the loss after every tenth of the epochs, and after the last."""
    tenth = -(-epochs // 10)

    def tell(block: list[Epoch]) -> None:
        for epoch in block:
            if epoch.number % tenth == 0 or epoch.number == epochs:
                print(f"epoch {epoch.number}/{epochs}: loss {epoch.loss:.4f}", file=sys.stderr)

    return tell
