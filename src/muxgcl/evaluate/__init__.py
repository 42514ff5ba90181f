"""How good an embedding is: linear probe, clustering, link prediction, controls, statistics.

Arrays go in, scores come out; nothing here knows a run, a method or a file. `runs`, `report`,
`tune` and `reproduce` call these, and so may anybody with embeddings of their own.
"""

from muxgcl.evaluate.classes import Classified, classify
from muxgcl.evaluate.clustering import ClusteringResult, assign, cluster, compare
from muxgcl.evaluate.controls import feature_controls, majority, raw_features
from muxgcl.evaluate.development import development_half, development_hash, report_half
from muxgcl.evaluate.link import HiddenEdges, hide_edges, link_prediction
from muxgcl.evaluate.probe import STRENGTHS, ProbeResult, probe
from muxgcl.evaluate.protocols import PaperProtocol, PaperResult, holdout
from muxgcl.evaluate.splits import (
    Split,
    check_parts,
    development_splits,
    holdout_splits,
    nodes_in,
    public_splits,
    random_split,
    reindexed,
    subsampled,
)
from muxgcl.evaluate.statistics import Difference, Summary, paired_difference, summarise
from muxgcl.evaluate.unlabelled import Structure, structure
from muxgcl.evaluate.verdict import Verdict, verdict

__all__ = [
    "STRENGTHS",
    "Classified",
    "ClusteringResult",
    "Difference",
    "HiddenEdges",
    "PaperProtocol",
    "PaperResult",
    "ProbeResult",
    "Split",
    "Structure",
    "Summary",
    "Verdict",
    "assign",
    "check_parts",
    "classify",
    "cluster",
    "compare",
    "development_half",
    "development_hash",
    "development_splits",
    "feature_controls",
    "hide_edges",
    "holdout",
    "holdout_splits",
    "link_prediction",
    "majority",
    "nodes_in",
    "paired_difference",
    "probe",
    "public_splits",
    "random_split",
    "raw_features",
    "reindexed",
    "report_half",
    "structure",
    "subsampled",
    "summarise",
    "verdict",
]
