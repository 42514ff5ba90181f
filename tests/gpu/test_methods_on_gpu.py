"""Every method on the device: captured or not, the same bits; and what a CPU gives."""

from dataclasses import replace
from statistics import mean

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from muxgcl.affinity.pick import pick
from muxgcl.graph import Graph
from muxgcl.io.load import load
from muxgcl.io.planted import planted
from muxgcl.methods import METHODS, total
from muxgcl.runs.compress import learn_map
from muxgcl.runs.embedding import embed
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan, build
from muxgcl.seeding import seeded

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
TRAINED = pytest.mark.parametrize("name", [k for k, kind in METHODS.items() if kind.trainable])


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.from_data(planted(nodes=300, isolated=2, featureless=3))


@pytest.fixture(scope="module", params=["directed", "types", "directed and types"])
def kinds(request: pytest.FixtureRequest) -> Graph:
    """A graph with directions, with three types of edges, or with both."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    data, chance = planted(nodes=300, isolated=2), np.random.default_rng(0)
    pairs = data.edge_index.T.numpy()
    pairs = pairs[(pairs[:, 0] < pairs[:, 1]) | (chance.random(len(pairs)) < 0.3)]
    edges = pandas.DataFrame(pairs, columns=["source", "target"])
    edges["kind"] = chance.choice(["buys", "knows", "sells"], len(pairs))
    column = "kind" if "types" in request.param else None
    edges = edges if column else edges.drop(columns="kind")
    directed = "directed" in request.param
    loaded = load((edges, data.x), edge_type_column=column, directed=directed)
    return Graph.from_data(loaded.tensors)


def plan_of(name: str, graph: Graph, epochs: int = 30) -> Plan:
    return Plan.make(name, "quick", "graph", {"epochs": epochs}, graph=graph, device="cuda")


@pytest.mark.parametrize("shape", [(200, 12), (12, 40)])
def test_the_map_to_fewer_columns_is_that_of_a_cpu(shape: tuple[int, int]) -> None:
    table = torch.randn(shape) * 0.7 ** torch.arange(shape[1])  # eigenvalues that lie apart
    found, want = (learn_map(table, 5, torch.device(place)) for place in ("cuda", "cpu"))
    assert_close(found, want, atol=1e-5, rtol=1e-4)


@TRAINED
def test_a_captured_training_gives_the_bits_of_one_that_is_not(name: str, graph: Graph) -> None:
    plan = plan_of(name, graph)
    most = "on" if build(plan, graph).capturable else "auto"  # "on" insists
    captured, plain = (
        fit(replace(plan, capture=capture), graph).embed() for capture in (most, "off")
    )
    assert torch.equal(captured, plain)


@pytest.mark.parametrize("name", [k for k, kind in METHODS.items() if kind.samples])
@pytest.mark.parametrize(("anchors", "keys"), [(64, 64), (40, 96)])
def test_a_captured_training_on_samples_gives_the_bits_of_one_that_is_not(
    name: str, anchors: int, keys: int, graph: Graph
) -> None:
    plan = replace(plan_of(name, graph), anchors=anchors, keys=keys)
    most = "on" if build(plan, graph).capturable else "auto"
    captured, plain = (
        fit(replace(plan, capture=capture), graph).embed() for capture in (most, "off")
    )
    assert captured.isfinite().all()
    assert torch.equal(captured, plain)


@TRAINED
def test_training_lowers_the_loss(name: str, graph: Graph) -> None:
    values: list[float] = []
    plan = plan_of(name, graph, epochs=100)
    fitted = fit(plan, graph, on_block=lambda block: values.extend(e.loss for e in block))
    assert mean(values[-30:]) < mean(values[:3])  # SFA's random directions make it noisy
    assert fitted.embed().isfinite().all()


@TRAINED
def test_the_same_weights_give_the_embedding_of_a_cpu(name: str, graph: Graph) -> None:
    tables = []
    for device in ("cpu", "cuda"):
        plan, there = replace(plan_of(name, graph), device=device), graph.to(device)
        with seeded(0, device):
            tables.append(embed(build(plan, there), there))
    assert_close(*tables, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("picks", [64, 20_480])
def test_picking_rows_gives_the_same_gradient_every_time(picks: int) -> None:
    table = torch.randn(300, 128, device="cuda", requires_grad=True)
    index = torch.randint(300, (picks,), device="cuda")
    weight = torch.randn(picks, 128, device="cuda")
    grads = [torch.autograd.grad((pick(table, index) * weight).sum(), table)[0] for _ in range(4)]
    assert all(torch.equal(grad, grads[0]) for grad in grads)


@pytest.mark.parametrize("convolutions", [0, 1])
def test_a_captured_training_on_kinds_of_edges_gives_the_bits_of_one_that_is_not(
    kinds: Graph, convolutions: int
) -> None:
    values = {"epochs": 30, "convolutions": convolutions}
    plan = Plan.make("mux-hop", "quick", "graph", values, graph=kinds, device="cuda")
    captured, plain = (
        fit(replace(plan, capture=capture), kinds).embed() for capture in ("on", "off")
    )
    assert captured.isfinite().all()
    assert torch.equal(captured, plain)


def test_a_sample_of_a_graph_with_kinds_of_edges_trains(kinds: Graph) -> None:
    plan = Plan.make(
        "mux-hop", "quick", "graph", {"epochs": 30}, graph=kinds, device="cuda", anchors=64, keys=64
    )
    assert fit(plan, kinds).embed().isfinite().all()


def test_kinds_of_edges_propagate_as_on_a_cpu(kinds: Graph) -> None:
    x = torch.randn(kinds.num_nodes, 8)
    there = kinds.to("cuda")
    assert len(there.directions) == len(kinds.directions)
    for one, other in zip(kinds.directions, there.directions, strict=True):
        want = one.adjacency.propagation() @ x
        assert_close((other.adjacency.propagation() @ x.cuda()).cpu(), want)


@pytest.mark.parametrize("convolutions", [0, 1])
def test_the_same_weights_embed_and_score_kinds_of_edges_as_on_a_cpu(
    kinds: Graph, convolutions: int
) -> None:
    still = {"drop_edges": (0.0, 0.0), "drop_features": 0.0, "dropout": 0.0, "affinity": "none"}
    values = {**still, "convolutions": convolutions}
    losses, tables = [], []
    for device in ("cpu", "cuda"):
        plan = Plan.make("mux-hop", "quick", "graph", values, graph=kinds, device=device)
        there = kinds.to(device)
        with seeded(0, device):
            method = build(plan, there)
        losses.append(total(method.loss(there)).item())
        tables.append(embed(method, there))
    assert_close(*tables, rtol=1e-3, atol=1e-4)
    assert losses[1] == pytest.approx(losses[0], rel=1e-2)
