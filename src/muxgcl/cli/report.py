"""`muxgcl report`: look at one run, or compare several."""

from pathlib import Path
from typing import Annotated

import typer

from muxgcl.cli.app import app
from muxgcl.cli.progress import console
from muxgcl.errors import UserError
from muxgcl.runs.folder import Run


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="One run folder or more.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The page; report.html in the run, or comparison.html here."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also write each figure as PNG and SVG into this folder.")
    ] = None,
) -> None:
    """Write a page about a run, or one that compares several; it opens without a network."""
    from muxgcl.report import compare, read_run, save_figures, write_report  # slow to load

    if out is not None and out.suffix not in (".html", ".htm"):
        raise UserError(f"a report is a page: expected a name ending in .html, got {out}")
    for run in runs:
        Run(run).config()  # a folder that is no run is named before any work
    records = [read_run(run) for run in runs]
    if len(records) == 1:
        page = out or Run(runs[0]).report_file
        write_report(records[0], page)
    else:
        page = out or Path("comparison.html")
        compare(records, page)
    console.print(f"report: {page}")
    if figures is not None:
        for run, record in zip(runs, records, strict=True):
            folder = figures if len(runs) == 1 else figures / run.name
            save_figures(record, folder)
        console.print(f"figures: {figures}")
