"""MUX-GCL over hops: its scales, its objective in loops, and each of its options."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data

from muxgcl.augment import View, clean, dropped
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.kernels import Sample
from muxgcl.methods import Context, mux_hop, total
from muxgcl.methods.mux_hop import MuxHop, MuxHopConfig
from muxgcl.nn import field
from muxgcl.nn.perceptron import Perceptron, spread
from muxgcl.runs.loop import Trainer
from muxgcl.runs.settings import TrainConfig
from muxgcl.seeding import seeded
from muxgcl.sparse import SparseMatrix

SMALL: dict[str, Any] = {
    "hidden": 12,
    "width": 8,
    "projection": 7,
    "projection_out": 6,
    "affinity_width": 5,
    "affinity_epochs": 1,
}


def graph_of(nodes: int = 14, **changes: Any) -> Graph:
    return Graph.from_data(planted(**{"nodes": nodes, "isolated": 1} | changes))


def method_of(graph: Graph, epochs: int = 4, **settings: Any) -> MuxHop:
    with seeded(3):
        method = MuxHop(graph, MuxHopConfig(**SMALL | settings), Context(epochs=epochs))
    method.prepare(graph)
    return method


def double(graph: Graph) -> Graph:
    return replace(graph, features=graph.dense_features().double())


def dense(view: View) -> Tensor:
    size = view.propagation.shape[0]
    return view.propagation @ torch.eye(size, dtype=torch.float64)


def layer_norm(row: Tensor) -> Tensor:
    centred = row - row.mean()
    return centred / (centred.square().mean() + 1e-5).sqrt()


def perceptron(method: MuxHop, x: Tensor) -> Tensor:
    """What f makes of each row, one row at a time (the norms' own weights are 1 and 0)."""
    rows = []
    for row in x:
        for weight, bias, act in zip(
            method.encoder.weights, method.encoder.biases, method.encoder.acts, strict=True
        ):
            mixed = row @ weight + bias
            row = layer_norm(torch.where(mixed > 0, mixed, act.weight * mixed))
        rows.append(row)
    return torch.stack(rows)


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
def test_the_loss_is_the_papers_over_hops_in_loops(anchors: str, affinity: str) -> None:
    graph = double(graph_of())
    method = method_of(
        graph,
        anchors=anchors,
        affinity=affinity,
        scale_weights=(0.5, 0.2, 0.3),
        dropout=0,
        drop_features=0.3,
        row_normalize=False,
    )
    method.double()
    near = [table.double() for table in method.patches] if method.patches else None
    method.patches = near
    with seeded(5):
        got = method.loss(graph)
    with seeded(5):
        view = dropped(graph, method.cfg.drop_edges, method.cfg.drop_features)
    nodes = perceptron(method, view.features)
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


def test_batch_normalisation_in_training_uses_the_nodes_at_hand() -> None:
    graph = graph_of(nodes=40)
    method = method_of(graph, norm="batch", dropout=0)
    view = dropped(method.scaled(graph), (0.0, 0.0), 0.3)
    nodes = method.encoder(view)
    assert_close(nodes.mean(0), torch.zeros(8), rtol=0, atol=1e-5)
    before = method.encoder.norms[0].running_mean.clone()
    method.train().embed(graph)
    assert torch.equal(method.encoder.norms[0].running_mean, before)


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


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("convolutions", [0, 1, 2])
@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.5, 0.25, 0.25), (0.4, 0.0, 0.6)])
def test_rows_of_a_sample_are_those_of_the_whole_graph(
    weights: tuple[float, ...], convolutions: int, sparse: bool
) -> None:
    """Loss and gradients, from what the rows depend on and from all nodes."""
    graph = graph_of(30)
    if not sparse:
        graph = replace(graph, features=graph.dense_features())
    elif isinstance(graph.features, Tensor):
        row, col = graph.features.nonzero().T
        value, shape = graph.features[row, col], tuple(graph.features.shape)
        graph = replace(graph, features=SparseMatrix.from_entries(row, col, value, shape))
    method = method_of(
        graph,
        hops=len(weights) - 1,
        scale_weights=weights,
        convolutions=convolutions,
        dropout=0.0,
        drop_features=0.0,
    )
    sample = Sample(torch.tensor([4, 29, 0, 17]), 3, 4, 30)
    graph = method.scaled(graph)
    view = dropped(graph, (0.4, 0.4), 0.0)
    ways = [
        method.projected(view, method.encoder(view), method.contrast.scales, sample),
        method._finished(
            method._of_rows(graph, view.propagation, sample.rows(2), method.contrast.scales)
        ),
    ]
    found = []
    for unit in ways:
        loss = total(method.contrast(unit, method.patches, sample))
        found.append([loss, *torch.autograd.grad(loss, list(method.parameters()))])
    assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)
    assert min(grad.abs().max() for grad in found[0][1:]) > 0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("dropout", "norm"), [(0.0, "layer"), (0.5, "layer"), (0.5, "batch")])
