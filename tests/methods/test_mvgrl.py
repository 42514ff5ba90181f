"""MVGRL: the diffusion against the inverse, and the objective across views."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.losses.infomax import infomax
from muxgcl.methods import Context
from muxgcl.methods.mvgrl import Mvgrl, MvgrlConfig
from muxgcl.methods.parts.diffusion import BLOCK_BYTES, diffusion
from muxgcl.sparse import SparseMatrix

GRAPH = Graph.from_data(planted(nodes=40, isolated=2))
EVERY = 40  # neighbours: all of them


def dense(matrix: SparseMatrix) -> Tensor:
    return matrix @ torch.eye(40)


def exact(alpha: float) -> Tensor:
    a = (GRAPH.adjacency.propagation() @ torch.eye(40)).double()
    return alpha * torch.linalg.inv(torch.eye(40, dtype=torch.float64) - (1 - alpha) * a)


def test_the_diffusion_is_the_inverse() -> None:
    for alpha in (0.05, 0.2, 0.7):
        got = dense(diffusion(GRAPH, alpha, neighbours=EVERY))
        assert_close(got.double(), exact(alpha), rtol=0, atol=2e-6)


def test_blocks_of_columns_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = dense(diffusion(GRAPH, 0.2, neighbours=EVERY))
    monkeypatch.setattr("muxgcl.methods.parts.diffusion.BLOCK_BYTES", 4 * 40 * 7)
    assert BLOCK_BYTES > 4 * 40 * 40
    assert_close(dense(diffusion(GRAPH, 0.2, neighbours=EVERY)), whole)


def test_rows_of_the_random_walk_form_sum_to_one() -> None:
    weight = GRAPH.adjacency.weight
    degree = torch.zeros(40).index_add_(0, GRAPH.adjacency.row, weight)
    symmetric = dense(diffusion(GRAPH, 0.2, neighbours=EVERY))
    walk = symmetric * degree.sqrt() / degree.sqrt()[:, None]
    assert_close(walk.sum(1), torch.ones(40), rtol=0, atol=1e-5)
    assert not torch.allclose(symmetric.sum(1), torch.ones(40), atol=1e-2)


def test_returning_always_is_the_identity() -> None:
    assert_close(dense(diffusion(GRAPH, 1.0, neighbours=EVERY)), torch.eye(40))


def test_each_row_keeps_its_largest_entries_unchanged() -> None:
    whole = dense(diffusion(GRAPH, 0.2, neighbours=EVERY))
    kept = dense(diffusion(GRAPH, 0.2, neighbours=5))
    for row, full in zip(kept, whole, strict=True):
        largest = full.topk(5).values
        found = row[row > 0].sort(descending=True).values
        assert_close(found, largest[largest > 0])


def test_small_entries_are_dropped_and_columns_scaled_by_their_largest() -> None:
    got = dense(diffusion(GRAPH, 0.2, neighbours=EVERY, threshold=0.02, scale_columns=True))
    whole = exact(0.2).float()
    want = torch.where(whole > 0.02, whole / whole.max(0).values, 0)
    assert_close(got, want, rtol=0, atol=2e-5)


def test_gradients_pass_through_a_diffusion_that_is_not_symmetric() -> None:
    matrix = diffusion(GRAPH, 0.2, neighbours=3)
    table = torch.randn(40, 2, requires_grad=True)
    upstream = torch.randn(40, 2)
    (matrix @ table).backward(upstream)
    assert_close(table.grad, dense(matrix).T @ upstream)


def test_nodes_of_one_view_meet_the_summary_of_the_other() -> None:
    method = Mvgrl(GRAPH, MvgrlConfig(width=8), Context())
    torch.manual_seed(3)
    terms = method.loss(GRAPH)
    torch.manual_seed(3)
    order = torch.rand(40).argsort()
    x, eye = GRAPH.dense_features(), torch.eye(40)
    spreads = (GRAPH.adjacency.propagation() @ eye, dense(method.diffusion(GRAPH)))

    def nodes(view: int, features: Tensor) -> Tensor:
        encoder = (method.near, method.far)[view]
        return encoder.act(spreads[view] @ features @ encoder.weights[0] + encoder.biases[0])

    def logits(view: int, features: Tensor) -> Tensor:
        summary = nodes(1 - view, x).mean(0).sigmoid()
        judge = method.discriminator
        return nodes(view, features) @ judge.matrix @ summary + judge.bias

    for name, view in (("graph", 0), ("diffusion", 1)):
        assert_close(terms[name], infomax(logits(view, x), logits(view, x[order])) / 2)
    assert_close(method.embed(GRAPH), nodes(0, x) + nodes(1, x))
