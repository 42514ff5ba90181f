"""A run folder, read back as a record."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.errors import UserError
from muxgcl.report.record import RunRecord
from muxgcl.runs import Run


def read_run(path: str | Path) -> RunRecord:
    """Read a run folder; what it does not hold (yet) is left out of the record.

    Beside the files of every run, two more are read where they are: `diagnostics.json` with
    `similarities`, `affinity_weights` and `confusion`, and `nodes.npz` with `label`,
    `label_names`, `edge_index` and any further array of one value a node.
    """
    run = Run(Path(path))
    config = run.config()
    facts = {**config.get("run", {}), **_diagnostics(run.path / "diagnostics.json")}
    nodes = _arrays(run.path / "nodes.npz")
    ids, embedding = run.embeddings() if run.embeddings_file.is_file() else (None, None)
    data = dict(config.get("data", {}))
    notes = data.pop("notes", [])
    metrics = run.metrics()
    epoch_ms = np.array([line["ms"] for line in metrics if "ms" in line])
    dataset, method = str(facts.get("dataset", "graph")), str(facts.get("method", "method"))
    return RunRecord(
        title=f"{method} on {dataset}",
        dataset=dataset,
        method=method,
        settings={name: config[name] for name in ("run", "train", "method") if name in config},
        versions=config.get("versions", {}),
        data_summary=data,
        data_notes=notes,
        command=facts.get("command"),
        metrics=metrics,
        ids=ids,
        embedding=embedding,
        labels=nodes.pop("label", None),
        label_names=[str(name) for name in nodes.pop("label_names", ())],
        edge_index=nodes.pop("edge_index", None),
        columns=nodes,
        scores=run.scores(),
        similarities=facts.get("similarities") or {},
        affinity_weights=facts.get("affinity_weights") or {},
        confusion=facts.get("confusion") or (),
        seconds=facts.get("seconds", epoch_ms.sum() / 1000 if epoch_ms.size else None),
        epoch_ms=facts.get("epoch_ms", float(np.median(epoch_ms)) if epoch_ms.size else None),
        peak_mib=facts.get("peak_mib"),
    )


def _diagnostics(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} is damaged: {error}") from None


def _arrays(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
