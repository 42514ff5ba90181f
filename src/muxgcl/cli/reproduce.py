"""`muxgcl reproduce`: the paper's tables, figures and proposition, ours beside the paper's."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from muxgcl.app.screen import console, results
from muxgcl.cli import file_options as f
from muxgcl.cli import options
from muxgcl.cli.app import app
from muxgcl.errors import UserError
from muxgcl.io import DATASETS, at_hand
from muxgcl.reproduce.artefacts import ARTEFACTS, Scope, plan
from muxgcl.reproduce.check import doubts, search_doubts, search_files
from muxgcl.reproduce.hops import HOP_PARTS
from muxgcl.reproduce.job import COMMITTEE, CONTROLS, Job
from muxgcl.reproduce.other_records import other_doubts, other_files
from muxgcl.reproduce.records import Record, RecordStore
from muxgcl.reproduce.runner import Outcome, Runner
from muxgcl.reproduce.shard import Share
from muxgcl.reproduce.typeset import markdown

Artefact = StrEnum("Artefact", [*ARTEFACTS, "all"])  # type: ignore[misc]


@app.command()
def reproduce(
    artefacts: Annotated[
        list[Artefact] | None,
        typer.Argument(help="Which tables or figures of the paper; hops: ours."),
    ] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Instead of the paper's; a,b or repeated."),
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these; a,b or repeated.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many training seeds, from 0 on.")] = 5,
    chief_seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Seeds of mux-gcl, grace and mux-hop, where more are wanted."
        ),
    ] = None,
    splits: options.Splits = 20,
    epochs: options.Epochs = None,
    jobs: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Processes that score beside the training; 0: none."),
    ] = 0,
    records: Annotated[Path, typer.Option(help="Where records are kept.")] = Path("records"),
    out: Annotated[Path, typer.Option(help="Where tables and figures go.")] = Path("results"),
    render_only: Annotated[
        bool, typer.Option("--render-only", help="Train nothing; show what is recorded.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only check that records are whole and of today's settings."),
    ] = False,
    parts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help=f"Of hops, only these; a,b or repeated: {', '.join(HOP_PARTS)}."
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Start no new training after this many seconds.")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Only the I-th of N shares, for one of N machines."),
    ] = None,
    device: options.Device = "auto",
    data_root: f.DataRoot = None,
    as_json: options.Json = False,
) -> None:
    """Run the missing experiments, record them, and show our figures beside the paper's.

    What is recorded already is not run again; a run that was stopped goes on where it stood.
    """
    store = RecordStore(records)
    if check:
        _check(store, as_json)
        return
    if not artefacts:
        raise UserError(f"expected one of {', '.join(ARTEFACTS)}, or all")
    if render_only and not any(records.glob("*.jsonl")):
        folder = records if records.is_absolute() else f"./{records}"
        raise UserError(f"no records in {folder} (--records names the folder)")
    asked = [artefact.value for artefact in artefacts]
    wanted = ARTEFACTS if "all" in asked else tuple(dict.fromkeys(asked))
    scope = Scope(
        datasets=_names(datasets),
        methods=_names(methods),
        seeds=seeds,
        chief_seeds=chief_seeds,
        splits=splits,
        epochs=epochs,
        parts=_names(parts) or tuple(HOP_PARTS),
    )
    share = None if shard is None else Share.parse(shard)
    outcome = Outcome()
    if not render_only:
        runner = Runner(
            store=store,
            device=device,
            workers=jobs,
            time_limit=time_limit,
            data_root=data_root,
        )
        jobs_of_all = plan(wanted, scope)
        mine = jobs_of_all if share is None else share.of(jobs_of_all)
        outcome = _run(runner, _can_run(mine, data_root, asked=datasets is not None))
    summary = _render(wanted, store, scope, out, as_json)
    if as_json:
        print(json.dumps(summary | _told(outcome)))
    if outcome.failed:
        raise UserError(f"{len(outcome.failed)} measurements failed: {_titles(outcome.failed)}")


def _names(given: list[str] | None) -> tuple[str, ...] | None:
    names = [name for text in given or () for name in text.replace(",", " ").split()]
    return tuple(dict.fromkeys(names)) or None


def _can_run(jobs: list[Job], data_root: Path | None, *, asked: bool) -> list[Job]:
    """Datasets that are not at hand are left out, unless they were asked for by name."""
    if asked:
        return jobs
    away = [name for name in DATASETS if not at_hand(name, data_root)]
    left = list(dict.fromkeys(job.dataset for job in jobs if job.dataset in away))
    if left:
        console.print(f"not at hand, left out: {', '.join(left)} (--datasets fetches them)")
    return [job for job in jobs if job.dataset not in away]


def _run(runner: Runner, jobs: list[Job]) -> Outcome:
    missing = runner.missing(jobs)
    console.print(f"{len(jobs)} measurements, {len(jobs) - len(missing)} recorded already")
    with _bar(missing) as advance:
        runner.on_record = advance
        runner.on_failure = lambda job, reason: console.print(f"failed: {job.title}: {reason}")
        outcome = runner.run(jobs)
    if outcome.left:
        console.print(f"time is up: {len(outcome.left)} measurements left for the next time")
    return outcome


@contextmanager
def _bar(jobs: list[Job]) -> Iterator[Any]:
    """A bar whose time left is reckoned by work: an epoch on a large graph takes longer."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("running", total=sum(map(_work, jobs)))

        def advance(job: Job, record: Record) -> None:
            console.print(f"recorded {job.title}{_headline(record)}")
            bar.advance(task, _work(job))

        yield advance


