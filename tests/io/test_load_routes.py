"""The same graph through every input route gives identical tensors."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from route_cases import (
    NODES,
    Truth,
    arrow,
    benchmark,
    csv,
    data_of,
    feather,
    folder,
    matrix_frame,
    named,
    node_link,
    npy,
    numbered,
    parquet,
    same,
    saved,
    sparse,
    xml,
)
from torch_geometric.utils import to_networkx

from muxgcl.io.load import Loaded, load

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
    "arrow": lambda t, p: load(
        arrow(t.edges, p / "e.arrow"), features=feather(t.nodes, p / "n.feather")
    ),
    "folder of feather": lambda t, p: load(folder(t, p / "f", feather, ".feather")),
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
    torch.testing.assert_close(found.data.x, want.data.x[order], atol=1e-4, rtol=0)
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
