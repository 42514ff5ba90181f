"""Whether training paid: a method's scores against those of what needs no training, in pairs.

Differences are taken on the same splits, against the control with the best mean. That choice is
made on the scores it is compared by, so it favours the control. With one run nothing is said about
other seeds: the spread shown is that over splits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from muxgcl.evaluate.controls import (
    MAJORITY,
    ONE_HOP,
    RAW,
    SIDE_BY_SIDE,
    TWO_HOPS,
    UNTRAINED,
    control_name,
)
from muxgcl.evaluate.statistics import FEWEST, Summary, paired_difference, summarise

DEVELOPMENT = "development"  # of a search: splits of the development half
# in the order in which they are looked for
PROTOCOLS = ("holdout", "holdout-all", "public", DEVELOPMENT)
WITHOUT_TRAINING = ("raw", "sgc", "random-gcn")  # methods that are controls themselves
METHOD_OF = {  # options of `muxgcl run` that make a control; the others have none
    RAW: "--method raw",
    ONE_HOP: "--method sgc --set steps=1",
    TWO_HOPS: "--method sgc",
    SIDE_BY_SIDE: "--method sgc --set side_by_side=true",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The difference to the best control, in points of accuracy, and what follows from it."""

    method: str
    protocol: str
    control: str
    difference: Summary  # over all pairs
    ahead: int  # pairs in which the method is better
    seeds: int
    interval: tuple[float, float] | None  # with enough seeds
    paid: bool | None  # None: too close to call
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def verdict(
    method: str,
    scores: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any] | None = None,
) -> Verdict | None:
    """Judge the scores of one run, or of several seeds; None where there is nothing to compare.

    Args:
        method: the method's name.
        scores: as a run keeps them: by protocol, then `per_split`; `controls` holds the same by
            name. Several seeds must share their splits.
        settings: of the method. They say whether it is one of the controls, which then is no
            rival.
    """
    itself = same_control(method, settings or {})
    runs = [scores] if isinstance(scores, Mapping) else list(scores)
    for protocol in PROTOCOLS:
        own = [split_accuracies(run.get(protocol)) for run in runs]
        controls = [run.get("controls") or {} for run in runs]
        rivals = {
            name: [split_accuracies(one.get(name, {}).get(protocol)) for one in controls]
            for name in (controls[0] if controls else {})
            if name != itself
        }
        pairs = {name: shared for name, found in rivals.items() if (shared := _shared(own, found))}
        if pairs:
            return _judge(method, protocol, pairs)
    return None


def same_control(method: str, settings: Mapping[str, Any]) -> str | None:
    """The control that a method is, if it is one."""
    if method == "raw":
        return RAW
    if method != "sgc":
        return None
    steps = settings.get("steps", 2)
    if settings.get("side_by_side", False):
        return SIDE_BY_SIDE if steps == 2 else None
    return {0: RAW, 1: ONE_HOP, 2: TWO_HOPS}.get(steps)


Accuracies = tuple[Any, list[float]] | None


def split_accuracies(part: Any) -> Accuracies:
    """Which splits of which labels, and the accuracy on each of them."""
    per_split = part.get("per_split") if isinstance(part, Mapping) else None
    if not isinstance(per_split, Mapping) or not per_split.get("accuracy"):
        return None
    mark = per_split.get("split_seed"), per_split.get("labels")
    return mark, list(per_split["accuracy"])


def _shared(
    own: Sequence[Accuracies], rival: Sequence[Accuracies]
) -> tuple[list[list[float]], list[list[float]]] | None:
    """The scores of both on the splits that all of them have: of one seed, the first ones."""
    parts = [part for part in (*own, *rival) if part is not None]
    if len(parts) < len(own) + len(rival) or len({mark for mark, _ in parts}) > 1:
        return None
    count = min(len(values) for _, values in parts)
    values = [values[:count] for _, values in parts]
    return values[: len(own)], values[len(own) :]


Pair = tuple[list[list[float]], list[list[float]]]  # of the method and a control


