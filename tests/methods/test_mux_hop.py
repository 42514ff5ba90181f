"""MUX-GCL over hops: its scales, its objective in loops, and each of its options."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from mux_hop_cases import SMALL, dense, double, graph_of, method_of, perceptron
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data

from muxgcl.augment import Corrupt, both, clean, dropped
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import Context, total
from muxgcl.methods.mux_hop import MuxHop, MuxHopConfig
from muxgcl.nn.perceptron import Perceptron, spread
from muxgcl.runs.loop import Trainer
from muxgcl.runs.settings import TrainConfig
from muxgcl.seeding import seeded


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scale_k_is_the_perceptron_after_k_products_with_the_adjacency(
    hops: int, depth: int
) -> None:
    graph = double(graph_of())
    weights = (1 / (hops + 1),) * (hops + 1)
    method = method_of(graph, hops=hops, depth=depth, scale_weights=weights, row_normalize=False)
    method.double()
    view = clean(graph)
    want = perceptron(method, graph.features)
    for scale in spread(view.propagation, method.encoder.embed(view), hops):
        assert_close(scale, want)
        want = dense(view) @ want


def paper_loss(
    method: MuxHop, one: list[Tensor], two: list[Tensor], near: list[Tensor] | None
) -> float:
    """Equations 1 to 5 of the paper, pair by pair."""
    cfg, n = method.cfg, len(one[0])
    last = cfg.hops

    def loss(u: list[Tensor], v: list[Tensor], i: int, anchor: int, k: int) -> float:
        def push(other: Tensor) -> float:
            return math.exp(float(u[anchor][i] @ other) / cfg.temperature)

        negatives = 0.0
        for j in range(n):
            if j != i:
                cosine = float(near[anchor][i] @ near[k][j]) if near else -1.0
                negatives += (1 - (1 + cosine) / 2) * (push(v[k][j]) + push(u[k][j]))
        positive = push(v[k][i])
        return -math.log(positive / (positive + negatives))

    anchors = {last: 1.0} if cfg.anchors == "last" else dict(enumerate(cfg.scale_weights))
    return sum(
        share * weight * (loss(one, two, i, anchor, k) + loss(two, one, i, anchor, k)) / (2 * n)
        for anchor, share in anchors.items()
        for k, weight in enumerate(cfg.scale_weights)
        for i in range(n)
    )


@torch.no_grad()
@pytest.mark.parametrize("anchors", ["last", "all"])
@pytest.mark.parametrize("affinity", ["deepwalk", "none"])
@pytest.mark.parametrize("feature_dropout", ["entries", "columns"])
def test_the_loss_is_the_papers_over_hops_in_loops(
    anchors: str, affinity: str, feature_dropout: str
) -> None:
    graph = double(graph_of())
    method = method_of(
        graph,
        anchors=anchors,
        affinity=affinity,
        scale_weights=(0.5, 0.2, 0.3),
        dropout=0,
        drop_features=0.3,
        feature_dropout=feature_dropout,
        row_normalize=False,
    )
    method.double()
    near = [table.double() for table in method.patches] if method.patches else None
    method.patches = near
    with seeded(5):
        got = method.loss(graph)
    with seeded(5):
        if feature_dropout == "entries":
            view = dropped(graph, method.cfg.drop_edges, method.cfg.drop_features)
            features = view.features
        else:
            view = both(graph, [Corrupt(p, 0.3) for p in method.cfg.drop_edges])
            assert view.kept_columns is not None
            assert 0 < float(view.kept_columns.mean()) < 1
            features = torch.cat([graph.dense_features() * kept for kept in view.kept_columns])
    nodes = perceptron(method, features)
    projector, scales = method.projector, []
    for _ in range(3):
        hidden = nodes @ projector.first.weight.T + projector.first.bias
        hidden = torch.where(hidden > 0, hidden, hidden.expm1())
        out = hidden @ projector.second.weight.T + projector.second.bias
        scales.append(out / out.norm(dim=1, keepdim=True))
        nodes = dense(view) @ nodes
    one, two = ([scale.chunk(2)[v] for scale in scales] for v in range(2))
    assert_close(float(total(got)), paper_loss(method, one, two, near), rtol=1e-6, atol=1e-6)


def test_without_edges_every_scale_is_the_perceptron() -> None:
    nowhere = Data(x=planted(nodes=9).x, edge_index=torch.empty(2, 0, dtype=torch.long))
    graph = Graph.from_data(nowhere)
    method = method_of(graph)
    view = clean(method.scaled(graph))
    alone = method.encoder.embed(view)
    assert_close(spread(view.propagation, alone, 3), [alone] * 4)


def test_a_new_node_without_edges_is_embedded_from_its_features_alone() -> None:
    graph = graph_of(nodes=30)
    method = method_of(graph)
    row = graph.dense_features()[4:5]
    new = Graph.from_data(Data(x=row, edge_index=torch.empty(2, 0, dtype=torch.long)))
    alone = method.encoder.embed(clean(method.scaled(graph)))[4]
    want = (alone / alone.norm()).repeat(3)[None]
    assert_close(method.embed(new), want)


@pytest.mark.parametrize("row_normalize", [True, False])
def test_sparse_and_dense_features_give_the_same_loss_and_gradient(row_normalize: bool) -> None:
    x = (torch.rand(20, 40) < 0.05).float() * torch.rand(20, 40)
    sparse = Graph.from_data(Data(x=x, edge_index=torch.randint(20, (2, 50))))
    assert not isinstance(sparse.features, Tensor)
    plain = replace(sparse, features=x)
    found = []
    for graph in (sparse, plain):
        method = method_of(
            graph, drop_features=0, dropout=0, row_normalize=row_normalize, affinity="none"
        )
        with seeded(1):
            loss = total(method.loss(graph))
        loss.backward()
        found.append([loss, *(p.grad for p in method.parameters()), method.embed(graph)])
    assert_close(found[0], found[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sparse", [True, False])
def test_views_lose_single_entries_and_keep_their_mean(sparse: bool) -> None:
    x = (torch.rand(12, 30) < (0.05 if sparse else 0.5)).float()
    graph = Graph.from_data(Data(x=x, edge_index=torch.randint(12, (2, 20))))
    assert isinstance(graph.features, Tensor) is not sparse
    twice = torch.cat([x, x])
    mean = torch.zeros_like(twice)
    for _ in range(1500):
        features = dropped(graph, (0.0, 0.0), 0.4).features
        mean += (features @ torch.eye(30)) / 1500
    assert torch.equal(mean == 0, twice == 0)
    assert_close(mean, twice, rtol=0, atol=0.12)  # five standard errors
    single = dropped(graph, (0.0, 0.0), 0.4).features @ torch.eye(30)
    assert {round(float(v), 4) for v in single.unique()} == {0.0, round(1 / 0.6, 4)}
    assert not torch.equal(*single.chunk(2))  # each view has its own


def test_the_gradient_of_dropped_entries_sees_the_same_mask() -> None:
    x = (torch.rand(12, 30) < 0.08).float()
    graph = Graph.from_data(Data(x=x, edge_index=torch.randint(12, (2, 20))))
    features = dropped(graph, (0.0, 0.0), 0.5).features
    table = features @ torch.eye(30)
    weight = torch.randn(30, 4, requires_grad=True)
    upstream = torch.randn(24, 4)
    ((features @ weight) * upstream).sum().backward()
    assert_close(weight.grad, table.T @ upstream)


def test_edges_are_dropped_afresh_in_each_view() -> None:
    graph = graph_of(nodes=60)
    view = dropped(graph, (0.0, 0.5), 0.0)
    one, two = (view.propagation.matrix.value != 0).chunk(2)
    assert one.all()
    assert two[graph.adjacency.loop].all()
    assert 0.3 < two[~graph.adjacency.loop].float().mean() < 0.7


def trained(graph: Graph, epochs: int, **settings: Any) -> MuxHop:
    with seeded(0):
        method = method_of(graph, epochs, **settings)
        list(Trainer(method, graph, TrainConfig(epochs=epochs, lr=0.01)).blocks())
    return method


def test_the_embedding_uses_the_average_of_the_weights() -> None:
    graph, keep = graph_of(), 0.75
    method = method_of(graph, 6, ema=keep)
    want = [torch.zeros_like(p) for p in method.encoder.parameters()]
    trainer = Trainer(method, graph, TrainConfig(epochs=6, lr=0.05))
    for step, _ in enumerate(trainer.blocks(), start=1):
        share = max(1 - keep, 1 / step)  # the plain mean of the first four, then exponential
        now = method.encoder.parameters()
        want = [(1 - share) * w + share * p.detach() for w, p in zip(want, now, strict=True)]
    assert_close(list(method.average.parameters()), want)
    view = clean(method.scaled(graph))
    alone = method.average.embed(view)
    assert_close(method.embed(graph)[:, :8], alone / alone.norm(dim=1, keepdim=True))
    assert not torch.allclose(alone, method.encoder.embed(view), rtol=1e-3)


OPTIONS: list[dict[str, Any]] = [
    {"ema": 0.9, "norm": "batch"},
    {"convolutions": 1, "anchors": "all"},
    {"depth": 3, "norm": "none"},
]


@pytest.mark.parametrize("settings", OPTIONS)
def test_every_option_resumes_to_the_same_embedding_and_never_leaves_it_to_chance(
    settings: dict[str, Any],
) -> None:
    graph = graph_of(nodes=30)
    want = trained(graph, 7, **settings).embed(graph)
    assert torch.equal(trained(graph, 7, **settings).embed(graph), want)
    with seeded(0):
        stopped = Trainer(method_of(graph, 7, **settings), graph, TrainConfig(epochs=7, lr=0.01))
        blocks = stopped.blocks()
        while stopped.epoch < 3:
            next(blocks)
        saved = {key: tensor.clone() for key, tensor in stopped.state().items()}
    with seeded(1):
        resumed = Trainer(method_of(graph, 7, **settings), graph, TrainConfig(epochs=7, lr=0.01))
        resumed.load(saved, epoch=3)
        list(resumed.blocks())
    assert torch.equal(resumed.method.embed(graph), want)
    other = MuxHop(graph_of(nodes=9), MuxHopConfig(**SMALL | settings), Context(epochs=7))
    other.load_state_dict(resumed.method.state_dict())  # to embed a graph of another size
    assert torch.equal(other.embed(graph), want)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hops": 0}, "hops must be at least 1"),
        ({"hops": 3}, "one number for each of the 4 scales"),
        ({"drop_features": 1.0}, "drop_features must be at least 0 and below 1"),
        ({"drop_edges": (0.2, 1.0)}, "drop_edges must be at least 0 and below 1"),
        ({"dropout": -0.1}, "dropout must be at least 0 and below 1"),
        ({"ema": 1.0}, "ema must be at least 0 and below 1"),
        ({"depth": 0}, "depth must be at least 1"),
        ({"norm": "rows"}, "norm must be one of layer, batch, none"),
        ({"anchors": "first"}, "anchors must be last or all"),
        ({"affinity": "spectral"}, "affinity must be one of"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_a_wrong_setting_is_one_clear_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        method_of(graph_of(), **settings)


def test_with_zero_biases_the_size_of_the_features_is_forgotten_at_the_start() -> None:
    """LayerNorm and PReLU follow a product: doubled features give the same rows."""
    graph = graph_of()
    double = replace(graph, features=2 * graph.dense_features())
    found = {}
    for zero in (True, False):
        method = method_of(graph, zero_bias=zero, row_normalize=False, readout="all")
        found[zero] = [method.embed(g) for g in (graph, double)]
    assert_close(found[True][1], found[True][0], rtol=1e-3, atol=1e-4)
    assert not torch.allclose(found[False][1], found[False][0], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(("zero", "least", "most"), [(False, 0.8, 1.0), (True, 0.0, 0.1)])
def test_nodes_begin_alike_where_biases_are_drawn_and_apart_where_they_are_zero(
    zero: bool, least: float, most: float
) -> None:
    """Sixteen of a thousand words a node, rows that sum to one: as in the block model."""
    with seeded(0):
        words = (torch.rand(60, 1000) < 0.016).float()
        encoder = Perceptron(1000, 256, hidden=512, zero_bias=zero)
        graph = replace(graph_of(60), features=words / words.sum(1, keepdim=True))
        unit = torch.nn.functional.normalize(encoder.embed(clean(graph)), dim=1)
    cosine = (unit @ unit.T)[~torch.eye(60, dtype=torch.bool)].mean()
    assert least < cosine < most
