"""The published raw files → `Data`. Reading a file never runs code that the file names."""

import json
import pickle
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, vstack
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.io.npz import parse_npz
from torch_geometric.utils import index_to_mask

from muxgcl.datasets.registry import Dataset
from muxgcl.errors import UserError

_MALFORMED = (  # what a truncated or foreign file raises in the readers below
    OSError,
    ValueError,
    LookupError,
    EOFError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
)


def read_raw(dataset: Dataset, folder: Path) -> Data:
    """Read the raw files of `dataset` in `folder`; edges may still be repeated or one-way."""
    try:
        if dataset.folder.startswith("Planetoid/"):
            return read_planetoid(folder, dataset.name)
        if dataset.name == "wikics":
            return read_wikics(folder / dataset.files[0])
        with (
            (folder / dataset.files[0]).open("rb") as file,
            np.load(file, allow_pickle=False) as arrays,
        ):
            return parse_npz(arrays)
    except _MALFORMED as fault:
        raise UserError(f"{folder}: the files of {dataset.name} cannot be read: {fault}") from fault


def read_planetoid(folder: Path, name: str) -> Data:
    """Read the eight files of Yang et al. 2016 (<https://arxiv.org/abs/1603.08861>).

    The first nodes are the training nodes, the next 500 the validation nodes. The test rows are
    stored apart and shuffled: row k of `tx` is node `test.index`[k]. Numbers that `test.index`
    skips (15 in CiteSeer) are nodes without features, and their label reads 0.
    """
    parts = {
        part: _unpickle(folder / f"ind.{name}.{part}") for part in ("allx", "tx", "ally", "ty")
    }
    neighbours = _unpickle(folder / f"ind.{name}.graph")
    trained = len(_unpickle(folder / f"ind.{name}.y"))
    test = np.loadtxt(folder / f"ind.{name}.test.index", dtype=np.int64)

    nodes, known = len(neighbours), parts["allx"].shape[0]
    place = np.concatenate([np.arange(known), test])  # where each stored row belongs
    x = np.zeros((nodes, parts["allx"].shape[1]), dtype=np.float32)
    x[place] = vstack([parts["allx"], parts["tx"]]).toarray()
    y = np.zeros(nodes, dtype=np.int64)
    y[place] = np.concatenate([parts["ally"], parts["ty"]]).argmax(1)
    edges = [(node, other) for node, others in neighbours.items() for other in others]
    return Data(
        x=torch.from_numpy(x),
        y=torch.from_numpy(y),
        edge_index=_edge_index(edges),
        train_mask=index_to_mask(torch.arange(trained), size=nodes),
        val_mask=index_to_mask(torch.arange(trained, trained + 500), size=nodes),
        test_mask=index_to_mask(torch.from_numpy(test), size=nodes),
    )


def read_wikics(path: Path) -> Data:
    """Read WikiCS's one file; its twenty splits are left aside."""
    raw = json.loads(path.read_text())
    edges = [(node, other) for node, others in enumerate(raw["links"]) for other in others]
    x = torch.tensor(raw["features"], dtype=torch.float32)
    return Data(x=x, y=torch.tensor(raw["labels"]), edge_index=_edge_index(edges))


def _edge_index(edges: list[tuple[int, int]]) -> Tensor:
    return torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T.contiguous()


class _StoredMatrix:
    """Takes the place of `csr_matrix` while unpickling, so that no scipy code runs on raw state."""

    data: Any
    indices: Any
    indptr: Any
    _shape: tuple[int, int]

    def matrix(self) -> csr_matrix:
        return csr_matrix((self.data, self.indices, self.indptr), shape=self._shape)


class _ArraysOnly(pickle.Unpickler):
    """Unpickles arrays, sparse matrices, lists and dicts, and refuses everything else."""

    _known = {  # noqa: RUF012 - read only
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("scipy.sparse.csr", "csr_matrix"): _StoredMatrix,
        ("collections", "defaultdict"): defaultdict,
        ("__builtin__", "list"): list,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._known:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no data file needs")
        return self._known[module, name]


def _unpickle(path: Path) -> Any:
    with path.open("rb") as file:
        value = _ArraysOnly(file, encoding="latin1").load()
    return value.matrix() if isinstance(value, _StoredMatrix) else value
