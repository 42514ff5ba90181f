"""Node embeddings by multiplex graph contrastive learning with soft negatives."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from muxgcl.errors import UserError
from muxgcl.io import load_dataset
from muxgcl.io.load import load
from muxgcl.methods import METHODS

if TYPE_CHECKING:
    from muxgcl.app import (
        LoadOptions,
        Observer,
        Result,
        RunOptions,
        cluster_run,
        embed,
        evaluate_run,
        neighbours,
        predict_links,
        report_runs,
        run,
        run_info,
        run_seeds,
        score_links,
    )
    from muxgcl.estimators import MuxGCL, NodeEmbedder

__version__ = "0.1.0"  # the build reads it from here

__all__ = [
    "METHODS",
    "LoadOptions",
    "MuxGCL",
    "NodeEmbedder",
    "Observer",
    "Result",
    "RunOptions",
    "UserError",
    "__version__",
    "cluster_run",
    "embed",
    "evaluate_run",
    "load",
    "load_dataset",
    "neighbours",
    "predict_links",
    "report_runs",
    "run",
    "run_info",
    "run_seeds",
    "score_links",
]

_ESTIMATORS = ("MuxGCL", "NodeEmbedder")


def __getattr__(name: str) -> Any:
    """Estimators and whole runs, when they are asked for: what they need takes time to load."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = "muxgcl.estimators" if name in _ESTIMATORS else "muxgcl.app"
    return getattr(import_module(room), name)
