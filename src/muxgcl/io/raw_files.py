"""The published raw files → tensors. They are hostile until proven otherwise.

Reading a file never runs code that the file names: Planetoid's pickles are read by `planetoid`, the
benchmark's arrays with pickle disabled. Every index is checked against what it points into, and
every size against the bytes that are there.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.io.npz import Npz
from muxgcl.io.planetoid import read_pickle
from muxgcl.io.registry import Dataset
from muxgcl.io.safety import TEXT_GROWTH, check_file, check_size
from muxgcl.tensors import Tensors

VALIDATION = 500  # nodes after the training nodes
Whole = NDArray[np.int64]


def read_raw(dataset: Dataset, folder: Path) -> Tensors:
    """Read the raw files of `dataset` in `folder`; edges may still be repeated or one-way."""
    try:
        if dataset.folder.startswith("Planetoid/"):
            return read_planetoid(folder, dataset.name)
        if dataset.name == "wikics":
            return read_wikics(folder / dataset.files[0])
        return read_benchmark(folder / dataset.files[0])
    except MemoryError:
        raise
    except Exception as fault:  # foreign bytes fail in ways that no list covers
        reason = " ".join(str(fault).split())[:300] or type(fault).__name__
        raise UserError(
            f"{folder}: the files of {dataset.name} cannot be read: {reason}"
        ) from fault


def read_planetoid(folder: Path, name: str) -> Tensors:
    """Read the eight files of Yang et al. 2016 (<https://arxiv.org/abs/1603.08861>).

    The first nodes are the training nodes, the next 500 the validation nodes. The test rows are
    stored apart and shuffled: row k of `tx` is node `test.index`[k]. Numbers that `test.index`
    skips (15 in CiteSeer) are nodes without features, and their label reads 0.
    """
    words = {part: _read(folder, name, part, csr_array) for part in ("allx", "tx")}
    marks = {part: _read(folder, name, part, np.ndarray) for part in ("ally", "ty", "y")}
    neighbours = _read(folder, name, "graph", dict)
    test = _whole_numbers(check_file(folder / f"ind.{name}.test.index"))

    nodes, known, trained = len(neighbours), words["allx"].shape[0], len(marks["y"])
    _expect(words["tx"].shape[1] == words["allx"].shape[1], "allx and tx have other columns")
    _expect(all(m.ndim == 2 and m.shape[1] for m in marks.values()), "labels are no table")
    _expect(marks["ty"].shape[1] == marks["ally"].shape[1], "ally and ty have other columns")
    _expect(known == len(marks["ally"]), "allx and ally have other rows")
    _expect(len(test) == words["tx"].shape[0] == len(marks["ty"]), "tx, ty and test.index differ")
    _expect(trained + VALIDATION <= nodes, f"there are {nodes} nodes")
    place = np.concatenate([np.arange(known), test])  # where each stored row belongs
    _expect(bool(((place >= 0) & (place < nodes)).all()), "test.index names a node that is not")
    _expect(len(np.unique(place)) == len(place), "test.index names a node twice")

    columns = words["allx"].shape[1]
    check_size(f"the features of {name}", 4 * nodes * columns)
    x = np.zeros((nodes, columns), dtype=np.float32)
    x[place] = vstack([words["allx"], words["tx"]]).toarray()
    _expect(bool(np.isfinite(x).all()), "features are not finite")
    y = np.zeros(nodes, dtype=np.int64)
    y[place] = np.concatenate([marks["ally"], marks["ty"]]).argmax(1)
    return Tensors(
        x=torch.from_numpy(x),
        y=torch.from_numpy(y),
        edge_index=_links(neighbours, nodes),
        train_mask=_mask(np.arange(trained), nodes),
        val_mask=_mask(np.arange(trained, trained + VALIDATION), nodes),
        test_mask=_mask(test, nodes),
    )


def _read(folder: Path, name: str, part: str, kind: type[Any]) -> Any:
    path = folder / f"ind.{name}.{part}"
    try:
        value = read_pickle(path)
    except UserError as fault:
        raise UserError(f"{path.name}: {fault}") from None
    _expect(isinstance(value, kind), f"{path.name} holds {type(value).__name__}")
    return value


def _whole_numbers(path: Path) -> Whole:
    return np.array([int(word[:20]) for word in path.read_text("ascii").split()], dtype=np.int64)


def _links(neighbours: dict[Any, Any], nodes: int) -> Tensor:
    """Node → its neighbours, all of them numbers from 0 to `nodes` - 1."""
    for node, others in neighbours.items():
        good = type(node) is int and 0 <= node < nodes and isinstance(others, list)
        _expect(good, f"the graph has a node {str(node)[:40]!r}")
        _expect(
            all(type(other) is int and 0 <= other < nodes for other in others),
            f"node {node} has a neighbour that is no node",
        )
    return _edge_index([(node, other) for node, others in neighbours.items() for other in others])


def read_benchmark(path: Path) -> Tensors:
    """Read the one file of Amazon's and Coauthor's graphs; words become 0 or 1.

    Shchur et al. 2018, <https://arxiv.org/abs/1811.05868>.
    """
    with Npz.open(path) as arrays:
        x, adjacency = arrays.sparse("attr_"), arrays.sparse("adj_")
        labels = arrays.read("labels")
    nodes, columns = x.shape
    _expect(adjacency.shape == (nodes, nodes), f"adj_shape is {adjacency.shape}")
    _expect(labels.shape == (nodes,) and labels.dtype.kind in "iu", "labels are not one a node")
    check_size(f"the features in {path}", 5 * nodes * columns)
    entries = adjacency.tocoo()
    edges = np.stack(entries.coords).astype(np.int64)
    return Tensors(
        x=torch.from_numpy((x.toarray() > 0).astype(np.float32)),
        y=torch.from_numpy(labels.astype(np.int64)),
        edge_index=torch.from_numpy(edges),
    )


def read_wikics(path: Path) -> Tensors:
    """Read WikiCS's one file; its twenty splits are left aside."""
    raw = json.loads(check_file(path, TEXT_GROWTH).read_bytes().decode())
    _expect(isinstance(raw, dict), "it is no table of names and values")
    for name in ("features", "labels", "links"):
        _expect(isinstance(raw.get(name), list), f"{name} is no list")
    x, y = np.asarray(raw["features"]), np.asarray(raw["labels"])
    _expect(x.ndim == 2 and x.dtype.kind in "if", "features are no table of numbers")
    _expect(bool(np.isfinite(x).all()), "features are not finite")
    nodes = len(x)
    _expect(y.shape == (nodes,) and y.dtype.kind == "i", "labels are not one whole number a node")
    _expect(len(raw["links"]) == nodes, "links are not one list a node")
    edges = _links(dict(enumerate(raw["links"])), nodes)
    return Tensors(x=torch.from_numpy(x).float(), y=torch.from_numpy(y).long(), edge_index=edges)


def _expect(good: bool, otherwise: str) -> None:
    if not good:
        raise UserError(otherwise)


def _mask(chosen: Whole, nodes: int) -> Tensor:
    mask = torch.zeros(nodes, dtype=torch.bool)
    mask[torch.from_numpy(chosen)] = True
    return mask


def _edge_index(edges: list[tuple[int, int]]) -> Tensor:
    return torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T.contiguous()
