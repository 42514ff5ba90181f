"""The figures of a run, each with how to read it and what keeps it from being drawn."""

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from muxgcl.report.record import RunRecord
from muxgcl.report.score_figures import confusion, no_confusion, no_scores, scores
from muxgcl.report.training_figures import (
    affinity_weights,
    loss,
    no_affinities,
    no_metrics,
    no_similarities,
    similarities,
)


@dataclass(frozen=True, slots=True)
class Plot:
    """One figure; `missing` gives the reason why there is nothing to draw, or ""."""

    name: str
    title: str
    reading: str
    missing: Callable[[RunRecord], str]
    draw: Callable[[RunRecord], Figure]


PLOTS = (
    Plot(
        "scores",
        "Scores beside the controls",
        "What the embedding is good for, beside controls that needed no training; a dot is the "
        "mean over repeats, its bar (±) one standard deviation, and a method that does "
        "not beat its controls has added nothing to them.",
        no_scores,
        scores,
    ),
    Plot(
        "confusion",
        "Which classes are mixed up",
        "Each row holds the test nodes of one class, in percent: the diagonal is right, anything "
        "beside it says which class they were taken for. Where there are many classes, columns are "
        "numbered as rows are.",
        no_confusion,
        confusion,
    ),
    Plot(
        "loss",
        "Loss by scale",
        "What training minimises, epoch by epoch, in total and for each scale; a curve that has "
        "gone flat has little more to learn. Where curves coincide, dashed ones lie on top.",
        no_metrics,
        loss,
    ),
    Plot(
        "similarities",
        "Similarity across scales",
        "How alike a node is to itself in the other view, and to other nodes, from scale to scale "
        "(u and v are the views, the digit is the number of hops); the less the two hills overlap "
        "the better the model tells nodes apart, and AUC 1 is no overlap.",
        no_similarities,
        similarities,
    ),
    Plot(
        "affinity",
        "Weights of negatives",
        "How strongly pairs of different nodes are pushed apart: weight 1 in full, weight 0 not at "
        "all, because the two lie close in the graph and may well belong together.",
        no_affinities,
        affinity_weights,
    ),
)
