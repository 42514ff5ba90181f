"""Does a criterion that needs no label rank settings as accuracy does? For docs/mux-hop.md.

From the search over `mux-hop`, `records/hop-search.jsonl`: each training was judged on the
development half and measured without labels. The accuracy is that of all scales with the earlier
ones at half weight.
"""

from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from muxgcl.io.schema import read_lines
from muxgcl.reproduce.numbers import signed
from muxgcl.reproduce.paper import TITLES
from muxgcl.reproduce.typeset import Table, markdown

PAGE = Path("docs/mux-hop.md")
CRITERIA = {
    "rank": "effective rank",
    "edge_auc": "edges against random pairs (AUC)",
    "near": "cosine of neighbours",
    "far": "cosine of random pairs",
    "features": "features predicted (R²)",
}


def label_free_table(path: Path) -> Table:
    """Spearman's rank correlation of each criterion with accuracy, a column a graph."""
    rows = [row for row in read_lines(path) if row.get("label_free") and not row.get("error")]
    graphs = [name for name in TITLES if any(row["dataset"] == name for row in rows)]
    by_graph = {name: [row for row in rows if row["dataset"] == name] for name in graphs}
    body = []
    for criterion, title in CRITERIA.items():
        cells = []
        for graph in graphs:
            measured = [_measured(row)[criterion] for row in by_graph[graph]]
            accuracy = [row["accuracy"]["late"] for row in by_graph[graph]]
            cells.append(signed(float(spearmanr(measured, accuracy).statistic)))
        body.append([title, *cells])
    return Table(
        "label-free",
        "Label-free criteria: rank correlation with accuracy on the development half",
        ["criterion", *(f"{TITLES[name]} ({len(by_graph[name])})" for name in graphs)],
        body,
        [
            "Spearman's, over the trainings of the search (in brackets how many) that were "
            "measured without labels. Records: `records/hop-search.jsonl`."
        ],
    )


def _measured(row: dict[str, Any]) -> dict[str, float]:
    """The criteria of one training; the first search kept them by readout."""
    found: dict[str, Any] = row["label_free"]
    return found.get("all") or found.get("late") or found


def blocks(root: Path) -> dict[Path, str]:
    """What stands between the markers of the page."""
    return {PAGE: markdown(label_free_table(root / "records" / "hop-search.jsonl"))}
