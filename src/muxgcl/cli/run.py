"""`muxgcl run` and `muxgcl train`: from a graph to embeddings, scores and a report."""

import json
import shlex
import signal
import sys
import threading

from muxgcl.app import LoadOptions, Result, RunOptions, SeedsResult
from muxgcl.app import dry_run as dry_run_app
from muxgcl.app import run as run_app
from muxgcl.app import run_seeds as run_seeds_app
from muxgcl.app.screen import Screen, results
from muxgcl.cli import file_options as f
from muxgcl.cli import options as o
from muxgcl.cli.app import app
from muxgcl.kernels.ring import LostWorker
from muxgcl.runs.distributed import TIMEOUT, joined, speaks
from muxgcl.runs.environment import limit_threads
from muxgcl.runs.fit import Stopped
from muxgcl.runs.settings import parse_pairs


@app.command()
def run(
    graph: o.GraphName,
    method: o.MethodName = "mux-hop",
    preset: o.PresetName = None,
    settings: o.Settings = None,
    epochs: o.Epochs = None,
    seed: o.Seed = 0,
    seeds: o.Seeds = 1,
    members: o.Members = 1,
    output_width: o.OutputWidth = None,
    device: o.Device = "auto",
    backend: o.BackendName = "auto",
    capture: o.Capture = o.CaptureMode.auto,
    anchors: o.Anchors = None,
    negatives: o.Negatives = None,
    exact: o.Exact = False,
    dry_run: o.DryRun = False,
    log: o.LogOption = None,
    timeout: o.Timeout = TIMEOUT,
    out: o.Out = None,
    resume: o.Resume = False,
    overwrite: o.Overwrite = False,
    protocol: o.Protocols = None,
    splits: o.Splits = 20,
    split_seed: o.SplitSeed = 0,
    controls: o.Controls = None,
    data_root: f.DataRoot = None,
    features: f.FeaturesFile = None,
    labels: f.LabelsFile = None,
    label_column: f.LabelColumn = None,
    id_column: f.IdColumn = None,
    source: f.SourceColumn = None,
    target: f.TargetColumn = None,
    weight: f.WeightColumn = None,
    edge_type: f.EdgeTypeColumn = None,
    directed: f.Directed = None,
    header: f.Header = None,
    include: f.Include = None,
    exclude: f.Exclude = None,
    structure: f.Structure = None,
    no_scale: f.NoScale = False,
    report: o.Report = True,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Train on GRAPH, embed its nodes and, where there are labels, evaluate.

    Labels are used for the scores alone, never for training. Scores are measured on the report
    half of the labelled nodes, whose labels `muxgcl tune` never reads.
    """
    options = RunOptions(
        method=method,
        preset=preset,
        settings=parse_pairs(settings or []),
        epochs=epochs,
        seed=seed,
        members=members,
        output_width=output_width,
        device=device,
        backend=backend,
        capture=capture.value,
        anchors=anchors,
        negatives=negatives,
        exact=exact,
        log=None if log is None else log.value,
        out=out,
        resume=resume,
        overwrite=overwrite,
        protocols=None if protocol is None else tuple(p.value for p in protocol),
        splits=splits,
        split_seed=split_seed,
        controls=controls,
        report=report,
    )
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
        include=include,
        exclude=exclude,
        structure=structure,
        no_scale=no_scale,
    )
    if dry_run:
        _estimate(graph, options, load, seeds=seeds, timeout=timeout, quiet=quiet, as_json=as_json)
    else:
        _run(graph, options, load, seeds=seeds, timeout=timeout, quiet=quiet, as_json=as_json)


@app.command()
def train(
    graph: o.GraphName,
    method: o.MethodName = "mux-hop",
    preset: o.PresetName = None,
    settings: o.Settings = None,
    epochs: o.Epochs = None,
    seed: o.Seed = 0,
    members: o.Members = 1,
    output_width: o.OutputWidth = None,
    device: o.Device = "auto",
    backend: o.BackendName = "auto",
    capture: o.Capture = o.CaptureMode.auto,
    anchors: o.Anchors = None,
    negatives: o.Negatives = None,
    exact: o.Exact = False,
    dry_run: o.DryRun = False,
    log: o.LogOption = None,
    timeout: o.Timeout = TIMEOUT,
    out: o.Out = None,
    resume: o.Resume = False,
    overwrite: o.Overwrite = False,
    data_root: f.DataRoot = None,
    features: f.FeaturesFile = None,
    labels: f.LabelsFile = None,
    label_column: f.LabelColumn = None,
    id_column: f.IdColumn = None,
    source: f.SourceColumn = None,
    target: f.TargetColumn = None,
    weight: f.WeightColumn = None,
    edge_type: f.EdgeTypeColumn = None,
    directed: f.Directed = None,
    header: f.Header = None,
    include: f.Include = None,
    exclude: f.Exclude = None,
    structure: f.Structure = None,
    no_scale: f.NoScale = False,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Train and embed only: nothing is scored, no report is written."""
    options = RunOptions(
        method=method,
        preset=preset,
        settings=parse_pairs(settings or []),
        epochs=epochs,
        seed=seed,
        members=members,
        output_width=output_width,
        device=device,
        backend=backend,
        capture=capture.value,
        anchors=anchors,
        negatives=negatives,
        exact=exact,
        log=None if log is None else log.value,
        out=out,
        resume=resume,
        overwrite=overwrite,
        score=False,
        report=False,
    )
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
        include=include,
        exclude=exclude,
        structure=structure,
        no_scale=no_scale,
    )
    if dry_run:
        _estimate(graph, options, load, seeds=1, timeout=timeout, quiet=quiet, as_json=as_json)
    else:
        _run(graph, options, load, seeds=1, timeout=timeout, quiet=quiet, as_json=as_json)


