"""What is lost on nodes that training has not seen, for docs/mux-hop.md.

From `records/new-nodes.jsonl`, which `benchmarks/new_nodes.py` writes.
"""

from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

from muxgcl.io.schema import read_lines
from muxgcl.reproduce.numbers import DASH
from muxgcl.reproduce.typeset import Table, markdown

PAGE = Path("docs/mux-hop.md")
NAMES = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "photo": "Photo",
    "computers": "Computers",
}
KNOWN = "in training"
CASES = ("all edges", "edges to known nodes", "no edges")
METHODS = {"mux-hop": "`mux-hop`", "A^2 X": "$\\hat A^2 X$", "raw": "raw features"}


def new_nodes_table(path: Path) -> Table:
    """One row a graph, method and preset; one column a case."""
    found: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
    for row in read_lines(path):
        sample = f", {row['sample']} a step" if row.get("sample") else ""
        key = row["dataset"], row["method"], row.get("preset", "") + sample
        found[key][row["seed"]] = row  # the last of a seed counts
    order = [*METHODS]
    keys = sorted(found, key=lambda k: ([*NAMES].index(k[0]), order.index(k[1]), k[2]))
    body = [
        [
            NAMES[graph],
            METHODS[method] + (f" ({preset})" if preset else ""),
            *_cells([*found[graph, method, preset].values()]),
        ]
        for graph, method, preset in keys
    ]
    rows = [row for by_seed in found.values() for row in by_seed.values()]
    return Table(
        "new-nodes",
        "Accuracy in percent on a tenth of the nodes: in training, and hidden from it",
        ["graph", "method", KNOWN, *CASES],
        body,
        [_how(rows)],
    )


def _cells(rows: list[dict[str, Any]]) -> list[str]:
    """The mean over seeds of what was in training; of a case, its mean and the difference."""
    means = {
        case: fmean(fmean(row["cases"][case]["accuracy"]) for row in rows)
        for case in (KNOWN, *CASES)
    }
    first = means[KNOWN]
    return [f"{first:.1f}", *(f"{means[case]:.1f} ({means[case] - first:+.1f})" for case in CASES)]


def _how(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return f"{DASH}: not run yet."
    splits = ", ".join(sorted({str(row["splits"]) for row in rows}))
    counted: dict[str, dict[int, int]] = defaultdict(dict)
    for row in rows:
        counted[row["dataset"]][row["seed"]] = row["counted"]
    nodes = ", ".join(f"{sum(counted[g].values()):,} of {NAMES[g]}" for g in NAMES if g in counted)
    counts = sorted({len({r["seed"] for r in rows if r["dataset"] == g}) for g in counted})
    many = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else f"{counts[0]} seeds"
    return (
        f"{many}, each with another tenth hidden, by {splits} draws of the nodes that the "
        "probe learns from and is tuned on (a tenth of the known nodes each). Counted are hidden "
        f"nodes of the report half ({nodes} in all); in brackets the difference to the same nodes "
        "where the whole graph was trained on. With so few nodes a point is within chance."
    )


def blocks(root: Path) -> dict[Path, str]:
    """What stands between the markers of the page."""
    return {PAGE: markdown(new_nodes_table(root / "records" / "new-nodes.jsonl"))}
