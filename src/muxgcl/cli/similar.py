"""`muxgcl neighbours`, `links` and `predict`: what embeddings say of nodes and of pairs."""

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from muxgcl.app.classes import predict_classes
from muxgcl.app.screen import Screen, console, results
from muxgcl.app.similar import neighbours as neighbours_app
from muxgcl.app.similar import score_links
from muxgcl.cli import file_options as f
from muxgcl.cli import options as o
from muxgcl.cli.app import app
from muxgcl.io.safety import how_many

SHOWN = 10  # pairs or classes that are printed


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


@app.command()
def predict(
    run: o.RunFolder,
    labels: f.LabelsFile = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A .csv file; predictions.csv in the run folder by default."),
    ] = None,
    label_column: f.LabelColumn = None,
    id_column: f.IdColumn = None,
    header: f.Header = None,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Predict the class of every node from the labels of some, by a linear probe.

    The probe is that of the scores, learned from all labels that the run has, or from --labels.
    """
    load = f.load_options(
        labels=labels, label_column=label_column, id_column=id_column, header=header
    )
    with Screen(quiet=quiet, as_json=as_json) as screen:
        found = predict_classes(run, load=load, out=out or run / "predictions.csv", observer=screen)
    if as_json:
        print(json.dumps({"run": str(run), **found.to_dict()}))
        return
    given = Counter(str(label) for label in found.label if label is not None)
    pairs = zip(found.predicted.tolist(), found.label, strict=True)
    told = Counter(str(one) for one, label in pairs if label is None)
    table = Table("class", box=None, pad_edge=False)
    for title in ("labelled", "predicted of the others"):
        table.add_column(title, justify="right")
    for name, count in given.most_common(SHOWN):
        table.add_row(name, f"{count:,}", f"{told[name]:,}")
    results.print(table)
    more = f" (the {SHOWN} largest classes above)" if len(given) > SHOWN else ""
    console.print(
        f"classes of {how_many(len(found.ids), 'node')}{more}: {found.path}\n"
        f"accuracy to expect: {found.accuracy:.1f} % "
        f"(of {how_many(found.judged, 'labelled node')}, held back in turn)"
    )
