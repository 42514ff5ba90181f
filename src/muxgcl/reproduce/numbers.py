"""From records to the figures in a cell: always mean, spread and n, never a bare mean."""

import re
from collections.abc import Sequence

import numpy as np

from muxgcl.evaluate import Difference, PaperResult, Summary, paired_difference, summarise
from muxgcl.evaluate.statistics import FEWEST
from muxgcl.reproduce.job import Job
from muxgcl.reproduce.paper import Printed
from muxgcl.reproduce.records import Found, Record

DASH = "—"
SHORT_BY = 1.0  # points below the paper's figure from which a cell is marked

PAIRED = (
    "Differences are paired: same training seeds, same splits. In brackets a 95 % t interval over "
    f"seeds and splits, * where it leaves out zero; fewer than {FEWEST} seeds have none."
)

SPLITS = {  # how nodes are divided, by protocol
    "holdout": "random splits: a tenth to learn from, a tenth to choose C on, and what these "
    "leave of the report half (about 40 %) to test on",
    "holdout-all": "random 10/10/80 splits, C chosen on validation nodes",
}


def scores(records: Sequence[Record], measure: str = "accuracy") -> list[list[float]]:
    """A row for each training seed, an entry for each split (or repeat of k-means)."""
    return [record["result"][measure] for record in records if measure in record["result"]]


def summary(records: Sequence[Record], measure: str = "accuracy") -> Summary | None:
    """Over all seeds and splits."""
    found = scores(records, measure)
    return summarise(np.concatenate(found)) if found else None


def chosen_on_test(record: Record) -> PaperResult:
    """What protocol `paper` saw of one training."""
    seen = record["result"]["epochs"]
    return PaperResult({int(epoch): tuple(values) for epoch, values in seen.items()})


def difference(found: Found, one: Sequence[Job], two: Sequence[Job]) -> Difference | None:
    """`one - two` on the seeds that both have, split by split."""
    pairs = [
        (first, second)
        for left, right in zip(one, two, strict=False)
        if (first := found.get(left)) is not None and (second := found.get(right)) is not None
    ]
    if not pairs:
        return None
    ours, theirs = (scores(side) for side in zip(*pairs, strict=True))
    return paired_difference(np.array(ours), np.array(theirs))


def percent(found: Summary | None, planned: int, printed: Printed | None = None) -> str:
    """`ours ± spread (paper's, difference)`, with n where runs are missing."""
    if found is None:
        return f"{DASH} ({printed.plain})" if printed else DASH
    fewer = f", n = {found.n}" if found.n < planned else ""
    text = f"{found.mean:.2f} ± {found.std:.2f}{fewer}"
    if printed is None:
        return text
    gap = found.mean - printed.mean
    mark = " ▼" if gap < -SHORT_BY else ""
    return f"{text} ({printed.plain}, {signed(gap)}{mark})"


def share(found: Summary | None, planned: int, printed: Printed | None = None) -> str:
    """`percent` for a measure between 0 and 1, with three digits."""
    if found is None:
        return f"{DASH} ({printed.plain})" if printed else DASH
    fewer = f", n = {found.n}" if found.n < planned else ""
    text = f"{found.mean:.3f} ± {found.std:.3f}{fewer}"
    return f"{text} ({printed.plain}, {signed(found.mean - printed.mean, 3)})" if printed else text


def interval(found: Difference | None, digits: int = 2) -> str:
    """`difference [interval]`, with a star where the interval leaves out zero."""
    if found is None:
        return DASH
    mean = signed(found.mean, digits)
    if found.low is None or found.high is None:
        return f"{mean} ({found.seeds} seed{'s' if found.seeds > 1 else ''})"
    star = "*" if found.is_clear else ""
    return f"{mean} [{signed(found.low, digits)}, {signed(found.high, digits)}]{star}"


def device(name: str) -> str:
    """The name of a device in a record; a CPU's ends in its number of threads."""
    return re.sub(r"\b1 threads$", "1 thread", name)


def signed(value: float, digits: int = 2) -> str:
    """With its sign; what rounds to zero has a plus."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"
