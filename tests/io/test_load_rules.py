"""Each rule of loading, and the line that says it was applied."""

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from muxgcl.errors import UserError
from muxgcl.io.load import Loaded, load
from muxgcl.io.structure import NAMES

PATH = "a,b\nb,c\n"  # three nodes in a row


def loaded(folder: Path, edges: str, nodes: str | None = None, **options: object) -> Loaded:
    (folder / "edges.csv").write_text(edges)
    if nodes is not None:
        (folder / "nodes.csv").write_text(nodes)
        options["features"] = folder / "nodes.csv"
    return load(folder / "edges.csv", **options)


def pairs(graph: Loaded) -> list[tuple[str, str]]:
    ids = graph.ids.tolist()
    return [(ids[a], ids[b]) for a, b in graph.data.edge_index.T.tolist()]


def test_edges_are_made_undirected_and_sorted(tmp_path: Path) -> None:
    graph = loaded(tmp_path, "b,c\na,b\n")
    assert pairs(graph) == [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]
    assert "made undirected: 2 -> 4 entries" in graph.notes


def test_edges_in_both_directions_are_left_as_they_are(tmp_path: Path) -> None:
    graph = loaded(tmp_path, "a,b\nb,a\n")
    assert pairs(graph) == [("a", "b"), ("b", "a")]
    assert not any("undirected" in note for note in graph.notes)


def test_duplicate_edges_and_self_loops_are_removed_and_counted(tmp_path: Path) -> None:
    graph = loaded(tmp_path, "a,b\na,b\na,b\nb,b\na,c\n")
    assert pairs(graph) == [("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")]
    assert "2 duplicate edges merged" in graph.notes
    assert "1 self-loop removed" in graph.notes


def test_the_largest_weight_of_duplicates_and_directions_counts(tmp_path: Path) -> None:
    graph = loaded(tmp_path, "source,target,weight\na,b,1.5\na,b,3\nb,a,2\nb,c,0\na,c,4\n")
    assert pairs(graph) == [("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")]
    assert graph.data.edge_weight.tolist() == [3, 4, 3, 4]
    assert "1 edge of weight 0 removed" in graph.notes
    assert "1 duplicate edge merged, the largest weight kept" in graph.notes
    assert "1 edge weighs less than its reverse: the larger weight kept" in graph.notes


def test_weights_of_one_are_no_weights(tmp_path: Path) -> None:
    graph = loaded(tmp_path, "source,target,weight\na,b,1\nb,c,1.0\n")
    assert "edge_weight" not in graph.data


def test_columns_of_edges_that_nobody_asked_for_are_named(tmp_path: Path) -> None:
    graph = loaded(tmp_path, "source,target,since,kind\na,b,1999,x\nb,c,2000,y\n")
    assert (
        f"{tmp_path}/edges.csv: columns not used: 'since', 'kind' (--edge-type kind)" in graph.notes
    )
    assert "edge_weight" not in graph.data
    graph = loaded(tmp_path, "source,target,Gewicht\na,b,2\nb,c,1\n")
    assert f"{tmp_path}/edges.csv: columns not used: 'Gewicht' (--weight Gewicht)" in graph.notes


def test_a_column_of_weights_that_nobody_named_is_told(tmp_path: Path) -> None:
    text = "source,target,Weight\na,b,2\nb,c,1\n"
    assert f"{tmp_path}/edges.csv: weights from column 'Weight'" in loaded(tmp_path, text).notes
    named = load(tmp_path / "edges.csv", weight_column="Weight")
    assert not any("weights from" in note for note in named.notes)


def test_isolated_nodes_stay(tmp_path: Path) -> None:
    graph = loaded(tmp_path, PATH, "id,age\nc,3\nb,2\nz,1\na,7\n")
    assert graph.ids.tolist() == ["c", "b", "z", "a"]
    assert graph.data.num_nodes == 4
    assert "1 node has no edges" in graph.notes


