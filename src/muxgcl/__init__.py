"""Node embeddings by multiplex graph contrastive learning with soft negatives."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from muxgcl.errors import UserError

if TYPE_CHECKING:
    from muxgcl.app import (
        LoadOptions,
        Observer,
        Result,
        RunOptions,
        cluster_run,
        embed,
        evaluate_run,
        export_onnx,
        neighbours,
        predict_links,
        report_runs,
        run,
        run_info,
        run_seeds,
        score_links,
    )
    from muxgcl.cli.screen import Screen
    from muxgcl.estimators import MuxGCL, NodeEmbedder
    from muxgcl.io.load import load
    from muxgcl.io.named import load_dataset
    from muxgcl.methods import METHODS

__version__ = "0.1.0"  # the build reads it from here

__all__ = [
    "METHODS",
    "LoadOptions",
    "MuxGCL",
    "NodeEmbedder",
    "Observer",
    "Result",
    "RunOptions",
    "Screen",
    "UserError",
    "__version__",
    "cluster_run",
    "embed",
    "evaluate_run",
    "export_onnx",
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

_HOMES = {
    "METHODS": "muxgcl.methods",
    "MuxGCL": "muxgcl.estimators",
    "NodeEmbedder": "muxgcl.estimators",
    "Screen": "muxgcl.cli.screen",
    "load": "muxgcl.io.load",
    "load_dataset": "muxgcl.io.named",
    **dict.fromkeys(
        (
            "LoadOptions",
            "Observer",
            "Result",
            "RunOptions",
            "cluster_run",
            "embed",
            "evaluate_run",
            "export_onnx",
            "neighbours",
            "predict_links",
            "report_runs",
            "run",
            "run_info",
            "run_seeds",
            "score_links",
        ),
        "muxgcl.app",
    ),
}


def __getattr__(name: str) -> Any:
    """A name when it is asked for: torch and scikit-learn take seconds to load."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
