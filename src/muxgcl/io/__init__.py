"""Known graphs by name, and generated ones for tests and examples."""

from muxgcl.io.named import at_hand, data_root, load_dataset, open_dataset
from muxgcl.io.planted import planted
from muxgcl.io.registry import DATASETS, Dataset

__all__ = [
    "DATASETS",
    "Dataset",
    "at_hand",
    "data_root",
    "load_dataset",
    "open_dataset",
    "planted",
]
