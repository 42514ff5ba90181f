"""SGRL: both objectives, who gets which gradient, the order of a step, the lowest loss."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.testing import assert_close

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import Context, total
from muxgcl.methods.sgrl import Sgrl, SgrlConfig, scatter
from muxgcl.nn.adam import Adam
from muxgcl.runs.loop import Trainer
from muxgcl.runs.settings import TrainConfig

GRAPH = Graph.from_data(planted(nodes=40, isolated=2))


def made(**changes) -> Sgrl:
    torch.manual_seed(0)
    return Sgrl(GRAPH, SgrlConfig(**{"width": 6} | changes), Context())


def weights(method: Sgrl) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in method.named_parameters()}


def test_scattering_is_one_minus_the_mean_cosine_of_all_pairs() -> None:
    nodes = torch.randn(9, 4, dtype=torch.float64)
    rows = normalize(nodes, dim=1)
    pairs = [float(a @ b) for a in rows for b in rows]
    centre = sum(rows) / 9
    in_loops = sum(float((row - centre) @ (row - centre)) for row in rows) / 9
    assert_close(float(scatter(nodes)), in_loops)
    assert_close(float(scatter(nodes)), 1 - sum(pairs) / 81)
    assert_close(float(scatter(nodes)), 1 - float(centre @ centre))


def test_scattering_pushes_each_row_from_the_mean() -> None:
    rows = normalize(torch.randn(9, 4, dtype=torch.float64), dim=1).requires_grad_()
    (gradient,) = torch.autograd.grad(-scatter(rows), rows)
    along = 2 * rows.detach().mean(0) / 9  # of which only what is across a row remains
    want = along - (rows @ along)[:, None] * rows
    assert_close(gradient, want.detach())


@torch.no_grad()
def test_the_target_objective_is_0_of_equal_rows_and_minus_1_of_antipodal_ones() -> None:
    method, lengths = made(), torch.rand(40, 1) + 0.1

    def objective(rows: Tensor) -> float:
        method.target.embed = lambda view: lengths * rows  # type: ignore[method-assign]
        return float(method.loss(GRAPH)["target"])

    row = torch.randn(6)
    assert_close(objective(row.expand(40, 6)), 0.0, rtol=0, atol=1e-6)
    signs = torch.tensor([1.0, -1.0]).repeat(20)
    assert_close(objective(signs[:, None] * row), -1.0, rtol=0, atol=1e-6)
    between = [objective(torch.randn(40, 6) + shift) for shift in (0.0, 0.5, 2.0, 10.0)]
    assert -1 < between[0] < between[1] < between[2] < between[3] < 0


def propagation() -> Tensor:
    """The normalised adjacency with self-loops, written out."""
    matrix = torch.zeros(40, 40, dtype=torch.float64)
    adjacency = GRAPH.adjacency
    degree = adjacency.rowptr.diff().double()
    for i, j in zip(adjacency.row, adjacency.col, strict=True):
        matrix[i, j] = 1 / (degree[i] * degree[j]).sqrt()
    return matrix


def prelu(hidden: Tensor, slope: Tensor) -> Tensor:
    return torch.where(hidden >= 0, hidden, slope * hidden)


@torch.no_grad()
@pytest.mark.parametrize("hops", [0, 1, 2])
def test_both_objectives_are_those_of_the_networks_written_out(hops: int) -> None:
    method = made(hops=hops, lowest_loss=False).double()
    for parameter in method.parameters():
        parameter.copy_(torch.randn_like(parameter))
    at = dict(method.named_parameters())
    features = GRAPH.dense_features().double()

    def encoded(encoder: str) -> Tensor:
        hidden = propagation() @ features @ at[f"{encoder}.weights.0"] + at[f"{encoder}.biases.0"]
        return prelu(hidden, at[f"{encoder}.act.weight"])

    nodes, target = encoded("encoder"), encoded("target")
    smooth = nodes + propagation().matrix_power(hops) @ nodes if hops else nodes
    hidden = smooth @ at["predictor.0.weight"].T + at["predictor.0.bias"]
    hidden = prelu(hidden, at["predictor.1.weight"])
    predicted = hidden @ at["predictor.2.weight"].T + at["predictor.2.bias"]
    rows = target / target.norm(dim=1, keepdim=True)
    cosine = (predicted * rows).sum(1) / predicted.norm(dim=1)
    graph = Graph(features, GRAPH.adjacency)
    terms = method.loss(graph)
    close = {"rtol": 1e-5, "atol": 1e-6}  # edges weigh in 32 bits
    assert_close(terms["online"], -cosine.mean(), **close)
    assert_close(terms["target"], -(rows - rows.mean(0)).square().sum(1).mean(), **close)
    assert_close(method.embed(graph), smooth, **close)


def test_each_objective_trains_its_own_encoder() -> None:
    method = made()
    terms = method.loss(GRAPH)
    terms["online"].backward(retain_graph=True)
    assert all(p.grad is None for p in method.target.parameters())
    method.zero_grad()
    terms["target"].backward()
    assert all(p.grad is None for p in method.encoder.parameters())
    assert all(p.grad is not None for p in method.target.parameters())
    assert all(p.grad is None for p in method.predictor.parameters())


def test_a_step_is_online_then_following_then_target() -> None:
    method = made(momentum=0.9, target_lr=0.02)
    optimizer = method.optimizer(0.01, 0.0)
    before = weights(method)
    total(method.loss(GRAPH)).backward()
    grads = {name: p.grad.clone() for name, p in method.named_parameters() if p.grad is not None}
    optimizer.step()

    def stepped(value: Tensor, gradient: Tensor, lr: float) -> Tensor:
        parameter = torch.nn.Parameter(value.clone())
        parameter.grad = gradient.clone()
        Adam([parameter], lr).step()
        return parameter.detach()

    found = weights(method)
    slope, target_slope = "encoder.act.weight", "target.act.weight"
    for name in ("weights.0", "biases.0"):
        online = stepped(before[f"encoder.{name}"], grads[f"encoder.{name}"], 0.01)
        assert_close(found[f"encoder.{name}"], online)
        followed = 0.9 * before[f"target.{name}"] + 0.1 * online
        want = stepped(followed, grads[f"target.{name}"], 0.02)
        assert_close(found[f"target.{name}"], want)
    first = stepped(before[slope], grads[slope], 0.01)
    second = stepped(first, grads[slope] + grads[target_slope], 0.02)
    assert_close(found[slope], second)
    assert torch.equal(found[slope], found[target_slope])


def test_the_encoders_begin_apart_but_with_one_slope() -> None:
    method = made()
    assert not torch.allclose(method.encoder.weights[0], method.target.weights[0])
    assert torch.equal(method.encoder.act.weight, method.target.act.weight)
    trainer = Trainer(method, GRAPH, TrainConfig(epochs=5, lr=0.01, weight_decay=0.0))
    list(trainer.blocks())
    assert torch.equal(method.encoder.act.weight, method.target.act.weight)
    assert not torch.equal(method.encoder.act.weight, torch.tensor([0.25]))


def test_the_embedding_is_that_of_the_lowest_online_loss() -> None:
    for lowest in (True, False):
        method = made(lowest_loss=lowest)
        # so fast that the loss goes up and down
        trainer = Trainer(method, GRAPH, TrainConfig(epochs=30, lr=0.5, weight_decay=0.0))
        losses, embeddings = [], []
        blocks = trainer.blocks()
        for _ in range(30):
            embeddings.append(method.smoothed(method.encoder, GRAPH).detach())
            losses.append(next(blocks)[0].terms["online"])
        best = min(range(30), key=losses.__getitem__)
        assert best < 29
        want = embeddings[best] if lowest else method.smoothed(method.encoder, GRAPH)
        assert_close(method.embed(GRAPH), want)


def test_settings_out_of_range_are_named() -> None:
    with pytest.raises(UserError, match="hops must not be negative, got -1"):
        SgrlConfig(hops=-1)
    with pytest.raises(UserError, match=r"momentum must be .* got 1.5"):
        SgrlConfig(momentum=1.5)
    with pytest.raises(UserError, match=r"target_lr must be positive, got 0.0"):
        SgrlConfig(target_lr=0.0)
