"""What a cell shows: records of the protocol that is asked for, or, marked, earlier ones.

Another mark says whose settings they were trained with.
Before labels had two halves, test nodes came from both (`holdout-all`). Where nothing else is
recorded yet, a table shows those figures with a mark instead of an empty cell.
"""

from dataclasses import dataclass, replace

from muxgcl.evaluate import Difference
from muxgcl.reproduce import numbers
from muxgcl.reproduce.artefacts import Scope
from muxgcl.reproduce.job import Job
from muxgcl.reproduce.records import Found, Record
from muxgcl.runs.settings import origin, source

MARKS = {"official": "", "mixed": " †", "ours": " ‡"}  # by whose settings they are
ORIGINS = "† the authors' in part, the rest ours; ‡ ours; no mark: the authors' own"
EARLIER = " §"
ON_EARLIER = "§: an earlier record, judged on nodes of both halves (protocol `holdout-all`)."

Row = tuple[str, str]  # method and variant


@dataclass(frozen=True, slots=True)
class Shown:
    """The records of one cell, how many there should be, and the mark of earlier ones."""

    records: list[Record]
    jobs: list[Job]
    mark: str = ""


def mark(method: str, preset: str, dataset: str) -> str:
    """The mark of a method's settings for a dataset."""
    return MARKS[origin(method, preset, dataset)]


def is_searched(method: str, preset: str, dataset: str) -> bool:
    """Whether the settings say that they were chosen on the development half."""
    return "development half" in source(method, preset, dataset)


def shown(found: Found, scope: Scope, row: Row, dataset: str) -> Shown:
    """The records of one method or variant on one graph."""
    for asked, mark in _scopes(scope):
        jobs = asked.scored(row[0], dataset, row[1])
        if records := found.of(jobs):
            return Shown(records, jobs, mark)
    return Shown([], scope.scored(row[0], dataset, row[1]))


def difference(
    found: Found, scope: Scope, one: Row, two: Row, dataset: str
) -> tuple[Difference | None, str]:
    """`one - two`, paired, so both of one protocol; and the mark of an earlier one.

    A row without chance has one record, which stands for every seed.
    """
    for asked, mark in _scopes(scope):
        ours, theirs = (asked.scored(method, dataset, variant) for method, variant in (one, two))
        if len(theirs) == 1:
            theirs = theirs * len(ours)
        if (seen := numbers.difference(found, ours, theirs)) is not None:
            return seen, mark
    return None, ""


def gap(found: Found, scope: Scope, one: Row, two: Row, dataset: str) -> str:
    """The same as a cell."""
    seen, mark = difference(found, scope, one, two, dataset)
    return numbers.interval(seen) + mark


def on_earlier(cells: list[list[str]]) -> list[str]:
    """The note that a table needs where a cell of it has the mark."""
    return [ON_EARLIER] if any(EARLIER.strip() in cell for row in cells for cell in row) else []


def _scopes(scope: Scope) -> list[tuple[Scope, str]]:
    if scope.protocol != "holdout":
        return [(scope, "")]
    return [(scope, ""), (replace(scope, protocol="holdout-all"), EARLIER)]
