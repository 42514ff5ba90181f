"""Accuracy against the width of the output, for docs/mux-hop.md, from `records/width.jsonl`."""

from collections import defaultdict
from pathlib import Path
from statistics import fmean

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
WIDTHS = (64, 128, 256, 512, 1024, 2048, 3072, None)  # None: all that is read out


def width_table(path: Path) -> Table:
    """One row a width, one column a graph: the mean, and in brackets what the full readout adds."""
    rows = read_lines(path)
    found: dict[tuple[str, int | None], list[float]] = defaultdict(list)
    columns: dict[str, int] = {}
    for row in rows:
        found[row["dataset"], row["width"]].append(fmean(row["accuracy"]))
        columns[row["dataset"]] = row["columns"]
    body = [
        [
            "full" if width is None else f"{width:,}",
            *(_cell(found, graph, width, columns.get(graph)) for graph in GRAPHS),
        ]
        for width in WIDTHS
    ]
    halves = " and ".join(sorted({row["labels"] for row in rows}))
    seeds = max((len(values) for values in found.values()), default=0)
    how = f", {seeds} seeds by 20 splits of the {halves} half" if rows else ""
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
    note = f"{columns:,}" if width is None else f"{mean - fmean(full):+.2f}"
    return f"{mean:.2f} ({note})"


def blocks(root: Path) -> dict[Path, str]:
    """What stands between the markers of the page."""
    return {PAGE: markdown(width_table(root / "records" / "width.jsonl"))}
