"""BLNN: the objective in loops, its bounds, and how it reduces to BGRL."""

import math

import pytest
import torch
from torch.nn.functional import normalize
from torch.testing import assert_close
from torch_geometric.data import Data

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import Context, total
from muxgcl.methods.bgrl import Bgrl, BgrlConfig
from muxgcl.methods.blnn import Blnn, BlnnConfig, attention

DATA = planted(nodes=40, isolated=2)
GRAPH = Graph.from_data(DATA)
SMALL = {"widths": (12, 6), "predictor": 10}
EDGES = GRAPH.adjacency.edge_index.T.tolist()


def made(seed: int = 0, graph: Graph = GRAPH, **changes) -> Blnn:
    torch.manual_seed(seed)
    return Blnn(graph, BlnnConfig(**SMALL | changes), Context(epochs=10))


def test_weights_are_a_softmax_over_the_neighbours_of_each_target() -> None:
    one, two = (normalize(torch.randn(40, 5, dtype=torch.float64), dim=1) for _ in range(2))
    got = attention(one, two, GRAPH.adjacency, 0.7) @ torch.eye(40, dtype=torch.float64)
    score = {(s, t): math.exp(float(one[s] @ two[t]) / 0.7) for s, t in EDGES}
    want = torch.zeros(40, 40, dtype=torch.float64)
    for s, t in EDGES:
        want[t, s] = score[s, t] / sum(v for (_, other), v in score.items() if other == t)
    assert_close(got, want, rtol=1e-6, atol=1e-8)  # CSR holds 32 bits on the way


def test_at_a_high_temperature_all_neighbours_count_the_same() -> None:
    one, two = (normalize(torch.randn(40, 5), dim=1) for _ in range(2))
    weights = attention(one, two, GRAPH.adjacency, 1e6)
    degree = (GRAPH.adjacency.rowptr.diff() - 1)[GRAPH.adjacency.row]
    want = torch.where(GRAPH.adjacency.loop, 0.0, 1 / degree)
    assert_close(weights.matrix.value, want)


@pytest.mark.parametrize("second", ["paper", "released"])
@torch.no_grad()
def test_the_objective_is_the_formula_in_loops(second: str) -> None:
    method = made(drop_edges=(0.0, 0.0), mask_features=(0.0, 0.5), temperature=0.7, second=second)
    torch.manual_seed(5)
    got = method.loss(GRAPH)
    torch.manual_seed(5)
    views = [view(GRAPH) for view in method.bgrl.views]
    y1, y2 = (normalize(method.bgrl.target(view), dim=1) for view in views)
    q1, q2 = (normalize(method.bgrl.predictor(method.bgrl.encoder(view)), dim=1) for view in views)
    if second == "released":
        q2 = q1
    own = sum(float(q1[i] @ y2[i] + q2[i] @ y1[i]) for i in range(40)) / 40
    score = {(s, t): math.exp(float(y1[s] @ y2[t]) / 0.7) for s, t in EDGES}
    near = 0.0
    for s, t in EDGES:
        weight = score[s, t] / sum(v for (_, other), v in score.items() if other == t)
        near += weight * float(q1[s] @ y2[t] + q2[s] @ y1[t]) / 40
    assert_close(float(got["nodes"]), 2 - own, rtol=1e-4, atol=1e-5)
    assert_close(float(got["neighbours"]), -near, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_no_loss_is_below_that_of_perfect_predictions() -> None:
    isolated = float((GRAPH.adjacency.rowptr.diff() == 1).float().mean())
    assert 0 < isolated < 1
    method = made()
    ones = torch.nn.Module()
    ones.forward = lambda nodes: torch.ones(len(nodes), 6)  # type: ignore[method-assign]
    method.bgrl.predictor = ones
    method.bgrl.target.forward = lambda view: torch.ones(40, 6)  # type: ignore[method-assign]
    assert_close(float(total(method.loss(GRAPH))), -2 * (1 - isolated), rtol=1e-5, atol=0)


def test_without_edges_it_is_bgrl() -> None:
    alone = Graph.from_data(Data(x=DATA.x, edge_index=DATA.edge_index[:, :0]))
    method = made(graph=alone)
    bgrl = Bgrl(alone, BgrlConfig(**SMALL), Context(epochs=10))
    bgrl.load_state_dict(method.bgrl.state_dict())
    found = []
    for each in (method, bgrl):
        torch.manual_seed(3)
        loss = total(each.loss(alone))
        found.append((loss, torch.autograd.grad(loss, list(_encoder(each).parameters()))))
    assert_close(*found)


def _encoder(method: Blnn | Bgrl) -> torch.nn.Module:
    return method.bgrl.encoder if isinstance(method, Blnn) else method.encoder


def test_in_released_mode_view_2_gives_no_gradient_but_moves_the_statistics() -> None:
    for second in ("paper", "released"):
        found = []
        for drop in (0.1, 0.8):  # only view 2 differs
            method = made(drop_edges=(0.0, drop), mask_features=(0.0, 0.0), second=second)
            for target in method.bgrl.target.parameters():
                torch.nn.init.zeros_(target)  # then targets do not tell the views apart
            torch.nn.init.ones_(method.bgrl.target.norms[-1].bias)
            total(method.loss(GRAPH)).backward()
            found.append(method)
        one, two = (method.bgrl.encoder.weights[0].grad for method in found)
        assert torch.equal(one, two) == (second == "released")
        means = [method.bgrl.encoder.norms[0].running_mean for method in found]
        assert not torch.equal(*means)


def test_no_gradient_reaches_the_target() -> None:
    method = made()
    total(method.loss(GRAPH)).backward()
    assert all(p.grad is None for p in method.bgrl.target.parameters())
    held = {id(p) for p in method.optimizer(0.1, 0.0).parameters}
    assert held == {id(p) for p in method.parameters() if p.requires_grad}


def test_settings_out_of_range_are_named() -> None:
    with pytest.raises(UserError, match=r"temperature must be at least 0.03, got 0.01"):
        BlnnConfig(temperature=0.01)
    with pytest.raises(UserError, match="second must be paper or released, got 'both'"):
        BlnnConfig(second="both")
