"""Lists of edges, frames, PyG graphs and JSON: read as meant, or refused in one line."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from route_cases import csv, data_of, named, numbered, same

from muxgcl import UserError
from muxgcl.io.load import load


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
    assert load([[0, 1], [1, 2], [2, 3]]).ids.tolist() == [0, 1, 2, 3]
    weighted = load([("a", "b", 2.0), ("b", "c", 0.5)])
    assert weighted.data.edge_weight.tolist() == [2.0, 2.0, 0.5, 0.5]
    assert load(np.array([[0, 1], [1, 2]])).data.num_nodes == 3  # [2, 2]: an edge index


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ([("a", "b", "c")], "the third entry is the weight: expected a number, got str"),
        ([[0, 1, 1], [1, 2, 1], [2, 0, 1]], r"such as \[\(0, 1\), \(1, 2\)\], got 3 parts"),
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


WORDS = pd.Series(["x", None, "y", "x"])


@pytest.mark.parametrize(
    "labels",
    [
        WORDS,
        WORDS.fillna(np.nan),
        WORDS.astype("category"),
        WORDS.astype("string"),
        WORDS.to_numpy(),
        WORDS.tolist(),
        ["x", float("nan"), "y", "x"],
    ],
)
def test_a_missing_label_in_memory_is_no_class(labels: object) -> None:
    graph = load([(0, 1), (1, 2), (2, 3)], features=np.eye(4), labels=labels)
    assert graph.label_names == ["x", "y"]
    assert graph.data.y.tolist() == [0, -1, 1, 0]
    assert "label of 1 node missing" in graph.notes


def test_a_missing_number_of_a_class_is_no_class() -> None:
    for labels in ([1, None, 2, 1], pd.Series([1, None, 2, 1], dtype="Int64")):
        graph = load([(0, 1), (1, 2), (2, 3)], features=np.eye(4), labels=labels)
        assert (graph.label_names, graph.data.y.tolist()) == (["1", "2"], [0, -1, 1, 0])


def test_a_dict_or_a_list_in_place_of_a_table_is_told_what_would_do() -> None:
    ring = [("a", "b"), ("b", "c"), ("c", "a")]
    with pytest.raises(UserError, match=r"the labels: .* got a dict; pandas\.Series\(d\)"):
        load(ring, labels={"a": 0, "b": 1, "c": 0})
    with pytest.raises(UserError, match=r"the features: .* got a dict"):
        load(ring, features={"a": [1.0], "b": [2.0], "c": [0.0]})
    with pytest.raises(UserError, match="from list; expected a path, a pandas frame, an array"):
        load(ring, features=[[1.0], [2.0], [0.0]])
