"""Does any sign that needs no label order settings as accuracy does? Rank correlations by graph.

Reads the search over mux-hop: each training was judged on the development half and measured without
labels. Prints a Markdown table of Spearman's rank correlation, the accuracy that of all scales with
the earlier ones at half weight.

    python benchmarks/label_free.py records/hop-search.jsonl
"""

import argparse
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from muxgcl.io.schema import read_lines

GRAPHS = ("cora", "citeseer", "pubmed", "photo", "computers")
SIGNS = {
    "rank": "effective rank",
    "edge_auc": "edges against random pairs (AUC)",
    "near": "cosine of neighbours",
    "far": "cosine of random pairs",
    "features": "features predicted (R²)",
}


def signs_of(row: dict[str, Any]) -> dict[str, float]:
    """The signs of one training; the first search kept them by readout."""
    found: dict[str, Any] = row["label_free"]
    return found.get("all") or found.get("late") or found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path, help="of benchmarks/search.py")
    lines = read_lines(parser.parse_args().records)
    rows = [row for row in lines if row.get("label_free") and not row.get("error")]
    by_graph = {graph: [row for row in rows if row["dataset"] == graph] for graph in GRAPHS}
    print("| sign | " + " | ".join(f"{g} ({len(by_graph[g])})" for g in GRAPHS) + " |")
    print("| --- |" + " ---: |" * len(GRAPHS))
    for sign, title in SIGNS.items():
        cells = []
        for graph in GRAPHS:
            measured = [signs_of(row)[sign] for row in by_graph[graph]]
            accuracy = [row["accuracy"]["late"] for row in by_graph[graph]]
            cells.append(f"{spearmanr(measured, accuracy).statistic:+.2f}")
        print(f"| {title} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
