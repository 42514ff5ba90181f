"""The numbers behind Figures 1 and 3, and the proposition through training."""

from collections.abc import Sequence
from typing import Any

from muxgcl.reproduce.artefacts import Scope
from muxgcl.reproduce.job import BOUNDS, SIMILARITIES, SOFT_NEGATIVES
from muxgcl.reproduce.numbers import DASH, signed
from muxgcl.reproduce.paper import TITLES
from muxgcl.reproduce.proposition import sentence
from muxgcl.reproduce.records import Found, Record
from muxgcl.reproduce.typeset import Table

Shown = list[tuple[str, Record]]


def similarity_records(found: Found, scope: Scope) -> Shown:
    """GRACE's, one a dataset."""
    return _records(found, scope, "figure1", SIMILARITIES, "grace")


def soft_negative_records(found: Found, scope: Scope) -> Shown:
    """MUX-GCL's, one a dataset."""
    return _records(found, scope, "figure3", SOFT_NEGATIVES, "mux-gcl")


def bound_records(found: Found, scope: Scope) -> Shown:
    """MUX-GCL's, one a dataset."""
    return _records(found, scope, "proposition", BOUNDS, "mux-gcl")


def figure1(found: Found, scope: Scope) -> list[Table]:
    """How well positive pairs stand apart from negative ones, for each pair of layers."""
    shown = similarity_records(found, scope)
    pairs = list(dict.fromkeys(pair for _, record in shown for pair in record["result"]["pairs"]))
    body = [
        [name, *(f"{record['result']['pairs'][pair]['auc']:.3f}" for pair in pairs)]
        for name, record in shown
    ]
    return [
        Table(
            "figure1",
            "Figure 1. Separation of positive from negative pairs across layers (GRACE)",
            ["AUC", *(pairs or [DASH])],
            body or [[DASH, DASH]],
            [
                "How often a positive pair (layer m of one view, layer n of the other, same node) "
                "is more similar than a negative one (different nodes): 1 is no overlap, 0.5 none "
                "but chance. Encoder outputs, before the projector, at the end of training."
            ],
        )
    ]


def figure3(found: Found, scope: Scope) -> list[Table]:
    """Where the two quantities of the paper's argument lie, at the epoch that it shows."""
    body = []
    for name, record in soft_negative_records(found, scope):
        point = shown_point(record)
        for key, values in point["pairs"].items():
            which, reading = key.split()
            body.append(
                [
                    f"{name}, epoch {point['epoch']}: T_{which[0]}, k = {which[1:]}",
                    "as printed" if reading == "printed" else "with temperature",
                    f"{signed(values['mean'])} ± {values['std']:.2f}",
                    f"{signed(values['low'])} to {signed(values['high'])}",
                    f"{100 * values['above_zero']:.1f} %",
                    f"{values['distance']:.3f}",
                ]
            )
    return [
        Table(
            "figure3",
            "Figure 3. T_D and T_S over random pairs of nodes (MUX-GCL)",
            ["", "reading", "Gaussian fit", "95 % of pairs", "above zero", "distance from fit"],
            body or [[DASH] * 6],
            [
                "As printed, psi is a difference of cosines without the temperature; the objective "
                "divides it by the temperature, so both are given. At k = L both quantities are "
                "log omega, below zero by definition. Distance: the largest gap between the "
                "distribution and its Gaussian fit.",
                "Mind the sign: a pair with T > 0 weighs more in MUX-GCL's denominator than in "
                "GRACE's and makes the objective smaller. The paper finds T > 0 and concludes the "
                "opposite; its proposition needs T < 0.",
            ],
        )
    ]


def proposition(found: Found, scope: Scope) -> list[Table]:
    """Both objectives and the InfoNCE estimate through training."""
    shown = bound_records(found, scope)
    body = [
        [
            f"{name}, epoch {point['epoch']}",
            *(signed(point[key], 3) for key in ("l_gr", "l_mpc", "l_mux", "i_nce", "log_n")),
        ]
        for name, record in shown
        for point in record["result"]["points"]
    ]
    return [
        Table(
            "proposition",
            "Proposition 1. Objectives and the InfoNCE estimate through training (MUX-GCL)",
            ["", "L_GR", "L_MUX, hard negatives", "L_MUX", "I_NCE", "log N"],
            body or [[DASH] * 6],
            [
                *(sentence(record["result"]["points"], name) for name, record in shown),
                "The objectives are log-likelihoods, to be maximised. I_NCE is InfoNCE's estimate "
                "of the information between the views, weighted over scales like L_MUX; it bounds "
                "the information from below and cannot exceed log N.",
            ],
        )
    ]


def shown_point(record: Record) -> dict[str, Any]:
    """The epoch whose distributions were kept in full."""
    points: Sequence[dict[str, Any]] = record["result"]["points"]
    return next(p for p in points if "counts" in next(iter(p["pairs"].values())))


def _records(found: Found, scope: Scope, artefact: str, kind: str, method: str) -> Shown:
    return [
        (TITLES.get(dataset, dataset), record)
        for dataset in scope.columns(artefact)
        for record in found.of(scope.looked_at(kind, method, dataset))
    ]
