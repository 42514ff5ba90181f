r"""The numbers behind Figures 1 and 3, and the proposition through training.

Equation 5 is read in two ways. The authors' code has $\omega = (1 - \cos) / 2$ (`half`), the
equation itself $\omega = 1 - \cos$ (`literal`), twice as much. MUX-GCL is trained with each.
"""

import math
from collections.abc import Sequence
from typing import Any

from muxgcl.reproduce.artefacts import LOOKED_AT, LOOKS, POINTS, Scope, equal_steps
from muxgcl.reproduce.numbers import DASH, signed
from muxgcl.reproduce.paper import LABELS, TITLES
from muxgcl.reproduce.proposition import sentence
from muxgcl.reproduce.records import Found, Record
from muxgcl.reproduce.typeset import Table

READINGS = {"full": "half", "literal": "literal"}  # by variant
Shown = list[tuple[str, Record]]
Point = dict[str, Any]
BOTH = (
    "Equation 5 has two readings: `half`, as in the authors' code, omega = (1 - cosine) / 2, and "
    "`literal`, as it is printed, omega = 1 - cosine, twice as much. MUX-GCL is trained with each. "
    "One training each, with seed 0."
)


def looked_at(found: Found, scope: Scope, artefact: str, method: str, variant: str) -> Shown:
    """The records of one figure for one training, one a dataset."""
    return [
        (TITLES.get(dataset, dataset), record)
        for dataset in scope.columns(artefact)
        for record in found.of(scope.looked_at(LOOKS[artefact], method, dataset, variant))
    ]


def points(record: Record) -> list[Point]:
    """What was seen at each point of training."""
    seen: list[Point] = record["result"]["points"]
    return seen


def tenths(record: Record) -> list[Point]:
    """The points at equal steps; a long training was looked at once more, at the paper's epoch."""
    by_epoch, epochs = {p["epoch"]: p for p in points(record)}, record["train"]["epochs"]
    return [by_epoch[epoch] for epoch in equal_steps(epochs)]


def figure1(found: Found, scope: Scope) -> list[Table]:
    """How well positive pairs stand apart from negative ones, for each pair of layers."""
    shown = [
        (f"{name}, {_who(record)}", record)
        for method, variant in LOOKED_AT
        for name, record in looked_at(found, scope, "figure1", method, variant)
    ]
    last = [(name, points(record)[-1]["pairs"]) for name, record in shown]
    pairs = list(dict.fromkeys(pair for _, found_pairs in last for pair in found_pairs))
    body = [[name, *(f"{of[pair]['auc']:.3f}" for pair in pairs)] for name, of in last]
    least = [(name, [f"{least_auc(p):.3f}" for p in tenths(record)]) for name, record in shown]
    return [
        Table(
            "figure1",
            "Figure 1. Separation of positive from negative pairs across layers",
            ["AUC", *(pairs or [DASH])],
            body or [[DASH, DASH]],
            [
                "How often a positive pair (layer m of one view, layer n of the other, same node) "
                "is more similar than a negative one (different nodes): 1 is no overlap, 0.5 none "
                f"but chance. Encoder outputs, before the projector, at the end of training. {BOTH}"
            ],
        ),
        _through_training(
            "figure1-training",
            "Figure 1, continued. The least AUC of all pairs of layers, through training",
            least,
        ),
    ]


def figure3(found: Found, scope: Scope) -> list[Table]:
    """Where the two quantities of the paper's argument lie, at the epoch that it shows."""
    half, literal = (
        dict(looked_at(found, scope, "figure3", "mux-gcl", variant)) for variant in READINGS
    )
    body = []
    for name in dict.fromkeys([*half, *literal]):
        sides = [shown_point(of[name]) if name in of else None for of in (half, literal)]
        point = next(side for side in sides if side is not None)
        for key in point["pairs"]:
            which, psi = key.split()
            body.append(
                [
                    f"{name}, epoch {point['epoch']}: T_{which[0]}, k = {which[1:]}",
                    "as printed" if psi == "printed" else "over temperature",
                    *(cell for side in sides for cell in _spread(side, key)),
                ]
            )
    above = [
        (f"{name}, {reading}", [_above(point) for point in tenths(record)])
        for variant, reading in READINGS.items()
        for name, record in looked_at(found, scope, "figure3", "mux-gcl", variant)
    ]
    header = [f"{what}, {of}" for of in READINGS.values() for what in ("T", "95 %", "above zero")]
    return [
        Table(
            "figure3",
            "Figure 3. T_D and T_S over random pairs of nodes (MUX-GCL)",
            ["", "psi", *header],
            body or [[DASH] * 8],
            [
                "T: mean ± standard deviation, and where 95 % of pairs lie. As printed, psi is a "
                "difference of cosines without the temperature; the objective divides it by the "
                f"temperature, so both are given. {BOTH} Twice the weight adds log 2 = "
                f"{math.log(2):.2f} to every T. At k = L both quantities are log omega.",
                "Mind the sign: a pair with T > 0 weighs more in MUX-GCL's denominator than in "
                "GRACE's and makes the objective smaller. The paper finds T > 0 and concludes the "
                "opposite; its proposition needs T < 0.",
            ],
        ),
        _through_training(
            "figure3-training",
            "Figure 3, continued. Pairs with T > 0 (psi as printed, k < L), in percent, through "
            "training",
            above,
        ),
    ]


