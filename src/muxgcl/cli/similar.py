"""`muxgcl neighbours` and `links`: what embeddings say of single nodes and of pairs."""

import json
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from muxgcl.app.screen import console, results
from muxgcl.app.similar import neighbours as neighbours_app
from muxgcl.app.similar import score_links
from muxgcl.cli import file_options as f
from muxgcl.cli import options as o
from muxgcl.cli.app import app
from muxgcl.io.safety import how_many

SHOWN = 10  # pairs that are printed


@app.command()
def neighbours(
    run: o.RunFolder,
    nodes: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of nodes.")],
    k: Annotated[int, typer.Option("-k", help="How many neighbours.")] = 10,
    as_json: o.Json = False,
) -> None:
    """List the nodes whose embeddings are most similar to a node's, by cosine."""
    found = neighbours_app(run, nodes, k)
    if as_json:
        rows = [
            {"node": node, "neighbours": [{"node": n, "cosine": c} for n, c in near]}
            for node, near in found.items()
        ]
        print(json.dumps({"run": str(run), "nodes": rows}))
        return
    for node, near in found.items():
        table = Table(box=None, pad_edge=False)
        table.add_column(f"nearest to {node}", overflow="fold")
        table.add_column("cosine", justify="right")
        for other, cosine in near:
            table.add_row(str(other), f"{cosine:.4f}")
        results.print(table)


@app.command()
def links(
    run: o.RunFolder,
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS", help="Pairs of ids: .csv, .tsv, .parquet or .arrow.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A .csv file; links.csv in the run folder by default."),
    ] = None,
    source: f.SourceColumn = None,
    target: f.TargetColumn = None,
    header: f.Header = None,
    as_json: o.Json = False,
) -> None:
    """Score given pairs of nodes by the cosine of their embeddings, as likely links."""
    load = f.load_options(source=source, target=target, header=header)
    found = score_links(run, pairs, load=load, out=out or run / "links.csv")
    if as_json:
        told = {"run": str(run), "pairs": len(found.score), "out": str(found.path)}
        print(json.dumps(told))
        return
    table = Table("source", "target", "score", box=None, pad_edge=False)
    rows = zip(found.source, found.target, found.score.tolist(), strict=True)
    for source_id, target_id, value in islice(rows, SHOWN):
        table.add_row(str(source_id), str(target_id), f"{value:.4f}")
    results.print(table)
    more = f", the first {SHOWN} above" if len(found.score) > SHOWN else ""
    console.print(f"{how_many(len(found.score), 'pair')} scored{more}: {found.path}")
