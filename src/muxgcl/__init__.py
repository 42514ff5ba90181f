"""Node embeddings by multiplex graph contrastive learning with soft negatives.

Estimators with scikit-learn's interface: `MuxGCL`, and `NodeEmbedder` for any method of `METHODS`.
Whole runs, as on the command line: `run`, `run_seeds`, and what works on their folders, `embed`,
`evaluate_run`, `predict_classes`, `predict_links`, `cluster_run`, `neighbours`, `score_links`,
`report_runs`, `run_info`, `export_onnx`; `RunOptions` and `LoadOptions` say how, an `Observer` or a
`Screen` shows how far it is. Graphs: `load` reads your own, `load_dataset` a known one by name. A
mistake in what is passed raises `UserError`.

Example:
    >>> from muxgcl import MuxGCL, load
    >>> graph = load([("ann", "bob"), ("bob", "cleo"), ("cleo", "ann"), ("cleo", "dan")])
    >>> MuxGCL(epochs=2, output_width=3, random_state=0).fit_transform(graph).shape
    (4, 3)
    >>> graph.ids.tolist()
    ['ann', 'bob', 'cleo', 'dan']
"""

import os
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
        predict_classes,
        predict_links,
        report_runs,
        run,
        run_info,
        run_seeds,
        score_links,
    )
    from muxgcl.app.screen import Screen
    from muxgcl.estimators import MuxGCL, NodeEmbedder
    from muxgcl.io.load import load
    from muxgcl.io.named import load_dataset
    from muxgcl.methods import METHODS

# read once, when torch is loaded: threads that spin while they wait for each other make an epoch
# many times slower where other programs use the cores too
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

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
    "predict_classes",
    "predict_links",
    "report_runs",
    "run",
    "run_info",
    "run_seeds",
    "score_links",
]

_HOMES = {  # of names that `muxgcl.app` itself does not have
    "METHODS": "muxgcl.methods",
    "MuxGCL": "muxgcl.estimators",
    "NodeEmbedder": "muxgcl.estimators",
    "Screen": "muxgcl.app.screen",
    "load": "muxgcl.io.load",
    "load_dataset": "muxgcl.io.named",
}


def __getattr__(name: str) -> Any:
    """A name when it is asked for: torch and scikit-learn take seconds to load."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "muxgcl.app")), name)


def __dir__() -> list[str]:
    """Every public name, for completion and `help`, loaded or not."""
    return sorted(__all__)
