"""`muxgcl embed`, `export`, `evaluate`, `cluster`, `report`, `info`: uses of a trained run."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from muxgcl.app import (
    cluster_run,
    evaluate_run,
    export_onnx,
    predict_links,
    report_runs,
    run_info,
)
from muxgcl.app import embed as embed_app
from muxgcl.app.screen import Screen, console, results
from muxgcl.app.show import info_rows, show_scores
from muxgcl.cli import file_options as f
from muxgcl.cli import options as o
from muxgcl.cli.app import app
from muxgcl.errors import UserError
from muxgcl.io.safety import how_many
from muxgcl.io.save import TABLES, VECTORS

OutFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help=f"A file in the format that its ending names: {', '.join((*TABLES, *VECTORS))}.",
    ),
]
ClustersFile = Annotated[
    Path | None, typer.Option("--out", help=f"A file ending in {', '.join(TABLES)}.")
]


@app.command()
def embed(
    run: o.RunFolder,
    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="GRAPH", help="A graph with the same features; the run's own by default."
        ),
    ] = None,
    new_nodes: Annotated[
        Path | None,
        typer.Option(
            help="Embed only these new nodes: a table with the same columns as the run's."
        ),
    ] = None,
    new_edges: Annotated[
        Path | None, typer.Option(help="The edges of the new nodes; a node may have none.")
    ] = None,
    out: OutFile = None,
    device: o.Device = "auto",
    data_root: f.DataRoot = None,
    features: f.FeaturesFile = None,
    id_column: f.IdColumn = None,
    label_column: f.LabelColumn = None,
    source: f.SourceColumn = None,
    target: f.TargetColumn = None,
    weight: f.WeightColumn = None,
    edge_type: f.EdgeTypeColumn = None,
    directed: f.Directed = None,
    header: f.Header = None,
    exclude: f.Exclude = None,
    as_json: o.Json = False,
) -> None:
    """Embed a graph that a run has not seen, or new nodes of its own graph.

    Nothing is trained again. Without a graph and new nodes the run's own embeddings are written.
    """
    load = f.load_options(
        data_root=data_root,
        features=features,
        id_column=id_column,
        label_column=label_column,
        source=source,
        target=target,
        weight=weight,
        edge_type=edge_type,
        directed=directed,
        header=header,
        exclude=exclude,
    )
    with Screen(as_json=as_json) as screen:
        found = embed_app(
            run,
            graph,
            new_nodes=new_nodes,
            new_edges=new_edges,
            load=load,
            out=out or run / "embedded.npz",
            device=device,
            keep=False,
            observer=screen,
        )
    nodes, width = len(found.ids), found.width
    if as_json:
        told = {"run": str(run), "nodes": nodes, "width": width, "out": str(found.path)}
        print(json.dumps(told))
    else:
        console.print(f"{how_many(nodes, 'embedding')} of width {width}: {found.path}")


@app.command()
def export(
    run: o.RunFolder,
    out: Annotated[Path, typer.Option("--out", help="A file ending in .onnx.")],
    as_json: o.Json = False,
) -> None:
    """Write the perceptron of a mux-hop run as an ONNX model: features in, scale 0 out."""
    path = export_onnx(run, out)
    if as_json:
        print(json.dumps({"run": str(run), "out": str(path)}))
    else:
        console.print(f"ONNX model: {path}")


class Task(StrEnum):
    """What embeddings are used for."""

    node = "node"
    link = "link"


@app.command()
def evaluate(
    run: o.RunFolder,
    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="GRAPH",
            help="The graph of the run, where its folder keeps none and its files are gone.",
        ),
    ] = None,
    task: Annotated[
        Task,
        typer.Option(
            help="node: classify nodes from the run's embeddings. link: hide a tenth of the edges, "
            "train the run's settings anew on the rest, and rank hidden edges above non-edges."
        ),
    ] = Task.node,
    protocol: o.Protocols = None,
    splits: o.Splits = 20,
    split_seed: o.SplitSeed = 0,
    controls: o.Controls = None,
    repeats: Annotated[
        int, typer.Option(help="How often task link hides other edges and trains again.")
    ] = 3,
    labels: f.LabelsFile = None,
    label_column: f.LabelColumn = None,
    id_column: f.IdColumn = None,
    data_root: f.DataRoot = None,
    features: f.FeaturesFile = None,
    source: f.SourceColumn = None,
    target: f.TargetColumn = None,
    weight: f.WeightColumn = None,
    edge_type: f.EdgeTypeColumn = None,
    directed: f.Directed = None,
    header: f.Header = None,
    exclude: f.Exclude = None,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Score a run: classify its nodes with a linear probe, or predict links.

    --labels names a file of labels that the run did not have.
    """
    load = f.load_options(
        data_root=data_root,
        features=features,
        labels=labels,
        label_column=label_column,
        id_column=id_column,
        source=source,
        target=target,
        weight=weight,
        edge_type=edge_type,
        directed=directed,
        header=header,
        exclude=exclude,
    )
    with Screen(quiet=quiet, as_json=as_json) as screen:
        if task is Task.link:
            if protocol or controls:
                raise UserError("--protocol and --controls are of task node, not of task link")
            found = predict_links(
                run, graph, load=load, repeats=repeats, seed=split_seed, observer=screen
            )
        else:
            found = evaluate_run(
                run,
                graph,
                load=load,
                protocols=None if protocol is None else tuple(p.value for p in protocol),
                splits=splits,
                split_seed=split_seed,
                controls=controls is not False,
                observer=screen,
            )
    if as_json:
        print(json.dumps(found.to_dict()))


@app.command()
def cluster(
    run: o.RunFolder,
    clusters: Annotated[
        int | None, typer.Option(help="How many clusters; as many as classes by default.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Number of independent runs of k-means.")] = 5,
    seed: Annotated[
        int, typer.Option(callback=o.seed_of_32_bits, help="The seed of the first run.")
    ] = 0,
    out: ClustersFile = None,
    as_json: o.Json = False,
) -> None:
    """Cluster a run's embeddings by k-means; with labels, score the clusters (NMI, ARI).

    All nodes are clustered; those of the report half are compared with their classes.
    Scores of as many clusters as classes are kept in the run; others are only printed.
    """
    with Screen(as_json=as_json) as screen:
        found = cluster_run(
            run, clusters=clusters, repeats=repeats, seed=seed, out=out, observer=screen
        )
    if as_json:
        print(json.dumps({**found.to_dict(), "clusters": str(found.path)}))


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="One run folder or more.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The page; report.html in the run, or comparison.html here."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also write each figure as PNG and SVG into this folder.")
    ] = None,
) -> None:
    """Write a page about a run, or one that compares several; it opens without a network."""
    with Screen() as screen:
        report_runs(runs, out=out, figures=figures, observer=screen)


@app.command()
def info(run: o.RunFolder, as_json: o.Json = False) -> None:
    """Show what a run folder holds: method, graph, progress, settings, scores, files."""
    found = run_info(run)
    if as_json:
        print(json.dumps(found))
        return
    table = Table(box=None, show_header=False)
    for name, value in info_rows(found):
        table.add_row(name, value)
    results.print(table)
    if found["scores"]:
        show_scores(str(found["method"]), found["scores"], found["verdict"], results)
