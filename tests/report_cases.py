"""A run made up in memory: blobs of nodes, every kind of figure, nothing trained."""

from typing import Any

import numpy as np

from muxgcl.report import RunRecord

NAMES = ("Theory", "Rule_Learning", "Neural_Networks", "Case_Based")
HOSTILE = '</script><img src=x onerror="hacked=1">$&{{\'"\x00\ud800'


def figure(mean: float, std: float = 0.5, n: int = 20) -> dict[str, float]:
    return {"mean": mean, "std": std, "n": n}


def run_record(n: int = 240, d: int = 16, seed: int = 0, **changed: Any) -> RunRecord:
    """A complete record; `changed` replaces or, with None, empties parts of it."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(NAMES), n)
    rows = rng.normal(size=(len(NAMES), d))[labels] + 0.2 * rng.normal(size=(n, d))
    ends = rng.integers(0, n, (2, 2 * n))
    ends = ends[:, ends[0] != ends[1]]
    bins = np.linspace(-1, 1, 21)
    halves = {
        "positive": np.histogram(rng.normal(0.6, 0.1, 500), bins)[0].tolist(),
        "negative": np.histogram(rng.normal(0.0, 0.2, 500), bins)[0].tolist(),
    }
    parts: dict[str, Any] = {
        "title": "mux-gcl on blobs",
        "dataset": "blobs",
        "method": "mux-gcl",
        "settings": {"run": {"seed": seed}, "method": {"width": d, "drop_edges": [0.2, 0.4]}},
        "versions": {"muxgcl": "0.1.0"},
        "data_summary": {"nodes": n, "edges": ends.shape[1], "features": 50, "classes": 4},
        "data_notes": ["made undirected: 3 -> 6 entries"],
        "command": "muxgcl run blobs --seed 0",
        "metrics": [
            {"epoch": e, "loss": 3 / e, "terms": {"scale 0": 1 / e, "scale 1": 2 / e}, "ms": 5.0}
            for e in range(1, 21)
        ],
        "ids": np.array([f"n{k}" for k in range(n)]),
        "embedding": rows.astype(np.float32),
        "labels": labels,
        "label_names": NAMES,
        "columns": {"year": rng.integers(1900, 2000, n), "size": rng.normal(size=n)},
        "edge_index": np.concatenate([ends, ends[::-1]], axis=1),
        "scores": {
            "holdout": {"accuracy": figure(84.25), "per_split": {"accuracy": [84.0, 84.5]}},
            "clustering": {"nmi": figure(0.571, 0.01, 5)},
            "controls": {"raw": {"accuracy": figure(70.5)}},
        },
        "similarities": {
            f"u1-v{k}": {**halves, "edges": bins.tolist(), "auc": 0.9} for k in range(2)
        },
        "affinity_weights": {"scale 0": {"counts": [1, 2, 1], "edges": [0, 0.25, 0.5, 1]}},
        "confusion": [[9, 1, 0, 0], [0, 5, 5, 0], [0, 0, 8, 0], [1, 1, 1, 1]],
        "seconds": 93.0,
        "epoch_ms": 5.0,
        "peak_mib": 412.0,
    }
    parts |= changed
    return RunRecord(**{name: value for name, value in parts.items() if value is not None})


def long_record(classes: int = 15, n: int = 240) -> RunRecord:
    """Many classes of long names, columns of long names, and curves that coincide."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, n)
    names = [f"Networks_and_internet_architecture, part {k}" for k in range(classes)]
    confusion = rng.integers(0, 9, (classes, classes)) + np.diag(rng.integers(30, 60, classes))
    return run_record(
        n,
        labels=labels,
        label_names=names,
        confusion=confusion.tolist(),
        columns={
            "average_number_of_messages_sent_per_working_day_in_the_last_year": rng.random(n),
            "a name of many words that goes on and on and on": np.array(["long value"] * n),
        },
        metrics=[
            {"epoch": e, "loss": 3 / e, "terms": {f"scale {k}": 1 / e for k in range(3)}, "ms": 5.0}
            for e in range(1, 21)
        ],
    )


def bare_record(**parts: Any) -> RunRecord:
    """A record with nothing in it but names."""
    return RunRecord(**{"title": "bare", "dataset": "none", "method": "none"} | parts)


def hostile_record() -> RunRecord:
    ids = np.array([f"{HOSTILE}{k}" for k in range(240)])
    return run_record(
        title=HOSTILE,
        dataset=HOSTILE,
        method=HOSTILE,
        command=HOSTILE,
        ids=ids,
        label_names=[HOSTILE] * 4,
        columns={HOSTILE: ids},
        data_notes=[HOSTILE],
        settings={HOSTILE: {HOSTILE: HOSTILE}},
        versions={HOSTILE: HOSTILE},
        scores={HOSTILE: {HOSTILE: figure(1.0)}, "controls": {HOSTILE: {HOSTILE: figure(1.0)}}},
        similarities={HOSTILE: run_record().similarities["u1-v0"]},
        affinity_weights={HOSTILE: {"counts": [1], "edges": [0, 1]}},
        metrics=[{"epoch": 1, "loss": 1.0, "terms": {HOSTILE: 1.0, "b": 0.0}, "ms": 1.0}],
    )
