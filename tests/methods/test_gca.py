"""GCA: centralities against loops and networkx, drop rates against the formula."""

import math

import networkx
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data

from muxgcl.augment import Corrupt
from muxgcl.graph import Graph
from muxgcl.io import load_dataset
from muxgcl.io.planted import planted
from muxgcl.methods.parts.centrality import (
    HIGHEST,
    adaptive_views,
    centrality,
    column_mass,
    drop_weights,
)
from muxgcl.sparse import SparseMatrix

DATA = planted(nodes=40, features=30, isolated=2, featureless=2)
GRAPH = Graph.from_data(DATA)
KINDS = ("degree", "pagerank", "eigenvector")


def neighbours() -> list[list[int]]:
    lists: list[list[int]] = [[] for _ in range(40)]
    for source, target in DATA.edge_index.T.tolist():
        lists[target].append(source)
    return lists


def test_pagerank_is_the_authors_iteration_in_loops() -> None:
    lists = neighbours()
    x = [1.0] * 40
    for _ in range(10):
        x = [0.15 * x[v] + 0.85 * sum(x[u] / len(lists[u]) for u in lists[v]) for v in range(40)]
    assert_close(centrality(GRAPH, "pagerank", "columns"), torch.tensor(x, dtype=torch.float64))


def test_eigenvector_centrality_is_that_of_networkx() -> None:
    network = networkx.Graph()
    network.add_nodes_from(range(40))
    network.add_edges_from(DATA.edge_index.T.tolist())
    want = networkx.eigenvector_centrality(network, max_iter=5000, tol=1e-12)
    got = centrality(GRAPH, "eigenvector", "edges")
    assert_close(got, torch.tensor([want[v] for v in range(40)]).double(), rtol=1e-5, atol=1e-7)


def test_degree_weights_are_the_formula_in_loops() -> None:
    lists = neighbours()
    edges = [(u, v) for v in range(40) for u in sorted(lists[v])]
    score = [math.log(len(lists[v])) for _, v in edges]
    top, mean = max(score), sum(score) / len(score)
    want = {edge: (top - s) / (top - mean) for edge, s in zip(edges, score, strict=True)}
    weights = drop_weights(GRAPH, "degree")
    adjacency = GRAPH.adjacency
    pairs = zip(adjacency.col.tolist(), adjacency.row.tolist(), strict=True)
    for (source, target), got in zip(pairs, weights.edges.tolist(), strict=True):
        if source != target:
            assert got == pytest.approx(want[source, target], abs=1e-6)

    mass = [sum(len(lists[v]) for v in range(40) if DATA.x[v, f] != 0) for f in range(30)]
    score = [math.log(m) for m in mass]
    top, mean = max(score), sum(score) / len(score)
    assert_close(weights.columns, torch.tensor([(top - s) / (top - mean) for s in score]))


def test_sparse_and_dense_features_have_the_same_column_mass() -> None:
    x = torch.zeros(40, 60)
    x[torch.arange(40), torch.arange(40)] = 2.0
    graph = Graph.from_data(Data(x=x, edge_index=DATA.edge_index))
    assert isinstance(graph.features, SparseMatrix)
    phi = torch.rand(40, dtype=torch.float64)
    assert_close(column_mass(graph, phi), (x != 0).double().T @ phi)


@pytest.mark.parametrize("kind", KINDS)
def test_drop_rates_lie_between_0_and_the_cap_and_average_to_the_wanted_rate(kind: str) -> None:
    weights = drop_weights(GRAPH, kind)
    edges = weights.edges[~GRAPH.adjacency.loop]
    for factors in (edges, weights.columns):
        assert factors.min() >= 0
        assert_close(factors.mean(), torch.tensor(1.0), rtol=1e-4, atol=0)
    view = adaptive_views(GRAPH, weights, [Corrupt(0.5, 0.5)] * 2)
    assert view.kept_columns is not None
    assert set(view.kept_columns.flatten().tolist()) <= {0.0, 1.0}


def test_each_view_drops_as_its_rate_says_and_nothing_more_often_than_the_cap() -> None:
    weights, adjacency = drop_weights(GRAPH, "degree"), GRAPH.adjacency
    columns, edges = torch.zeros(2, 30), torch.zeros(2, len(adjacency.col))
    rates = [Corrupt(0.9, 0.9), Corrupt(0.2, 0.3)]
    for _ in range(400):
        view = adaptive_views(GRAPH, weights, rates)
        assert view.kept_columns is not None
        columns += view.kept_columns / 400
        edges += (view.propagation.matrix.value != 0).view(2, -1) / 400
    for one, of_edges, of_columns in zip(rates, edges, columns, strict=True):
        want = 1 - (one.mask_features * weights.columns).clamp(max=HIGHEST)
        assert_close(of_columns, want, rtol=0, atol=0.11)  # more than four standard errors
        want = 1 - (one.drop_edges * weights.edges).clamp(max=HIGHEST)
        assert_close(of_edges, want.where(~adjacency.loop, 1), rtol=0, atol=0.11)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_finite_and_varied_on_cora(kind: str) -> None:
    graph = Graph.from_data(load_dataset("cora"))
    assert (column_mass(graph, torch.ones(2708).double()) == 0).any()  # its empty column
    weights = drop_weights(graph, kind)
    for factors in (weights.edges, weights.columns):
        assert factors.isfinite().all()
        assert factors.std() > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_where_all_nodes_are_equally_central_the_drop_is_uniform(kind: str) -> None:
    ring = torch.arange(12)
    edges = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
    graph = Graph.from_data(Data(x=torch.eye(12), edge_index=edges))
    weights = drop_weights(graph, kind)
    assert torch.equal(weights.edges, torch.ones_like(weights.edges))
    assert torch.equal(weights.columns, torch.ones(12))


def test_the_direction_into_the_hub_is_kept_and_the_other_dropped() -> None:
    spokes = torch.arange(1, 9)
    hub = torch.zeros_like(spokes)
    edges = torch.stack([torch.cat([hub, spokes]), torch.cat([spokes, hub])])
    graph = Graph.from_data(Data(x=torch.eye(9), edge_index=edges))
    weights = drop_weights(graph, "degree").edges
    into_hub: Tensor = (graph.adjacency.row == 0) & ~graph.adjacency.loop
    assert (weights[into_hub] == 0).all()
    assert (weights[~into_hub & ~graph.adjacency.loop] == 2).all()
