"""Projector and optimizer against plain torch, as the training loop uses them."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.testing import assert_close

from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import METHODS, Context, Method, total
from muxgcl.nn.norm_gcn import NormGCN
from muxgcl.nn.projector import Projector
from muxgcl.runs.loop import Trainer
from muxgcl.runs.settings import TrainConfig, preset, split_settings

TRAINED = [name for name, kind in METHODS.items() if kind.trainable]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.from_data(planted(nodes=30, features=10))


def made(name: str, graph: Graph, epochs: int = 4) -> Method:
    settings = preset(name, "quick", "default") | {"epochs": epochs}
    settings |= {k: 8 for k in ("width", "projection", "projection_out") if k in settings}
    _, cfg = split_settings(settings, TrainConfig, METHODS[name].Config)
    torch.manual_seed(3)
    method = METHODS[name](graph, cfg, Context(epochs=epochs))
    method.prepare(graph)
    return method


def test_the_projector_is_linear_elu_linear_and_unit_rows() -> None:
    projector = Projector(6, 5, 4).double()
    plain = nn.Sequential(nn.Linear(6, 5), nn.ELU(), nn.Linear(5, 4)).double()
    plain[0].load_state_dict(projector.first.state_dict())
    plain[2].load_state_dict(projector.second.state_dict())
    x, upstream = (
        3 * torch.randn(40, 6, dtype=torch.float64),
        torch.randn(40, 4, dtype=torch.float64),
    )
    found = []
    for function in (projector, lambda rows: normalize(plain(rows))):
        leaf = x.clone().requires_grad_()
        out = function(leaf)
        found.append((out, torch.autograd.grad(out, leaf, upstream)))
    assert_close(found[0], found[1])
    assert (plain[0](x) < -1).any()  # where an ELU is no identity


def plainly_trained(method: Method, graph: Graph, optimizer: Any, steps: int) -> list[Tensor]:
    torch.manual_seed(5)
    for _ in range(steps):
        optimizer.zero_grad()
        total(method.loss(graph)).backward()
        optimizer.step()
        method.after_step()
    return weights(method)


def weights(method: Method) -> list[Tensor]:
    """All but biases before a batch normalisation: their gradient is rounding alone."""
    named = method.named_parameters()
    bare = hasattr(method, "encoder") and isinstance(method.encoder, NormGCN)
    return [p.detach().clone() for name, p in named if not (bare and "biases" in name)]


def trained(method: Method, graph: Graph, cfg: TrainConfig) -> list[Tensor]:
    trainer = Trainer(method, graph, cfg)
    torch.manual_seed(5)
    list(trainer.blocks())
    return weights(method)


@pytest.mark.parametrize("name", ["mux-gcl", "grace", "dgi"])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_decayed_step_is_that_of_torchs_adam(
    name: str, decay: float, steps: int, graph: Graph
) -> None:
    method = made(name, graph)
    plain = torch.optim.Adam(method.parameters(), lr=0.01, weight_decay=decay)
    want = plainly_trained(method, graph, plain, steps)
    cfg = TrainConfig(epochs=steps, lr=0.01, weight_decay=decay)
    assert_close(trained(made(name, graph), graph, cfg), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["bgrl", "gbt", "deepwalk"])
def test_a_decayed_step_is_that_of_torchs_adamw_where_decay_is_decoupled(
    name: str, graph: Graph
) -> None:
    steps = 4
    method = made(name, graph, steps)
    rates, kept = [], made(name, graph, steps)
    kept.optimizer(0.05, 0.5)
    for _ in range(steps):
        rates.append(float(kept.schedule.rate))
        kept.schedule.advance()
    live = [p for p in method.parameters() if p.requires_grad]
    plain = torch.optim.AdamW(live, lr=1.0, weight_decay=0.5)
    method.optimizer(0.05, 0.5)  # the schedule alone

    class Scheduled:
        zero_grad = staticmethod(plain.zero_grad)

        @staticmethod
        def step() -> None:
            plain.param_groups[0]["lr"] = rates.pop(0)
            plain.step()

    want = plainly_trained(method, graph, Scheduled, steps)
    cfg = TrainConfig(epochs=steps, lr=0.05, weight_decay=0.5)
    assert_close(trained(made(name, graph, steps), graph, cfg), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", TRAINED)
def test_weight_decay_and_rate_reach_every_method(name: str, graph: Graph) -> None:
    still, decayed, faster = (
        trained(made(name, graph, 2), graph, TrainConfig(epochs=2, lr=lr, weight_decay=decay))
        for lr, decay in ((0.01, 0.0), (0.01, 0.5), (0.02, 0.0))
    )
    for other in (decayed, faster):
        assert any(not torch.allclose(a, b) for a, b in zip(still, other, strict=True))
