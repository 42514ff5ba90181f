"""BGRL: who gets gradients, how the target follows, and the objective in loops."""

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.losses.bootstrap import bootstrap
from muxgcl.methods import Context, total
from muxgcl.methods.bgrl import Bgrl, BgrlConfig

GRAPH = Graph.from_data(planted(nodes=40, isolated=2))
CONFIG = BgrlConfig(widths=(12, 6), predictor=10)


def cosine(a: Tensor, b: Tensor) -> float:
    dot = sum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(float(x) ** 2 for x in a) * sum(float(x) ** 2 for x in b))


def test_the_objective_is_one_minus_the_mean_cosine_in_loops() -> None:
    predicted, target = torch.randn(2, 7, 4, dtype=torch.float64)
    want = 1 - sum(cosine(predicted[i], target[i]) for i in range(7)) / 7
    assert_close(float(bootstrap(predicted, target)), want, rtol=1e-12, atol=0)
    assert_close(float(bootstrap(target * 3, target)), 0.0, rtol=0, atol=1e-12)


def test_no_gradient_reaches_the_target() -> None:
    one, two = (torch.randn(5, 3, requires_grad=True) for _ in range(2))
    bootstrap(one, two).backward()
    assert one.grad is not None
    assert two.grad is None

    method = Bgrl(GRAPH, CONFIG, Context())
    total(method.loss(GRAPH)).backward()
    assert all(p.grad is None for p in method.target.parameters())
    assert all(p.grad is not None for p in method.encoder.parameters())


def test_the_optimizer_holds_all_but_the_target() -> None:
    method = Bgrl(GRAPH, CONFIG, Context(epochs=20))
    held = {id(p) for p in method.optimizer(0.1, 0.0).parameters}
    targets = {id(p) for p in method.target.parameters()}
    assert held == {id(p) for p in method.parameters()} - targets


def test_the_target_begins_with_weights_of_its_own() -> None:
    method = Bgrl(GRAPH, CONFIG, Context())
    for slow, fast in zip(method.target.weights, method.encoder.weights, strict=True):
        assert not torch.allclose(slow, fast)


def test_the_momentum_goes_from_its_base_to_one() -> None:
    method = Bgrl(GRAPH, CONFIG, Context(epochs=100))
    for step, want in ((0, 0.99), (50, 0.995), (100, 1.0), (25, None)):
        want = want or 1 - 0.01 * (1 + math.cos(math.pi / 4)) / 2
        assert float(method.target_momentum(torch.tensor(float(step)))) == pytest.approx(want)


def test_the_target_follows_as_a_moving_average() -> None:
    method = Bgrl(GRAPH, CONFIG, Context(epochs=4))
    method.optimizer(0.1, 0.0)
    slow = [p.clone() for p in method.target.parameters()]
    fast = [p.clone() for p in method.encoder.parameters()]
    for step in range(4):
        keep = 1 - 0.01 * (1 + math.cos(math.pi * step / 4)) / 2
        slow = [keep * s + (1 - keep) * f for s, f in zip(slow, fast, strict=True)]
        method.after_step()
    assert_close(list(method.target.parameters()), slow)


def test_only_a_training_pass_moves_the_running_statistics() -> None:
    method = Bgrl(GRAPH, CONFIG, Context())
    before = {k: v.clone() for k, v in method.state_dict().items()}
    method.train().embed(GRAPH)
    assert all(torch.equal(v, before[k]) for k, v in method.state_dict().items())
    method.eval().loss(GRAPH)
    for part in ("encoder", "target"):
        name = f"{part}.norms.0.running_mean"
        assert not torch.equal(method.state_dict()[name], before[name])
