"""Time of the linear probe at the size of Amazon-Computers, beside plain scikit-learn.

Prints one JSON line. Run: python benchmarks/probe.py [--splits 20]

`seconds` is the wall clock of all splits on all cores. The comparison on one split gives both sides
one BLAS thread and counts CPU seconds: with more threads, a busy machine slows scikit-learn several
times over, and the ratio would tell of the machine. scikit-learn appears twice, as it comes
(lbfgs, which stops early at tol 1e-4) and run to convergence, which is what the probe computes.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from typing import TypeVar

import joblib
import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from muxgcl.evaluate import STRENGTHS, Split, holdout_splits, probe

NODES, WIDTH, CLASSES = 13_752, 256, 10
T = TypeVar("T")


def embedding(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping clusters with a spectrum that falls off, as a trained encoder's does."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, NODES)
    z = 0.2 * rng.normal(size=(CLASSES, WIDTH))[y] + rng.normal(size=(NODES, WIDTH))
    return (z / np.sqrt(np.arange(1, WIDTH + 1))).astype(np.float32), y


def grid_search(
    z: np.ndarray, y: np.ndarray, split: Split, solver: str, tol: float
) -> tuple[float, float]:
    """C chosen on val, then accuracy on test of its model, fitted on train."""
    z = normalize(z.astype(np.float64))
    nodes = np.concatenate([split.train, split.val])
    fold = PredefinedSplit(np.repeat([-1, 0], [len(split.train), len(split.val)]))
    model = OneVsRestClassifier(LogisticRegression(solver=solver, tol=tol, max_iter=1000))
    search = GridSearchCV(model, {"estimator__C": STRENGTHS}, cv=fold, refit=False)
    search.fit(z[nodes], y[nodes])
    model.set_params(**search.best_params_).fit(z[split.train], y[split.train])
    return search.best_params_["estimator__C"], 100 * model.score(z[split.test], y[split.test])


def cpu_seconds(work: Callable[[], T]) -> tuple[float, T]:
    with threadpool_limits(limits=1, user_api="blas"):
        start = time.process_time()
        result = work()
        return time.process_time() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    count = parser.parse_args().splits
    z, y = embedding()
    splits = holdout_splits(y, count)
    load = os.getloadavg()[0]
    start = time.perf_counter()
    result = probe(z, y, splits)
    seconds = time.perf_counter() - start

    ours, _ = cpu_seconds(lambda: probe(z, y, splits[:1]))
    first = result.splits[0]
    one_split = {
        "probe": {"cpu_seconds": round(ours, 2), "C": first.strength, "accuracy": first.accuracy}
    }
    for name, solver, tol in (
        ("GridSearchCV as it comes", "lbfgs", 1e-4),
        ("GridSearchCV converged", "newton-cholesky", 1e-8),
    ):
        theirs, (strength, accuracy) = cpu_seconds(
            lambda solver=solver, tol=tol: grid_search(z, y, splits[0], solver, tol)
        )
        one_split[name] = {
            "cpu_seconds": round(theirs, 2),
            "ratio": round(theirs / ours, 1),
            "C": strength,
            "accuracy": accuracy,
        }
    record = {
        "nodes": NODES,
        "width": WIDTH,
        "classes": CLASSES,
        "strengths": len(STRENGTHS),
        "splits": count,
        "cores": joblib.cpu_count(),
        "load_before": round(load, 2),
        "machine": platform.processor() or platform.machine(),
        "scikit-learn": sklearn.__version__,
        "seconds": round(seconds, 2),
        "accuracy": result.accuracy.to_dict(),
        "one_split": one_split,
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
