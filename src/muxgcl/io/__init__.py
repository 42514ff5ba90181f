"""Files in and out: graphs in many formats, datasets by name, tables of embeddings.

`load` reads a graph: `sources` picks the reader of a format, `assemble` applies the same rules to
all of them. `named` finds datasets, `save` writes tables, `files` writes atomically.
"""

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
