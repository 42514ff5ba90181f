"""DMoN: modularity against loops and closed forms."""

import math

import torch
from torch.nn.functional import one_hot
from torch.testing import assert_close
from torch_geometric.data import Data

from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import Context
from muxgcl.methods.dmon import Dmon, DmonConfig, collapse, modularity, without_loops


def two_cliques(size: int) -> Graph:
    inside = torch.combinations(torch.arange(size)).T
    return Graph.from_data(
        Data(x=torch.ones(2 * size, 1), edge_index=torch.cat([inside, inside + size], 1))
    )


def test_two_disjoint_cliques_have_modularity_one_half() -> None:
    edges = without_loops(two_cliques(5))
    true = one_hot(torch.arange(10) // 5, 2).float()
    assert_close(modularity(true, edges), torch.tensor(0.5))
    assert_close(modularity(torch.ones(10, 1), edges), torch.tensor(0.0), rtol=0, atol=1e-6)


def test_modularity_is_the_trace_of_the_paper_in_loops() -> None:
    data = planted(nodes=15)
    soft = torch.rand(15, 4, dtype=torch.float64).softmax(1)
    a = torch.zeros(15, 15, dtype=torch.float64)
    a[data.edge_index[0], data.edge_index[1]] = 1
    degree, total = a.sum(1), float(a.sum())
    want = 0.0
    for i in range(15):
        for j in range(15):
            null = float(degree[i] * degree[j]) / total
            want += (float(a[i, j]) - null) * float(soft[i] @ soft[j]) / total
    edges = without_loops(Graph.from_data(data))
    assert_close(float(modularity(soft, edges)), want, rtol=1e-10, atol=0)


def test_collapse_is_zero_when_balanced_and_largest_in_one_cluster() -> None:
    balanced = one_hot(torch.arange(12) % 4, 4).float()
    assert_close(collapse(balanced), torch.tensor(0.0), rtol=0, atol=1e-6)
    together = one_hot(torch.zeros(12, dtype=torch.long), 4).float()
    assert_close(collapse(together), torch.tensor(math.sqrt(4) - 1))


def test_the_hidden_layer_has_a_skip_weight_a_column() -> None:
    graph = Graph.from_data(planted(nodes=20))
    method = Dmon(graph, DmonConfig(width=6), Context())
    torch.nn.init.uniform_(method.skip)
    torch.nn.init.uniform_(method.bias)
    mixed = graph.dense_features() @ method.weight
    propagation = graph.adjacency.propagation() @ torch.eye(20)
    want = torch.selu(propagation @ mixed + mixed * method.skip + method.bias)
    assert_close(method.embed(graph), want)


def test_its_own_clusters_are_the_largest_assignments_without_dropout() -> None:
    graph = Graph.from_data(planted(nodes=20))
    method = Dmon(graph, DmonConfig(clusters=5, output="clusters", dropout=0.9), Context())
    assert_close(method.assignment(graph), method.embed(graph).argmax(1))


def test_clusters_can_be_the_embedding() -> None:
    graph = Graph.from_data(planted(nodes=20))
    method = Dmon(graph, DmonConfig(clusters=5, output="clusters"), Context())
    z = method.embed(graph)
    assert z.shape == (20, 5)
    assert_close(z.sum(1), torch.ones(20))
