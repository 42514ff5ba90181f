"""A run folder, read back as a record."""

from pathlib import Path

import numpy as np

from muxgcl.report.record import RunRecord
from muxgcl.runs.contents import COLUMN
from muxgcl.runs.folder import Run
from muxgcl.shapes import Array

SETTINGS = ("train", "method", "source")  # tables of config.toml, beside `run`
COUNTS = ("nodes", "edges", "features", "classes")


def read_run(path: str | Path) -> RunRecord:
    """Read a run folder; what it does not hold (yet) is left out of the record.

    Beside the files of every run, two more are read where they are: `diagnostics.json` with
    `similarities`, `affinity_weights` and `confusion`, and `nodes.npz` with `label`,
    `label_names`, `edge_index` and `column:NAME` for any further column of the nodes.
    """
    run = Run(Path(path))
    config = run.config()
    facts = {**config.get("run", {}), **run.diagnostics()}
    nodes = run.nodes()
    ids, embedding = run.embeddings() if run.embeddings_file.exists() else (None, None)
    data = config.get("data", {})
    settings = {name: dict(config[name]) for name in ("run", *SETTINGS) if name in config}
    settings.get("run", {}).pop("command", None)  # has a place of its own
    metrics = run.metrics()
    epoch_ms = np.array([line["ms"] for line in metrics if "ms" in line])
    dataset, method = str(facts.get("dataset", "graph")), str(facts.get("method", "method"))
    return RunRecord(
        title=f"{method} on {dataset}",
        dataset=dataset,
        method=method,
        folder=run.path.resolve().name,
        fingerprint=str(data.get("fingerprint", "")),
        settings=settings,
        versions=config.get("versions", {}),
        data_summary={name: data[name] for name in COUNTS if name in data} | _classes(nodes),
        data_notes=data.get("notes", []),
        command=facts.get("command"),
        metrics=metrics,
        ids=ids,
        embedding=embedding,
        labels=nodes.pop("label", None),
        label_names=[str(name) for name in nodes.pop("label_names", ())],
        edge_index=nodes.pop("edge_index", None),
        columns={name.removeprefix(COLUMN): values for name, values in nodes.items()},
        scores=run.scores(),
        similarities=facts.get("similarities") or {},
        affinity_weights=facts.get("affinity_weights") or {},
        confusion=facts.get("confusion") or (),
        seconds=facts.get("seconds", epoch_ms.sum() / 1000 if epoch_ms.size else None),
        epoch_ms=facts.get("epoch_ms", float(np.median(epoch_ms)) if epoch_ms.size else None),
        peak_mib=facts.get("peak_mib"),
    )


def _classes(nodes: dict[str, Array]) -> dict[str, int]:
    """How many there are of labels that may have been given after training."""
    y = nodes.get("label")
    return {} if y is None else {"classes": len(np.unique(y[y >= 0]))}
