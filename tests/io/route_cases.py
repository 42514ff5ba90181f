"""One small graph, and ways to write it: what the routes into `load` are compared on."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from muxgcl.io.load import Loaded

NODES, EDGES = 14, 30
MISSING_LABEL, ISOLATED = 3, 9


@dataclass
class Truth:
    """A small graph: node 9 has no edge, node 3 no label; `plain` has ids 0, 1, ... and numbers."""

    edges: pd.DataFrame
    nodes: pd.DataFrame

    @property
    def x(self) -> np.ndarray:
        return self.nodes[["age", "flag", "height"]].to_numpy(np.float32)

    @property
    def y(self) -> np.ndarray:
        return self.nodes["class"].fillna(-1).to_numpy(np.int64)

    @property
    def edge_index(self) -> np.ndarray:
        return self.edges[["source", "target"]].to_numpy(np.int64).T.copy()

    @property
    def adjacency(self) -> sp.csr_array:
        weight = self.edges["weight"] if "weight" in self.edges else np.ones(len(self.edges))
        ends = self.edge_index
        return sp.coo_array((weight, (ends[0], ends[1])), shape=(NODES, NODES)).tocsr()

    def network(self) -> nx.DiGraph:
        graph = nx.DiGraph()
        for row in self.nodes.to_dict("records"):
            known = {key: value for key, value in row.items() if not pd.isna(value)}
            graph.add_node(known.pop("id"), **known)
        for row in self.edges.to_dict("records"):
            graph.add_edge(row.pop("source"), row.pop("target"), **row)
        return graph


def numbered(*, weighted: bool) -> Truth:
    """Ids 0, 1, ... in order, and numeric columns only: what every route can carry."""
    chance = np.random.default_rng(0)
    pairs = [
        (a, b) for a in range(NODES) for b in range(NODES) if ISOLATED not in (a, b) and a != b
    ]
    chosen = chance.permutation(len(pairs))[:EDGES]
    edges = pd.DataFrame([pairs[place] for place in chosen], columns=["source", "target"])
    if weighted:
        edges["weight"] = chance.uniform(0.5, 2, EDGES).astype(np.float32)
    nodes = pd.DataFrame(
        {
            "id": np.arange(NODES),
            "age": chance.normal(40, 9, NODES).astype(np.float32),
            "flag": chance.integers(0, 2, NODES),
            "height": chance.integers(150, 200, NODES),
            "class": pd.array(chance.integers(0, 3, NODES), dtype="Int64"),
        }
    )
    nodes.loc[MISSING_LABEL, "class"] = pd.NA
    return Truth(edges, nodes)


def named(*, integer: bool = False) -> Truth:
    """Ids in no order, a category with a gap, a truth value and a name: what tables can carry."""
    truth = numbered(weighted=True)
    order = np.random.default_rng(1).permutation(NODES)
    ids = 100 - 7 * order if integer else np.array([f"n{number}" for number in order])
    edges, nodes = truth.edges, truth.nodes
    edges["source"], edges["target"] = ids[edges["source"]], ids[edges["target"]]
    nodes["id"] = ids
    nodes["city"] = [
        None if place == 5 else ("Rome", "Oslo, N", "Bern")[place % 3] for place in order
    ]
    nodes["member"] = order % 2 == 0
    nodes["age"] = nodes["age"].where(order != 7)
    nodes["name"] = [f"person {place} of {NODES}, who reads" for place in range(NODES)]
    nodes["name"] += [" much" * (place % 5 + 1) for place in range(NODES)]
    return Truth(edges, nodes)


def same(one: Loaded, two: Loaded) -> None:
    assert one.ids.tolist() == two.ids.tolist()
    assert set(one.data.keys()) == set(two.data.keys())
    for name, value in one.data.to_dict().items():
        assert value.dtype == two.data[name].dtype, name
        assert torch.equal(value, two.data[name]), name


def csv(frame: pd.DataFrame, path: Path, **options: Any) -> Path:
    frame.to_csv(path, index=False, **options)
    return path


def parquet(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_parquet(path, index=False)
    return path


def feather(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_feather(path)  # compressed
    return path


def arrow(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_feather(path, compression="uncompressed", chunksize=3)
    return path


def saved(path: Path, **arrays: Any) -> Path:
    np.savez_compressed(path, **arrays)
    return path


def sparse(path: Path, matrix: Any) -> Path:
    sp.save_npz(path, matrix)
    return path


def npy(path: Path, array: np.ndarray) -> Path:
    np.save(path, array)
    return path


def benchmark(truth: Truth, path: Path) -> Path:
    parts = {"adj": truth.adjacency, "attr": sp.csr_array(truth.x)}
    arrays = {
        f"{prefix}_{name}": getattr(matrix, name)
        for prefix, matrix in parts.items()
        for name in ("data", "indices", "indptr", "shape")
    }
    return saved(path, labels=truth.y, idx_to_node=np.array([{}], dtype=object), **arrays)


def data_of(truth: Truth) -> Data:
    data = Data(
        x=torch.from_numpy(truth.x),
        edge_index=torch.from_numpy(truth.edge_index),
        y=torch.from_numpy(truth.y),
    )
    if "weight" in truth.edges:
        data.edge_weight = torch.tensor(truth.edges["weight"].to_numpy())
    return data


def folder(truth: Truth, path: Path, write: Callable[..., Path], suffix: str) -> Path:
    path.mkdir()
    write(truth.edges, path / f"edges{suffix}")
    write(truth.nodes, path / f"nodes{suffix}")
    return path


def xml(truth: Truth, path: Path) -> Path:
    graph = truth.network()
    (nx.write_gexf if path.suffix == ".gexf" else nx.write_graphml)(graph, path)
    return path


def node_link(truth: Truth, path: Path) -> Path:
    content = nx.node_link_data(truth.network(), edges="links")
    path.write_text(json.dumps(content, default=lambda value: value.item()))
    return path


def matrix_frame(truth: Truth) -> pd.DataFrame:
    frame = nx.to_pandas_adjacency(truth.network())
    return frame[frame.index]