def proposition(found: Found, scope: Scope) -> list[Table]:
    """Both objectives and the InfoNCE estimate through training."""
    half, literal = (
        dict(looked_at(found, scope, "proposition", "mux-gcl", variant)) for variant in READINGS
    )
    body, notes = [], []
    for name in dict.fromkeys([*half, *literal]):
        seen = [
            {p["epoch"]: p for p in points(of[name])} if name in of else {}
            for of in (half, literal)
        ]
        for epoch in sorted({epoch for side in seen for epoch in side}):
            cells = [cell for side in seen for cell in _objectives(side.get(epoch))]
            body.append([f"{name}, epoch {epoch}", *cells])
        for of, reading in ((half, "half"), (literal, "literal")):
            if name in of:
                notes.append(sentence(points(of[name]), f"{name}, `{reading}`"))
    header = [
        f"{what}, {of}" for of in READINGS.values() for what in ("L_GR", "L_MUX", "gap", "I_NCE")
    ]
    return [
        Table(
            "proposition",
            "Proposition 1. Objectives and the InfoNCE estimate through training (MUX-GCL)",
            ["", *header],
            body or [[DASH] * 9],
            [
                *notes,
                f"{BOTH} The objectives are log-likelihoods, to be maximised; the gap is L_MUX - "
                "L_GR on the same weights and views. I_NCE is InfoNCE's estimate of the "
                "information between the views, weighted over scales like L_MUX; it bounds the "
                "information from below and cannot exceed log N.",
            ],
        )
    ]


def shown_point(record: Record) -> Point:
    """The epoch whose distributions were kept in full."""
    return next(p for p in points(record) if "counts" in next(iter(p["pairs"].values())))


def shares(point: Point) -> list[float]:
    """Of pairs with T > 0, psi as printed, at every scale below the last."""
    last = max(int(key.split()[0][1:]) for key in point["pairs"])
    return [
        values["above_zero"]
        for key, values in point["pairs"].items()
        if key.endswith("printed") and int(key.split()[0][1:]) < last
    ]


def gaps(record: Record) -> list[float]:
    """`L_MUX - L_GR` at each point of training."""
    return [point["l_mux"] - point["l_gr"] for point in points(record)]


def _who(record: Record) -> str:
    label = LABELS[record["method"]]
    return label if record["method"] == "grace" else f"{label} {READINGS[record['variant']]}"


def least_auc(point: Point) -> float:
    """Of all pairs of layers."""
    return min(float(pair["auc"]) for pair in point["pairs"].values())


def _spread(point: Point | None, key: str) -> Sequence[str]:
    if point is None:
        return (DASH,) * 3
    values = point["pairs"][key]
    return (
        f"{signed(values['mean'])} ± {values['std']:.2f}",
        f"{signed(values['low'])} to {signed(values['high'])}",
        f"{100 * values['above_zero']:.1f} %",
    )


def _above(point: Point) -> str:
    found = shares(point)
    return f"{100 * min(found):.0f} to {100 * max(found):.0f}"


def _objectives(point: Point | None) -> Sequence[str]:
    if point is None:
        return (DASH,) * 4
    gap = signed(point["l_mux"] - point["l_gr"], 3)
    return (signed(point["l_gr"], 3), signed(point["l_mux"], 3), gap, signed(point["i_nce"], 3))


def _through_training(name: str, title: str, rows: Sequence[tuple[str, list[str]]]) -> Table:
    """One column a tenth of training."""
    header = ["epochs", *(f"{100 * step // POINTS} %" for step in range(1, POINTS + 1))]
    body = [[label, *cells] for label, cells in rows] or [[DASH] * len(header)]
    return Table(name, title, header, body)
