"""One run folder from start to end: train, embed, score, report."""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.app.log import Log, logged
from muxgcl.cli.progress import console, training_bar
from muxgcl.cli.show import show_scores
from muxgcl.app.source import Source, save_encoding
from muxgcl.errors import UserError
from muxgcl.evaluate import PaperProtocol
from muxgcl.graph import Graph, graph_fingerprint
from muxgcl.io.files import write_atomically, write_text
from muxgcl.io.load import Loaded
from muxgcl.runs.diagnostics import diagnose
from muxgcl.runs.fit import Fitted, Stopped, collapsed, fit
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import controls, labels_of, plain, score

PAPER_EPOCHS = 100  # protocol `paper` looks at this many last epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What is done with the embeddings once they are there."""

    protocols: tuple[str, ...] = ("holdout",)
    splits: int = 20
    split_seed: int = 0
    controls: bool = False
    report: bool = True


def default_folder(plan: Plan) -> Path:
    """A name that says what the run is."""
    preset = Path(plan.preset).stem  # it may be a file
    return Path("runs") / f"{plan.dataset}-{plan.method}-{preset}-seed{plan.seed}"


def run_one(
    plan: Plan,
    source: Source,
    loaded: Loaded,
    graph: Graph,
    run: Run,
    judging: Judging | None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
    log: Log | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Do what is not done yet; the summary is what `--json` prints."""
    if (other := run.foreign()) is not None:
        raise UserError(
            f"{run.path} is not empty and holds no run (there is {other}): "
            "name a new folder with --out"
        )
    with run.locked():
        _open_folder(run, plan, source, loaded, graph, resume=resume, overwrite=overwrite)
        y = labels_of(loaded.tensors) if judging else None
        paper = None
        if judging and "paper" in judging.protocols and y is not None:
            paper = PaperProtocol(y, seed=judging.split_seed)
            paper.epochs = _observed(run, plan, judging.split_seed) if resume else {}
        for note in notes:
            console.print(note, style="dim")
        try:
            with (
                training_bar(plan.train.epochs, quiet=quiet) as bar,
                logged(run, log, bar) as on_block,
            ):
                fitted = fit(
                    plan,
                    graph,
                    run=run,
                    resume=resume,
                    cache=run.path.parent / ".affinity",
                    on_block=on_block,
                    on_prepare=bar.prepare,
                    observe=None
                    if paper is None
                    else lambda epoch, z: run.log_observed(
                        epoch, paper.observe(epoch, z.numpy()), paper.seed
                    ),
                    observe_last=PAPER_EPOCHS,
                )
        except Stopped as stop:
            raise Stopped(f"{stop}; go on with: {_command(resume=True)}") from None
        except UserError:
            if not run.metrics() and not run.checkpoint_file.is_file():
                run.clear()  # nothing was done: what is mended may be tried in the same folder
            raise
        fitted = replace(fitted, peak_mib=max(fitted.peak_mib, _peak_before(run)))
        z = fitted.embed()
        if (told := collapsed(z)) is not None:
            console.print(told)
        run.save_embeddings(loaded.ids, z)
        _save_nodes(run, loaded)
        save_encoding(run, loaded)
        scores: dict[str, Any] = {}
        if judging is not None:
            scores = _judge(plan, judging, loaded, graph, z.numpy(), run, fitted)
            if paper is not None and paper.epochs:
                scores["paper"] = paper.result().to_dict()
            run.save_scores(scores)
        show_scores(scores)
        console.print(f"embeddings: {run.embeddings_file}")
        if judging is not None and judging.report:
            _report(run)
    return _summary(plan, fitted, run, scores)


def _open_folder(
    run: Run,
    plan: Plan,
    source: Source,
    loaded: Loaded,
    graph: Graph,
    *,
    resume: bool,
    overwrite: bool,
) -> None:
    mark = graph_fingerprint(graph)
    if run.exists and resume:
        before = run.config()
        _same(run, "method", before["run"].get("method"), plan.method)
        _same(run, "graph", before.get("data", {}).get("fingerprint"), mark)
        _same(run, "seed", before["run"].get("seed"), plan.seed)
        asked = plan.tables()
        for table in ("train", "method"):
            for key, value in asked[table].items():
                wanted = list(value) if isinstance(value, tuple) else value
                _same(run, key, before.get(table, {}).get(key), wanted)
        if run.checkpoint_file.is_file():
            run.checkpoint()  # a damaged one is named before any work
        return
    if run.exists and not overwrite:
        raise UserError(
            f"{run.path} holds a run already: --resume goes on with it, --overwrite replaces it, "
            "--out names another folder"
        )
    run.clear()
    data = loaded.tensors
    y = labels_of(data)
    facts = {
        "nodes": graph.num_nodes,
        "edges": int(data.edge_index.shape[1]),
        "features": graph.num_features,
        "classes": 0 if y is None else len(np.unique(y[y >= 0])),
        "fingerprint": mark,
        "notes": loaded.notes,
    }
    tables = plan.tables()
    tables["run"]["command"] = _command()
    run.write_config({**tables, "data": facts, "source": source.table()})


def _peak_before(run: Run) -> float:
    """The peak memory of an earlier stretch of this run."""
    return float(run.diagnostics().get("peak_mib", 0.0))


def _observed(run: Run, plan: Plan, split_seed: int) -> dict[int, tuple[float, ...]]:
    """What protocol `paper` has seen of a run that goes on: all of its last epochs, or an error."""
    done = run.checkpoint()[1]["epoch"] if run.checkpoint_file.is_file() else 0
    seen = run.observed(done, split_seed)
    first = max(0, plan.train.epochs - PAPER_EPOCHS) + 1
    if not set(range(first, done + 1)) <= set(seen):
        raise UserError(
            f"protocol paper looks at every epoch from {first} on, but {run.path} is at epoch "
            f"{done} without it (on these splits): start again with --overwrite"
        )
    return seen


def _same(run: Run, what: str, before: Any, now: Any) -> None:
    if before != now:
        raise UserError(
            f"{run.path} was begun with another {what} ({before}); this command asks for {now}"
        )


def _judge(
    plan: Plan,
    judging: Judging,
    loaded: Loaded,
    graph: Graph,
    z: np.ndarray[Any, np.dtype[Any]],
    run: Run,
    fitted: Fitted,
) -> dict[str, Any]:
    data, splits, seed = loaded.tensors, judging.splits, judging.split_seed
    scores: dict[str, Any] = {}
    confusion = None
    if labels_of(data) is not None:
        scores, confusion = score(z, data, judging.protocols, splits=splits, split_seed=seed)
        if judging.controls:
            scores["controls"] = controls(plan, graph, data, splits=splits, split_seed=seed)
    found = diagnose(fitted, plan.seed)
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


def _save_nodes(run: Run, loaded: Loaded) -> None:
    """Labels, edges and other columns of the nodes, for the report."""
    # the prefix keeps a user's names apart from ours and from savez's own arguments
    arrays: dict[str, Any] = {
        f"column:{name}": np.asarray(values) for name, values in loaded.columns.items()
    }
    arrays["edge_index"] = loaded.tensors.edge_index.cpu().numpy().astype(np.int32)
    y = labels_of(loaded.tensors)
    if y is not None:
        arrays["label"] = y
        if loaded.label_names is not None:
            arrays["label_names"] = np.asarray(loaded.label_names)
    write_atomically(
        run.nodes_file,
        lambda file: np.savez_compressed(file, **arrays),
    )


def _summary(plan: Plan, fitted: Fitted, run: Run, scores: dict[str, Any]) -> dict[str, Any]:
    return {
        "dataset": plan.dataset,
        "method": plan.method,
        "preset": plan.preset,
        "epochs": plan.train.epochs,
        "seed": plan.seed,
        "device": fitted.device,
        "backend": fitted.backend,
        "loss": fitted.loss,
        "epoch_ms": round(fitted.epoch_ms, 4),
        "peak_mib": round(fitted.peak_mib, 1),
        "run": str(run.path),
        "scores": plain(scores),
    }


def _report(run: Run) -> None:
    from muxgcl.report import read_run, write_report  # draws, which takes seconds to load

    write_report(read_run(run.path), run.report_file)
    console.print(f"report:     {run.report_file}")


def _command(*, resume: bool = False) -> str:
    words = ["muxgcl", *sys.argv[1:]]
    if resume and "--resume" not in words:
        words = [*(w for w in words if w != "--overwrite"), "--resume"]
    return shlex.join(words)
