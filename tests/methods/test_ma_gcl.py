import pytest
import torch
from torch.testing import assert_close

from muxgcl.augment import clean
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.methods import Context
from muxgcl.methods.ma_gcl import Filters, MaGcl, MaGclConfig
from muxgcl.nn.gcn import GCN


@pytest.fixture
def graph() -> Graph:
    return Graph.from_data(planted(nodes=40, isolated=1))


def filters(graph: Graph) -> Filters:
    found = Filters([graph.num_features, 12, 12], "relu")
    with torch.no_grad():
        for bias in found.biases:
            bias.normal_()  # zero at the start: a test would not see it
    return found


def dense(graph: Graph) -> torch.Tensor:
    propagation = graph.adjacency.propagation()
    return propagation @ torch.eye(graph.num_nodes)


def test_no_step_is_a_graph_convolution(graph: Graph) -> None:
    mine = filters(graph)
    gcn = GCN(graph.num_features, 12, hidden=12, final_activation=False)
    gcn.load_state_dict(mine.state_dict())
    assert_close(mine(clean(graph), torch.tensor([0, 0])), gcn.embed(clean(graph)))


def test_one_step_halves_the_way_to_a_convolution(graph: Graph) -> None:
    mine = filters(graph)
    a, x = dense(graph), graph.dense_features()
    half = (torch.eye(graph.num_nodes) + a) / 2
    hidden = (half @ x @ mine.weights[0] + mine.biases[0] / 2).relu()
    want = half @ hidden @ mine.weights[1] + mine.biases[1] / 2
    assert_close(mine(clean(graph), torch.tensor([1, 1])), want)


def test_c_steps_add_the_bias_c_times(graph: Graph) -> None:
    mine = filters(graph)
    y = graph.dense_features() @ mine.weights[0]
    a = dense(graph)
    for _ in range(5):
        y = 0.5 * y + 0.5 * (a @ y + mine.biases[0])
    want = a @ (y.relu() @ mine.weights[1]) + mine.biases[1]
    assert_close(mine(clean(graph), torch.tensor([5, 0])), want)


def test_loss_is_inter_view_info_nce_from_the_first_view(graph: Graph) -> None:
    still = {"drop_edges": (0.0, 0.0), "mask_features": (0.0, 0.0)}
    cfg = MaGclConfig(width=12, temperature=0.3, steps_one=(1, 1), steps_two=(4, 4), **still)
    method = MaGcl(graph, cfg, Context())
    u, v = (
        torch.nn.functional.normalize(method.encoder(clean(graph), torch.tensor([c, c]))).double()
        for c in (1, 4)
    )
    want = 0.0
    for i in range(graph.num_nodes):
        others = sum(((u[i] @ v[j]) / 0.3).exp() for j in range(graph.num_nodes))
        want -= torch.log(((u[i] @ v[i]) / 0.3).exp() / others) / graph.num_nodes
    assert_close(method.loss(graph)["contrast"].double(), want, rtol=1e-5, atol=1e-6)


def test_steps_are_drawn_per_layer_and_view_between_both_bounds(graph: Graph, monkeypatch) -> None:
    method = MaGcl(graph, MaGclConfig(width=4, steps_one=(0, 1), steps_two=(2, 4)), Context())
    seen = []
    real = Filters.forward
    monkeypatch.setattr(
        Filters,
        "forward",
        lambda self, view, counts, most: seen.append(counts.tolist()) or real(self, view, counts),
    )
    for _ in range(60):
        method.loss(graph)
    assert {tuple(s) for s in seen[::2]} == {(a, b) for a in (0, 1) for b in (0, 1)}
    assert {tuple(s) for s in seen[1::2]} == {(a, b) for a in (2, 3, 4) for b in (2, 3, 4)}


@pytest.mark.parametrize("counts", [[0, 3], [1, 0], [5, 2], [7, 7]])
def test_steps_beyond_the_count_have_no_effect(graph: Graph, counts: list[int]) -> None:
    mine, view, wanted = filters(graph), clean(graph), torch.tensor(counts)
    outputs = [mine(view, wanted), mine(view, wanted, 7)]
    assert_close(*outputs, rtol=0, atol=0)
    grads = [torch.autograd.grad(out.square().sum(), list(mine.parameters())) for out in outputs]
    assert_close(*grads, rtol=0, atol=0)


def test_edges_of_a_view_are_divided_by_what_their_ends_send(graph: Graph) -> None:
    method = MaGcl(graph, MaGclConfig(width=12, drop_edges=(0.5, 0.5)), Context())
    for rates in method.views:
        found = rates(graph).propagation @ torch.eye(graph.num_nodes)
        weight = (found > 0).float()  # row i receives from column j
        sent = weight.sum(0)
        assert (sent != weight.sum(1)).any()
        assert_close(found, weight / (sent[:, None] * sent).sqrt())


def test_embedding_takes_two_steps_in_every_layer(graph: Graph) -> None:
    method = MaGcl(graph, MaGclConfig(width=12), Context())
    assert_close(method.embed(graph), method.encoder(clean(graph), torch.tensor([2, 2])))


@pytest.mark.parametrize("wrong", [{"steps_one": (2, 1)}, {"steps_two": (-1, 1)}])
def test_bounds_that_do_not_grow_are_named(wrong: dict[str, tuple[int, int]]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        MaGclConfig(**wrong)
