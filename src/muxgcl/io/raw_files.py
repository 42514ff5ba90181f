"""The published raw files → tensors. Reading a file never runs code that the file names."""

import json
import pickle
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.io.registry import Dataset
from muxgcl.tensors import Tensors

_MALFORMED = (  # what a truncated or foreign file raises in the readers below
    OSError,
    ValueError,
    LookupError,
    EOFError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
)


def read_raw(dataset: Dataset, folder: Path) -> Tensors:
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
            return read_benchmark(arrays)
    except _MALFORMED as fault:
        raise UserError(f"{folder}: the files of {dataset.name} cannot be read: {fault}") from fault


def read_planetoid(folder: Path, name: str) -> Tensors:
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
    return Tensors(
        x=torch.from_numpy(x),
        y=torch.from_numpy(y),
        edge_index=_edge_index(edges),
        train_mask=_mask(np.arange(trained), nodes),
        val_mask=_mask(np.arange(trained, trained + 500), nodes),
        test_mask=_mask(test, nodes),
    )


def read_benchmark(arrays: Mapping[str, Any]) -> Tensors:
    """Read the one file of Amazon's and Coauthor's graphs; words become 0 or 1.

    Shchur et al. 2018, <https://arxiv.org/abs/1811.05868>.
    """
    x, adjacency = (
        csr_matrix(
            (arrays[f"{k}_data"], arrays[f"{k}_indices"], arrays[f"{k}_indptr"]), shape=shape
        )
        for k, shape in ((k, tuple(arrays[f"{k}_shape"])) for k in ("attr", "adj"))
    )
    entries = adjacency.tocoo()
    edges = np.stack([entries.row, entries.col]).astype(np.int64)
    return Tensors(
        x=torch.from_numpy((x.toarray() > 0).astype(np.float32)),
        y=torch.from_numpy(np.asarray(arrays["labels"]).astype(np.int64)),
        edge_index=torch.from_numpy(edges),
    )


def read_wikics(path: Path) -> Tensors:
    """Read WikiCS's one file; its twenty splits are left aside."""
    raw = json.loads(path.read_text())
    edges = [(node, other) for node, others in enumerate(raw["links"]) for other in others]
    x = torch.tensor(raw["features"], dtype=torch.float32)
    return Tensors(x=x, y=torch.tensor(raw["labels"]), edge_index=_edge_index(edges))


def _mask(chosen: NDArray[np.int64], nodes: int) -> Tensor:
    mask = torch.zeros(nodes, dtype=torch.bool)
    mask[torch.from_numpy(chosen)] = True
    return mask


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