def _work(job: Job) -> float:
    epochs = 0 if job.kind in (COMMITTEE, CONTROLS) else job.plan().train.epochs
    return (epochs + 10) * DATASETS[job.dataset].nodes


def _headline(record: Record) -> str:
    result = record["result"]
    speed = f"{record['epoch_ms']:.3g} ms/epoch, {record['seconds']:.0f} s"
    tables = result.get("tables") or ({"": result} if "accuracy" in result else {})
    means = [
        f"{name} {sum(table['accuracy']) / len(table['accuracy']):.2f} %".strip()
        for name, table in tables.items()
    ]
    return f": {', '.join(means)} ({speed})" if means else f" ({record['seconds']:.0f} s)"


def _render(
    wanted: tuple[str, ...], store: RecordStore, scope: Scope, out: Path, as_json: bool
) -> dict[str, Any]:
    from muxgcl.reproduce.render import render, told, write  # draws, which takes time to load

    files: list[str] = []
    missing: list[Job] = []
    for name in wanted:
        rendered = render(name, store, scope)
        files += map(str, write(rendered, out))
        missing += rendered.missing
        for table in rendered.tables:
            (console if as_json else results).print(markdown(table))
    missing = list(dict.fromkeys(missing))
    for line in told(missing):
        console.print(f"missing: {line}")
    console.print(f"written to {out}: {len(files)} files")
    return {"files": files, "missing": len(missing)}


def _told(outcome: Outcome) -> dict[str, Any]:
    return {
        "recorded": len(outcome.recorded),
        "left": len(outcome.left),
        "failed": {job.title: reason for job, reason in outcome.failed.items()},
    }


def _titles(failed: dict[Job, str]) -> str:
    return "; ".join(f"{job.title}: {reason}" for job, reason in failed.items())


def _check(store: RecordStore, as_json: bool) -> None:
    lines = store.lines()
    if not lines:
        raise UserError(f"there are no records in {store.folder}")
    others = [*search_files(store.folder), *other_files(store.folder)]
    total = len(lines) + sum(len(file.read_bytes().splitlines()) for file in others)
    found = [*doubts(lines), *search_doubts(store.folder, lines), *other_doubts(store.folder)]
    for line in found:
        console.print(line)
    if as_json:
        print(json.dumps({"records": total, "doubts": found}))
    if found:
        raise UserError(f"{len(found)} of {total} records are stale, repeated or damaged")
    console.print(
        f"{total} records, and no doubt: {len(lines)} of tables and figures have the settings that "
        "the code has today. Nothing was trained again, and a digest that was made anew is not "
        "noticed"
    )
