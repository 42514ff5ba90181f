"""`muxgcl tune`: choose settings by half of the labels, or without labels."""

import json
import re
import shlex
import signal
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muxgcl.app.budget import budget
from muxgcl.app.screen import Screen, console, results
from muxgcl.app.show import say, show_scores
from muxgcl.app.source import Source
from muxgcl.cli import file_options as f
from muxgcl.cli import options
from muxgcl.cli.app import app
from muxgcl.cli.progress import search_bar
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.files import write_text
from muxgcl.io.safety import how_many
from muxgcl.runs.cost import Cost, duration
from muxgcl.runs.fit import Stopped, reporting_interrupts
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import summaries
from muxgcl.runs.settings import parse_pairs, to_toml

if TYPE_CHECKING:  # Optuna is an extra: only `tune` needs it
    from muxgcl.tune import Outcome, Tried


class By(StrEnum):
    """What settings are chosen by."""

    labels = "labels"
    structure = "structure"
    links = "links"


@app.command()
def tune(
    graph: options.GraphName,
    method: options.MethodName = "mux-hop",
    trials: Annotated[
        int, typer.Option(help="Number of trials in the whole study; finished ones count.")
    ] = 30,
    study: Annotated[
        Path | None,
        typer.Option(
            help="The file of trials, continued if it is there; under runs/ by default. "
            "With --storage, the name of the study."
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Search with many workers at a time: a database (postgresql://...) or a journal "
            "file that all of them see. Start the same command on each.",
        ),
    ] = None,
    by: Annotated[
        By | None,
        typer.Option(
            help="labels: accuracy in the development half. structure: stable clusters that most "
            "edges stay inside; links: hidden edges; both need no labels. By default labels where "
            "the graph has any, else structure."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Trainings per trial, each with another seed.")] = 1,
    splits: Annotated[
        int, typer.Option(help="Number of random splits of the development half.")
    ] = 20,
    split_seed: options.SplitSeed = 0,
    epochs: Annotated[int | None, typer.Option(help="Fix the epochs of every trial.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Fix one setting; may be repeated."),
    ] = None,
    device: options.Device = "auto",
    anchors: options.Anchors = None,
    negatives: options.Negatives = None,
    exact: options.Exact = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where the best settings go: a .toml file for --preset."),
    ] = None,
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
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Search for good settings for GRAPH, by labels of its development half or without labels.

    The development half is a fixed half of the labelled nodes. The labels of the other half are
    never read; the scores of `muxgcl run` are measured there. The first trial is what
    `--preset auto` picks. Where `muxgcl run` would sample nodes on this machine, all trials do. A
    study can be stopped and continued.
    """
    from muxgcl import tune as tuning

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
    where = Source(graph, load)
    with Screen(quiet=quiet) as screen, reporting_interrupts("loading", resumable=False):
        screen.phase("loading")
        loaded = where.open()
        tensors = Graph.from_data(loaded.tensors)
    measure = tuning.measure_of(
        loaded,
        tensors,
        None if by is None else by.value,
        seeds=seeds,
        splits=splits,
        split_seed=split_seed,
    )
    kind = measure.name
    file = study or Path("runs") / f"{where.dataset}-{method}-by-{kind}.study"
    name = str(study) if study else f"{where.dataset}-{method}-by-{kind}"
    best_file = out or file.with_suffix(".toml")
    if best_file.suffix != ".toml" or best_file == file:
        raise UserError(f"the best settings go to a file ending in .toml, got {best_file}")
    fixed: dict[str, Any] = dict(parse_pairs(settings or []))
    if epochs is not None:
        fixed["epochs"] = epochs
    notes = [*loaded.notes, f"settings are chosen by {measure.words}"]
    costs: list[Cost] = []

    def afford(plan: Plan, decided: bool) -> Plan:
        with reporting_interrupts("estimating", resumable=False):
            found = budget(plan, tensors, exact=decided, always=True, given=fixed)
        notes.extend(note for note in found.notes if note != str(found.cost))
        if found.cost is not None:
            costs.append(replace(found.cost, seconds=seeds * found.cost.seconds))
        return found.plan

    def on_trial(tried: list["Tried"]) -> None:
        if costs and len(tried) < trials:
            notes.append(_estimate(costs.pop(), trials - len(tried)))
        bar.trial(len(tried), _so_far(tried))

    with search_bar(trials, notes, quiet=quiet) as bar:
        try:
            outcome = tuning.tune(
                tensors,
                measure,
                file if storage is None else name,
                storage=storage,
                method=method,
                trials=trials,
                fixed=fixed,
                anchors=anchors,
                negatives=negatives,
                exact=exact,
                afford=afford,
                device=device,
                cache=file.parent / ".affinity",
                on_trial=on_trial,
                on_block=bar.block,
            )
        except KeyboardInterrupt as stop:
            kept = f", which are kept{f' in {file}' if storage is None else ''}" if bar.done else ""
            raise Stopped(
                f"stopped after {bar.done} of {trials} trials{kept}; "
                f"continue with: {_without_passwords(shlex.join(['muxgcl', *sys.argv[1:]]))}",
                getattr(stop, "number", signal.SIGINT),
            ) from None
    figures = ", ".join(f"{name} {value:.4g}" for name, value in outcome.best.figures.items())
    source_line = (
        f"muxgcl tune: {method} on {where.dataset}, {figures}, {len(outcome.tried)} trials"
    )
    origin: dict[str, Any] = {"source": source_line, "sample": outcome.sample.to_list()}
    if isinstance(measure, tuning.ByLabels):
        origin["development"] = measure.half  # `run` knows which labels were read
    write_text(best_file, to_toml(origin | outcome.settings))
    _finish(outcome, file, best_file, method, as_json)


def _estimate(trial: Cost, trials: int) -> str:
    """What one trial takes, by the settings of the first, and all that are left."""
    each, _, size = str(trial).partition(", ")
    whole = f"{duration(trials * trial.seconds)} for {how_many(trials, 'trial')}"
    return f"{each} a trial, about {whole}, {size}"


def _finish(outcome: "Outcome", file: Path, best_file: Path, method: str, as_json: bool) -> None:
    where = console if as_json else results
    where.print(f"best: {_words(outcome.best)}; preset auto: {_words(outcome.auto)}")
    judged = None if outcome.verdict is None else outcome.verdict.to_dict()
    show_scores(method, outcome.scores, judged, where)
    if outcome.no_controls is not None:
        say(f"no controls, and no verdict: {outcome.no_controls}", console, style="dim")
    console.print(f"settings: {best_file}; use them with --preset {best_file}")
    if as_json:
        best = outcome.best
        found = {
            "study": str(file),
            "out": str(best_file),
            "method": method,
            "trials": len(outcome.tried),
            "failed": sum(trial.failure is not None for trial in outcome.tried),
            "best": {"trial": best.number, **best.figures, "settings": outcome.settings},
            "auto": outcome.auto.figures or None,
            "scores": summaries(outcome.scores),
            "verdict": judged,
        }
        print(json.dumps(found))


def _without_passwords(command: str) -> str:
    """A command that may be kept in a log: the passwords in its addresses are left out."""
    return re.sub(r"(://[^/@:\s]*):[^/@\s]*@", r"\1:***@", command)


def _words(trial: "Tried") -> str:
    if trial.failure is not None:
        return "failed"
    name, value = next(iter(trial.figures.items()))
    return f"{name.replace('_', ' ')} {value:.4g} (trial {trial.number})"


def _so_far(tried: list["Tried"]) -> str:
    from muxgcl.tune import best_of

    best, failed = best_of(tried), sum(trial.failure is not None for trial in tried)
    words = [] if best is None else [f"best {_words(best)}"]
    return ", ".join([*words, *([f"{failed} failed"] if failed else [])])
