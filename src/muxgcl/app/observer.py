"""A listener to the events of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muxgcl.evaluate import Verdict
from muxgcl.runs.loop import Epoch


class Observer:
    """Called at every event of a run, in order; does nothing. Override what is of interest.

    Example:
        >>> class Losses(Observer):
        ...     def epochs(self, block, total):
        ...         print(f"epoch {block[-1].number} of {total}: loss {block[-1].loss:.3f}")
    """

    def phase(self, name: str) -> None:
        """A phase begins: loading, estimating, preparing, training, scoring, controls or report.

        Without labels `diagnosing` stands for scoring: only similarities are measured. Classes are
        told in the phase predicting.
        """

    def step(self, done: int, total: int) -> None:
        """This many steps of a phase are done (estimating affinities, scoring controls)."""

    def note(self, text: str) -> None:
        """One sentence: what was done to the data, a setting and why it was picked."""

    def epochs(self, block: list[Epoch], total: int) -> None:
        """A block of epochs of `total` was trained."""

    def stopping(self, number: int) -> None:
        """A signal came; training ends after this epoch."""

    def scores(self, method: str, scores: Mapping[str, Any], verdict: Verdict | None) -> None:
        """The scores of one run, its controls among them, and whether training paid off."""

    def wrote(self, what: str, path: Path) -> None:
        """A result is on disk: embeddings, report, clusters, figures."""
