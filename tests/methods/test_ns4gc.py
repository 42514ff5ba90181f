"""NS4GC: the objective in loops, and its value where it is known."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import elu, normalize
from torch.testing import assert_close

from muxgcl.augment import Corrupt, both
from muxgcl.errors import UserError
from muxgcl.graph import Adjacency, Graph
from muxgcl.io.planted import planted
from muxgcl.kernels import Sigmoid
from muxgcl.methods import Context, total
from muxgcl.methods.ns4gc import Ns4gc, Ns4gcConfig, similarities

GRAPH = Graph.from_data(planted(nodes=40, isolated=2))
ABOVE = Sigmoid(0.6, 0.1)


def rows(n: int = 40, d: int = 5) -> Tensor:
    return normalize(torch.randn(n, d, dtype=torch.float64), dim=1)


def objective(one: Tensor, two: Tensor, adjacency: Adjacency, **how: str) -> Tensor:
    own, near, far = similarities(one, two, adjacency, ABOVE, **how)
    return far - own - near


def in_loops(one: Tensor, two: Tensor, threshold: float, temperature: float) -> list[float]:
    edges = {tuple(edge) for edge in GRAPH.adjacency.edge_index.T.tolist()}
    own, near, far = [], [], []
    for i in range(40):
        for j in range(40):
            cosine = float(one[i] @ two[j])
            if i == j:
                own.append(cosine)
            elif (i, j) in edges:
                near.append(cosine)
            else:
                far.append(1 / (1 + math.exp((threshold - cosine) / temperature)))
    return [sum(values) / len(values) for values in (own, near, far)]


@pytest.mark.parametrize("backend", ["reference", "chunked"])
def test_the_objective_is_the_sum_in_loops(backend: str) -> None:
    one, two = rows(), rows()
    own, near, far = in_loops(one, two, 0.6, 0.1)
    got = objective(one, two, GRAPH.adjacency, backend=backend)
    assert_close(float(got), far - own - near, rtol=1e-10, atol=0)


@torch.no_grad()
def test_the_loss_is_the_weighted_sum_over_two_views_at_rates_of_their_own() -> None:
    cfg = Ns4gcConfig(
        layers=3,
        hidden=7,
        width=4,
        activation="elu",
        drop_edges=(0.2, 0.6),
        mask_features=(0.5, 0.1),
        threshold=0.35,
        temperature=0.3,
        neighbors=0.5,
        others=3.0,
        row_normalize=True,
    )
    method = Ns4gc(GRAPH, cfg, Context())
    torch.manual_seed(5)
    got = method.loss(GRAPH)
    torch.manual_seed(5)
    words = GRAPH.dense_features()
    scaled = replace(GRAPH, features=words / words.sum(1, keepdim=True))
    view = both(scaled, [Corrupt(0.2, 0.5), Corrupt(0.6, 0.1)])
    first, second, third = method.encoder.weights
    assert (first.shape, second.shape, third.shape) == ((48, 7), (7, 7), (7, 4))
    nodes = view.propagation @ view.project(first)  # biases begin at 0
    for weight in (second, third):
        nodes = view.propagation @ (elu(nodes) @ weight)
    own, near, far = in_loops(*normalize(nodes, dim=1).chunk(2), 0.35, 0.3)
    want = {"self": -own, "neighbours": -0.5 * near, "others": 3 * far}
    assert_close({name: float(term) for name, term in got.items()}, want, rtol=1e-4, atol=0)


def test_equal_rows_have_a_known_loss() -> None:
    z = normalize(torch.ones(40, 5, dtype=torch.float64), dim=1)
    assert_close(float(objective(z, z, GRAPH.adjacency)), -1.01799, rtol=0, atol=1e-5)


def test_orthonormal_rows_have_a_known_loss() -> None:
    z = torch.eye(40, dtype=torch.float64)
    assert_close(float(objective(z, z, GRAPH.adjacency)), -0.99753, rtol=0, atol=1e-5)


def test_a_graph_that_joins_all_nodes_has_no_others() -> None:
    adjacency = Adjacency.from_edges((torch.ones(5, 5) - torch.eye(5)).nonzero().T, 5)
    far = similarities(rows(5), rows(5), adjacency, ABOVE)[2]
    assert_close(float(far), 0.0, rtol=0, atol=1e-12)


def test_gradients_of_the_backends_agree() -> None:
    tables = [rows().requires_grad_() for _ in range(2)]
    one, two = (
        torch.autograd.grad(objective(*tables, GRAPH.adjacency, backend=backend), tables)
        for backend in ("reference", "chunked")
    )
    assert_close(one, two)


def test_weights_multiply_their_terms() -> None:
    found = []
    for neighbors, others in ((1.0, 1.0), (0.5, 3.0)):
        torch.manual_seed(0)
        cfg = Ns4gcConfig(hidden=8, width=4, neighbors=neighbors, others=others)
        found.append(Ns4gc(GRAPH, cfg, Context()).loss(GRAPH))
    for name, factor in (("self", 1), ("neighbours", 0.5), ("others", 3)):
        assert_close(found[1][name], factor * found[0][name])


def test_the_embedding_has_rows_of_length_one_and_one_layer_is_enough() -> None:
    for layers in (1, 2):
        method = Ns4gc(GRAPH, Ns4gcConfig(hidden=8, width=4, layers=layers), Context())
        assert_close(method.embed(GRAPH).norm(dim=1), torch.ones(40))
        assert total(method.loss(GRAPH)).isfinite()


def test_settings_out_of_range_are_named() -> None:
    with pytest.raises(UserError, match=r"neighbors and others .* got 1.0 and -2.0"):
        Ns4gcConfig(others=-2.0)
    with pytest.raises(UserError, match="temperature must be positive"):
        Ns4gc(GRAPH, Ns4gcConfig(temperature=0.0), Context())
