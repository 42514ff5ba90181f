"""The same graph through every input route gives identical tensors."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from muxgcl import UserError
from muxgcl.io.load import Loaded, load

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


Route = Callable[[Truth, Path], Loaded]
TABLES: dict[str, Route] = {
    "csv": lambda t, p: load(csv(t.edges, p / "e.csv"), features=csv(t.nodes, p / "n.csv")),
    "strings path": lambda t, p: load(
        str(csv(t.edges, p / "e.csv")), features=str(csv(t.nodes, p / "n.csv"))
    ),
    "csv, labels named": lambda t, p: load(
        csv(t.edges, p / "e.csv"),
        features=csv(t.nodes, p / "n.csv"),
        labels=p / "n.csv",
        label_column="class",
    ),
    "csv, labels apart": lambda t, p: load(
        csv(t.edges, p / "e.csv"),
        features=csv(t.nodes.drop(columns="class"), p / "n.csv"),
        labels=csv(t.nodes[["id", "class"]].dropna().sample(frac=1, random_state=0), p / "l.csv"),
    ),
    "tsv": lambda t, p: load(
        csv(t.edges, p / "e.tsv", sep="\t"), features=csv(t.nodes, p / "n.tsv", sep="\t")
    ),
    "semicolons": lambda t, p: load(
        csv(t.edges, p / "e.csv", sep=";"), features=csv(t.nodes, p / "n.csv", sep=";")
    ),
    "any names": lambda t, p: load(
        csv(t.edges[["weight", "target", "source"]].set_axis(["w", "b", "a"], axis=1), p / "e.csv"),
        features=csv(
            t.nodes[[*t.nodes.columns[1:], "id"]].rename(columns={"id": "k"}), p / "n.csv"
        ),
        source_column="a",
        target_column="b",
        weight_column="w",
        id_column="k",
    ),
    "no header": lambda t, p: load(
        csv(t.edges, p / "e.csv", header=False),
        features=csv(t.nodes, p / "n.csv"),
        weight_column="3",
    ),
    "parquet": lambda t, p: load(
        parquet(t.edges, p / "e.parquet"), features=parquet(t.nodes, p / "n.parquet")
    ),
    "csv and parquet": lambda t, p: load(
        csv(t.edges, p / "e.csv"), features=parquet(t.nodes, p / "n.parquet")
    ),
    "folder of csv": lambda t, p: load(folder(t, p / "f", csv, ".csv")),
    "folder of parquet": lambda t, p: load(folder(t, p / "f", parquet, ".parquet")),
    "pandas": lambda t, p: load((t.edges, t.nodes)),
    "pandas index": lambda t, p: load((t.edges, t.nodes.set_index("id"))),
    "pandas keywords": lambda t, p: load(t.edges, features=t.nodes, labels=t.nodes),
    "networkx": lambda t, p: load(t.network()),
    "graphml": lambda t, p: load(xml(t, p / "g.graphml")),
    "gexf": lambda t, p: load(xml(t, p / "g.gexf")),
    "json": lambda t, p: load(node_link(t, p / "g.json")),
    "json's dict": lambda t, p: load(json.loads(node_link(t, p / "g.json").read_text())),
    "bars": lambda t, p: load(
        csv(t.edges, p / "e.csv", sep="|"), features=csv(t.nodes, p / "n.csv", sep="|")
    ),
    "pandas, a series of labels": lambda t, p: load(
        (t.edges, t.nodes.drop(columns="class")),
        labels=t.nodes.set_index("id")["class"].dropna().sample(frac=1, random_state=0),
    ),
    "pandas, a matrix with names": lambda t, p: load((matrix_frame(t), t.nodes)),
}
PLAIN: dict[str, Route] = {
    "csv, npy": lambda t, p: load(
        csv(t.edges, p / "e.csv"), features=npy(p / "x.npy", t.x), labels=npy(p / "y.npy", t.y)
    ),
    "csv, float64 npy": lambda t, p: load(
        csv(t.edges, p / "e.csv"), features=npy(p / "x.npy", t.x.astype(float)), labels=t.y
    ),
    "csv, npz": lambda t, p: load(
        csv(t.edges, p / "e.csv"), features=saved(p / "x.npz", x=t.x, y=t.y)
    ),
    "csv, npz with ids": lambda t, p: load(
        csv(t.edges, p / "e.csv"), features=saved(p / "x.npz", x=t.x, y=t.y, id=np.arange(NODES))
    ),
    "csv, npz with ids as text": lambda t, p: load(
        csv(t.edges, p / "e.csv"),
        features=saved(p / "x.npz", x=t.x, y=t.y, id=np.arange(NODES).astype("U")),
    ),
    **{
        f"csv, sparse npz {layout}": lambda t, p, layout=layout: load(
            csv(t.edges, p / "e.csv"),
            features=sparse(p / "x.npz", sp.coo_array(t.x).asformat(layout)),
            labels=t.y,
        )
        for layout in ("csr", "csc", "coo")
    },
    "benchmark npz": lambda t, p: load(benchmark(t, p / "g.npz")),
    "npz as PyG's": lambda t, p: load(
        saved(p / "g.npz", **{name: value.numpy() for name, value in data_of(t).to_dict().items()})
    ),
    "adjacency npz": lambda t, p: load(
        sparse(p / "a.npz", t.adjacency), features=t.x, labels=t.y.tolist()
    ),
    "PyG": lambda t, p: load(data_of(t)),
    "PyG loaded twice": lambda t, p: load(load(data_of(t), scale=False).data),
    "PyG to networkx": lambda t, p: load(
        to_networkx(
            data_of(t), node_attrs=["x"], edge_attrs=["edge_weight"] * ("weight" in t.edges)
        ),
        labels=t.y,
        weight_column="edge_weight" if "weight" in t.edges else None,
    ),
    "scipy and numpy": lambda t, p: load((t.adjacency, t.x), labels=t.y),
    "scipy and scipy": lambda t, p: load((t.adjacency, sp.coo_matrix(t.x)), labels=t.y),
    "dense matrix and numpy": lambda t, p: load((t.adjacency.toarray(), t.x), labels=t.y),
    "dense and sparse tensors": lambda t, p: load(
        (torch.from_numpy(t.adjacency.toarray()).to_sparse(), torch.from_numpy(t.x)), labels=t.y
    ),
    "tuples": lambda t, p: load(
        (list(t.edges.itertuples(index=False, name=None)), t.x), labels=t.y
    ),
    "scipy and tensor": lambda t, p: load((t.adjacency, torch.from_numpy(t.x)), labels=t.y),
}
UNWEIGHTED: dict[str, Route] = {
    "tensors": lambda t, p: load(
        (torch.from_numpy(t.edge_index), torch.from_numpy(t.x)), labels=torch.from_numpy(t.y)
    ),
    "arrays": lambda t, p: load((t.edge_index, t.x), labels=t.y),
    "an edge a row": lambda t, p: load((t.edge_index.T, t.x), labels=t.y),
    "matrix of truth values": lambda t, p: load((t.adjacency.toarray() > 0, t.x), labels=t.y),
    "sparse tensor": lambda t, p: load(
        (torch.from_numpy(t.edge_index), torch.from_numpy(t.x).to_sparse()), labels=t.y
    ),
}


@pytest.mark.parametrize("route", [*TABLES, *PLAIN])
def test_every_route_gives_the_weighted_graph(route: str, tmp_path: Path) -> None:
    truth = numbered(weighted=True)
    want = TABLES["csv"](truth, tmp_path)
    same((TABLES | PLAIN)[route](truth, tmp_path), want)


@pytest.mark.parametrize("route", [*PLAIN, *UNWEIGHTED, "csv", "networkx", "graphml", "gexf"])
def test_every_route_gives_the_unweighted_graph(route: str, tmp_path: Path) -> None:
    truth = numbered(weighted=False)
    want = TABLES["folder of parquet"](truth, tmp_path)
    assert "edge_weight" not in want.data
    same((TABLES | PLAIN | UNWEIGHTED)[route](truth, tmp_path), want)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("route", TABLES)
def test_every_table_gives_the_graph_with_categories(
    route: str, integer: bool, tmp_path: Path
) -> None:
    truth = named(integer=integer)
    want = TABLES["csv"](truth, tmp_path)
    assert want.data.x.shape == (NODES, 4 + 3)  # age, flag, height, member; three cities
    assert want.ids.dtype.kind == ("i" if integer else "U")
    assert want.ids.tolist() == truth.nodes["id"].tolist()
    same(TABLES[route](truth, tmp_path), want)


def test_the_tensors_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    truth = named()
    loaded = TABLES["csv"](truth, tmp_path)
    order = {node: place for place, node in enumerate(truth.nodes["id"])}
    weights: dict[tuple[int, int], float] = {}
    for a, b, weight in truth.edges.itertuples(index=False):
        for pair in ((order[a], order[b]), (order[b], order[a])):
            weights[pair] = max(weights.get(pair, 0), weight)
    assert loaded.data.edge_index.T.tolist() == [list(pair) for pair in sorted(weights)]
    assert loaded.data.edge_weight.tolist() == [weights[pair] for pair in sorted(weights)]

    nodes = truth.nodes
    for column, name in enumerate(("age", "height")):
        values = nodes[name].astype(float)
        want = ((values - values.mean()) / values.std(ddof=0)).fillna(0)
        found = loaded.data.x[:, 2 * column].double()
        torch.testing.assert_close(found, torch.tensor(want.to_numpy()), rtol=1e-6, atol=1e-6)
    assert loaded.data.x[:, 1].tolist() == nodes["flag"].tolist()
    assert loaded.data.x[:, 3].tolist() == nodes["member"].astype(int).tolist()
    for column, city in enumerate(("Bern", "Oslo, N", "Rome")):
        assert loaded.data.x[:, 4 + column].tolist() == (nodes["city"] == city).tolist()
    assert loaded.data.y.tolist() == truth.y.tolist()
    assert loaded.label_names == ["0", "1", "2"]


def test_integer_ids_as_text_give_the_same_graph(tmp_path: Path) -> None:
    truth = named(integer=True)
    want = TABLES["pandas"](truth, tmp_path)
    truth.edges[["source", "target"]] = truth.edges[["source", "target"]].astype(str)
    same(TABLES["pandas"](truth, tmp_path), want)
    truth.nodes["id"] = truth.nodes["id"].astype(str)
    same(TABLES["pandas"](truth, tmp_path), want)
    same(TABLES["parquet"](truth, tmp_path), want)


def test_without_a_table_of_nodes_ids_are_sorted_by_every_edge_list(tmp_path: Path) -> None:
    edges = numbered(weighted=True).edges
    edges[["source", "target"]] = 100 - edges[["source", "target"]]  # 9 < 10 < 100, not as text
    want = load(csv(edges, tmp_path / "e.csv"))
    assert want.ids.tolist() == sorted({*edges["source"], *edges["target"]})
    for found in (
        load(parquet(edges, tmp_path / "e.parquet")),
        load(edges),
        load(edges.astype({"source": str, "target": str})),
    ):
        same(found, want)


@pytest.mark.parametrize("route", ["networkx", "graphml", "gexf"])
def test_rows_follow_the_nodes_of_a_network_that_has_no_attributes(
    route: str, tmp_path: Path
) -> None:
    edges = numbered(weighted=True).edges
    edges[["source", "target"]] = 100 - edges[["source", "target"]]
    truth = Truth(edges, pd.DataFrame({"id": []}))
    network = truth.network()
    assert list(network) != sorted(network)
    found, want = TABLES[route](truth, tmp_path), load(edges)
    assert found.ids.tolist() == list(network)
    order = [want.ids.tolist().index(one) for one in found.ids]  # the same rows in another order
    assert torch.equal(found.data.x, want.data.x[order])
    dense = [torch.zeros(len(order), len(order)) for _ in range(2)]
    for matrix, loaded in zip(dense, (found, want), strict=True):
        matrix[tuple(loaded.data.edge_index)] = loaded.data.edge_weight
    assert torch.equal(dense[0], dense[1][order][:, order])


@pytest.mark.parametrize("route", ["networkx", "graphml", "gexf"])
@pytest.mark.parametrize("lacking", ["age", "flag", "height"])
def test_every_route_gives_the_same_graph_where_the_first_node_lacks_an_attribute(
    route: str, lacking: str, tmp_path: Path
) -> None:
    truth = numbered(weighted=False)
    truth.nodes[lacking] = truth.nodes[lacking].astype(float)
    truth.nodes.loc[[0, 1], lacking] = np.nan
    same(TABLES[route](truth, tmp_path), TABLES["csv"](truth, tmp_path))
    same(TABLES["pandas"](truth, tmp_path), TABLES["csv"](truth, tmp_path))


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_a_known_graph_comes_back_as_it_is(name: str) -> None:
    from muxgcl.io import load_dataset

    data = load_dataset(name)
    loaded = load(data).data
    for part in ("x", "edge_index", "y"):
        assert torch.equal(loaded[part], data[part])
    assert ("train_mask" in loaded) == ("train_mask" in data)


def test_a_list_of_tuples_may_name_its_nodes_and_stands_without_features() -> None:
    loaded = load([("a", "b"), ("b", "c"), ("c", "a")])
    assert loaded.ids.tolist() == ["a", "b", "c"]
    assert loaded.data.num_edges == 6
    assert load([(0, 1), (1, 2)]).ids.tolist() == [0, 1, 2]  # two edges are no pair
    for source in ({("a", "b"), ("b", "c")}, [["a", "b"], ["b", "c"]], nx.path_graph("abc").edges):
        assert load(source).ids.tolist() == ["a", "b", "c"]
    weighted = load([("a", "b", 2.0), ("b", "c", 0.5)])
    assert weighted.data.edge_weight.tolist() == [2.0, 2.0, 0.5, 0.5]
    assert load(np.array([[0, 1], [1, 2]])).data.num_nodes == 3  # [2, 2]: an edge index


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ([("a", "b", "c")], "the third entry is the weight: expected a number, got str"),
        ([[0, 1], [1, 2], [2, 0]], r"a list of edges such as \[\(0, 1\), \(1, 2\)\], got 3 parts"),
        (np.zeros((4, 3)), r"\[2, edges\] or \[edges, 2\]\) or a square adjacency matrix"),
        (np.zeros((5, 2)), r"got float64 of shape \[5, 2\]"),
    ],
)
def test_what_is_no_list_of_edges_is_refused_with_what_would_be(source: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        load(source)


@pytest.mark.parametrize("delimiter", [" ", ","])
def test_a_list_of_edges_with_attributes_in_braces_is_read_without_them(
    tmp_path: Path, delimiter: str
) -> None:
    network = nx.Graph([("a", "b"), ("b", "c")])
    nx.set_edge_attributes(network, {edge: {"weight": 2, "kind": "x"} for edge in network.edges})
    nx.write_edgelist(network, tmp_path / "g.edgelist", delimiter=delimiter)
    loaded = load(tmp_path / "g.edgelist")
    assert loaded.ids.tolist() == ["a", "b", "c"]
    assert loaded.data.num_edges == 4
    assert any("attributes in braces are not read" in note for note in loaded.notes)


def test_columns_of_whole_numbers_with_a_point_hold_integers(tmp_path: Path) -> None:
    edges = pd.DataFrame({"a": [1, 2, 3], "b": [2.0, 3.0, 10.0]})
    nodes = pd.DataFrame({"id": [10.0, 3.0, 2.0, 1.0], "age": [4, 5, 6, 8]})
    loaded = load(csv(edges, tmp_path / "e.csv"), features=csv(nodes, tmp_path / "n.csv"))
    assert loaded.ids.tolist() == [10, 3, 2, 1]
    assert any("column 'b' is read as whole numbers" in note for note in loaded.notes)
    same(load((edges, nodes)), loaded)


def test_three_edges_with_weights_are_no_matrix() -> None:
    assert load(pd.DataFrame([(0, 1, 5), (1, 2, 5), (2, 3, 5)])).data.num_nodes == 4


def test_labels_in_order_are_those_of_nodes_with_names() -> None:
    truth = named()
    nodes, y = truth.nodes.drop(columns="class"), truth.nodes["class"]
    same(
        load((truth.edges, nodes), labels=y.reset_index(drop=True)),
        load((truth.edges, truth.nodes)),
    )


def test_attributes_of_pyg_edges_are_named_as_left_out() -> None:
    data = data_of(numbered(weighted=False))
    data.edge_attr = torch.ones(data.num_edges, 1)
    assert any("edge_attr is not used" in note for note in load(data).notes)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[]", "holds no graph: expected"),
        ('{"nodes": [], "edges": 3}', "holds no graph: expected"),
        ('{"nodes": [{"name": 1}], "links": []}', "node 0: expected a field 'id'"),
        ('{"nodes": [{"id": {}}], "links": []}', "node 0: expected a field 'id'"),
        ('{"nodes": [{"id": 1}], "links": [{"source": 1}]}', "link 0: expected a field 'target'"),
        (
            '{"nodes": [{"id": 1}], "links": [{"source": 1, "target": "1"}]}',
            "names node '1', which",
        ),
        ('{"nodes": [', "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
    ],
)
def test_json_that_is_no_graph_is_one_line(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "g.json").write_text(content)
    with pytest.raises(UserError, match=told):
        load(tmp_path / "g.json")
