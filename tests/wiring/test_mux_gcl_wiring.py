"""MUX-GCL as a whole against the paper: views, encoder, projector, patches and loss together."""

from typing import Any

import pytest
import torch
from paper_loops import paper_loss, released_loss
from torch import Tensor
from torch.nn.functional import elu, linear, normalize, prelu, relu
from torch.testing import assert_close

from muxgcl.affinity import patches
from muxgcl.augment import View, both
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import Context
from muxgcl.methods.mux_gcl import MuxGcl, MuxGclConfig
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan

NODES = 24
SMALL: dict[str, Any] = {
    "width": 6,
    "projection": 5,
    "projection_out": 4,
    "affinity_width": 8,
    "affinity_epochs": 1,
    "walk_length": 4,
    "walk_context": 3,
    "walks_per_node": 1,
    "walk_p": 0.5,
    "walk_q": 2.0,
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.from_data(planted(nodes=NODES, features=12, isolated=1))


def made(graph: Graph, seed: int = 0, **settings: Any) -> MuxGcl:
    torch.manual_seed(1)
    method = MuxGcl(graph, MuxGclConfig(**(SMALL | settings)), Context(seed=seed))
    for bias in method.encoder.biases:
        torch.nn.init.normal_(bias, std=0.1)
    method.prepare(graph)
    return method


def plain_scales(method: MuxGcl, view: View, graph: Graph) -> list[dict[int, Tensor]]:
    """Every scale of both views by dense products in float64, through the projector."""
    weights = [w.double() for w in method.encoder.weights]
    biases = [b.double() for b in method.encoder.biases]
    first, second = method.projector.first, method.projector.second
    slope = [p.double() for p in method.encoder.act.parameters()]
    dense = view.propagation.matrix.multiply(torch.eye(2 * NODES)).double()
    found = []
    for v in range(2):
        own = slice(v * NODES, (v + 1) * NODES)
        hidden = [graph.dense_features().double() * view.kept_columns[v].double()]
        for weight, bias in zip(weights, biases, strict=True):
            mixed = dense[own, own] @ hidden[-1] @ weight + bias
            hidden.append(prelu(mixed, slope[0]) if slope else relu(mixed))
        scales = {}
        for k, nodes in enumerate(hidden):
            for weight in weights[k:]:
                nodes = nodes @ weight
            if 0 < k < len(weights):
                nodes = prelu(nodes, slope[0]) if slope else relu(nodes)
            inner = elu(linear(nodes, first.weight.double(), first.bias.double()))
            outer = linear(inner, second.weight.double(), second.bias.double())
            scales[k] = normalize(outer)
        found.append(scales)
    return found


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"likelihood": "clamp", "affinity": "node2vec"},
        {"likelihood": "literal"},
        {"direction": "released", "activation": "prelu", "pooling": "residual"},
        {"affinity": "vgae", "layers": 1, "scale_weights": (0.4, 0.6)},
        {"layers": 3, "scale_weights": (0.1, 0.2, 0.3, 0.4), "temperature": 0.9},
    ],
)
def test_the_methods_loss_is_the_papers_with_the_methods_own_patches(
    graph: Graph, settings: dict[str, Any]
) -> None:
    method = made(graph, **settings)
    cfg = method.cfg
    torch.manual_seed(2)
    terms = method.loss(graph)
    torch.manual_seed(2)
    with torch.no_grad():
        one, two = plain_scales(method, both(graph, method.views), graph)
    rest = [list(cfg.scale_weights), cfg.temperature]
    by_hand = released_loss if cfg.direction == "released" else paper_loss
    how = {} if cfg.direction == "released" else {"eta": cfg.likelihood}
    assert method.patches is not None
    tables = [table.double() for table in method.patches]
    want, hard = (float(by_hand(one, two, soft, *rest, **how)) for soft in (tables, None))
    got = sum(t.item() for t in terms.values())
    assert got == pytest.approx(want, rel=1e-4)
    assert abs(hard - want) > 1e-2 * want  # so soft negatives are not lost on the way


def test_without_affinity_every_negative_weighs_one(graph: Graph) -> None:
    method = made(graph, affinity="none")
    torch.manual_seed(2)
    terms = method.loss(graph)
    torch.manual_seed(2)
    with torch.no_grad():
        views = plain_scales(method, both(graph, method.views), graph)
    want = paper_loss(*views, None, list(method.cfg.scale_weights), method.cfg.temperature)
    assert sum(t.item() for t in terms.values()) == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("affinity", ["deepwalk", "node2vec", "vgae"])
def test_the_seed_of_a_run_is_the_seed_of_its_patches(graph: Graph, affinity: str) -> None:
    found = []
    for seed in (0, 7):
        plan = Plan.make(
            "mux-gcl", "quick", overrides={**SMALL, "affinity": affinity, "epochs": 1}, seed=seed
        )
        method = fit(plan, graph).method
        assert isinstance(method, MuxGcl)
        assert method.patches is not None
        want = patches(graph, plan.settings, 2, seed=seed, cache=None)
        for table, wanted in zip(method.patches, want, strict=True):
            assert torch.equal(table, wanted)
        found.append(method.patches[0])
    assert not torch.allclose(*found, atol=0.1)


def test_gradients_reach_every_weight_but_no_patch(graph: Graph) -> None:
    method = made(graph)
    torch.stack([*method.loss(graph).values()]).sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in method.parameters())
    assert method.patches is not None
    assert not any(table.requires_grad for table in method.patches)


def test_a_scale_enters_by_its_weight(graph: Graph) -> None:
    method = made(graph, scale_weights=(0.2, 0.0, 0.8))
    torch.manual_seed(2)
    terms = method.loss(graph)
    assert set(terms) == {"scale 0", "scale 2"}
    other = made(graph, scale_weights=(0.6, 0.0, 0.4))
    torch.manual_seed(2)
    changed = other.loss(graph)
    assert_close(changed["scale 0"], 3 * terms["scale 0"])
    assert_close(changed["scale 2"], terms["scale 2"] / 2)
