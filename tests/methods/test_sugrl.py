"""SUGRL: the objective against loops, its gradients and its sampling."""

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data

from muxgcl.augment import drop_entries
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import Context
from muxgcl.methods.sugrl import (
    Sugrl,
    SugrlConfig,
    sample_neighbours,
    triplet_terms,
)
from muxgcl.sparse import SparseMatrix

GRAPH = Graph.from_data(planted(nodes=40, isolated=3))


def distance(a: Tensor, b: Tensor) -> float:
    return math.sqrt(sum((float(x) - float(y) + 1e-6) ** 2 for x, y in zip(a, b, strict=True)))


def test_the_terms_are_those_of_the_paper_in_loops() -> None:
    n, k, margin, slack = 6, 3, 0.8, 0.2
    anchor, near, also = torch.randn(3, n, 4, dtype=torch.float64)
    negatives = list(torch.randn(k, n, 4, dtype=torch.float64))
    one = two = bound = 0.0
    for far in negatives:
        for i in range(n):
            push = distance(anchor[i], far[i])
            one += max(0.0, distance(anchor[i], near[i]) - push + margin) / n
            two += max(0.0, distance(anchor[i], also[i]) - push + margin) / n
            bound += max(0.0, push - distance(anchor[i], near[i]) - margin - slack) / k
    got = triplet_terms(anchor, near, also, negatives, (margin, slack))
    assert_close(torch.stack(got), torch.tensor([one, two, bound], dtype=torch.float64))


def test_the_bound_gives_the_positive_no_gradient_and_the_negatives_some() -> None:
    anchor, near, far = (torch.randn(5, 4, requires_grad=True) for _ in range(3))
    *_, bound = triplet_terms(anchor, near, near, [far * 10], (0.1, 0.1))
    bound.backward()
    assert near.grad is None
    assert far.grad is not None
    assert far.grad.abs().sum() > 0


def test_ranking_terms_are_means_and_the_bound_is_a_sum_over_nodes() -> None:
    anchor, near, also, far = torch.randn(4, 5, 4)
    once = triplet_terms(anchor, near, also, [far], (0.5, 0.0))
    doubled = (table.repeat(2, 1) for table in (anchor, near, also))
    twice = triplet_terms(*doubled, [far.repeat(2, 1)], (0.5, 0.0))
    assert_close(twice[0], once[0])
    assert_close(twice[1], once[1])
    assert_close(twice[2], 2 * once[2])


def test_sampled_neighbours_are_neighbours_or_the_node_itself_all_alike_often() -> None:
    counts = torch.zeros(40, 40)
    drawn = sample_neighbours(GRAPH, 3000)
    counts.scatter_add_(1, drawn, torch.ones_like(drawn, dtype=torch.float))
    adjacency = GRAPH.adjacency
    want = torch.zeros(40, 40)
    want[adjacency.row, adjacency.col] = 1.0
    assert_close(counts / 3000, want / want.sum(1, keepdim=True), rtol=0, atol=0.05)
    assert ((counts > 0) <= (want > 0)).all()


def test_dropout_hits_the_same_entries_of_sparse_features_and_of_their_transpose() -> None:
    x = torch.zeros(40, 90)
    x[torch.arange(200) % 40, torch.arange(200) * 7 % 90] = torch.rand(200) + 1
    graph = Graph.from_data(Data(x=x, edge_index=planted(nodes=40).edge_index))
    assert isinstance(graph.features, SparseMatrix)
    dropped = drop_entries(graph.features, 0.4)
    assert isinstance(dropped, SparseMatrix)
    rows = dropped.matrix.multiply(torch.eye(90))
    assert torch.equal(dropped.transpose.multiply(torch.eye(40)), rows.T)
    assert_close(rows[rows != 0], (x / 0.6)[rows != 0])
    assert 0.2 < float((rows == 0)[x != 0].float().mean()) < 0.6


def test_the_embedding_is_the_propagated_perceptron() -> None:
    method = Sugrl(GRAPH, SugrlConfig(widths=(16, 4), row_normalize=False), Context())
    x = GRAPH.dense_features()
    hidden = (x @ method.kernels[0]).relu() @ method.kernels[1]
    propagation = GRAPH.adjacency.propagation() @ torch.eye(40)
    assert_close(method.embed(GRAPH), propagation @ hidden)


@pytest.mark.parametrize("wrong", [{"widths": ()}, {"negatives": 0}, {"dropout": 1.0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        SugrlConfig(**wrong)
