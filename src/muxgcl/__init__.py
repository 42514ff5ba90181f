"""Node embeddings by multiplex graph contrastive learning with soft negatives."""

from typing import TYPE_CHECKING, Any

from muxgcl.errors import UserError
from muxgcl.io import load_dataset
from muxgcl.io.load import load
from muxgcl.methods import METHODS

if TYPE_CHECKING:
    from muxgcl.estimators import MuxGCL, NodeEmbedder

__version__ = "0.1.0"  # the build reads it from here

__all__ = ["METHODS", "MuxGCL", "NodeEmbedder", "UserError", "__version__", "load", "load_dataset"]


def __getattr__(name: str) -> Any:
    """The estimators, when they are asked for: scikit-learn takes seconds to load."""
    if name not in ("MuxGCL", "NodeEmbedder"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from muxgcl import estimators

    return getattr(estimators, name)
