"""The encoder and its scales, against a dense calculation written out by hand."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu
from torch.testing import assert_close
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from muxgcl.augment import Corrupt, View, both, clean
from muxgcl.errors import UserError
from muxgcl.graph import SPARSE_BELOW, Degrees, Graph
from muxgcl.nn.gcn import GCN
from muxgcl.nn.projector import Projector
from muxgcl.sparse import SparseMatrix


def small_graph(n: int = 12, f: int = 6, *, sparse: bool = False) -> Data:
    x = (torch.rand(n, f) < (SPARSE_BELOW / 2 if sparse else 0.5)).float()
    x[3] = 0  # no features
    edges = torch.randint(n - 1, (2, 30))  # the last node is isolated
    return Data(x=x, edge_index=edges)


def dense_propagation(view: View) -> Tensor:
    return view.propagation @ torch.eye(view.propagation.shape[0])


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("act", "slope"), [("relu", 0.0), ("rrelu", 11 / 48), ("prelu", 0.25)])
def test_scales_are_layers_carried_through_the_remaining_weights(
    layers: int, act: str, slope: float
) -> None:
    """With a slope below 0 nothing that went wrong inside can hide behind a zero."""
    graph = Graph.from_data(small_graph())
    encoder = GCN(6, 4, layers=layers, act=act)
    for bias in encoder.biases:
        torch.nn.init.normal_(bias)
    view = Corrupt(0.3, 0.3)(graph)
    a = dense_propagation(view)
    x = graph.dense_features() * view.kept_columns
    hidden = [x]
    for weight, bias in zip(encoder.weights, encoder.biases, strict=True):
        hidden.append(leaky_relu(a @ hidden[-1] @ weight + bias, slope))
    scales = encoder(view)
    assert sorted(scales) == list(range(layers + 1))
    for k in range(layers + 1):
        carried = hidden[k]
        for weight in encoder.weights[k:]:
            carried = carried @ weight
        want = carried if k in (0, layers) else leaky_relu(carried, slope)
        assert_close(scales[k], want)
    assert_close(encoder.embed(view), scales[layers])


def test_the_last_scale_is_a_stack_of_graph_convolutions() -> None:
    data = small_graph()
    graph = Graph.from_data(data)
    encoder = GCN(6, 4, layers=2)
    edges = graph.adjacency.edge_index
    hidden = graph.dense_features()
    for weight, bias in zip(encoder.weights, encoder.biases, strict=True):
        layer = GCNConv(*weight.shape)
        layer.lin.weight.data = weight.data.T.contiguous()
        layer.bias.data = bias.data
        hidden = layer(hidden, edges).relu()
    assert_close(encoder.embed(clean(graph)), hidden)


def test_only_the_wanted_scales_are_computed() -> None:
    graph = Graph.from_data(small_graph())
    encoder = GCN(6, 4, layers=3)
    assert sorted(encoder(clean(graph), {1})) == [1, 3]
    assert_close(encoder(clean(graph), {1})[1], encoder(clean(graph))[1])


@pytest.mark.parametrize("act", ["relu", "prelu", "rrelu"])
def test_permuting_nodes_permutes_every_scale(act: str) -> None:
    data = small_graph()
    encoder = GCN(6, 4, layers=2, act=act)
    order = torch.randperm(12)
    place = order.argsort()  # old node -> its new number
    moved = Data(x=data.x[order], edge_index=place[data.edge_index])
    before, after = (encoder(clean(Graph.from_data(d))) for d in (data, moved))
    for k in before:
        assert_close(after[k], before[k][order])


def test_sparse_and_dense_features_give_the_same_scales() -> None:
    data = small_graph(40, 60, sparse=True)
    graph = Graph.from_data(data)
    assert isinstance(graph.features, SparseMatrix)
    dense = Graph(data.x, graph.adjacency)
    encoder = GCN(60, 4)
    torch.manual_seed(1)
    one = encoder(Corrupt(0.2, 0.3)(graph))
    torch.manual_seed(1)
    two = encoder(Corrupt(0.2, 0.3)(dense))
    for k in one:
        assert_close(one[k], two[k])
    weight_of = [
        torch.autograd.grad(s[2].square().sum(), encoder.weights[0])[0] for s in (one, two)
    ]
    assert_close(*weight_of)


@pytest.mark.parametrize("sparse", [False, True])
def test_two_views_in_one_pass_are_the_two_views_apart(sparse: bool) -> None:
    data = small_graph(20, 60, sparse=sparse)
    graph = Graph.from_data(data)
    view = both(graph, [Corrupt(0.2, 0.1), Corrupt(0.5, 0.4)])
    encoder = GCN(60, 4)
    together = encoder(view)
    values = view.propagation.matrix.value.chunk(2)
    for v, rows in enumerate((slice(0, 20), slice(20, 40))):
        one = View(graph.adjacency.matrix(values[v]), graph.features, view.kept_columns[v])
        for k, nodes in encoder(one).items():
            assert_close(together[k][rows], nodes)
    edges = ~graph.adjacency.loop
    shares = [float((v[edges] > 0).float().mean()) for v in values]
    assert shares[0] > shares[1]  # the second view drops more


def test_isolated_and_featureless_nodes_stay_finite() -> None:
    graph = Graph.from_data(small_graph())
    unit = Projector(4, 4)(GCN(6, 4).embed(clean(graph)))
    assert torch.isfinite(unit).all()


def test_a_view_has_the_graphs_shape_and_leaves_it_alone() -> None:
    graph = Graph.from_data(small_graph())
    before = graph.adjacency.weight.clone()
    view = Corrupt(0.5, 0.5)(graph)
    assert view.propagation.matrix.value.shape == before.shape
    assert_close(graph.adjacency.weight, before)


def test_a_dropped_edge_leaves_the_degree() -> None:
    """With every edge dropped but the loops, propagation is the identity."""
    graph = Graph.from_data(small_graph())
    weight = graph.adjacency.weight * graph.adjacency.loop
    assert_close(
        dense_propagation(View(graph.adjacency.propagation(weight), graph.features)), torch.eye(12)
    )


@pytest.mark.parametrize("degrees", ["received", "sent", "each"])
def test_an_edge_is_divided_by_the_degrees_that_are_asked_for(degrees: Degrees) -> None:
    graph = Graph.from_data(small_graph())
    kept = (torch.rand(len(graph.adjacency.weight)) < 0.6) | graph.adjacency.loop
    weight = graph.adjacency.weight * kept
    dense = graph.adjacency.matrix(weight) @ torch.eye(12)  # row i receives from column j
    received, sent = dense.sum(1), dense.sum(0)
    target = sent if degrees == "sent" else received
    source = received if degrees == "received" else sent
    want = dense / (target[:, None] * source).sqrt()
    assert_close(graph.adjacency.propagation(weight, degrees) @ torch.eye(12), want)
    clean = [graph.adjacency.propagation(None, d) for d in ("received", degrees)]
    assert_close(*(matrix @ torch.eye(12) for matrix in clean))  # a whole graph is symmetric


def test_views_drop_edges_and_columns_at_their_rates() -> None:
    graph = Graph.from_data(small_graph(400, 2000))
    torch.manual_seed(0)
    view = Corrupt(0.3, 0.2)(graph)
    edges = ~graph.adjacency.loop
    kept = (view.propagation.matrix.value[edges] > 0).float().mean()
    assert abs(kept - 0.7) < 0.1
    assert abs(view.kept_columns.mean() - 0.8) < 0.05


def test_the_gradient_of_propagation_is_its_transpose() -> None:
    graph = Graph.from_data(small_graph())
    matrix = Corrupt(0.5, 0.0)(graph).propagation  # asymmetric
    dense = matrix @ torch.eye(12)
    assert not torch.equal(dense, dense.T)
    x, upstream = torch.randn(12, 3, requires_grad=True), torch.randn(12, 3)
    (got,) = torch.autograd.grad(matrix @ x, x, upstream)
    assert_close(got, dense.T @ upstream)


def test_graphs_are_made_undirected_without_loops_and_duplicates() -> None:
    edges = torch.tensor([[0, 0, 1, 2], [1, 1, 0, 2]])
    graph = Graph.from_data(Data(x=torch.eye(3), edge_index=edges))
    assert graph.adjacency.edge_index.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (Data(x=torch.eye(3), edge_index=torch.tensor([[0], [3]])), "node 3"),
        (Data(x=torch.eye(3), edge_index=torch.tensor([[0], [-1]])), "node -1"),
        (Data(x=torch.full((3, 2), torch.nan), edge_index=torch.zeros(2, 0).long()), "node 0"),
        (Data(x=torch.tensor([[1.0], [torch.inf]]), edge_index=torch.zeros(2, 0).long()), "node 1"),
        (Data(x=torch.zeros(0, 2), edge_index=torch.zeros(2, 0).long()), "no nodes"),
        (Data(edge_index=torch.zeros(2, 0).long(), num_nodes=3), "features"),
    ],
)
def test_a_bad_graph_is_refused_at_the_door(data: Data, words: str) -> None:
    with pytest.raises(UserError, match=words):
        Graph.from_data(data)


@pytest.mark.parametrize("bad", [{"layers": 0}, {"act": "gelu"}])
def test_bad_encoder_settings_are_named(bad: dict) -> None:
    with pytest.raises(UserError):
        GCN(6, 4, **bad)


def test_a_drop_rate_outside_zero_to_one_is_refused() -> None:
    with pytest.raises(UserError, match=r"drop_edges .* got 1\.0"):
        Corrupt(1.0, 0.0)


def test_padded_features_change_nothing() -> None:
    graph = Graph.from_data(small_graph(12, 6))
    view = clean(graph)
    padded = View(view.propagation, torch.nn.functional.pad(graph.features, (0, 2)))
    encoder = GCN(6, 4)
    for k, nodes in encoder(view).items():
        assert_close(encoder(padded)[k], nodes)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 7, 20, 99])
@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_of_rows_are_the_embedding(layers: int, rows: int, sparse: bool) -> None:
    view = clean(Graph.from_data(small_graph(20, 60, sparse=sparse)))
    encoder = GCN(60, 5, layers=layers, act="prelu")
    for bias in encoder.biases:
        torch.nn.init.normal_(bias)
    with torch.no_grad():
        blocks = [*encoder.embed_blocks(view, rows)]
        assert_close(torch.cat(blocks), encoder.embed(view))
    assert [len(block) for block in blocks[:-1]] == [rows] * (-(-20 // rows) - 1)
