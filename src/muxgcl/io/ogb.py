"""A graph in a folder as the Open Graph Benchmark unpacks it: ogbn-arxiv, -products, -papers100M.

raw/edge.csv.gz           one edge a line: source, target
raw/node-feat.csv.gz      one line of numbers a node
raw/node-label.csv.gz     the class of each node; nan for none
raw/num-node-list.csv.gz  how many nodes there are
split/NAME/train.csv.gz   the public split, and valid and test beside it: one node a line

The largest graphs have raw/data.npz (`edge_index`, `node_feat`, `num_nodes_list`) and
raw/node-label.npz (`node_label`) instead. Layout: Hu et al. 2020, <https://arxiv.org/abs/2005.00687>.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.io.edges import EdgeList
from muxgcl.io.matrices import nodes_in_order
from muxgcl.io.nodes import NodeTable
from muxgcl.io.npz import Npz
from muxgcl.io.objects import read_edge_index
from muxgcl.io.safety import TEXT_GROWTH, check_file, check_size, parsing
from muxgcl.shapes import Array

TEXT = 1 << 22  # characters that are parsed at a time, and a line more
LONGEST = 1 << 20  # characters of a line
MOST_CLASSES = 1 << 31
PARTS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}


def is_ogb_folder(path: Path) -> bool:
    """Whether a folder is one of these."""
    raw = path / "raw"
    text = (raw / "edge.csv.gz").is_file() and (raw / "num-node-list.csv.gz").is_file()
    return text or ((raw / "data.npz").is_file() and (raw / "node-label.npz").is_file())


def read_ogb_folder(folder: Path) -> tuple[EdgeList, NodeTable, dict[str, Tensor]]:
    """Edges, nodes and, where there is a split, its masks."""
    raw = folder / "raw"
    if (raw / "data.npz").is_file():
        edges, features, labels, nodes = _arrays(raw)
    else:
        edges = _numbers(raw / "edge.csv.gz", np.int64).T
        nodes = int(_numbers(raw / "num-node-list.csv.gz", np.int64).sum())
        features = _numbers(raw / "node-feat.csv.gz", np.float32)
        labels = _numbers(raw / "node-label.csv.gz", np.float64)
    if edges.ndim != 2 or len(edges) != 2:
        raise UserError(f"{raw}: expected two nodes an edge, got a table of {list(edges.shape)}")
    if features.ndim != 2 or labels.ndim not in (1, 2):
        raise UserError(
            f"{raw}: expected a table of features and a list of labels, "
            f"got shapes {list(features.shape)} and {list(labels.shape)}"
        )
    if len(features) != nodes or len(labels) != nodes:
        raise UserError(
            f"{raw}: expected {nodes:,} nodes, got {len(features):,} rows of features and "
            f"{len(labels):,} labels"
        )
    if labels.ndim == 2 and labels.shape[1] != 1:
        raise UserError(
            f"{raw}: expected one class a node, got {labels.shape[1]} "
            "(a graph of many tasks, such as ogbn-proteins, has no classes)"
        )
    labels = labels.reshape(nodes)
    known = ~np.isnan(labels)
    whole = (labels >= -1) & (labels < MOST_CLASSES) & (labels == np.floor(labels))
    if len(odd := np.flatnonzero(known & ~whole)):
        row = int(odd[0])
        raise UserError(
            f"{raw}, label {row:,}: expected the number of a class, or nan, got {labels[row]:g}"
        )
    classes = np.where(known, labels, -1).astype(np.int64)
    table = nodes_in_order(str(raw), features, labels=classes)
    return read_edge_index(edges), table, _split(folder, nodes)


def _arrays(raw: Path) -> tuple[Array, Array, Array, int]:
    with Npz.open(raw / "data.npz") as arrays:
        nodes = int(arrays.read("num_nodes_list").sum())
        edges, features = arrays.read("edge_index"), arrays.read("node_feat")
    with Npz.open(raw / "node-label.npz") as arrays:
        labels = arrays.read("node_label")
    if labels.dtype.kind not in "iuf" or features.dtype.kind not in "iuf":
        raise UserError(f"{raw}: expected numbers, got {features.dtype} and {labels.dtype}")
    return edges, features, labels.astype(np.float64), nodes


def _split(folder: Path, nodes: int) -> dict[str, Tensor]:
    """The masks of the one split that the folder has."""
    with parsing(folder, "a folder"):
        found = sorted(path.parent for path in folder.glob("split/*/train.csv.gz"))
    if not found:
        return {}
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise UserError(f"{folder / 'split'} holds {names}; keep one")
    masks = {}
    for part, mask in PARTS.items():
        path = found[0] / f"{part}.csv.gz"
        rows = _numbers(path, np.int64).reshape(-1)
        if len(odd := rows[(rows < 0) | (rows >= nodes)]):
            raise UserError(f"{path}: expected nodes 0 to {nodes - 1}, got {odd[0]}")
        masks[mask] = torch.zeros(nodes, dtype=torch.bool)
        masks[mask][torch.from_numpy(rows)] = True
    return masks


def _numbers(path: Path, kind: type[np.generic]) -> Array:
    """A compressed table of numbers, parsed some lines at a time."""
    check_file(path)
    blocks: list[Array] = []
    held = 0
    with (
        parsing(path, "compressed lines of numbers"),
        gzip.open(path, "rt", encoding="ascii") as file,
    ):
        for lines in _some_lines(file, path):
            check_size(str(path), 2 * held + TEXT_GROWTH * sum(map(len, lines)))
            blocks.append(np.loadtxt(lines, kind, delimiter=",", ndmin=2, comments=None))
            held += blocks[-1].nbytes
        if len({block.shape[1] for block in blocks}) > 1:
            raise UserError(f"{path} has lines of different lengths")
    return np.concatenate(blocks) if blocks else np.zeros((0, 1), kind)


def _some_lines(file: IO[str], path: Path) -> Iterator[list[str]]:
    """Lines of a length that a table may have, some at a time; empty ones are left out."""
    some: list[str] = []
    size = 0
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise UserError(f"{path} has a line of more than {LONGEST:,} characters")
        if line.strip():
            some.append(line)
            size += len(line)
        if size >= TEXT:
            yield some
            some, size = [], 0
    if some:
        yield some
