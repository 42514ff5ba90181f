"""Known graphs by name, and generated ones for tests and examples."""

from muxgcl.datasets.load import at_hand, data_root, load_dataset, open_dataset
from muxgcl.datasets.planted import planted
from muxgcl.datasets.registry import DATASETS, Dataset

__all__ = [
    "DATASETS",
    "Dataset",
    "at_hand",
    "data_root",
    "load_dataset",
    "open_dataset",
    "planted",
]