def _run(
    graph: str,
    options: RunOptions,
    load: LoadOptions,
    *,
    seeds: int,
    timeout: float,
    quiet: bool,
    as_json: bool,
) -> None:
    command = _command()
    limit_threads()
    with (
        joined(options.device, timeout=timeout) as workers,
        Screen(quiet=quiet, as_json=as_json) as screen,
    ):
        first = workers is None or workers.rank == 0
        observer = screen if first else None
        result: Result | SeedsResult
        try:
            if seeds == 1:
                result = run_app(
                    graph, options, load=load, observer=observer, command=command, workers=workers
                )
            else:
                result = run_seeds_app(
                    graph,
                    seeds,
                    options,
                    load=load,
                    observer=observer,
                    command=command,
                    workers=workers,
                )
        except Stopped as stop:
            if stop.resumable:
                message = f"{stop}; continue with: {_command(resume=True)}"
                raise Stopped(message, stop.number) from None
            raise
        except LostWorker as lost:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun's: the line comes first
            then = "; there is no checkpoint yet"
            if lost.resumable:
                then = f"; continue from the last checkpoint with: {_command(resume=True)}"
            raise LostWorker(lost.reason, then) from None
        except Exception:
            if workers is not None and first:
                speaks()  # what the others lose is this worker, and it tells why
            raise
        if first and isinstance(result, SeedsResult) and result.scores:
            screen.over_seeds(options.method, seeds, result.scores, result.verdict)
    if first and as_json:
        print(json.dumps(result.to_dict()))


def _estimate(
    graph: str,
    options: RunOptions,
    load: LoadOptions,
    *,
    seeds: int,
    timeout: float,
    quiet: bool,
    as_json: bool,
) -> None:
    limit_threads()
    with (
        joined(options.device, timeout=timeout) as workers,
        Screen(quiet=quiet, as_json=as_json) as screen,
    ):
        first = workers is None or workers.rank == 0
        observer = screen if first else None
        found = dry_run_app(graph, options, load=load, observer=observer, workers=workers)
    if not first:
        return
    if as_json:
        print(json.dumps(found.to_dict()))
        return
    each = f", for each of {seeds} seeds" if seeds > 1 else ""
    lines = found.notes or (f"there is no estimate for {found.plan.method}",)
    results.print("\n".join([*lines[:-1], lines[-1] + each]))


def _command(*, resume: bool = False) -> str:
    words = ["muxgcl", *sys.argv[1:]]
    if resume and "--resume" not in words:
        words = [*(w for w in words if w != "--overwrite"), "--resume"]
    return shlex.join(words)
