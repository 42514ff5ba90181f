"""What follows training: scores, controls and a report."""

import json
from typing import Any

import numpy as np
from torch import Tensor

from muxgcl.app.observer import Observer
from muxgcl.errors import UserError, reason_of
from muxgcl.evaluate import PaperProtocol, structure
from muxgcl.graph import Graph
from muxgcl.io.files import write_text
from muxgcl.runs.control_scores import score_controls
from muxgcl.runs.diagnostics import diagnose
from muxgcl.runs.environment import gpu_of
from muxgcl.runs.fit import Fitted, Stopped, reporting_interrupts
from muxgcl.runs.folder import Run
from muxgcl.runs.heap import give_back
from muxgcl.runs.plan import Plan
from muxgcl.runs.scipy_tables import edges_of
from muxgcl.runs.scoring import Judging, labels_of, score
from muxgcl.shapes import Array

CONTROLS = 6  # at most


def score_stage(
    run: Run,
    fitted: Fitted,
    z: Tensor,
    asked: Judging,
    paper: PaperProtocol | None,
    observer: Observer,
) -> dict[str, Any]:
    """Score the embeddings and keep the scores, with what a report draws beside them."""
    labelled = labels_of(asked.data) is not None
    give_back()
    observer.phase("scoring" if labelled else "diagnosing")
    with reporting_interrupts("scoring" if labelled else "measuring similarities"):
        scores, confusion = score(
            z.numpy(),
            asked.data,
            asked.protocols,
            splits=asked.splits,
            split_seed=asked.split_seed,
            device=gpu_of(str(fitted.graph.device)),
        )
        if paper is not None and paper.epochs:
            scores["paper"] = paper.result().to_dict()
        if not labelled:
            scores |= unlabelled_scores(z, fitted.graph)
        run.save_scores(scores)
        found = diagnose(fitted, run.config()["run"]["seed"])
        if confusion is not None:
            found["confusion"] = confusion.tolist()
        found |= {
            "seconds": fitted.seconds,
            "epoch_ms": fitted.epoch_ms,
            "peak_mib": fitted.peak_mib,
            "device": fitted.device,
            "backend": fitted.backend,
        }
        write_text(run.diagnostics_file, json.dumps(found) + "\n")
    return scores


def unlabelled_scores(z: Tensor, graph: Graph) -> dict[str, Any]:
    """How far an embedding has stable clusters that most edges stay inside; needs no labels."""
    found = structure(z.numpy(), edges_of(graph))
    if found is None:
        return {}
    return {"no labels": {name: {"mean": value} for name, value in found.to_dict().items()}}


def forget_stale_scores(run: Run, z: Tensor, labels: Array | None) -> str:
    """Drop what was said of another embedding, or by other labels, of a run that goes on.

    Returns a line on it, empty where nothing was dropped.
    """
    if not run.scores_file.is_file():
        return ""
    try:
        same_rows = np.array_equal(run.embeddings()[1], z.numpy())
        relabelled = not same_labels(run.labels(), labels)
    except UserError:  # none, or damaged ones that are about to be replaced
        same_rows = False
    if not same_rows:
        for file in (run.scores_file, run.diagnostics_file):
            file.unlink(missing_ok=True)
        return "scores of the earlier embedding are dropped"
    if relabelled:
        run.save_scores({}, other_labels=True)
        save_confusion(run, None)
        return "scores of the earlier labels are dropped"
    return ""


def same_labels(one: Array | None, two: Array | None) -> bool:
    """Whether labels are the same, or absent in both."""
    return np.array_equal(one, two) if one is not None and two is not None else one is two


def save_confusion(run: Run, confusion: Any) -> None:
    """Put the confusion of other labels in the place of the earlier one."""
    found = {name: part for name, part in run.diagnostics().items() if name != "confusion"}
    if confusion is not None:
        found["confusion"] = confusion.tolist()
    write_text(run.diagnostics_file, json.dumps(found) + "\n")


def controls_stage(
    run: Run,
    plan: Plan,
    graph: Graph,
    asked: Judging,
    observer: Observer,
    *,
    clusters: bool = True,
) -> dict[str, Any]:
    """Score the controls and keep their scores; a failure ends them, and nothing else."""
    observer.phase("controls")
    found: dict[str, Any] = {}
    try:
        give_back()
        with reporting_interrupts("scoring controls"):
            for name, scores in score_controls(
                plan,
                graph,
                asked.data,
                asked.protocols,
                splits=asked.splits,
                split_seed=asked.split_seed,
                clusters=clusters,
            ):
                found[name] = scores
                observer.step(len(found), CONTROLS)
    except Stopped:
        raise
    except (UserError, MemoryError, RuntimeError, ValueError) as error:
        observer.note(f"not all controls could be scored: {reason_of(error)}")
    if not found:
        return {}
    before = run.scores().get("controls") or {}
    run.save_scores({"controls": {name: {**before.get(name, {}), **found[name]} for name in found}})
    return {"controls": found}


def report_stage(run: Run, observer: Observer) -> None:
    """Write report.html."""
    observer.phase("report")
    with reporting_interrupts("writing the report"):
        from muxgcl.report import read_run, write_report  # draws, which takes seconds to load

        write_report(read_run(run.path), run.report_file)
    observer.wrote("report", run.report_file)
