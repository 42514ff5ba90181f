"""Scores as a flat list: who was measured, how, and how sure the figure is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muxgcl.evaluate import Verdict, verdict
from muxgcl.evaluate.controls import control_name
from muxgcl.report.record import RunRecord

MEASURES = {
    "accuracy": "accuracy (%)",
    "macro_f1": "macro F1 (%)",
    "nmi": "NMI",
    "ari": "ARI",
    "auc": "AUC",
    "ap": "average precision",
    "unselected": "accuracy (%), epoch not chosen",
    "structure": "structure",
    "stability": "stability of clusters",
    "modularity": "edges inside clusters, above chance",
}
PROTOCOLS = {
    "holdout": "A linear classifier is trained on a tenth of the nodes, tuned on another tenth and "
    "asked about what they leave of the report half, whose labels `tune` does not read; repeated "
    "on random splits.",
    "holdout-all": "As `holdout`, but test nodes of the development half count as well: where "
    "settings were searched with labels, the search has read some of these.",
    "public": "A linear classifier on the split that comes with the dataset.",
    "paper": "Optimistic: the epoch was chosen by its score on the test nodes, as in the released "
    "script of MUX-GCL. Do not compare it with the other protocols.",
    "clustering": "k-means with as many clusters as classes, compared on the report half; 1 is "
    "perfect agreement with the classes. ARI: 0 is chance. NMI is not corrected for chance and "
    "grows with the number of clusters; compare it with the controls only.",
    "link": "A part of the edges was hidden; the embedding tells them from pairs without an edge. "
    "1 is perfect, 0.5 is chance.",
    "no labels": "How far clusters by one half of the columns are those by the "
    "other (stability), and how many edges lie inside clusters beyond chance (modularity). "
    "Structure is the smaller of the two: 0 is chance, 1 the most. Compare settings of one graph "
    "by it.",
}


@dataclass(frozen=True, slots=True)
class Score:
    """One measured figure; `std` is over `n` repeats."""

    who: str  # "" is the run itself, else the name of a control
    protocol: str
    measure: str
    mean: float
    std: float
    n: int
    optimistic: bool

    @property
    def is_control(self) -> bool:
        """Whether it needed no training."""
        return self.who != ""

    @property
    def heading(self) -> str:
        """What was measured."""
        return MEASURES.get(self.measure, self.measure)

    def __str__(self) -> str:
        known = 2 if "%" in self.heading else 3
        large = max(abs(self.mean), self.std) > 1.5
        digits = known if self.measure in MEASURES else 2 if large else 3
        spread = f" ± {self.std:.{digits}f}" if self.n > 1 else ""
        return f"{self.mean:.{digits}f}{spread}"


def judged(record: RunRecord) -> Verdict | None:
    """Whether training paid, as far as the run's scores say."""
    settings = record.settings.get("method")
    known = settings if isinstance(settings, Mapping) else None
    return verdict(record.method, record.scores, known)


def flatten(scores: Mapping[str, Any]) -> list[Score]:
    """The run's own scores, then those of its controls."""
    own = [score for name, part in scores.items() for score in _protocol("", name, part)]
    controls = [
        score
        for control, parts in dict(scores.get("controls", {})).items()
        for name, part in _by_protocol(parts).items()
        for score in _protocol(control_name(str(control)), name, part)
    ]
    return own + controls


def _by_protocol(parts: Mapping[str, Any]) -> dict[str, Any]:
    """A control's scores by protocol; where they are given bare, they are those of `holdout`."""
    nested = {name: part for name, part in parts.items() if not _is_figure(part)}
    bare = {name: part for name, part in parts.items() if _is_figure(part)}
    return {**nested, "holdout": {**bare, **nested.get("holdout", {})}} if bare else nested


def _is_figure(part: Any) -> bool:
    return isinstance(part, int | float) or (isinstance(part, Mapping) and "mean" in part)


def _protocol(who: str, protocol: str, part: Any) -> Iterator[Score]:
    if protocol == "controls" or not isinstance(part, Mapping):
        return
    for measure, figure in part.items():
        if isinstance(figure, Mapping) and "mean" in figure:
            mean, std, n = figure["mean"], figure.get("std", 0.0), figure.get("n", 1)
        elif measure in MEASURES and isinstance(figure, int | float):
            mean, std, n = figure, 0.0, 1
        else:
            continue
        chosen_on_test = bool(part.get("optimistic")) and measure != "unselected"
        yield Score(who, protocol, measure, float(mean), float(std), int(n), chosen_on_test)
