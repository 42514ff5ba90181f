"""Graph auto-encoders against loops and closed forms."""

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.testing import assert_close

from muxgcl.affinity import Vgae
from muxgcl.affinity.autoencoder import one_direction, reconstruction
from muxgcl.augment import clean
from muxgcl.graph import Adjacency, Graph
from muxgcl.io import planted


@pytest.fixture
def graph() -> Graph:
    return Graph.from_data(planted(nodes=24, classes=2, features=12, isolated=2))


def test_each_edge_is_listed_once(graph: Graph) -> None:
    found = {tuple(pair) for pair in one_direction(graph.adjacency).T.tolist()}
    assert found == {(i, j) for i, j in graph.adjacency.edge_index.T.tolist() if i < j}
    assert len(found) == one_direction(graph.adjacency).shape[1]


def test_reconstruction_agrees_with_loops(graph: Graph) -> None:
    z = torch.randn(graph.num_nodes, 3, dtype=torch.float64)
    edges = {tuple(pair) for pair in graph.adjacency.edge_index.T.tolist()}

    def log_sigmoid(i: int, j: int, sign: int) -> float:
        return -math.log1p(math.exp(-sign * float(z[i] @ z[j])))

    torch.manual_seed(5)
    drawn = torch.randint_like(one_direction(graph.adjacency), graph.num_nodes).T.tolist()
    strangers = [(i, j) for i, j in drawn if i != j and (i, j) not in edges]
    assert 0 < len(strangers) < len(drawn)
    told = [log_sigmoid(i, j, 1) for i, j in edges]
    untold = [log_sigmoid(i, j, -1) for i, j in strangers]
    torch.manual_seed(5)
    found = reconstruction(z, graph.adjacency).item()
    assert_close(found, -sum(told) / len(told) - sum(untold) / len(untold))


def test_the_divergence_is_that_of_two_gaussians(graph: Graph) -> None:
    model = Vgae(graph.num_features, 6)
    mean, log_std = model.encoder.embed(clean(graph)).chunk(2, 1)
    want = kl_divergence(Normal(mean, log_std.exp()), Normal(0, 1)).sum(1).mean()
    assert_close(model.loss(graph)["divergence"], want / graph.num_nodes)


def test_the_embedding_is_the_mean_and_training_sees_samples(graph: Graph) -> None:
    model = Vgae(graph.num_features, 6)
    assert model.embed(graph).shape == (24, 6)
    assert_close(model.embed(graph), model.encoder.embed(clean(graph))[:, :6])
    torch.manual_seed(1)
    one = model.loss(graph)["reconstruction"]
    torch.manual_seed(1)
    again = model.loss(graph)["reconstruction"]
    assert_close(one, again)
    assert model.loss(graph)["reconstruction"] != one


def test_a_huge_spread_stays_finite(graph: Graph) -> None:
    model = Vgae(graph.num_features, 6)
    with torch.no_grad():
        model.encoder.biases[-1][6:] = 1e4
    assert all(torch.isfinite(term) for term in model.loss(graph).values())


def test_without_variation_there_is_no_divergence(graph: Graph) -> None:
    model = Vgae(graph.num_features, 6, variational=False)
    assert list(model.loss(graph)) == ["reconstruction"]
    assert model.embed(graph).shape == (24, 6)


@pytest.mark.parametrize("edges", [[], [(0, 1), (0, 2), (1, 2)]])
def test_neither_no_edge_nor_every_edge_breaks_it(edges: list[tuple[int, int]]) -> None:
    index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    graph = Graph(torch.eye(3), Adjacency.from_edges(index, 3))
    model = Vgae(3, 4)
    torch.stack(list(model.loss(graph).values())).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
