"""Features made from the edges alone, for graphs that bring none: degree and position."""

from pathlib import Path

import numpy as np
import pytest
import torch

from muxgcl.errors import UserError
from muxgcl.io import structure
from muxgcl.io.load import load
from muxgcl.io.structure import NAMES, structural_features, with_structure


def test_without_features_degree_and_position_are_made(tmp_path: Path) -> None:
    stars = "".join(f"{hub},{hub}{leaf}\n" for hub in ("p", "q") for leaf in range(6))
    (tmp_path / "edges.csv").write_text(stars + "p,q\n")
    graph = load(tmp_path / "edges.csv")
    x = graph.data.x
    assert x.shape == (14, 16 + 3 * 96)
    assert "no features: made from the edges (16 of degree, 288 of position)" in graph.notes
    hub = [2, *[1] * 6]  # of degree 7, and its leaves
    assert x[:, :16].argmax(1).tolist() == [3, *hub[1:], 3, *hub[1:]]
    position = x[:, 16:].reshape(14, 3, 96)
    torch.testing.assert_close(position.norm(dim=2), torch.ones(14, 3))
    near = (position[1] * position[2]).sum(1)  # two leaves of one hub
    far = (position[1] * position[9]).sum(1)
    assert (near > far + 0.5).all()


def test_positions_are_averages_of_signs_less_their_mean_over_the_component() -> None:
    chance = np.random.default_rng(0)
    parts = [range(25), range(25, 50), range(50, 52), range(52, 53)]  # a pair, a node alone
    adjacency = np.zeros((53, 53))
    for part in parts[:2]:
        upper = np.triu(chance.random((25, 25)) < 0.1, 1) | np.eye(25, k=1, dtype=bool)
        adjacency[np.ix_(part, part)] = upper | upper.T
    adjacency[50, 51] = adjacency[51, 50] = 1
    around = adjacency + np.eye(53)
    size = around.sum(1, keepdims=True)
    found = structural_features(np.stack(np.nonzero(adjacency)), np.arange(53))[:, 16:]
    bits = structure._bits(np.arange(53))
    for k, steps in enumerate((4, 16, 48)):
        signs = 2.0 * bits[:, 96 * k : 96 * (k + 1)] - 1
        want = np.linalg.matrix_power(around / size, steps) @ signs
        for part in parts:  # what is left of it in the end
            want[part] -= (size[part] * want[part]).sum(0) / size[part].sum()
        want[:50] /= np.linalg.norm(want[:50], axis=1, keepdims=True)
        np.testing.assert_allclose(found[:, 96 * k : 96 * (k + 1)], want, atol=1e-3)
    assert not found[50:].any()


def test_a_node_without_edges_leaves_the_positions_of_others_as_they_were() -> None:
    ring = np.array([[*range(12)], [*range(1, 12), 0]])
    both = np.concatenate([ring, ring[::-1]], 1)
    alone = structural_features(both, np.arange(12))
    beside = structural_features(both, np.arange(13))
    np.testing.assert_allclose(beside[:12], alone, atol=1e-6)
    assert not beside[12, 16:].any()


def test_positions_where_nothing_tells_nodes_apart_are_zero() -> None:
    everybody = np.stack(np.nonzero(~np.eye(30, dtype=bool)))
    assert not structural_features(everybody, np.arange(30))[:, 16:].any()
    assert not structural_features(np.empty((2, 0), np.int64), np.arange(1))[:, 16:].any()


def test_positions_in_a_dense_graph_do_not_vanish() -> None:
    half = np.random.default_rng(0).random((300, 300)) < 0.5
    edges = np.stack(np.nonzero(np.triu(half, 1) | np.triu(half, 1).T))
    made = structural_features(edges, np.arange(300))[:, 16:].reshape(300, 3, 96)
    np.testing.assert_allclose(np.linalg.norm(made, axis=2), 1, atol=1e-4)


def test_made_features_beside_sparse_columns_are_asked_for_their_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edges, x = np.array([[0, 1], [1, 0]]), torch.eye(2)
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "30000")
    assert with_structure(x, edges, np.arange(2)).shape == (2, 2 + len(NAMES))
    with pytest.raises(UserError, match="features and those made from edges"):
        with_structure(x.to_sparse_coo(), edges, np.arange(2))


def test_made_features_follow_the_ids_and_not_the_order() -> None:
    edges = np.array([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    both = np.concatenate([edges, edges[::-1]], 1)
    order = np.array([3, 1, 4, 0, 5, 2])  # node k is now at place order[k]
    one = structural_features(both, np.arange(6))
    two = structural_features(order[both], np.argsort(order))
    np.testing.assert_allclose(two[order], one, atol=1e-5)
    assert np.array_equal(structure._bits(np.arange(6)), structure._bits(np.arange(6).astype(str)))


def test_a_table_of_names_alone_leaves_the_made_features(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("a,b\nb,c\n")
    (tmp_path / "nodes.csv").write_text("id,name\na,Ann\nb,Bob\nc,Cid\n")
    graph = load(tmp_path / "edges.csv", features=tmp_path / "nodes.csv")
    assert graph.feature_names == NAMES
    assert graph.columns["name"].tolist() == ["Ann", "Bob", "Cid"]


@pytest.mark.parametrize(
    ("columns", "alike"),
    [("a,b\n1,0", True), ("a,b\n0,0", True), ("a,b\n1,{odd}", False), ("a,b\nx,{odd}", False)],
)
def test_features_that_all_nodes_share_are_joined_by_those_made_from_edges(
    columns: str, alike: bool, tmp_path: Path
) -> None:
    header, row = columns.split("\n")
    rows = "".join(f"{k},{row.format(odd=k % 2)}\n" for k in range(8))
    (tmp_path / "nodes.csv").write_text(f"id,{header}\n{rows}")
    (tmp_path / "edges.csv").write_text("".join(f"{k},{(k + 1) % 8}\n" for k in range(8)))
    graph = load(tmp_path / "edges.csv", features=tmp_path / "nodes.csv")
    assert ("all nodes have the same features, which tell nothing" in graph.notes) == alike
    assert (graph.data.x.shape[1] > len(NAMES)) == alike
    again = load(tmp_path / "edges.csv", features=tmp_path / "nodes.csv", encoding=graph.encoding)
    torch.testing.assert_close(again.data.x, graph.data.x)


@pytest.mark.parametrize("sparse", [False, True])
def test_alike_are_rows_with_the_same_numbers_in_the_same_columns(sparse: bool) -> None:
    same = torch.tensor([[0.0, 2.0, 1.0]]).repeat(5, 1)
    other_column, other_value = same.clone(), same.clone()
    other_column[3] = torch.tensor([2.0, 0.0, 1.0])
    other_value[3, 1] = 3.0
    fewer = same.clone()
    fewer[3, 1] = 0.0
    moved = fewer.clone()
    moved[2, 0] = 1.0  # as many entries in all
    for x, alike in ((same, True), (torch.zeros(4, 3), True), (other_column, False),
                     (other_value, False), (fewer, False), (moved, False)):  # fmt: skip
        assert structure.all_alike(x.to_sparse_coo() if sparse else x) == alike
