"""GGD: the objective in loops, the head as one product, the embedding, the lowest loss."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import Context, total
from muxgcl.methods import ggd as module
from muxgcl.methods.dgi import shuffle
from muxgcl.methods.ggd import Ggd, GgdConfig, keep_exactly, summed
from muxgcl.runs.loop import Trainer
from muxgcl.runs.settings import TrainConfig

GRAPH = Graph.from_data(planted(nodes=40, isolated=2))


def test_a_logit_is_the_sum_of_the_heads_outputs() -> None:
    head, nodes = nn.Linear(6, 6).double(), torch.randn(9, 6, dtype=torch.float64)
    assert_close(summed(head, nodes), head(nodes).sum(1))
    summed(head, nodes).square().sum().backward()
    assert head.weight.grad is not None
    assert_close(head.weight.grad, head.weight.grad[:1].expand(6, 6))  # every row has the same


def propagation() -> Tensor:
    """The normalised adjacency with self-loops, written out."""
    matrix = torch.zeros(40, 40, dtype=torch.float64)
    adjacency = GRAPH.adjacency
    degree = adjacency.rowptr.diff().double()
    for i, j in zip(adjacency.row, adjacency.col, strict=True):
        matrix[i, j] = 1 / (degree[i] * degree[j]).sqrt()
    return matrix


def encoded(method: Ggd, features: Tensor) -> Tensor:
    encoder = method.encoder
    hidden = propagation() @ features @ encoder.weights[0] + encoder.biases[0]
    return torch.where(hidden >= 0, hidden, encoder.act.weight * hidden)


def in_loops(method: Ggd, features: Tensor, order: Tensor) -> float:
    weight, bias = method.head.weight, method.head.bias
    loss = 0.0
    for group, sign in ((features, -1), (features[order], 1)):
        for row in encoded(method, group):
            loss += math.log1p(math.exp(sign * float((weight @ row + bias).sum())))
    return loss / 80


@torch.no_grad()
def test_the_objective_is_the_cross_entropy_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    method = Ggd(GRAPH, GgdConfig(width=6, mask_features=0.0), Context()).double()
    graph = Graph(GRAPH.dense_features().double(), GRAPH.adjacency)
    order = torch.randperm(40)
    monkeypatch.setattr(module, "shuffle", lambda graph: order)
    monkeypatch.setattr(
        module, "keep_exactly", lambda graph, p: torch.ones(graph.num_features).double()
    )
    got = total(method.loss(graph))
    want = in_loops(method, graph.dense_features(), order)
    assert_close(float(got), want, rtol=1e-5, atol=0)  # edges weigh in 32 bits


@torch.no_grad()
def test_the_loss_is_that_of_both_groups_without_the_same_masked_columns() -> None:
    cfg = GgdConfig(
        width=6,
        mask_features=0.5,
        hops=2,
        slope_each=True,
        lowest_loss=False,
        row_normalize=True,
    )
    method = Ggd(GRAPH, cfg, Context()).double()
    for parameter in method.parameters():
        parameter.copy_(torch.randn_like(parameter))
    words = GRAPH.dense_features().double()
    graph = Graph(words, GRAPH.adjacency)
    torch.manual_seed(5)
    got = method.loss(graph)
    torch.manual_seed(5)
    kept, order = keep_exactly(graph, 0.5), shuffle(graph)
    want = in_loops(method, words / words.sum(1, keepdim=True) * kept, order)
    assert_close(float(got["discrimination"]), want, rtol=1e-5, atol=0)


@torch.no_grad()
def test_groups_that_are_the_same_cost_log_2_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "shuffle", lambda graph: torch.arange(graph.num_nodes))
    method = Ggd(GRAPH, GgdConfig(width=6), Context())
    assert total(method.loss(GRAPH)) > math.log(2)
    for parameter in method.head.parameters():
        nn.init.zeros_(parameter)
    assert_close(float(total(method.loss(GRAPH))), math.log(2))


@pytest.mark.parametrize("p", [0.0, 0.2, 0.5])
def test_an_exact_share_of_the_columns_is_masked(p: float) -> None:
    masks = torch.stack([keep_exactly(GRAPH, p) for _ in range(50)])
    assert ((masks == 0).sum(1) == int(p * GRAPH.num_features)).all()
    assert ((masks == 0) | (masks == 1)).all()
    if p:
        assert (masks.mean(0) > 0).all()  # not always the same ones
        assert (masks != masks[0]).any()


@torch.no_grad()
@pytest.mark.parametrize("hops", [0, 1, 3])
@pytest.mark.parametrize("slope_each", [False, True])
def test_the_embedding_adds_its_own_propagation(hops: int, slope_each: bool) -> None:
    cfg = GgdConfig(width=6, hops=hops, slope_each=slope_each, lowest_loss=False)
    method = Ggd(GRAPH, cfg, Context()).double()
    for parameter in method.parameters():
        parameter.copy_(torch.randn_like(parameter))
    graph = Graph(GRAPH.dense_features().double(), GRAPH.adjacency)
    nodes = encoded(method, graph.dense_features())
    far = propagation().matrix_power(hops) @ nodes
    want = nodes + far if hops else nodes
    assert_close(method.embed(graph), want, rtol=1e-5, atol=1e-6)  # edges weigh in 32 bits


@torch.no_grad()
def as_trained(method: Ggd) -> Tensor:
    """The embedding with the weights of the moment."""
    other = Ggd(GRAPH, replace(method.cfg, lowest_loss=False), Context())
    other.load_state_dict(method.state_dict())
    return other.embed(GRAPH).clone()


def test_the_embedding_is_that_of_the_lowest_loss() -> None:
    for lowest in (True, False):
        torch.manual_seed(1)
        method = Ggd(GRAPH, GgdConfig(width=6, lowest_loss=lowest), Context())
        # so fast that the loss goes up and down
        trainer = Trainer(method, GRAPH, TrainConfig(epochs=30, lr=0.5, weight_decay=0.0))
        losses, embeddings = [], []
        blocks = trainer.blocks()
        for _ in range(30):
            embeddings.append(as_trained(method))
            losses.append(next(blocks)[0].loss)
        best = min(range(30), key=losses.__getitem__)
        assert best < 29
        want = embeddings[best] if lowest else as_trained(method)
        assert_close(method.embed(GRAPH), want)


def test_a_slope_for_each_column_or_one_for_all() -> None:
    for each, count in ((True, 6), (False, 1)):
        method = Ggd(GRAPH, GgdConfig(width=6, slope_each=each), Context())
        assert method.encoder.act.weight.numel() == count


def test_settings_out_of_range_are_named() -> None:
    with pytest.raises(UserError, match=r"mask_features must be .* got 1.0"):
        GgdConfig(mask_features=1.0)
    with pytest.raises(UserError, match="hops must not be negative, got -1"):
        GgdConfig(hops=-1)
