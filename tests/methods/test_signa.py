"""SIGNA: the objective in loops, its closed forms, and what the encoder does."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import elu, layer_norm, normalize
from torch.testing import assert_close
from torch_geometric.data import Data

from muxgcl.errors import UserError
from muxgcl.graph import Adjacency, Graph
from muxgcl.io.planted import planted
from muxgcl.kernels.dropout import dropout
from muxgcl.methods import Context, total
from muxgcl.methods.signa import EPSILON, Signa, SignaConfig, contrast

DATA = planted(nodes=40, isolated=2)
GRAPH = Graph.from_data(DATA)
CONFIG = SignaConfig(width=6, projection=5)


def objective(rows: Tensor, adjacency: Adjacency, kept: Tensor | None = None, **how) -> Tensor:
    kept = (~adjacency.loop if kept is None else kept).to(rows.dtype)
    return total(contrast(rows, adjacency, kept, **how))


def in_loops(rows: Tensor, adjacency: Adjacency, kept: Tensor) -> float:
    n, loss = len(rows), 0.0
    keeps = {
        (int(i), int(j))
        for i, j, keep in zip(adjacency.row, adjacency.col, kept, strict=True)
        if keep
    }
    for i in range(n):
        positives = [j for j in range(n) if (i, j) in keeps or i == j]
        r = [(1 + float(rows[i] @ rows[j])) / 2 for j in range(n)]
        near = [math.log(r[j] + EPSILON) for j in positives]
        far = [math.log(1 - r[j] + EPSILON) for j in range(n) if j not in positives]
        loss -= sum(near) / len(near) + sum(far) / len(far)
    return loss / n


@pytest.mark.parametrize("backend", ["reference", "chunked"])
def test_the_objective_is_the_sum_in_loops(backend: str) -> None:
    rows = normalize(torch.randn(40, 5, dtype=torch.float64), dim=1)
    kept = (torch.rand(len(GRAPH.adjacency.col)) < 0.6) & ~GRAPH.adjacency.loop
    assert 0 < kept.sum() < (~GRAPH.adjacency.loop).sum()
    got = objective(rows, GRAPH.adjacency, kept, backend=backend)
    assert_close(float(got), in_loops(rows, GRAPH.adjacency, kept), rtol=1e-10, atol=0)


@pytest.mark.parametrize("convolve", [False, True])
@torch.no_grad()
def test_the_loss_is_the_objective_of_rows_with_dropout_before_each_block(convolve: bool) -> None:
    cfg = SignaConfig(
        width=6,
        projection=5,
        projection_out=7,
        dropout=0.3,
        mask_neighbors=0.7,
        convolve=convolve,
        row_normalize=True,
    )
    method = Signa(GRAPH, cfg, Context()).double()
    for parameter in method.parameters():
        parameter.copy_(torch.randn_like(parameter))
    words, adjacency = GRAPH.dense_features().double(), GRAPH.adjacency
    graph = Graph(words, adjacency)
    torch.manual_seed(5)
    got = total(method.loss(graph))
    torch.manual_seed(5)
    encoder, projector = method.encoder, method.projector
    assert [weight.shape for weight in encoder.weights] == [(48, 12), (12, 6)]
    assert (projector.first.weight.shape, projector.second.weight.shape) == ((5, 6), (7, 5))
    rows = words / words.sum(1, keepdim=True)
    for weight, bias, norm in zip(encoder.weights, encoder.biases, encoder.norms, strict=True):
        rows = dropout(rows, 0.3) @ weight
        rows = (adjacency.propagation() @ rows if convolve else rows) + bias
        rows = torch.where(rows >= 0, rows, encoder.acts[0].weight * rows)
        rows = layer_norm(rows, rows.shape[1:], norm.weight, norm.bias)
    rows = normalize(projector.second(elu(projector.first(rows))), dim=1)
    kept = (torch.rand(len(adjacency.col)) >= 0.7) & ~adjacency.loop
    assert_close(float(got), in_loops(rows, adjacency, kept), rtol=1e-5, atol=0)


@torch.no_grad()
def test_the_length_of_a_row_changes_nothing() -> None:
    method = Signa(GRAPH, SignaConfig(width=6, projection=6, projection_out=5), Context()).double()
    nn.init.eye_(method.projector.first.weight)  # then positive rows pass as they are, to be mixed
    for layer in (method.projector.first, method.projector.second):
        nn.init.zeros_(layer.bias)
    rows, found = torch.rand(40, 6, dtype=torch.float64), []
    for length in (torch.ones(40, 1), 0.1 + 5 * torch.rand(40, 1)):
        method.encoder.forward = lambda view, scaled=length * rows: scaled  # type: ignore[method-assign]
        torch.manual_seed(5)
        found.append(total(method.loss(GRAPH)))
    assert_close(*found)


@pytest.mark.parametrize("mask", [0.2, 0.5, 0.9])
def test_a_neighbour_is_best_as_similar_as_its_share_of_the_positive_weight(mask: float) -> None:
    ring = Adjacency.from_edges(torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]), 6)
    of_the_pair = (ring.row < 2) & ~ring.loop  # the edges whose chance bears on nodes 0 and 1

    def expected(r: Tensor) -> Tensor:
        """The loss, all else orthogonal, averaged over what may be kept."""
        axes, cosine, loss = torch.eye(6, dtype=torch.float64), 2 * r - 1, 0 * r
        second = cosine * axes[0] + (1 - cosine**2).sqrt() * axes[1]
        rows = torch.stack([axes[0], second, *axes[2:]])
        for keep in product((0, 1), repeat=4):
            kept = (~ring.loop).double()
            kept[of_the_pair] = torch.tensor(keep).double()
            chance = math.prod(1 - mask if one else mask for one in keep)
            loss = loss + chance * objective(rows, ring, kept)
        return loss

    a = (1 - mask) / 3 + mask / 2  # mean 1 / (k + 1) of a node that keeps this neighbour
    b = (1 - mask) / 4 + mask / 5  # mean 1 / (N - k - 1) of a node that does not
    best = (1 - mask) * a / ((1 - mask) * a + mask * b)
    slopes = []
    for r in (0.9 * best, best, 0.1 + 0.9 * best):
        here = torch.tensor(r, dtype=torch.float64, requires_grad=True)
        slopes.append(float(torch.autograd.grad(expected(here), here)[0]))
    assert_close(slopes[1], 0.0, rtol=0, atol=1e-5)
    assert slopes[0] < -1e-3
    assert slopes[2] > 1e-3


def test_equal_rows_cost_the_logarithm_of_epsilon() -> None:
    rows = normalize(torch.ones(40, 5, dtype=torch.float64), dim=1)
    assert_close(float(objective(rows, GRAPH.adjacency)), 13.8155, rtol=0, atol=1e-4)


def test_orthonormal_rows_cost_log_2_by_the_degrees() -> None:
    degree = GRAPH.adjacency.rowptr.diff().double() - 1
    want = math.log(2) * (1 + (degree / (degree + 1)).mean())
    got = objective(torch.eye(40, dtype=torch.float64), GRAPH.adjacency)
    assert_close(float(got), float(want), rtol=0, atol=1e-5)


def test_two_cliques_at_opposite_points_cost_nothing() -> None:
    n = 5
    block = torch.ones(n, n) - torch.eye(n)
    edges = torch.block_diag(block, block).nonzero().T
    rows = torch.zeros(2 * n, 3, dtype=torch.float64)
    rows[:n, 0], rows[n:, 0] = 1, -1
    got = objective(rows, Adjacency.from_edges(edges, 2 * n))
    assert_close(float(got), -2e-6, rtol=0, atol=1e-10)


def test_a_node_joined_to_all_others_has_no_negatives() -> None:
    edges = (torch.ones(4, 4) - torch.eye(4)).nonzero().T
    rows = normalize(torch.randn(4, 3, dtype=torch.float64), dim=1)
    terms = contrast(rows, adjacency := Adjacency.from_edges(edges, 4), (~adjacency.loop).double())
    assert_close(float(terms["others"]), 0.0, rtol=0, atol=1e-12)


def test_rotations_change_nothing() -> None:
    rows = normalize(torch.randn(40, 5, dtype=torch.float64), dim=1)
    rotation = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64)).Q
    assert_close(objective(rows @ rotation, GRAPH.adjacency), objective(rows, GRAPH.adjacency))


def test_gradients_of_the_backends_agree() -> None:
    rows = normalize(torch.randn(40, 5, dtype=torch.float64), dim=1).requires_grad_()
    one, two = (
        torch.autograd.grad(objective(rows, GRAPH.adjacency, backend=backend), rows)
        for backend in ("reference", "chunked")
    )
    assert_close(one, two)


def test_neighbours_are_masked_as_often_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []
    method = Signa(GRAPH, SignaConfig(width=6, projection=5, mask_neighbors=0.3), Context())
    monkeypatch.setattr(
        "muxgcl.methods.signa.contrast",
        lambda rows, adjacency, kept, backend, sample: seen.append(kept) or {"loss": rows.sum()},
    )
    for _ in range(200):
        method.loss(GRAPH)
    share, loop = torch.stack(seen).mean(0), GRAPH.adjacency.loop
    assert (share[loop] == 0).all()
    assert float(share[~loop].mean()) == pytest.approx(0.7, abs=0.01)
    assert not torch.equal(seen[0], seen[0][GRAPH.adjacency.reverse])  # each direction by itself


def test_the_encoder_normalises_after_the_activation_and_never_propagates() -> None:
    method = Signa(GRAPH, CONFIG, Context())
    with torch.no_grad():
        for parameter in method.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    encoder, want = method.encoder, GRAPH.dense_features()
    for weight, bias, norm in zip(encoder.weights, encoder.biases, encoder.norms, strict=True):
        hidden = want @ weight + bias
        hidden = torch.where(hidden >= 0, hidden, encoder.acts[0].weight * hidden)
        want = layer_norm(hidden, hidden.shape[1:], norm.weight, norm.bias)
    assert_close(method.embed(GRAPH), want, rtol=1e-4, atol=1e-4)
    alone = Graph.from_data(Data(x=DATA.x, edge_index=DATA.edge_index[:, :0]))
    assert_close(method.embed(alone), want, rtol=1e-4, atol=1e-4)


def test_with_convolutions_neighbours_count() -> None:
    method = Signa(GRAPH, SignaConfig(width=6, projection=5, convolve=True), Context())
    alone = Graph.from_data(Data(x=DATA.x, edge_index=DATA.edge_index[:, :0]))
    assert not torch.allclose(method.embed(GRAPH), method.embed(alone))


def test_settings_out_of_range_are_named() -> None:
    with pytest.raises(UserError, match=r"mask_neighbors must be .* got 1.0"):
        SignaConfig(mask_neighbors=1.0)
    with pytest.raises(UserError, match=r"at least 1, got 0"):
        SignaConfig(width=0)
