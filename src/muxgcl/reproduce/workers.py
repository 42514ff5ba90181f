"""Scoring beside training: the probe and k-means want a CPU, training wants the GPU."""

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from typing import Any, Self

import numpy as np
from joblib import cpu_count
from threadpoolctl import threadpool_limits

from muxgcl.evaluate import PaperProtocol, cluster, compare, development_hash, holdout
from muxgcl.evaluate.development import report_labels
from muxgcl.shapes import Array

AHEAD = 3  # pieces of work a worker that may wait: embeddings take memory


class ScoringPool:
    """A pool of processes; with none of them, work is done at once in this one."""

    def __init__(self, count: int) -> None:
        cores = max(1, cpu_count() // max(count, 1))
        self.most = AHEAD * count
        self.pool: Executor | None = None
        self.waiting: set[Future[Any]] = set()
        if count:
            spawn = multiprocessing.get_context("spawn")  # a fork would inherit the GPU
            self.pool = ProcessPoolExecutor(count, spawn, _set_up, (cores,))

    def submit(self, work: Callable[..., Any], *given: Any) -> Future[Any]:
        """Hand work over; where too much is waiting already, wait for some of it first."""
        if self.pool is None:
            done: Future[Any] = Future()
            done.set_result(work(*given))
            return done
        self.waiting = {future for future in self.waiting if not future.done()}
        while len(self.waiting) >= self.most:
            _, self.waiting = wait(self.waiting, return_when=FIRST_COMPLETED)
        try:
            future = self.pool.submit(work, *given)
        except BrokenExecutor:  # a worker was killed, for its memory perhaps: go on without them
            self.pool = None
            return self.submit(work, *given)
        self.waiting.add(future)
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)


def _set_up(cores: int) -> None:
    """Set a worker up: it uses its share of the cores, and ends when its parent does."""
    os.environ["LOKY_MAX_CPU_COUNT"] = str(cores)  # what joblib takes for all cores
    threadpool_limits(cores)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def score_splits(
    z: Any, y: Array, splits: int, seed: int, protocol: str, device: str | None = None
) -> dict[str, Any]:
    """The linear probe on fixed splits that all methods share."""
    everywhere = protocol == "holdout-all"
    result = holdout(z, y, count=splits, seed=seed, everywhere=everywhere, device=device)
    found = result.to_record()
    names = ("accuracy", "macro_f1") if everywhere else ("accuracy", "macro_f1", "everywhere")
    return {name: found[name] for name in names} | {"development": development_hash(y)}


def score_clusters(z: Any, y: Array, seed: int, protocol: str) -> dict[str, Any]:
    """One run of k-means against the classes: of the report half, or of all nodes."""
    count = len(np.unique(y[y >= 0]))
    judged = y if protocol == "holdout-all" else report_labels(y)
    found = cluster(z, judged, clusters=count, repeats=1, seed=seed)
    return {"nmi": list(found.nmi_scores), "ari": list(found.ari_scores)}


def score_assignment(groups: Array, y: Array, protocol: str) -> dict[str, Any]:
    """Clusters that a method has of its own, against the same classes."""
    found = compare([groups], y if protocol == "holdout-all" else report_labels(y))
    return {"own_nmi": list(found.nmi_scores), "own_ari": list(found.ari_scores)}


def score_epoch(z: Array, y: Array, seed: int, epoch: int) -> dict[str, Any]:
    """Protocol `paper` at one epoch: test accuracies on its fresh splits."""
    return {"epochs": {str(epoch): list(PaperProtocol(y, seed=seed).observe(epoch, z))}}
