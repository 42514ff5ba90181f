"""Accuracy against the width of the output, for docs/mux-hop.md.

From `records/width.jsonl`, and for widths and graphs that it does not have from the trial of
readouts, `records/readout-search.jsonl`.
"""

import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

from muxgcl.io.schema import read_lines
from muxgcl.reproduce.numbers import DASH
from muxgcl.reproduce.typeset import Table, markdown

PAGE = Path("docs/mux-hop.md")
GRAPHS = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "photo": "Photo",
    "computers": "Computers",
}
WIDTHS = (16, 64, 128, 256, 512, 1024, 2048, 3072, None)  # None: all that is read out


def width_table(folder: Path) -> Table:
    """One row a width, one column a graph: the mean, and in brackets what the full readout adds."""
    rows = [row for row in read_lines(folder / "width.jsonl") if row.get("anchors") is None]
    known = {row["dataset"] for row in rows}
    rows += [row for row in _tried(folder / "readout-search.jsonl") if row["dataset"] not in known]
    found: dict[tuple[str, int | None], list[float]] = defaultdict(list)
    columns: dict[str, int] = {}
    for row in rows:
        found[row["dataset"], row["width"]].append(fmean(row["accuracy"]))
        if "columns" in row:
            columns[row["dataset"]] = row["columns"]
    body = [
        [
            "full" if width is None else f"{width:,}",
            *(_cell(found, graph, width, columns.get(graph)) for graph in GRAPHS),
        ]
        for width in WIDTHS
    ]
    halves = " and ".join(sorted({row["labels"] for row in rows}))
    counts = [len(values) for values in found.values()]
    seeds = f"{min(counts)} to {max(counts)} seeds" if counts else ""
    how = f", {seeds} by 20 splits of the {halves} half" if rows else ""
    return Table(
        "width",
        "Accuracy in percent against the number of columns",
        ["columns", *GRAPHS.values()],
        body,
        [
            f"`mux-hop`, preset `best`{how}; in brackets the difference to the full readout, in "
            f"the last row its width. {DASH}: not run, or wider than the readout."
        ],
    )


def _cell(
    found: dict[tuple[str, int | None], list[float]],
    graph: str,
    width: int | None,
    columns: int | None,
) -> str:
    values, full = found.get((graph, width)), found.get((graph, None))
    if not values or not full:
        return DASH
    mean = fmean(values)
    if width is None:
        return f"{mean:.2f}" if columns is None else f"{mean:.2f} ({columns:,})"
    return f"{mean:.2f} ({mean - fmean(full):+.2f})"


def _tried(path: Path) -> list[dict[str, Any]]:
    """The trial of readouts: its base, and what is left of that at some widths."""
    found = []
    for row in read_lines(path):
        width = re.fullmatch(r"width (\d+)", row["readout"])
        if width or row["readout"] == "base":
            kept = {name: row[name] for name in ("dataset", "labels")}
            size = int(width[1]) if width else None
            found.append({**kept, "width": size, "accuracy": [row["accuracy"]]})
    return found


def blocks(root: Path) -> dict[Path, str]:
    """What stands between the markers of the page."""
    return {PAGE: markdown(width_table(root / "records"))}
