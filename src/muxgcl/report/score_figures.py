"""Figures of what the embedding is good for: scores beside controls, and the confusion matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from muxgcl.report.palette import CARD, INK, MAIN, MUTED
from muxgcl.report.record import RunRecord
from muxgcl.report.scores import Score, flatten
from muxgcl.report.style import WIDTH, short, short_names

MOST_CLASSES = 40  # a larger confusion matrix cannot be read
WITH_FIGURES = 15  # classes up to which every cell has its percentage
NAMED_TWICE = 8  # classes up to which columns have names, too
STRONG = 0.75  # share above which a cell's colour is dark: 3 to 1 or more against its text
LABEL = 13  # points of a class's name: nine pixels on a phone


def no_scores(record: RunRecord) -> str:
    """Why there are no scores to draw."""
    if flatten(record.scores):
        return ""
    return "the run was not evaluated: that needs labels and a finished run"


def scores(record: RunRecord) -> Figure:
    """The run above its controls."""
    return score_panels([(score.who or record.method, score) for score in flatten(record.scores)])


def score_panels(rows: Sequence[tuple[str, Score]]) -> Figure:
    """One panel a measure: named dots, runs above controls, one standard deviation each way."""
    panels: dict[str, list[tuple[str, Score]]] = {}
    for name, score in rows:
        panels.setdefault(f"{score.protocol}: {score.heading}", []).append((name, score))
    heights = [len(panel) + 1.6 for panel in panels.values()]
    figure = Figure(figsize=(WIDTH, 0.3 + 0.29 * sum(heights)), layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for axes, (title, panel) in zip(grid.flat, panels.items(), strict=True):
        panel.sort(key=lambda row: (row[1].is_control, -row[1].mean))
        for place, (_, score) in enumerate(panel):
            colour = MUTED if score.is_control else MAIN
            spread = {"xerr": score.std, "capsize": 3, "elinewidth": 1.6, "capthick": 1.6}
            axes.errorbar(score.mean, place, fmt="o", color=colour, markersize=6, **spread)
            beside = {
                "xycoords": ("axes fraction", "data"),
                "va": "center",
                "annotation_clip": False,
            }
            axes.annotate(str(score), (1.01, place), fontsize=9.5, color=colour, **beside)
        flag = " (optimistic)" if any(score.optimistic for _, score in panel) else ""
        axes.set_title(short(title, 50) + flag, fontsize=11)
        axes.set_yticks(range(len(panel)), short_names([name for name, _ in panel], 28))
        axes.set_ylim(len(panel) - 0.5, -0.5)
        axes.margins(x=0.08)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.grid(visible=False, axis="y")
    return figure


def no_confusion(record: RunRecord) -> str:
    """Why there is no confusion matrix to draw."""
    if len(record.confusion) > MOST_CLASSES:
        return f"{len(record.confusion)} classes are too many to draw (at most {MOST_CLASSES})"
    return "" if len(record.confusion) else "no classifier was asked about this run's nodes"


def confusion(record: RunRecord) -> Figure:
    """Of each class's nodes, the share that was taken for each class.

    Labels are large enough to be read on a phone, where a figure is two thirds as wide. Many
    classes are numbered: names stand at the rows, their numbers at the columns.
    """
    counts = np.asarray(record.confusion, float)
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    k = len(counts)
    numbered = k > NAMED_TWICE
    height = 5.0 if not numbered else (80 + k * (22 if k <= WITH_FIGURES else LABEL + 3)) / 72
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.add_subplot(xlabel="predicted class", ylabel="true class")
    axes.set_aspect("auto" if numbered else "equal")
    for row, column in np.ndindex(k, k):
        part = share[row, column]
        alpha = float(0.04 + 0.96 * part)
        sides = (column - 0.48, row - 0.48), 0.96, 0.96
        axes.add_patch(Rectangle(*sides, facecolor=MAIN, alpha=alpha, linewidth=0))
        if k <= WITH_FIGURES:
            axes.text(
                column,
                row,
                f"{100 * part:.0f}",
                color=CARD if part > STRONG else INK,
                fontsize=LABEL if k <= 12 else 12,
                ha="center",
                va="center",
            )
    names = record.named_classes[:k]
    if numbered:
        step = 1 if k <= WITH_FIGURES else 5
        shown = [f"{place} {name}" for place, name in enumerate(short_names(names, 13), 1)]
        axes.set_yticks(range(k), shown, fontsize=LABEL)
        places = range(step - 1, k, step)
        axes.set_xticks(places, [str(place + 1) for place in places], fontsize=LABEL)
    else:
        shown = short_names(names, 14)
        slant: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(range(k), shown, fontsize=LABEL, **slant)
        axes.set_yticks(range(k), shown, fontsize=LABEL)
    axes.set(xlim=(-0.5, k - 0.5), ylim=(k - 0.5, -0.5))
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return figure