def test_integer_ids_are_sorted_as_numbers_and_text_as_text(tmp_path: Path) -> None:
    numbers = loaded(tmp_path, "10,9\n9,100\n-1,9\n")
    assert numbers.ids.tolist() == [-1, 9, 10, 100]
    assert numbers.ids.dtype == np.int64
    assert loaded(tmp_path, "x10,x9\nx9,x100\n").ids.tolist() == ["x10", "x100", "x9"]


def test_mixed_ids_are_text(tmp_path: Path) -> None:
    graph = loaded(tmp_path, "10,9\n9,b7\n")
    assert graph.ids.tolist() == ["10", "9", "b7"]
    assert "ids are read as text: 'b7' is not a plain integer" in graph.notes


@pytest.mark.parametrize("written", ["01", "+1", "1.0", "1_0", "99999999999999999999"])
def test_only_plain_integers_are_integer_ids(tmp_path: Path, written: str) -> None:
    graph = loaded(tmp_path, f"{written},2\n2,3\n2,-4\n", header=False)
    assert graph.ids.dtype.kind == "U"
    why = "does not fit in 64 bits" if len(written) > 18 else "is not a plain integer"
    assert f"ids are read as text: '{written}' {why}" in graph.notes


def test_ids_of_words_are_text_without_a_word(tmp_path: Path) -> None:
    assert not any("read as text" in note for note in loaded(tmp_path, PATH).notes)


def test_missing_labels_are_minus_one(tmp_path: Path) -> None:
    graph = loaded(tmp_path, PATH, "id,age,label\na,1,red\nb,3,\nc,8,blue\n")
    assert graph.data.y.tolist() == [1, -1, 0]
    assert graph.label_names == ["blue", "red"]
    assert "label of 1 node missing" in graph.notes


@pytest.mark.parametrize("labels", [["10", "9", "10"], ["10.0", "9.0", "10.0"], [10, 9, 10]])
def test_whole_numbers_are_classes_in_their_order(labels: list[str]) -> None:
    frame = pd.DataFrame({"id": ["a", "b", "c"], "label": labels})
    graph = load(pd.DataFrame({"s": ["a", "b"], "t": ["b", "c"]}), labels=frame)
    assert graph.label_names == ["9", "10"]
    assert graph.data.y.tolist() == [1, 0, 1]


def test_minus_one_is_missing_in_arrays_and_a_class_in_files(tmp_path: Path) -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    assert load(edges, labels=[-1, 1, 1]).data.y.tolist() == [-1, 0, 0]
    graph = loaded(tmp_path, "0,1\n1,2\n", "id,x,y\n0,5,-1\n1,6,1\n2,7,1\n")
    assert graph.data.y.tolist() == [0, 1, 1]


def test_the_label_is_never_a_feature(tmp_path: Path) -> None:
    nodes = "id,age,topic\na,1,red\nb,3,blue\nc,8,red\n"
    file = tmp_path / "nodes.csv"
    assert loaded(tmp_path, PATH, nodes).data.x.shape == (3, 3)  # age and two topics
    for graph in (
        loaded(tmp_path, PATH, nodes, label_column="topic"),
        loaded(tmp_path, PATH, nodes, label_column="topic", labels=file),
    ):
        assert graph.data.x.shape == (3, 1)
        assert graph.data.y.tolist() == [1, 0, 1]
        assert f"{file}: column 'topic' is the label, not a feature" in graph.notes
    (tmp_path / "labels.csv").write_text("id,topic\nb,blue\na,red\n")
    apart = loaded(tmp_path, PATH, nodes, labels=tmp_path / "labels.csv", label_column="topic")
    assert apart.data.x.shape == (3, 1)
    assert apart.data.y.tolist() == [1, 0, -1]


def test_a_column_called_label_is_the_label(tmp_path: Path) -> None:
    graph = loaded(tmp_path, PATH, "id,age,Label\na,1,0\nb,3,1\nc,8,0\n")
    assert graph.data.y.tolist() == [0, 1, 0]
    assert graph.data.x.shape == (3, 1)


