"""A newcomer's own data by every way in: the same graph in the same rows."""

from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from muxgcl import MuxGCL, load
from muxgcl.io.load import Loaded


class Small:
    """The first 120 nodes of the graph, as tables; names are in no order."""

    def __init__(self, graph: Loaded) -> None:
        keep = 120
        ends = graph.data.edge_index.numpy()
        ends = ends[:, (ends < keep).all(0) & (ends[0] < ends[1])]
        self.ids = np.array([f"n{7 * place % keep}" for place in range(keep)])
        self.ends = ends
        self.x = graph.data.x[:keep].numpy()
        self.topic = np.array(["art", "biology", "chess", "dance", "ethics", "film"])[
            graph.data.y[:keep].numpy()
        ]
        names = [f"word{place}" for place in range(self.x.shape[1])]
        self.nodes = pd.DataFrame(self.x, columns=names)
        self.nodes.insert(0, "person", self.ids)
        self.nodes["topic"] = self.topic

    def edges(self, *names: str) -> pd.DataFrame:
        return pd.DataFrame(dict(zip(names, self.ids[self.ends], strict=True)))

    @property
    def network(self) -> nx.Graph:
        network = nx.Graph()
        for record in self.nodes.to_dict("records"):
            network.add_node(record.pop("person"), **record)
        network.add_edges_from(self.edges("a", "b").itertuples(index=False))
        return network

    @property
    def adjacency(self) -> sp.csr_array:
        shape = (len(self.ids),) * 2
        return sp.csr_array((np.ones(self.ends.shape[1]), tuple(self.ends)), shape=shape)


def csv(
    small: Small, folder: Path, *names: str, header: bool = True, separator: str = ","
) -> Loaded:
    how = {"index": False, "sep": separator}
    small.edges(*names).to_csv(folder / "edges.csv", header=header, **how)
    small.nodes.to_csv(folder / "nodes.csv", **how)
    return load(folder / "edges.csv", features=folder / "nodes.csv", label_column="topic")


def parquet(small: Small, folder: Path) -> Loaded:
    """After some rows were dropped, so that pandas writes its index, too."""
    nodes = pd.concat([small.nodes[:3], small.nodes]).reset_index(drop=True)[3:]
    nodes.index = nodes.index.to_numpy()
    nodes.to_parquet(folder / "nodes.parquet")
    small.edges("from", "to").to_parquet(folder / "edges.parquet")
    return load(folder / "edges.parquet", features=folder / "nodes.parquet", label_column="topic")


def xml(small: Small, folder: Path, write: Callable[..., None], name: str) -> Loaded:
    write(small.network, folder / name)
    return load(folder / name, label_column="topic")


def npz(small: Small, folder: Path) -> Loaded:
    sp.save_npz(folder / "graph.npz", small.adjacency)
    np.save(folder / "x.npy", small.x)
    return load(folder / "graph.npz", features=folder / "x.npy", labels=small.topic)


def tuples(small: Small) -> Loaded:
    edges = list(small.edges("a", "b").itertuples(index=False, name=None))
    return load(edges, features=small.nodes, label_column="topic")


def data(small: Small) -> Data:
    y = np.unique(small.topic, return_inverse=True)[1]
    tensors = {"x": small.x, "edge_index": small.ends, "y": y}
    return Data(**{name: torch.from_numpy(array) for name, array in tensors.items()})


ROUTES: dict[str, Callable[[Small, Path], Loaded]] = {
    "CSV without a header": lambda s, p: csv(s, p, "a", "b", header=False),
    "CSV with a header of one's own words": lambda s, p: csv(s, p, "Person A", "Person B"),
    "CSV with semicolons": lambda s, p: csv(s, p, "sender", "receiver", separator=";"),
    "Parquet": parquet,
    "pandas": lambda s, _: load((s.edges("u", "v"), s.nodes), label_column="topic"),
    "NetworkX": lambda s, _: load(s.network, label_column="topic"),
    "GraphML": lambda s, p: xml(s, p, nx.write_graphml, "graph.graphml"),
    "GML": lambda s, p: xml(s, p, nx.write_gml, "graph.gml"),
    "GEXF": lambda s, p: xml(s, p, nx.write_gexf, "graph.gexf"),
    "scipy": lambda s, _: load((s.adjacency, s.x), labels=s.topic),
    "PyG": lambda s, _: load(data(s)),
    "npz and npy": npz,
    "edge index": lambda s, _: load((s.ends, s.x), labels=s.topic),
    "tuples": lambda s, _: tuples(s),
}


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_gives_the_same_graph_in_the_same_rows(
    route: str, graph: Loaded, tmp_path: Path
) -> None:
    small = Small(graph)
    found = ROUTES[route](small, tmp_path)
    want = ROUTES["pandas"](small, tmp_path)
    named = found.ids.dtype.kind == "U"  # arrays have no names: their nodes are 0, 1, ...
    assert found.ids.tolist() == (small.ids.tolist() if named else list(range(len(small.ids))))
    assert torch.equal(found.data.edge_index, want.data.edge_index)
    assert torch.equal(found.data.x, want.data.x)
    assert torch.equal(found.data.y, want.data.y)


def test_rows_of_an_embedder_are_the_nodes_of_the_network(graph: Loaded) -> None:
    network = Small(graph).network
    frame = MuxGCL(epochs=1, output_width=4).set_output(transform="pandas").fit_transform(network)
    assert frame.index.tolist() == list(network)
