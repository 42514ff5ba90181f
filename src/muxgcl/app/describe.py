"""A page about a run folder, or a summary of what it holds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.app.observer import Observer
from muxgcl.app.options import Folder
from muxgcl.errors import UserError
from muxgcl.evaluate import verdict
from muxgcl.runs.fit import reporting_interrupts
from muxgcl.runs.folder import Run
from muxgcl.runs.scoring import summaries


def report_runs(
    runs: Sequence[Folder],
    *,
    out: Folder | None = None,
    figures: Folder | None = None,
    observer: Observer | None = None,
) -> Path:
    """Write a page about a run, or one that compares several; returns where it is.

    Args:
        runs: run folders.
        out: the page; report.html in the run, or comparison.html here, by default.
        figures: a folder for each figure as PNG and SVG, with a folder in it for each of several
            runs; none by default.
        observer: called at every event; none by default.

    Example:
        >>> print(report_runs(["runs/mine"]))
        runs/mine/report.html
    """
    observer, folders = observer or Observer(), [Path(run) for run in runs]
    if not folders:
        raise UserError("expected at least one run folder, got none")
    if out is not None and Path(out).suffix not in (".html", ".htm"):
        raise UserError(f"a report is a page: expected a name ending in .html, got {out}")
    for folder in folders:
        Run(folder).config()  # a folder that is no run is refused before any work
    observer.phase("report")
    with reporting_interrupts("writing the report", resumable=False):
        from muxgcl.report import compare, read_run, save_figures, write_report  # slow to load
        from muxgcl.report.comparison import folder_names

        records = [read_run(folder) for folder in folders]
        if len(records) == 1:
            page = Run(folders[0]).report_file if out is None else Path(out)
            write_report(records[0], page)
        else:
            page = Path("comparison.html") if out is None else Path(out)
            compare(records, page)
    observer.wrote("report", page)
    if figures is not None:
        with reporting_interrupts("drawing figures"):
            names = [""] if len(records) == 1 else folder_names(records)
            for name, record in zip(names, records, strict=True):
                save_figures(record, Path(figures) / name)
        observer.wrote("figures", Path(figures))
    return page


def run_info(run: Folder) -> dict[str, Any]:
    """What a run folder holds: settings, how far it is, scores, files.

    Example:
        >>> found = run_info("runs/mine")
        >>> found["method"], found["nodes"], found["finished"]
        ('sgc', 60, True)
    """
    folder = Run(Path(run))
    tables = folder.config()
    facts, data = tables["run"], tables.get("data", {})
    lines = folder.metrics()
    epochs = int(tables.get("train", {}).get("epochs", 0))
    done = int(lines[-1]["epoch"]) if lines else 0
    scores = folder.scores()
    judged = verdict(str(facts.get("method")), scores, tables.get("method"))
    return {
        "run": str(folder.path),
        "method": facts.get("method"),
        "dataset": facts.get("dataset"),
        "preset": facts.get("preset"),
        "seed": facts.get("seed"),
        "members": facts.get("members", 1),
        "output_width": facts.get("output_width"),
        "created": facts.get("created"),
        "nodes": data.get("nodes"),
        "edges": data.get("edges"),
        "directed": data.get("directed", False),
        "features": data.get("features"),
        "classes": _classes(folder) or data.get("classes", 0),
        "epochs": epochs,
        "epochs_done": done,
        "loss": lines[-1]["loss"] if lines else None,
        # a run that goes on beyond its first end has the embeddings of that one
        "finished": folder.embeddings_file.is_file() and done in (0, epochs),
        "settings": {**tables.get("train", {}), **tables.get("method", {})},
        "files": sorted(p.name for p in folder.path.iterdir() if not p.name.startswith(".")),
        "command": facts.get("command"),
        "scores": summaries(scores),
        "verdict": None if judged is None else judged.to_dict(),
    }


def _classes(folder: Run) -> int:
    """Of the labels that the folder holds: they may have been given after training."""
    y = folder.labels()
    return 0 if y is None else len(np.unique(y[y >= 0]))
