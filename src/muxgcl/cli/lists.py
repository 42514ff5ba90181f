"""`muxgcl methods` and `muxgcl datasets`: what there is."""

import json

from rich.console import Console
from rich.table import Table

from muxgcl.cli.app import app
from muxgcl.cli.options import DataRoot, Json
from muxgcl.io import DATASETS, at_hand
from muxgcl.methods import METHODS


@app.command()
def methods(as_json: Json = False) -> None:
    """List the methods: paper, and how their cost grows with the number of nodes."""
    rows = [
        {
            "method": name,
            "paper": kind.paper,
            "cost": kind.cost,
            "summary": (kind.__doc__ or "").splitlines()[0],
        }
        for name, kind in METHODS.items()
    ]
    if as_json:
        print(json.dumps({"methods": rows}))
        return
    table = Table(box=None, header_style="bold")
    for title in ("method", "paper", "cost", "in a sentence"):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*row.values())
    Console().print(table)


@app.command()
def datasets(data_root: DataRoot = None, as_json: Json = False) -> None:
    """List the datasets: size, and whether they are at hand."""
    rows = [
        {
            "dataset": name,
            "nodes": entry.nodes,
            "edges": entry.edges,
            "features": entry.features,
            "classes": entry.classes,
            "at_hand": at_hand(name, data_root),
            "packaged": entry.packaged,
            "title": entry.title,
        }
        for name, entry in DATASETS.items()
    ]
    if as_json:
        print(json.dumps({"datasets": rows}))
        return
    table = Table(box=None, header_style="bold")
    for title in (
        "dataset",
        "nodes",
        "edges (both ways)",
        "features",
        "classes",
        "at hand",
        "what it is",
    ):
        table.add_column(title, justify="right" if title in rows[0] else "left", overflow="fold")
    for row in rows:
        place = "packaged" if row["packaged"] else "yes" if row["at_hand"] else "no"
        counts = [f"{row[key]:,}" for key in ("nodes", "edges", "features", "classes")]
        table.add_row(str(row["dataset"]), *counts, place, str(row["title"]))
    Console().print(table)
