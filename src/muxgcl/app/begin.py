"""How a run folder is begun, gone on with, or refused."""

from typing import Any

import numpy as np

from muxgcl.app.source import Source
from muxgcl.errors import UserError
from muxgcl.graph import graph_fingerprint
from muxgcl.io.load import Loaded
from muxgcl.runs.fit import Ready
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import labels_of


def refuse_foreign(run: Run) -> None:
    """Leave a folder alone that holds other things."""
    if (other := run.foreign()) is not None:
        raise UserError(
            f"{run.path} is not empty and holds no run (there is {other}): "
            "name a new folder with --out"
        )


def begin(
    run: Run,
    ready: Ready,
    source: Source,
    loaded: Loaded,
    *,
    resume: bool,
    overwrite: bool,
    command: str | None,
) -> list[str]:
    """Write the settings of a new run, or check those of one that goes on; notes on what changed.

    A run goes on with the same graph, method, seed, settings, device, backend and capture. Only
    `epochs` may grow.
    """
    if run.exists and resume:
        return _go_on(run, ready)
    if run.exists and not overwrite:
        raise UserError(
            f"{run.path} holds a run already: --resume goes on with it, --overwrite replaces it, "
            "--out names another folder"
        )
    run.clear()
    data, graph = loaded.tensors, ready.graph
    y = labels_of(data)
    facts = {
        "nodes": graph.num_nodes,
        "edges": int(data.edge_index.shape[1]),
        "features": graph.num_features,
        "classes": 0 if y is None else len(np.unique(y[y >= 0])),
        "fingerprint": graph_fingerprint(graph),
        "notes": loaded.notes,
    }
    tables = ready.plan.tables()
    tables["run"] |= {"command": command, **_where(ready)}
    place = source.table()
    run.write_config({**tables, "data": facts, **({} if place is None else {"source": place})})
    return []


def _where(ready: Ready) -> dict[str, str]:
    """What `auto` came to."""
    return {"device_used": ready.graph.device.type, "backend_used": ready.backend}


def _go_on(run: Run, ready: Ready) -> list[str]:
    before, plan = run.config(), ready.plan
    _same(run, "method", before["run"].get("method"), plan.method)
    mark = graph_fingerprint(ready.graph)
    _same(run, "graph", before.get("data", {}).get("fingerprint"), mark)
    _same(run, "seed", before["run"].get("seed"), plan.seed)
    for name, now in _where(ready).items():
        _same(run, name.removesuffix("_used"), before["run"].get(name, now), now)
    _same(run, "capture", before["run"].get("capture"), plan.capture)
    asked = plan.tables()
    epochs = int(before.get("train", {}).get("epochs", 0))
    longer = plan.train.epochs > epochs
    for table in ("train", "method"):
        for key, value in asked[table].items():
            wanted = list(value) if isinstance(value, tuple) else value
            if not (key == "epochs" and longer):
                _same(run, key, before.get(table, {}).get(key), wanted)
    if run.checkpoint_file.is_file():
        run.checkpoint()  # a damaged one is named before any work
    if not longer:
        return []
    before["train"]["epochs"] = plan.train.epochs
    run.write_config(before)
    return [f"training goes on beyond epoch {epochs}, to {plan.train.epochs}"]


def observed_so_far(
    run: Run, plan: Plan, split_seed: int, last: int
) -> dict[int, tuple[float, ...]]:
    """What protocol `paper` has seen of a run that goes on: all of its last epochs, or an error."""
    done = run.checkpoint()[1]["epoch"] if run.checkpoint_file.is_file() else 0
    seen = run.observed(done, split_seed)
    first = max(0, plan.train.epochs - last) + 1
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
