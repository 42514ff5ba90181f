"""The figures of a run as files of their own, PNG and SVG, for a paper."""

from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from muxgcl.io.files import write_atomically
from muxgcl.report.figures import PLOTS
from muxgcl.report.node_map import Shown, groups, shown
from muxgcl.report.palette import CATEGORIES, MUTED
from muxgcl.report.project import Map
from muxgcl.report.record import RunRecord
from muxgcl.report.style import WIDTH, save, short, styled


def save_figures(record: RunRecord, folder: str | Path) -> list[Path]:
    """Write each figure that can be drawn, as `<name>.png` and `<name>.svg`; return the paths."""
    written = []
    with styled():
        figures = {plot.name: plot.draw(record) for plot in PLOTS if not plot.missing(record)}
        if record.embedding is not None:
            nodes = shown(record)
            for found in nodes.maps:
                name = f"map-{found.name.lower().replace('-', '')}"
                figures[name] = map_figure(record, nodes, found)
        for name, figure in figures.items():
            for kind in ("png", "svg"):
                path = Path(folder) / f"{name}.{kind}"
                write_atomically(path, partial(save, figure, kind=kind))
                written.append(path)
    return written


def map_figure(record: RunRecord, nodes: Shown, found: Map) -> Figure:
    """One map, coloured by label where there are labels, else by cluster."""
    kinds, names = groups(record, nodes)
    common = np.argsort(-np.bincount(kinds[kinds >= 0], minlength=len(names)), kind="stable")
    coloured = np.sort(common[: len(CATEGORIES)])
    colours = np.full(len(names) + 1, MUTED, dtype=object)  # the last: no label
    colours[coloured] = CATEGORIES[: len(coloured)]
    order = np.random.default_rng(0).permutation(len(kinds))  # no class on top of all others
    figure = Figure(figsize=(WIDTH, 5.2), layout="constrained")
    axes = figure.add_subplot(aspect="equal")
    size = max(1.5, 220 / np.sqrt(len(kinds)))
    x, y = found.places[order].T
    dots = {"s": size, "c": colours[kinds[order]].tolist(), "linewidths": 0, "alpha": 0.85}
    axes.scatter(x, y, rasterized=len(kinds) > 5_000, **dots)  # dots beyond that choke a viewer
    for k in coloured:
        axes.scatter([], [], s=30, color=colours[k], label=short(names[k]))
    if len(names) > len(coloured):
        axes.scatter([], [], s=30, color=MUTED, label=f"{len(names) - len(coloured)} others")
    axes.set_axis_off()
    figure.legend(loc="outside lower left", ncols=3, fontsize=10)
    return figure
