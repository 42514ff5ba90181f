"""`muxgcl embed`, `evaluate`, `cluster`: what a trained run is good for."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from muxgcl.cli import options
from muxgcl.cli.app import app
from muxgcl.cli.options import Protocol
from muxgcl.cli.progress import console, results, training_bar
from muxgcl.cli.show import show_scores
from muxgcl.app.source import Source, saved_encoding
from muxgcl.errors import UserError
from muxgcl.evaluate import assign
from muxgcl.evaluate import cluster as cluster_scores
from muxgcl.graph import Graph, graph_fingerprint
from muxgcl.io.load import Loaded
from muxgcl.io.save import check_format, save_table
from muxgcl.runs.environment import pick_device
from muxgcl.runs.fit import embed as embed_graph
from muxgcl.runs.fit import collapsed, restore
from muxgcl.runs.folder import Run
from muxgcl.runs.held_out import held_out_links
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import MOST_SPLITS, check_scoring, plain, score
from muxgcl.runs.scoring import controls as score_controls

OutFile = Annotated[
    Path | None,
    typer.Option("--out", help="A file ending in .npz, .npy, .parquet or .csv."),
]


@app.command()
def embed(
    run: options.RunFolder,
    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="[GRAPH]", help="A graph with the same features; the run's own by default."
        ),
    ] = None,
    out: OutFile = None,
    device: options.Device = "auto",
    data_root: options.DataRoot = None,
    features: options.FeaturesFile = None,
    id_column: options.IdColumn = None,
    label_column: options.LabelColumn = None,
    source: options.SourceColumn = None,
    target: options.TargetColumn = None,
    weight: options.WeightColumn = None,
    header: options.Header = None,
    as_json: options.Json = False,
) -> None:
    """Embed a graph that a run has not seen; without one, the run's own embeddings are written."""
    trained = Run(run)
    tables = trained.config()
    target_file = out or run / "embedded.npz"
    check_format(target_file)
    given: dict[str, Any] = {
        "features": features,
        "id_column": id_column,
        "label_column": label_column,
        "source_column": source,
        "target_column": target,
        "weight_column": weight,
        "header": header,
    }
    if graph is None and (extra := [name for name, value in given.items() if value is not None]):
        what = extra[0].replace("_", " ")
        raise UserError(f"{what} of a new graph, but none is named after {run}")
    if graph is None and trained.embeddings_file.is_file():
        ids, table = trained.embeddings()
    else:
        if graph is None:  # stopped before its end
            loaded = _own_graph(trained, data_root)
        else:
            where = Source(graph=graph, data_root=data_root, **given)
            loaded = where.open(saved_encoding(trained))
        tensors = Graph.from_data(loaded.tensors)
        wanted = tables.get("data", {}).get("features")
        if wanted is None:
            raise UserError(f"{trained.config_file}: data.features is missing")
        if tensors.num_features != wanted:
            raise UserError(
                f"{run} was trained on {wanted} features, this graph has {tensors.num_features}"
            )
        plan = Plan.from_tables(tables, device=device)
        tensors = tensors.to(pick_device(device))
        z = embed_graph(restore(trained, plan, tensors), tensors)
        if (told := collapsed(z)) is not None:
            console.print(told)
        ids, table = loaded.ids, z.numpy()
        for note in loaded.notes:
            console.print(note, style="dim")
    save_table(target_file, ids, table)
    if as_json:
        print(
            json.dumps(
                {
                    "run": str(run),
                    "nodes": len(table),
                    "width": table.shape[1],
                    "out": str(target_file),
                }
            )
        )
    else:
        console.print(f"{len(table):,} embeddings of width {table.shape[1]}: {target_file}")


class Task(StrEnum):
    """What embeddings are used for."""

    node = "node"
    link = "link"