def _judge(method: str, protocol: str, pairs: Mapping[str, Pair]) -> Verdict:
    """The outcome against the best control, and what to do."""
    found = {name: _against(*pairs[name]) for name in pairs}
    ranked = sorted(pairs, key=lambda name: -float(np.mean(pairs[name][1])))
    control = ranked[0]
    best = found[control]
    advice = ""
    if not (control == MAJORITY or (method in WITHOUT_TRAINING and best.paid is None)):
        advice = _advice(_instead(ranked, found), best.paid, searched=protocol == DEVELOPMENT)
    paid, outcome = best.paid, _outcome(method, control, best)
    if _all_flat(pairs):
        paid, advice = None, ""
        outcome = (
            f"no verdict: {method} has the same accuracy on every split, and so has each control, "
            "as with very few labels or very easy classes"
        )
    return Verdict(
        method=method,
        protocol=protocol,
        control=control,
        difference=best.difference,
        ahead=best.ahead,
        seeds=best.seeds,
        interval=best.interval,
        paid=paid,
        sentence=f"{outcome} ({_figures(best)}){advice}",
    )


def _all_flat(pairs: Mapping[str, Pair]) -> bool:
    """Whether no accuracy differs between splits: their spread then says nothing."""
    rows = [np.asarray(row) for pair in pairs.values() for row in pair]
    return all(row.size > 1 and np.ptp(row) == 0 for row in rows)


@dataclass(frozen=True, slots=True)
class _Compared:
    """A method against one control."""

    difference: Summary
    ahead: int
    seeds: int
    interval: tuple[float, float] | None
    paid: bool | None


def _against(own: list[list[float]], rival: list[list[float]]) -> _Compared:
    one, two = np.asarray(own), np.asarray(rival)  # [seeds, splits]
    pairs = one - two
    difference, seeds = summarise(pairs), len(pairs)
    interval = None
    if seeds >= FEWEST:
        found = paired_difference(one, two)
        if found.low is not None and found.high is not None:
            interval = (found.low, found.high)
    low, high = interval or (difference.mean - difference.std, difference.mean + difference.std)
    paid = True if low > 0 else False if high < 0 else None
    return _Compared(difference, int((pairs > 0).sum()), seeds, interval, paid)


def _instead(ranked: Sequence[str], found: Mapping[str, _Compared]) -> str | None:
    """The control to use: the best one, if it is close, or the next whose mean is no lower.

    It has a command of its own; None if there is no such control.
    """
    if ranked[0] in METHOD_OF and found[ranked[0]].paid is None:
        return ranked[0]
    better = [name for name in ranked if found[name].difference.mean <= 0]
    return next((name for name in better if name in METHOD_OF), None)


def _outcome(method: str, control: str, best: _Compared) -> str:
    rival, paid = f"the best control, {control_name(control)}", best.paid
    points = f"{abs(best.difference.mean):.2f} points of accuracy"
    if control == MAJORITY and paid is not True:
        return (
            "no embedding here tells these classes apart: "
            "nothing beats guessing the most frequent one"
        )
    if method in WITHOUT_TRAINING and paid is None:
        return f"{method}, which is not trained, and {rival}, are close"
    if method in WITHOUT_TRAINING:
        side = "above" if paid else "below"
        return f"{method}, which is not trained, is {points} {side} {rival}"
    if paid is None and control == UNTRAINED:
        return f"training added nothing clear to the untrained network, which {method} starts from"
    if paid is None:
        return f"training made no clear difference: {method} and {rival}, are close"
    if paid:
        return f"training paid: {method} is {points} above {rival}"
    return f"training did not pay: {method} is {points} below {rival}"


def _figures(best: _Compared) -> str:
    difference, seeds = best.difference, best.seeds
    splits = difference.n // seeds
    counted = f"{splits} split{'s' * (splits != 1)}"
    if best.interval is not None:
        low, high = best.interval
        spread = f"[{low:+.2f}, {high:+.2f}] over {seeds} seeds and {counted}"
    elif seeds > 1:
        few = "seeds" if seeds < FEWEST else "splits"
        over = f"over {seeds} seeds and {counted}, too few {few} for an interval"
        spread = f"± {difference.std:.2f} {over}"
    else:
        spread = f"± {difference.std:.2f} over {counted} of one run"
    ahead = f"ahead in {best.ahead} of {difference.n}"
    return f"paired difference {difference.mean:+.2f} {spread}; {ahead}"


def _advice(control: str | None, paid: bool | None, *, searched: bool = False) -> str:
    """What to do instead, with the options of `muxgcl run` for it."""
    if paid:
        return ""
    others = "try another method or more seeds"
    if not searched:
        others = "try another method, more seeds or `muxgcl tune`"
    if control is None:
        return f": {others}"
    cheaper = ", which is cheaper" if paid is None else ""
    return f": use {control_name(control)} ({METHOD_OF[control]}){cheaper}, or {others}"
