"""Made-up records: scores that a reader can follow, for every job of a scope."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.reproduce.artefacts import ARTEFACTS, Scope, plan
from muxgcl.reproduce.check import HALVES
from muxgcl.reproduce.hops import FIRST_SEED
from muxgcl.reproduce.job import (
    BESIDE,
    BOUNDS,
    COMMITTEE,
    CONTROLS,
    SIMILARITIES,
    SOFT_NEGATIVES,
    Job,
)
from muxgcl.reproduce.records import Record, RecordStore, make_record
from muxgcl.reproduce.training import epochs_to_look_at

FACTS: dict[str, Any] = {
    "epoch_ms": 12.5,
    "peak_mib": 340.0,
    "seconds": 4.0,
    "device": "test device",
    "backend": "chunked",
    "versions": {"python": "3"},
    "commit": "none",
}
SMALL = Scope(
    datasets=("cora", "photo"),
    methods=("raw", "sgc", "dgi", "grace", "mux-gcl", "mux-hop"),
    seeds=2,
    splits=3,
)
LEVEL = {"raw": 64.0, "sgc": 82.0, "dgi": 82.0, "grace": 83.0, "mux-gcl": 84.0, "mux-hop": 86.0}
LEVEL |= {"cca-ssg": 82.0}
GAIN = {
    "full": 0.0,
    "neither": -1.0,
    "pae": -0.5,
    "mpc": -0.25,
    "vgae": 0.125,
    "script": -2.0,
    "literal": 0.0,
    "auto": -0.125,
    "sampled": -0.375,
    "no-affinity": -0.25,
    "no-multiplex": -0.5,
    "inside": -0.75,
    "no-dropout": -1.0,
    "columns": -1.5,
}
READ = {"preset": 0.0, "last": -0.5, "all": -0.25}  # of one training
UNTRAINED = {"raw": 0.0, "A X": 16.0, "A^2 X": 18.0, "X|AX|A^2X": 17.0}


def tables_of(job: Job) -> dict[str, Any]:
    level = LEVEL[job.method] + GAIN[job.variant] + 0.25 * (job.seed - FIRST_SEED)
    if job.kind == COMMITTEE:
        level += 0.5
    read = UNTRAINED if job.kind == CONTROLS else READ
    if job.kind == COMMITTEE or job.variant != "full":
        read = {"preset": 0.0}
    if job.kind == BESIDE:
        read = {"preset": 0.125, "features": 1.125}
    tables: dict[str, Any] = {}
    for name, more in read.items():
        tables[name] = {"accuracy": [level + more + 0.5 * split for split in range(job.splits)]}
        if job.repeats and (name == "preset" or job.kind == CONTROLS):
            tables[name] |= {"nmi": [0.5, 0.625], "ari": [0.25, 0.375]}
    return {"tables": tables, "development": HALVES[job.dataset]}


def result_of(job: Job) -> dict[str, Any]:
    if job.file == "hops":
        return tables_of(job)
    level = LEVEL[job.method] + GAIN[job.variant] + 0.25 * job.seed
    if job.kind == SIMILARITIES:
        found = {"edges": [-1.0, 0.0, 1.0], "positive": [1, 9], "negative": [8, 2], "auc": 0.875}
        pairs = {f"u{m}-v{n}": found for m in range(2) for n in range(2)}
        return {"points": [{"epoch": epoch, "pairs": pairs} for epoch in looks_of(job)]}
    if job.kind == SOFT_NEGATIVES:
        above = 0.71 if job.variant == "literal" else 0.31
        return {"points": [soft_negative_point(epoch, above) for epoch in looks_of(job)]}
    if job.kind == BOUNDS:
        gain = -0.75 if job.variant == "literal" else 0.0
        values = {"l_mpc": -6.5, "l_mux": -6.0 + gain, "i_nce": 2.0, "log_n": 7.9}
        return {"points": [{"epoch": e, "l_gr": -6.5 - 50 / e, **values} for e in looks_of(job)]}
    if job.protocol == "paper":
        return {"epochs": {"299": [level, level + 1, level], "300": [level + 1, level + 2, level]}}
    scores = [level + 0.5 * split for split in range(job.splits)]
    clusters = {"nmi": [0.5, 0.625], "ari": [0.25, 0.375]} if job.repeats else {}
    half = {"everywhere": scores, "development": HALVES[job.dataset]}
    return {"accuracy": scores, "macro_f1": scores, **half, **clusters}


def looks_of(job: Job) -> list[int]:
    return epochs_to_look_at(job.plan().train.epochs)


def soft_negative_point(epoch: int, above: float) -> dict[str, Any]:
    shape = {"mean": -0.5, "std": 1.0, "above_zero": above, "low": -2.5, "high": 1.5}
    found = {**shape, "distance": 0.02}
    if epoch == 300:
        found |= {"edges": np.linspace(-3, 2, 6).tolist(), "counts": [1, 4, 6, 4, 1]}
    keys = [f"{w}{k} {r}" for k in range(2) for w in "DS" for r in ("printed", "tempered")]
    return {"epoch": epoch, "pairs": {key: found for key in keys}}


def record_of(job: Job, **changes: Any) -> Record:
    return make_record(job, result_of(job), **(FACTS | changes))


def fill(folder: Path, jobs: Iterable[Job] | None = None) -> RecordStore:
    store = RecordStore(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for job in plan(ARTEFACTS, SMALL) if jobs is None else jobs:
        store.append(job.file, record_of(job))
    return store
