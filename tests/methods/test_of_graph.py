"""What is computed from a graph alone."""

import torch
from torch.testing import assert_close

from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods.parts.of_graph import PerGraphCache, row_normalized
from muxgcl.sparse import SparseMatrix


def test_a_graph_is_asked_about_once_and_another_graph_again() -> None:
    one, two = (Graph.from_data(planted(nodes=30, seed=seed)) for seed in (0, 1))
    asked: list[Graph] = []
    features = PerGraphCache(lambda graph: (asked.append(graph), graph.num_nodes)[1])
    assert [features(g) for g in (one, one, two, one)] == [30, 30, 30, 30]
    assert asked == [one, two, one]


def test_rows_are_divided_by_their_sum_and_zero_rows_stay() -> None:
    x = torch.tensor([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, -2.0]])
    want = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0], [0.5, 0.0, -0.5]])
    edges = planted(nodes=30).edge_index[:, :0]
    dense = Graph.from_data(planted(nodes=30).update({"x": x, "edge_index": edges}))
    assert_close(row_normalized(dense).dense_features(), want)


def test_sparse_and_dense_features_are_scaled_alike_in_both_directions() -> None:
    x = torch.zeros(40, 60)
    x[torch.arange(40), torch.arange(40)] = 2.0
    x[3, 7] = 6.0
    data = planted(nodes=40).update({"x": x})
    graph = Graph.from_data(data)
    assert isinstance(graph.features, SparseMatrix)
    scaled = row_normalized(graph).features
    want = x / x.sum(1, keepdim=True)
    assert_close(scaled.matrix.multiply(torch.eye(60)), want)
    assert_close(scaled.transpose.multiply(torch.eye(40)), want.T)
