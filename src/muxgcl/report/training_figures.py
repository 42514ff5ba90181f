"""Figures of what went on in training: loss, similarities across scales, weights of negatives."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from muxgcl.report.palette import CATEGORIES, INK, MAIN, MUTED, OTHER
from muxgcl.report.record import RunRecord
from muxgcl.report.style import WIDTH, short

DASHES: tuple[Any, ...] = ("-", (0, (3, 2)), (0, (4, 3)), (0, (6, 4)), (0, (2, 3)))


def no_metrics(record: RunRecord) -> str:
    """Why there is no loss to draw."""
    return "" if record.metrics else "the run has no metrics.jsonl, so its loss is not known"


def loss(record: RunRecord) -> Figure:
    """The loss and each of its terms, over epochs."""
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    axes = figure.add_subplot(xlabel="epoch", ylabel="loss")
    epochs = [line["epoch"] for line in record.metrics]
    terms = list(dict.fromkeys(term for line in record.metrics for term in line.get("terms", {})))
    total = [line["loss"] for line in record.metrics]
    marker = "o" if len(epochs) == 1 else None  # a line of one point cannot be seen
    axes.plot(epochs, total, color=INK, linewidth=2, label="total", marker=marker)
    if len(terms) > 1:
        # curves that coincide are all seen: the lower ones are wider, the upper ones broken
        for at, (term, colour) in enumerate(zip(terms, CATEGORIES, strict=False)):
            values = [line.get("terms", {}).get(term, np.nan) for line in record.metrics]
            width = 1.6 + 1.6 * (min(len(terms), len(CATEGORIES)) - 1 - at)
            look = {"linewidth": min(width, 6.4), "linestyle": DASHES[at % len(DASHES)]}
            axes.plot(epochs, values, color=colour, label=short(term), marker=marker, **look)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside upper left", ncols=4, handlelength=2.6)
    return figure


def no_similarities(record: RunRecord) -> str:
    """Why there are no similarities to draw."""
    if record.similarities:
        return ""
    return "none were recorded: the method has no scales, or the run did not finish"


def similarities(record: RunRecord) -> Figure:
    """How alike pairs of the same node and pairs of different nodes are, for each two scales."""
    panels = list(record.similarities.items())
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(WIDTH, 1.0 + 1.5 * rows + 0.6 * (rows == 1)), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for axes, (pair, found) in zip(grid.flat, panels, strict=False):
        for kind, colour in (("positive", MAIN), ("negative", OTHER)):
            heights = _density(found[kind], found["edges"])
            axes.stairs(heights, found["edges"], fill=True, color=colour, alpha=0.35)
            axes.stairs(heights, found["edges"], color=colour, linewidth=1.3, label=kind)
        auc = f"  AUC {found['auc']:.3f}" if found.get("auc") is not None else ""
        axes.set_title(f"{short(pair)}{auc}", fontsize=11)
        axes.set_yticks([])
        axes.xaxis.set_major_locator(MaxNLocator(4, prune="both"))
        axes.grid(visible=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    figure.supxlabel("cosine similarity", fontsize=11, color=MUTED)
    handles, _ = grid.flat[0].get_legend_handles_labels()
    names = ["same node (positive)", "different nodes (negative)"]
    figure.legend(handles, names, loc="outside upper left", ncols=2)
    return figure


def no_affinities(record: RunRecord) -> str:
    """Why there are no affinity weights to draw."""
    if record.affinity_weights:
        return ""
    return "none were recorded: the method does not weigh by affinity, or the run did not finish"


def affinity_weights(record: RunRecord) -> Figure:
    """How heavily negatives weigh, one outline a scale."""
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    axes = figure.add_subplot(xlabel="weight of a negative", ylabel="share of pairs (density)")
    for (scale, found), colour in zip(record.affinity_weights.items(), CATEGORIES, strict=False):
        heights = _density(found["counts"], found["edges"])
        name = f"scale {scale}" if str(scale).isdigit() else short(scale)
        axes.stairs(heights, found["edges"], fill=True, color=colour, alpha=0.15)
        axes.stairs(heights, found["edges"], color=colour, linewidth=1.8, label=name)
    figure.legend(loc="outside upper left", ncols=4)
    return figure


def _density(counts: Sequence[float], edges: Sequence[float]) -> Float[np.ndarray, " bins"]:
    """Heights whose area is one; all zero where nothing was counted."""
    heights = np.asarray(counts, float)
    return heights / max(float(heights @ np.diff(np.asarray(edges, float))), 1e-12)
