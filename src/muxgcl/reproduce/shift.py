"""What judging on the report half alone changes: the same probes, two sets of test nodes."""

import numpy as np

from muxgcl.evaluate import paired_difference, summarise
from muxgcl.reproduce import numbers
from muxgcl.reproduce.artefacts import CHIEF, Scope
from muxgcl.reproduce.paper import LABELS, TITLES
from muxgcl.reproduce.records import Found
from muxgcl.reproduce.typeset import Table

SHOWN = ("sgc", *CHIEF)


def protocol_shift(found: Found, scope: Scope) -> Table:
    """`holdout` minus `holdout-all`: embedding, training nodes and C are the same in both."""
    body = []
    for method in SHOWN:
        for dataset in scope.columns("table1"):
            records = found.of(scope.scored(method, dataset))
            half, whole = (numbers.scores(records, name) for name in ("accuracy", "everywhere"))
            if not whole:
                continue
            shift = paired_difference(np.array(half), np.array(whole))
            spread = summarise([float(np.mean(scores)) for scores in np.array(half).T])
            body.append(
                [
                    f"{LABELS[method]}, {TITLES.get(dataset, dataset)}",
                    f"{np.mean(whole):.2f}",
                    f"{np.mean(half):.2f}",
                    numbers.interval(shift).rstrip("*"),
                    f"± {spread.std:.2f}",
                ]
            )
    return Table(
        "table1-shift",
        "What judging on the report half alone changes (points of accuracy)",
        ["", "`holdout-all`", "`holdout`", "difference", "split to split"],
        body,
        [
            "The same embeddings, training nodes and C; `holdout` counts the test nodes of the "
            "report half, `holdout-all` those of both halves. The halves are two fixed samples of "
            "nodes, so one is a little easier than the other; for every method alike. Last column: "
            f"standard deviation over splits. {numbers.PAIRED}"
        ],
    )
