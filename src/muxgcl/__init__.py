"""Node embeddings by multiplex graph contrastive learning with soft negatives."""

from muxgcl.datasets import load_dataset
from muxgcl.errors import UserError
from muxgcl.estimators import MuxGCL, NodeEmbedder
from muxgcl.load import load  # hides the module of that name, which stays importable from
from muxgcl.methods import METHODS

__version__ = "0.1.0"  # the build reads it from here

__all__ = ["METHODS", "MuxGCL", "NodeEmbedder", "UserError", "__version__", "load", "load_dataset"]