def test_labels_alone_do_not_order_the_nodes(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("id,label\nc,1\nz,0\n")
    graph = loaded(tmp_path, PATH, labels=tmp_path / "labels.csv")
    assert graph.ids.tolist() == ["a", "b", "c", "z"]
    assert graph.data.y.tolist() == [-1, -1, 1, 0]


def test_a_node_that_the_labels_alone_name_is_kept_and_told(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("id,label\nc,1\nz,0\n")
    notes = loaded(tmp_path, PATH, labels=tmp_path / "labels.csv").notes
    assert "1 node is named by the labels alone: 'z'" in notes
    assert "1 node has no edges" in notes
    (tmp_path / "labels.csv").write_text("id,label\nc,1\nb,0\n")
    notes = loaded(tmp_path, PATH, labels=tmp_path / "labels.csv").notes
    assert not any("labels alone" in note for note in notes)


def test_an_array_of_labels_has_one_for_each_node(tmp_path: Path) -> None:
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    np.save(tmp_path / "three.npy", np.zeros(3, int))
    np.savez(tmp_path / "three.npz", y=np.zeros(3, int))
    for labels in ([0, 1, 0], torch.zeros(3), tmp_path / "three.npy", tmp_path / "three.npz"):
        for graph in ((edges, torch.eye(4)), Data(edge_index=edges, num_nodes=4)):
            with pytest.raises(UserError, match="expected 4 labels, one for each node, got 3"):
                load(graph, labels=labels)
        with pytest.raises(UserError, match=r"a label for each node, got 3 .* names node '3'"):
            load(edges, labels=labels)
    with pytest.raises(UserError, match="expected 4 labels, one for each node, got 5"):
        load((edges, torch.eye(4)), labels=range(5))
    np.savez(tmp_path / "by_id.npz", y=np.zeros(3, int), id=np.arange(1, 4))
    by_id = load((edges, torch.eye(4)), labels=tmp_path / "by_id.npz")
    assert by_id.data.y.tolist() == [-1, 0, 0, 0]  # joined by id: it may be incomplete


def test_an_array_of_labels_says_how_many_nodes_there_are_if_nothing_else_does() -> None:
    edges = torch.tensor([[0, 1], [1, 3]])
    graph = load(edges, labels=[7, 7, 8, 8, 9])
    assert graph.ids.tolist() == [0, 1, 2, 3, 4]
    assert graph.data.y.tolist() == [0, 0, 1, 1, 2]
    assert "2 nodes are named by the labels alone: '2', '4'" in graph.notes


def test_nodes_without_features_are_zeros_and_counted(tmp_path: Path) -> None:
    graph = loaded(tmp_path, PATH, "id,age,city\na,1,Rome\nb,,\nc,3,Rome\n")
    assert graph.data.x.tolist() == [[-1, 1], [0, 0], [1, 1]]
    assert "1 node has no features: zeros" in graph.notes


@pytest.mark.parametrize(
    "nodes",
    [
        "member\na,true\nb,false\nc,true",
        "age\na,1\nb,2\nc,3",
        "age\na,5\nb,5\nc,5",
        "n\na,0\nb,1\nc,1",
    ],
)
def test_a_feature_that_comes_to_zero_is_given_all_the_same(tmp_path: Path, nodes: str) -> None:
    graph = loaded(tmp_path, PATH, f"id,{nodes}\n")
    assert (graph.data.x == 0).any()
    assert not any("no features" in note for note in graph.notes)


def test_entries_that_a_matrix_stores_twice_are_added_up() -> None:
    ends = np.array([0, 0, 1]), np.array([1, 1, 2])
    adjacency = sp.coo_array((np.array([1.0, 2.0, 5.0]), ends), shape=(3, 3))
    table = sp.coo_array((np.array([0.5, 0.5, 1.0]), ends), shape=(3, 3))
    for graph in (load((adjacency, table)), load((adjacency.tocsr(), table.tocsr()))):
        assert graph.data.edge_weight.tolist() == [3, 3, 5, 5]
        assert graph.data.x.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert adjacency.nnz == table.nnz == 3  # the user's own are left alone


# --- in memory -------------------------------------------------------------------------------


def test_the_input_is_left_as_it_was() -> None:
    x = torch.tensor([[1.0, 5.0], [2.0, 7.0], [4.0, 9.0]])
    data = Data(x=x.clone(), edge_index=torch.tensor([[0, 1], [1, 2]]))
    frame = pd.DataFrame({"id": [0, 1, 2], "age": [1.0, 5.0, 7.0]})
    before = frame.copy()
    load(data)
    load((data.edge_index, frame))
    assert torch.equal(data.x, x)
    assert data.edge_index.shape == (2, 2)
    pd.testing.assert_frame_equal(frame, before)


def test_public_splits_of_a_pyg_graph_are_kept() -> None:
    mask = torch.tensor([True, False, False])
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), train_mask=mask)
    assert torch.equal(load(data).data.train_mask, mask)


