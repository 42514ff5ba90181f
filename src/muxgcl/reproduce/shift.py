r"""What judging on the report half alone changes: the same probes, two sets of test nodes.

The accuracy $p$ on a random half of one split's $m$ test nodes differs from that on all of them
with standard deviation $\sqrt{p(1 - p)/m}$, whatever the method. That is the yardstick.
"""

import math

import numpy as np

from muxgcl.evaluate import Difference, paired_difference
from muxgcl.io import DATASETS
from muxgcl.reproduce import numbers
from muxgcl.reproduce.artefacts import CHIEF, Scope
from muxgcl.reproduce.paper import LABELS, TITLES
from muxgcl.reproduce.records import Found
from muxgcl.reproduce.typeset import Table

SHOWN = ("raw", "sgc", *CHIEF)
TESTED = 0.8  # of the nodes: what train and validation leave


def protocol_shift(found: Found, scope: Scope) -> Table:
    """`holdout` minus `holdout-all`: embedding, training nodes and C are the same in both."""
    body, within, clear = [], [], {}
    for method in SHOWN:
        for dataset in scope.columns("table1"):
            records = found.of(scope.scored(method, dataset))
            half, whole = (numbers.scores(records, name) for name in ("accuracy", "everywhere"))
            if not whole:
                continue
            shift = paired_difference(np.array(half), np.array(whole))
            chance = _chance(float(np.mean(whole)), DATASETS[dataset].nodes)
            within.append(abs(shift.mean) < 1.96 * chance)
            if shift.low is not None:  # the controls have one seed
                clear[f"{LABELS[method]} on {TITLES.get(dataset, dataset)}"] = shift
            body.append(
                [
                    f"{LABELS[method]}, {TITLES.get(dataset, dataset)}",
                    f"{np.mean(whole):.2f}",
                    f"{np.mean(half):.2f}",
                    numbers.signed(shift.mean) if shift.low is None else numbers.interval(shift),
                    f"± {1.96 * chance:.2f}",
                ]
            )
    return Table(
        "table1-shift",
        "What judging on the report half alone changes (points of accuracy)",
        ["", "`holdout-all`", "`holdout`", "difference", "a random half, 95 %"],
        body,
        [
            "If the test nodes of a split were halved at random, 95 % of halves would move the "
            "score by at most the last column. The report half moves it by less in "
            f"{sum(within)} of {len(within)} rows. The same embeddings, training nodes and C; "
            "`holdout` counts the test nodes of the report half, `holdout-all` those of both "
            f"halves.{_told(clear)}"
        ],
    )


def _told(shifts: dict[str, Difference]) -> str:
    """Where a shift is small and yet no accident of seeds and splits."""
    beyond = [name for name, shift in shifts.items() if shift.is_clear]
    if not beyond:
        return ""
    return (
        f" That does not make it zero: by the t interval over seeds and splits it leaves out zero "
        f"in {len(beyond)} of the {len(shifts)} rows that have enough seeds for one. The halves "
        "are fixed, and one of them may be the easier one."
    )


def _chance(accuracy: float, nodes: int) -> float:
    """Standard deviation, in points, of the accuracy on half of the test nodes less that on all."""
    share = accuracy / 100
    return 100 * math.sqrt(share * (1 - share) / (TESTED * nodes))
