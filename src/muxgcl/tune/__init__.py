"""Choosing settings: by labels of the development half, or without labels.

`search` runs trials, `measure` scores them, `space` says what is searched; `study` keeps them in a
file, `shared` in a storage of many workers. The command line (`muxgcl tune`) calls these.
"""

from muxgcl.tune.measure import ByLabels, ByLinks, ByStructure, Measure, measure_of
from muxgcl.tune.search import Outcome, best_of, tune
from muxgcl.tune.space import HOP_SPACE, SPACE
from muxgcl.tune.study import Tried

__all__ = [
    "HOP_SPACE",
    "SPACE",
    "ByLabels",
    "ByLinks",
    "ByStructure",
    "Measure",
    "Outcome",
    "Tried",
    "best_of",
    "measure_of",
    "tune",
]