def test_a_pyg_graph_of_edges_alone_has_the_nodes_that_they_name() -> None:
    edges = torch.tensor([[0, 1], [1, 3]])
    graph = load(Data(edge_index=edges))  # PyG's warning would fail the test
    assert graph.data.x.shape == (4, len(NAMES))
    assert "num_nodes is not set: 4 nodes, as edge_index names them" in graph.notes
    assert "1 node has no edges" in graph.notes
    stated = load(Data(edge_index=edges, num_nodes=5))
    assert stated.data.x.shape == (5, len(NAMES))
    assert not any("num_nodes" in note for note in stated.notes)


def test_labels_that_are_no_classes_are_left_out() -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.rand(3))
    graph = load(data)
    assert "y" not in graph.data
    assert any(note.startswith("y is not one class a node") for note in graph.notes)


def test_networkx_edges_without_weight_count_one() -> None:
    graph = nx.Graph([("a", "b"), ("b", "c", {"weight": 3})])
    assert load(graph).data.edge_weight.tolist() == [1, 1, 3, 3]


def test_one_and_the_text_one_are_the_same_id() -> None:
    with pytest.raises(UserError, match="the id '1' is already on node '1'"):
        load(nx.Graph([(1, "1"), ("1", "x")]))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("header", ["source,target", "source,target,weight,kind,since"])
def test_features_without_edges_are_a_graph(tmp_path: Path, header: str, directed: bool) -> None:
    edges = tmp_path / "edges.csv"
    edges.write_text(header + "\n")
    (tmp_path / "nodes.csv").write_text("id,age\na,1\nb,5\nc,3\n")
    kind = "kind" if "kind" in header else None
    graph = load(tmp_path, directed=directed, edge_type_column=kind)
    assert graph.tensors.edge_index.shape == (2, 0)
    assert graph.ids.tolist() == ["a", "b", "c"]
    assert f"{edges} has a header but no rows: the graph has no edges" in graph.notes
    assert "3 nodes have no edges" in graph.notes
    with pytest.raises(UserError, match=r"edges\.csv has a header but no rows$"):
        load(edges)
    (tmp_path / "nodes.csv").write_text("id,label\na,1\nb,5\nc,3\n")
    with pytest.raises(UserError, match="no edges, and no features of its nodes are given"):
        load(tmp_path)


def test_a_column_file_without_edges_is_a_graph_where_there_are_features(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pd.DataFrame({"source": ["a"], "target": ["b"]}).iloc[:0].to_parquet(tmp_path / "e.parquet")
    features = pd.DataFrame({"id": ["a", "b"], "age": [1.0, 2.0]})
    graph = load(tmp_path / "e.parquet", features=features)
    assert graph.tensors.edge_index.shape == (2, 0)
    with pytest.raises(UserError, match="has no rows"):
        load(tmp_path / "e.parquet")
