"""`muxgcl bench`: how fast, and in how much memory."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from muxgcl.app.screen import console, results
from muxgcl.bench.contrast import bench_kernels
from muxgcl.bench.epoch import bench_epoch
from muxgcl.bench.methods import TIMED, WARM_UP, bench_methods
from muxgcl.cli import file_options as f
from muxgcl.cli import options
from muxgcl.cli.app import app
from muxgcl.errors import UserError, unknown_name
from muxgcl.io.files import append_lines
from muxgcl.io.schema import read_lines
from muxgcl.kernels import PRECISIONS
from muxgcl.runs.auto import BENCHMARKS
from muxgcl.runs.plan import Plan

bench = typer.Typer(help="Measure speed and memory, every backend side by side in one run.")
app.add_typer(bench, name="bench")

Record = Annotated[
    Path | None, typer.Option("--record", help="Append every row to this file of JSON lines.")
]


@bench.command()
def kernels(
    device: options.Device = "auto",
    nodes: Annotated[int, typer.Option(help="How many nodes; there are two views of each.")] = 2708,
    width: Annotated[int, typer.Option(help="Width of what is contrasted.")] = 128,
    rank: Annotated[int, typer.Option(help="Width of the affinity tables.")] = 128,
    precision: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"{', '.join(PRECISIONS)}; may be repeated."),
    ] = None,
    record: Record = None,
    as_json: options.Json = False,
) -> None:
    """The loss of one scale, forward and backward."""
    if min(nodes, width, rank) < 1:
        raise UserError(f"nodes, width and rank must be positive, got {nodes}, {width}, {rank}")
    if wrong := [name for name in precision or () if name not in PRECISIONS]:
        raise UserError(unknown_name("precision", wrong[0], PRECISIONS))
    rows = bench_kernels(
        device, nodes, width, rank, tuple(precision or ()), on_row=_recorder(record)
    )
    _finish(rows, ("backend", "precision", "ms", "peak_mib", "tflops", "share_of_ceiling"), as_json)


@bench.command()
def epoch(
    datasets: Annotated[
        list[str] | None, typer.Argument(help="Dataset names, or random-N; cora by default.")
    ] = None,
    device: options.Device = "auto",
    backend: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="May be repeated.")
    ] = None,
    epochs: options.Epochs = None,
    data_root: f.DataRoot = None,
    record: Record = None,
    as_json: options.Json = False,
) -> None:
    """A whole training epoch of MUX-GCL: the dense step against ours."""
    rows = bench_epoch(
        datasets or ["cora"],
        device,
        backends=tuple(backend or ("reference", "auto")),
        epochs=epochs,
        data_root=data_root,
        on_row=_recorder(record),
    )
    shown = ("dataset", "backend", "precision", "capture", "epoch_ms", "peak_mib")
    _finish(rows, shown, as_json)


@bench.command()
def methods(
    names: Annotated[
        list[str] | None, typer.Argument(help="Methods; all that train by default.")
    ] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Dataset names, or random-N; may be repeated."),
    ] = None,
    device: options.Device = "auto",
    epochs: Annotated[int, typer.Option(help="Timed epochs per method.")] = TIMED,
    warm_up: Annotated[int, typer.Option(help="Untimed epochs before them.")] = WARM_UP,
    time_limit: Annotated[
        float | None, typer.Option(help="Start no new training after this many seconds.")
    ] = None,
    data_root: f.DataRoot = None,
    record: Record = None,
    as_json: options.Json = False,
) -> None:
    """An epoch of every method at its preset, one training at a time.

    What the file of records has already is not measured again.
    """
    keep = _recorder(record)

    def tell(row: dict[str, Any]) -> None:
        keep(row)
        console.print(
            f"{row['method']} on {row['dataset']}: {row['epoch_ms']:.3g} ms, "
            f"{row['peak_mib']:,.0f} MiB ({row['prepare_s']:.1f} s to prepare)"
        )

    failed = []

    def fail(plan: Plan, error: Exception) -> None:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        failed.append(f"{plan.method} on {plan.dataset}")
        console.print(f"failed: {failed[-1]}: {reason}")

    rows = bench_methods(
        names or None,
        datasets or BENCHMARKS,
        device,
        epochs=epochs,
        warm_up=warm_up,
        time_limit=time_limit,
        done=[] if record is None else read_lines(record),
        data_root=data_root,
        on_row=tell,
        on_failure=fail,
    )
    shown = ("method", "dataset", "capture", "epoch_ms", "quartiles_ms", "timed", "peak_mib")
    _finish(rows, shown, as_json)
    if failed:
        raise UserError(f"{len(failed)} could not be measured: {', '.join(failed)}")


def _recorder(path: Path | None) -> Any:
    def keep(row: dict[str, Any]) -> None:
        if path is not None:
            append_lines(path, [row])

    return keep


def _finish(rows: list[dict[str, Any]], columns: tuple[str, ...], as_json: bool) -> None:
    table = Table(box=None, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(str(row[column]) for column in columns))
    (console if as_json else results).print(table)
    if as_json:
        print(json.dumps({"rows": rows}))
