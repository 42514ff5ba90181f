"""Figures 1 and 3, and the proposition through training, drawn from records."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from muxgcl.report.palette import CATEGORIES, MAIN, MUTED, OTHER
from muxgcl.report.style import WIDTH
from muxgcl.reproduce.records import Record
from muxgcl.reproduce.theory_tables import shown_point


def similarities(record: Record) -> Figure:
    """One panel for each pair of layers: positive and negative pairs."""
    pairs = record["result"]["points"][-1]["pairs"]
    columns = max(1, round(len(pairs) ** 0.5))
    rows = -(-len(pairs) // columns)
    figure = Figure(figsize=(WIDTH, 0.8 + 1.4 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for axes, (pair, found) in zip(grid.flat, pairs.items(), strict=False):
        for kind, colour in (("positive", MAIN), ("negative", OTHER)):
            _hill(axes, found["edges"], found[kind], colour, kind)
        axes.set_title(f"{pair}   AUC {found['auc']:.3f}", fontsize=10)
        axes.set_yticks([])
        axes.grid(visible=False)
    figure.supxlabel("cosine similarity", fontsize=11, color=MUTED)
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure


def soft_negatives(record: Record) -> Figure:
    """Above: the distributions with their Gaussian fits. Below: mean and 95 % through training."""
    point, points = shown_point(record), record["result"]["points"]
    figure = Figure(figsize=(WIDTH, 5.6), layout="constrained")
    grid = figure.subplots(2, 2, squeeze=False)
    for column, which in enumerate("DS"):
        above, below = grid[0][column], grid[1][column]
        keys = [key for key in point["pairs"] if key[0] == which and key.endswith("printed")]
        for key, colour in zip(keys, CATEGORIES, strict=False):
            found = point["pairs"][key]
            scale = key.split()[0][1:]
            _hill(above, found["edges"], found["counts"], colour, f"k = {scale}")
            x = np.linspace(found["edges"][0], found["edges"][-1], 200)
            spread = max(found["std"], 1e-6)
            bell = np.exp(-(((x - found["mean"]) / spread) ** 2) / 2)
            above.plot(x, bell / (spread * np.sqrt(2 * np.pi)), color=colour, linestyle="--")
            seen = [p["pairs"][key] for p in points]
            epochs = [p["epoch"] for p in points]
            below.plot(epochs, [s["mean"] for s in seen], color=colour, marker="o", ms=3)
            low, high = ([s[end] for s in seen] for end in ("low", "high"))
            below.fill_between(epochs, low, high, color=colour, alpha=0.15, lw=0)
        above.set_title(f"T_{which} at epoch {point['epoch']}, as printed", fontsize=11)
        above.set_yticks([])
        above.axvline(0, color=MUTED, lw=0.9)
        below.axhline(0, color=MUTED, lw=0.9)
        below.set_xlabel("epoch")
    grid[1][0].set_ylabel("mean and 95 %")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
    return figure


def objectives(record: Record) -> Figure:
    """L_GR, L_MUX and the InfoNCE estimate over epochs."""
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.add_subplot(xlabel="epoch", ylabel="nats")
    points = record["result"]["points"]
    names = {"l_gr": "L_GR", "l_mpc": "L_MUX, hard negatives", "l_mux": "L_MUX", "i_nce": "I_NCE"}
    for (key, name), colour in zip(names.items(), CATEGORIES, strict=False):
        values = [point[key] for point in points]
        axes.plot([p["epoch"] for p in points], values, color=colour, marker="o", ms=3, label=name)
    figure.legend(loc="outside upper left", ncols=4)
    return figure


def _hill(axes: Axes, edges: list[float], counts: list[float], colour: str, label: str) -> None:
    """A histogram whose area is one."""
    heights = np.asarray(counts, float)
    heights = heights / max(float(heights @ np.diff(edges)), 1e-12)
    axes.stairs(heights, edges, fill=True, color=colour, alpha=0.3)
    axes.stairs(heights, edges, color=colour, linewidth=1.2, label=label)
