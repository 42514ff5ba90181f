"""`muxgcl methods` and `muxgcl datasets`: what there is."""

import json
import re
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from muxgcl.app.options import RunOptions
from muxgcl.app.screen import console
from muxgcl.cli.app import app
from muxgcl.cli.file_options import DataRoot
from muxgcl.cli.options import Json
from muxgcl.io import DATASETS, at_hand
from muxgcl.io.sbm import Sbm, make_sbm
from muxgcl.methods import METHODS

datasets = typer.Typer()
app.add_typer(datasets, name="datasets")


DEFAULT = Sbm()
COUNTS = ("nodes", "edges", "features", "classes")
LINK = re.compile(r", https://\S+")


class Model(StrEnum):
    """Models of graphs."""

    sbm = "sbm"


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
    table.add_column("method", no_wrap=True)
    for title in ("paper", "cost", "in a sentence"):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(row["method"], LINK.sub("", row["paper"]), row["cost"], row["summary"])
    Console().print(table)
    console.print(
        f"default: {RunOptions().method}. cost: how time grows with the number of nodes; what is "
        "quadratic can contrast a sample (--anchors). Links to the papers: --json"
    )


@datasets.callback(invoke_without_command=True)
def list_datasets(
    context: typer.Context, data_root: DataRoot = None, as_json: Json = False
) -> None:
    """List the datasets: size, and whether they are on this machine."""
    if context.invoked_subcommand is not None:
        return
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
    table.add_column("dataset", no_wrap=True)
    for title in COUNTS:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("at hand", no_wrap=True)
    table.add_column("what it is", overflow="fold")
    for row, entry in zip(rows, DATASETS.values(), strict=True):
        place = "packaged" if row["packaged"] else "yes" if row["at_hand"] else "no"
        once = {**row, "edges": entry.edges // 2}  # which the count has both ways
        counts = [f"{once[key]:,}" for key in COUNTS]
        what = str(row["title"]).partition(": ")[2]
        table.add_row(str(row["dataset"]), *counts, place, what)
    Console().print(table)
    console.print(
        "no: the first run downloads it, or looks for its files in --data-root. "
        "Also: folders of the Open Graph Benchmark, and muxgcl datasets make sbm"
    )


@datasets.command()
def make(
    kind: Annotated[
        Model, typer.Argument(help="sbm: a degree-corrected block model with words as features.")
    ],
    out: Annotated[Path, typer.Option("--out", help="A new folder for the graph.")],
    nodes: Annotated[int, typer.Option(help="How many nodes.")] = DEFAULT.nodes,
    classes: Annotated[int, typer.Option(help="How many classes.")] = DEFAULT.classes,
    features: Annotated[int, typer.Option(help="Words in the vocabulary.")] = DEFAULT.features,
    degree: Annotated[float, typer.Option(help="Average number of neighbours.")] = DEFAULT.degree,
    homophily: Annotated[
        float,
        typer.Option(help="Share of edges drawn within a class; others end anywhere."),
    ] = DEFAULT.homophily,
    words: Annotated[int, typer.Option(help="Words per node.")] = DEFAULT.words,
    signal: Annotated[
        float, typer.Option(help="Share of a node's words that come from its class.")
    ] = DEFAULT.signal,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = DEFAULT.seed,
    as_json: Json = False,
) -> None:
    """Make a graph of any size and write it to a folder, which `muxgcl run` takes as a graph."""
    model = Sbm(
        nodes=nodes,
        classes=classes,
        features=features,
        degree=degree,
        homophily=homophily,
        words=words,
        signal=signal,
        seed=seed,
    )
    make_sbm(out, model)
    if as_json:
        print(json.dumps({"folder": str(out), "kind": kind.value, **asdict(model)}))
    else:
        console.print(f"written to {out}: {nodes:,} nodes, {classes} classes")
