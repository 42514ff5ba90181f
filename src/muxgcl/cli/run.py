"""`muxgcl run` and `muxgcl train`: from a graph to embeddings, scores and a report."""

import inspect
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from muxgcl.cli import options
from muxgcl.cli.app import app
from muxgcl.app.log import Log, LogOption, writer
from muxgcl.cli.options import CaptureMode, Protocol
from muxgcl.app.pipeline import Judging, default_folder, run_one
from muxgcl.cli.progress import console
from muxgcl.cli.show import show_scores
from muxgcl.app.source import Source
from muxgcl.errors import UserError
from muxgcl.evaluate import summarise
from muxgcl.graph import Graph
from muxgcl.io import DATASETS
from muxgcl.runs import auto
from muxgcl.runs.auto import choose
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan, check
from muxgcl.runs.scoring import check_scoring
from muxgcl.runs.settings import parse_pairs

LOOKS_AT_LABELS = ("protocol", "splits", "split_seed", "controls", "report", "seeds")


@app.command()
def run(
    graph: options.GraphName,
    method: options.MethodName = "mux-gcl",
    preset: options.PresetName = None,
    settings: options.Settings = None,
    epochs: options.Epochs = None,
    seed: options.Seed = 0,
    seeds: Annotated[int, typer.Option(help="Train with this many seeds, counted up.")] = 1,
    device: options.Device = "auto",
    backend: options.BackendName = "auto",
    capture: Annotated[
        CaptureMode, typer.Option(help="Capture the training step as a CUDA graph (GPU only).")
    ] = CaptureMode.auto,
    out: Annotated[
        Path | None, typer.Option("--out", help="The run folder; under runs/ by default.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the run folder stands.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run that is there.")
    ] = False,
    protocol: Annotated[
        list[Protocol] | None,
        typer.Option(help="How to judge; may be repeated. `paper` is optimistic by design."),
    ] = None,
    splits: options.Splits = 20,
    split_seed: options.SplitSeed = 0,
    controls: Annotated[
        bool, typer.Option("--controls", help="Also score what needs no training.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html into the run folder.")
    ] = True,
    data_root: options.DataRoot = None,
    features: options.FeaturesFile = None,
    labels: options.LabelsFile = None,
    label_column: options.LabelColumn = None,
    id_column: options.IdColumn = None,
    source: options.SourceColumn = None,
    target: options.TargetColumn = None,
    weight: options.WeightColumn = None,
    header: options.Header = None,
    log: LogOption = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Train on GRAPH, embed its nodes and, where there are labels, evaluate.

    Labels are used for the scores alone, never for training.
    """
    judging = Judging(
        protocols=tuple(p.value for p in protocol or [Protocol.holdout]),
        splits=splits,
        split_seed=split_seed,
        controls=controls,
        report=report,
    )
    _run(judging, **{k: v for k, v in locals().items() if k in _SHARED}, seeds=seeds)


def train(**shared: Any) -> None:
    """Train and embed only: nothing is scored, no report is written."""
    _run(None, **shared, seeds=1)


_SHARED = [name for name in inspect.signature(run).parameters if name not in LOOKS_AT_LABELS]
# `train` takes what `run` takes, less what looks at labels
train.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [inspect.signature(run).parameters[name] for name in _SHARED]
)
train.__annotations__ = {name: run.__annotations__[name] for name in _SHARED}
app.command()(train)


def _run(
    judging: Judging | None,
    *,
    graph: str,
    method: str,
    preset: str | None,
    settings: list[str] | None,
    epochs: int | None,
    seed: int,
    seeds: int,
    device: str,
    backend: str,
    capture: CaptureMode,
    out: Path | None,
    resume: bool,
    overwrite: bool,
    log: Log | None,
    quiet: bool,
    as_json: bool,
    source: str | None,
    target: str | None,
    weight: str | None,
    **files: Any,
) -> None:
    if seeds < 1:
        raise UserError(f"seeds must be at least 1, got {seeds}")
    if resume and overwrite:
        raise UserError("--resume goes on with a run, --overwrite replaces it: ask for one of them")
    if log is not None:
        writer()  # whether it is installed, before any work
    where = Source(
        graph=graph, source_column=source, target_column=target, weight_column=weight, **files
    )
    overrides: dict[str, Any] = dict(parse_pairs(settings or []))
    if epochs is not None:
        overrides["epochs"] = epochs
    preset = preset or ("best" if graph in DATASETS else "auto")
    loaded = where.open()
    tensors = Graph.from_data(loaded.tensors)
    plan = Plan.make(
        method,
        preset,
        where.dataset,
        overrides,
        graph=tensors,
        seed=seed,
        device=device,
        backend=backend,
        capture=capture.value,
    )
    check(plan, tensors)
    notes = [*loaded.notes, *_picked(tensors, plan)]
    if judging is not None:
        notes += check_scoring(loaded.tensors, judging.protocols, judging.splits)
    results = []
    for number in range(seed, seed + seeds):
        this = replace(plan, seed=number)
        folder = out or default_folder(this)
        if out is not None and seeds > 1:
            folder = out / f"seed{number}"
        results.append(
            run_one(
                this,
                where,
                loaded,
                tensors,
                Run(folder),
                judging,
                resume=resume,
                overwrite=overwrite,
                quiet=quiet,
                log=log,
                notes=notes if number == seed else (),
            )
        )
    over_seeds = _over_seeds([result["scores"] for result in results]) if seeds > 1 else {}
    if over_seeds:
        console.print(f"over {seeds} seeds (mean and spread of their means):")
        show_scores(over_seeds)
    if as_json:
        print(json.dumps(results[0] if seeds == 1 else {"runs": results, "scores": over_seeds}))


def _picked(graph: Graph, plan: Plan) -> list[str]:
    """What preset `auto` picked and why, as far as it was taken."""
    if plan.preset != "auto" or plan.method not in auto.METHODS:
        return []
    used = asdict(plan.train) | asdict(plan.settings)
    picked = [choice for choice in choose(graph) if used.get(choice.key) == choice.value]
    return [f"{choice.key} = {choice.value}: {choice.reason}" for choice in picked]


def _over_seeds(scores: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and spread of the seeds' means, for each measure that all of them have."""
    found: dict[str, Any] = {}
    for protocol, measures in scores[0].items():
        for measure, value in measures.items() if isinstance(measures, dict) else ():
            if isinstance(value, dict) and "mean" in value:
                means = [one[protocol][measure]["mean"] for one in scores]
                found.setdefault(protocol, {})[measure] = summarise(means).to_dict()
    return found
