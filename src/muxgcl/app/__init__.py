"""Whole runs, for Python and the command line alike: options, run folder, scores, report.

`pipeline` trains and judges, `embed_run`, `use` and `describe` work on finished run folders; `cli`
only parses and prints.
"""

from muxgcl.app.budget import Budget
from muxgcl.app.classes import PredictedClasses, predict_classes
from muxgcl.app.describe import report_runs, run_info
from muxgcl.app.embed_run import Embedded, embed
from muxgcl.app.export import export_onnx
from muxgcl.app.observer import Observer
from muxgcl.app.options import LoadOptions, RunOptions
from muxgcl.app.pipeline import dry_run, run, run_seeds
from muxgcl.app.result import Result, SeedsResult
from muxgcl.app.similar import ScoredLinks, neighbours, score_links
from muxgcl.app.use import Evaluated, cluster_run, evaluate_run, predict_links

__all__ = [
    "Budget",
    "Embedded",
    "Evaluated",
    "LoadOptions",
    "Observer",
    "PredictedClasses",
    "Result",
    "RunOptions",
    "ScoredLinks",
    "SeedsResult",
    "cluster_run",
    "dry_run",
    "embed",
    "evaluate_run",
    "export_onnx",
    "neighbours",
    "predict_classes",
    "predict_links",
    "report_runs",
    "run",
    "run_info",
    "run_seeds",
    "score_links",
]