@app.command()
def evaluate(
    run: options.RunFolder,
    task: Annotated[
        Task,
        typer.Option(
            help="node: classify nodes from the run's embeddings. link: hide a tenth of the edges, "
            "train the run's settings anew on the rest, and rank hidden edges above non-edges."
        ),
    ] = Task.node,
    protocol: Annotated[list[Protocol] | None, typer.Option(help="May be repeated.")] = None,
    splits: options.Splits = 20,
    split_seed: options.SplitSeed = 0,
    controls: Annotated[
        bool, typer.Option("--controls", help="Also score what needs no training.")
    ] = False,
    repeats: Annotated[
        int, typer.Option(help="How often task link hides other edges and trains again.")
    ] = 3,
    data_root: options.DataRoot = None,
    as_json: options.Json = False,
) -> None:
    """Score a run: classify its nodes with a linear probe, or predict links."""
    trained = Run(run)
    if task is Task.link:
        if protocol or controls:
            raise UserError("--protocol and --controls are of task node, not of task link")
        scores = {"link": _links(trained, data_root, repeats, split_seed)}
        with trained.locked():
            trained.save_scores(scores)
        _show(run, scores, as_json)
        return
    loaded, z = _embeddings(trained, data_root)
    names = [p.value for p in protocol or [Protocol.holdout]]
    if "paper" in names:
        raise UserError("protocol paper looks at epochs of training: ask for it in `muxgcl run`")
    check_scoring(loaded.tensors, names, splits)
    scores, _ = score(
        z, loaded.tensors, names, splits=splits, split_seed=split_seed, clusters=False
    )
    if controls:
        plan = Plan.from_tables(trained.config())
        graph = Graph.from_data(loaded.tensors)
        scores["controls"] = score_controls(
            plan, graph, loaded.tensors, splits=splits, split_seed=split_seed
        )
    with trained.locked():
        trained.save_scores(scores)
    _show(run, scores, as_json)


@app.command()
def cluster(
    run: options.RunFolder,
    clusters: Annotated[
        int | None, typer.Option(help="How many clusters; as many as classes by default.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Independent runs of k-means.")] = 5,
    seed: options.SplitSeed = 0,
    out: OutFile = None,
    as_json: options.Json = False,
) -> None:
    """Cluster a run's embeddings by k-means; with labels, score the clusters (NMI, ARI)."""
    trained = Run(run)
    trained.config()  # a folder that is no run is named
    ids, z = trained.embeddings()
    y = trained.labels()
    if not 1 <= repeats <= MOST_SPLITS:
        raise UserError(f"repeats must be from 1 to {MOST_SPLITS:,}, got {repeats:,}")
    if clusters is None:
        if y is None:
            raise UserError("this graph has no labels: say how many clusters with --clusters")
        clusters = len(np.unique(y[y >= 0]))
    groups = assign(z, clusters, seed=seed)
    scores: dict[str, Any] = {}
    if y is not None:
        found = cluster_scores(z, y, clusters=clusters, repeats=repeats, seed=seed)
        scores["clustering"] = {"clusters": clusters, **found.to_dict()}
        with trained.locked():
            trained.save_scores(scores)
    target_file = out or run / "clusters.csv"
    save_table(target_file, ids, groups[:, None], names=["cluster"])
    _show(run, scores, as_json, clusters=str(target_file))


def _links(run: Run, data_root: Path | None, repeats: int, seed: int) -> dict[str, Any]:
    tables = run.config()
    plan = Plan.from_tables(tables)
    loaded = _own_graph(run, data_root)
    console.print(
        f"the run's embeddings have seen every edge: {plan.method} is trained anew, "
        f"{repeats} times, each time without a tenth of them",
        style="dim",
    )
    with training_bar(plan.train.epochs) as bar:
        return held_out_links(plan, loaded, repeats=repeats, seed=seed, on_block=bar)


def _embeddings(run: Run, data_root: Path | None) -> tuple[Loaded, np.ndarray[Any, np.dtype[Any]]]:
    """A run's graph and its embeddings, node by node."""
    loaded = _own_graph(run, data_root)
    ids, z = run.embeddings()
    if not np.array_equal(ids, loaded.ids):
        raise UserError(f"the embeddings in {run.path} are not of the graph that it names")
    return loaded, z


def _own_graph(run: Run, data_root: Path | None) -> Loaded:
    """The graph that a run was trained on; it must not have changed since."""
    tables = run.config()
    if "source" not in tables:
        raise UserError(f"{run.config_file} does not say where the graph came from")
    loaded = Source.from_table(tables["source"], data_root).open()
    before = tables.get("data", {}).get("fingerprint")
    if before not in (None, graph_fingerprint(Graph.from_data(loaded.tensors))):
        raise UserError(f"the graph that {run.path} was trained on has changed since")
    return loaded


def _show(run: Path, scores: dict[str, Any], as_json: bool, **more: str) -> None:
    if as_json:
        print(json.dumps({"run": str(run), "scores": plain(scores), **more}))
        return
    show_scores(scores, results)
    for name, where in more.items():
        console.print(f"{name}: {where}")
