"""Does a criterion that needs no label rank settings as accuracy does? For docs/mux-hop.md.

From searches: each training was judged on the development half and measured without labels. The
first table has all methods and settings that were measured by clusters too; the second one those of
`mux-hop` alone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from muxgcl.io.schema import read_lines
from muxgcl.reproduce.numbers import signed
from muxgcl.reproduce.paper import TITLES
from muxgcl.reproduce.typeset import Table, markdown

PAGE = Path("docs/mux-hop.md")
HOPS, TUNED = "hop-search.jsonl", "tuned-search.jsonl"
CRITERIA = {
    "structure": "structure: the smaller of the next two",
    "stability": "stability of clusters",
    "modularity": "edges inside clusters, above chance",
    "rank": "effective rank",
    "edge_auc": "edges against random pairs (AUC)",
    "near": "cosine of neighbours",
    "far": "cosine of random pairs",
    "features": "features predicted (R²)",
}
ROUGH = tuple(CRITERIA)[3:]  # that the first searches measured
Rows = list[dict[str, Any]]


def label_free_table(rows: Rows, criteria: Sequence[str], title: str, note: str) -> Table:
    """Spearman's rank correlation of each criterion with accuracy, a column a graph."""
    graphs = [name for name in TITLES if any(row["dataset"] == name for row in rows)]
    by_graph = {name: [row for row in rows if row["dataset"] == name] for name in graphs}
    body = []
    for criterion in criteria:
        cells = []
        for graph in graphs:
            measured = [_measured(row)[criterion] for row in by_graph[graph]]
            accuracy = [_accuracy(row) for row in by_graph[graph]]
            cells.append(signed(float(spearmanr(measured, accuracy).statistic)))
        body.append([CRITERIA[criterion], *cells])
    header = ["criterion", *(f"{TITLES[name]} ({len(by_graph[name])})" for name in graphs)]
    return Table("label-free", title, header, body, [note])


def _measured(row: dict[str, Any]) -> dict[str, float]:
    """The criteria of one training; the first search kept them by readout."""
    found: dict[str, Any] = row["label_free"]
    found = found.get("all") or found.get("late") or found
    if "stability" in found:
        return {**found, "structure": min(found["stability"], found["modularity"])}
    return found


def _accuracy(row: dict[str, Any]) -> float:
    """That of all scales with the earlier ones at half weight, else of the best readout."""
    each: dict[str, float] = row["accuracy"]
    return each.get("late", max(each.values()))


def tables(folder: Path) -> list[Table]:
    """All methods, then `mux-hop` alone."""
    hops, tuned = (_known(folder / name) for name in (HOPS, TUNED))
    clustered = [row for row in [*hops, *tuned] if "stability" in _measured(row)]
    methods = len({row["method"] for row in clustered})
    return [
        label_free_table(
            clustered,
            list(CRITERIA),
            "Label-free criteria over methods and settings: rank correlation with accuracy",
            f"Spearman's, on the development half, over trainings of {methods} methods (in "
            f"brackets how many). Records: `records/{TUNED}`, `records/{HOPS}`.",
        ),
        label_free_table(
            hops,
            ROUGH,
            "Label-free criteria over settings of mux-hop: rank correlation with accuracy",
            "Spearman's, on the development half, over the trainings of its search (in brackets "
            f"how many). Records: `records/{HOPS}`.",
        ),
    ]


def _known(path: Path) -> Rows:
    rows = read_lines(path)
    return [row for row in rows if row.get("label_free") and not row.get("error")]


def blocks(root: Path) -> dict[Path, str]:
    """What stands between the markers of the page."""
    return {PAGE: "\n\n".join(map(markdown, tables(root / "records")))}