def test_blocks_of_rows_give_the_loss_and_the_gradient_of_all_rows_at_once(
    dropout: float, norm: str, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With chance inside f too: the backward pass computes the same blocks again."""
    graph = graph_of(40)
    if not sparse:
        graph = replace(graph, features=graph.dense_features())
    method = method_of(graph, dropout=dropout, drop_features=dropout, norm=norm)
    graph = method.scaled(graph)
    propagation = dropped(graph, (0.4, 0.4), 0.0).propagation
    rows, parameters = Sample(torch.arange(9), 9, 9, 40).rows(2), list(method.parameters())
    goal = torch.randn(3, 18, 6)  # of every scale's rows
    sizes: list[int] = []

    def found(block: int, *, keep: bool) -> list[Tensor]:
        def in_blocks(network: Any, rows: Tensor, size: int) -> Tensor:
            sizes.append(len(rows))
            if not keep:
                return field.in_blocks(network, rows, block)
            return torch.cat([network(some) for some in rows.tensor_split(-(-len(rows) // block))])

        monkeypatch.setattr(mux_hop, "in_blocks", in_blocks)
        with seeded(5):
            unit = method._finished(
                method._of_rows(graph, propagation, rows, method.contrast.scales)
            )
        loss = sum((unit[k] * goal[k]).sum() for k in unit)
        return [loss, *torch.autograd.grad(loss, parameters)]

    assert_close(found(7, keep=False), found(7, keep=True))  # again, or kept
    assert min(sizes) > 2 * 7
    if not dropout:
        assert_close(found(7, keep=False), found(1000, keep=False), rtol=1e-4, atol=1e-5)


def test_convolutions_are_not_cut_into_blocks() -> None:
    graph = graph_of()
    assert method_of(graph, norm="batch").encoder.takes_blocks
    assert not method_of(graph, convolutions=1).encoder.takes_blocks


def test_no_block_has_a_single_row_which_batch_normalisation_could_not_take() -> None:
    sizes: list[int] = []

    def network(rows: Tensor) -> Tensor:
        sizes.append(len(rows))
        return rows[:, None].float()

    rows = torch.arange(15)
    assert torch.equal(field.in_blocks(network, rows, 7), rows[:, None].float())
    assert sizes == [5, 5, 5]


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


@pytest.mark.parametrize("readout", ["last", "all"])
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_an_embedding_in_blocks_is_the_embedding(
    norm: str, readout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(40)
    method = method_of(graph, norm=norm, readout=readout, readout_features=0.5, ema=0.5)
    total(method.loss(graph)).backward()  # moves running statistics
    method.after_step()
    with torch.no_grad():
        whole = method.embed(graph)
        monkeypatch.setattr(field, "BLOCK", 7 * sum(method.encoder.widths))
        again = torch.cat([*method.readout.blocks(method._read(method.scaled(graph)), graph, 11)])
    assert_close(again, whole)
    assert field.block_rows(method.encoder.widths) == 7


def test_scales_of_some_nodes_are_those_of_all() -> None:
    graph = graph_of(40)
    method = method_of(graph, dropout=0.0, drop_features=0.0)
    nodes = torch.tensor([31, 2, 17])
    with seeded(4):
        whole = method.scales(graph)
    with seeded(4):
        some = method.scales(graph, nodes)
    rows = torch.cat([nodes, nodes + 40])
    assert_close(some, [table[rows] for table in whole])
