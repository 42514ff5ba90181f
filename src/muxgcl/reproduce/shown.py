"""What a cell shows: the records of one method or variant on one graph, and whose settings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from muxgcl.evaluate import Difference
from muxgcl.reproduce import numbers
from muxgcl.reproduce.artefacts import Scope
from muxgcl.reproduce.job import Job
from muxgcl.reproduce.paper import LABELS, TITLES
from muxgcl.reproduce.records import Found, Record
from muxgcl.runs.settings import origin

MARKS = {"official": "", "mixed": " †", "ours": " ‡"}  # by whose settings they are
OF_MUX_GCL = ("gae", "vgae")  # official settings, but by MUX-GCL's authors
COLLAPSED = 10.0  # points of accuracy below the median over seeds

Row = tuple[str, str]  # method and variant


@dataclass(frozen=True, slots=True)
class Shown:
    """The records of one cell, and the jobs that should be there."""

    records: list[Record]
    jobs: list[Job]


def mark(method: str, preset: str, dataset: str) -> str:
    """The mark of a method's settings for a dataset: whose they are."""
    return MARKS[origin(method, preset, dataset)]


def marks_told(methods: Iterable[str]) -> str:
    """What the marks beside the rows of some methods mean."""
    borrowed = " and ".join(LABELS[name] for name in OF_MUX_GCL if name in methods)
    of_mux_gcl = f" ({borrowed}: those of MUX-GCL's authors)" if borrowed else ""
    return f"† the authors' in part, the rest ours; ‡ ours; no mark: the authors' own{of_mux_gcl}"


def shown(found: Found, scope: Scope, row: Row, dataset: str) -> Shown:
    """The records of one method or variant on one graph."""
    jobs = scope.scored(row[0], dataset, row[1])
    return Shown(found.of(jobs), jobs)


def difference(found: Found, scope: Scope, one: Row, two: Row, dataset: str) -> Difference | None:
    """`one - two`, paired. A row without chance has one record, which stands for every seed."""
    ours, theirs = (scope.scored(method, dataset, variant) for method, variant in (one, two))
    if len(theirs) == 1:
        theirs = theirs * len(ours)
    return numbers.difference(found, ours, theirs)


def gap(found: Found, scope: Scope, one: Row, two: Row, dataset: str) -> str:
    """The difference and its interval, as the text of a cell."""
    return numbers.interval(difference(found, scope, one, two, dataset))


def by_settings(found: Found, scope: Scope) -> list[str]:
    """Where MUX-GCL's lead over GRACE is more than what is left of it at equal settings."""
    notes = []
    full, neither = (("mux-gcl", variant) for variant in ("full", "neither"))
    for dataset in scope.columns("table4"):
        own = difference(found, scope, full, ("grace", "full"), dataset)
        equal = difference(found, scope, full, neither, dataset)
        if own and equal and equal.high is not None and own.is_above and own.mean > equal.high:
            notes.append(
                f"On {TITLES.get(dataset, dataset)} the difference is the settings: at equal ones "
                f"it is {numbers.interval(equal)}."
            )
    return notes


def collapsed(
    found: Found, scope: Scope, methods: Iterable[str], columns: Sequence[str]
) -> list[str]:
    """A note on trainings that came to nothing: the mean of their cell hides it."""
    notes = []
    for method in methods:
        for dataset in columns:
            records = shown(found, scope, (method, "full"), dataset).records
            each = [fmean(scores) for scores in numbers.scores(records)]
            fallen = [x for x in each if x < median(each) - COLLAPSED]
            if fallen:
                notes.append(
                    f"{LABELS[method]} on {TITLES.get(dataset, dataset)}: {len(fallen)} of "
                    f"{len(each)} trainings collapsed (accuracy "
                    f"{', '.join(f'{x:.1f}' for x in fallen)}; the median over seeds is "
                    f"{median(each):.2f})."
                )
    return notes
