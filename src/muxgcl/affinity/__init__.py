"""Patch affinity: where patches lie in the graph, as one unit table a scale.

The parts serve the methods DeepWalk, Node2Vec, GAE and VGAE too.
"""

from muxgcl.affinity.autoencoder import Vgae
from muxgcl.affinity.config import AffinityConfig
from muxgcl.affinity.estimate import patches
from muxgcl.affinity.pooling import Pooling, pool
from muxgcl.affinity.skipgram import SkipGram, skip_gram
from muxgcl.affinity.walks import WalkGraph, walks

__all__ = [
    "AffinityConfig",
    "Pooling",
    "SkipGram",
    "Vgae",
    "WalkGraph",
    "patches",
    "pool",
    "skip_gram",
    "walks",
]
