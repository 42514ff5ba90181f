"""CCA-SSG: the objective in loops, its value where it is known, and what does not change it."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import elu
from torch.testing import assert_close

from muxgcl.augment import Corrupt, both
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.losses.decorrelation import canonical_correlation, standardised
from muxgcl.methods import Context, total
from muxgcl.methods.cca_ssg import CcaSsg, CcaSsgConfig

LAMBDA = 0.01


def objective(one: Tensor, two: Tensor) -> Tensor:
    agreement, repetition = canonical_correlation(one, two)
    return agreement + LAMBDA * repetition


def views(n: int = 12, d: int = 4) -> list[Tensor]:
    one = torch.randn(n, d, dtype=torch.float64)
    return [one, one + torch.randn(n, d, dtype=torch.float64)]


def columns(table: Tensor) -> list[list[float]]:
    found = []
    for column in table.T.tolist():
        mean = sum(column) / len(column)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in column) / (len(column) - 1))
        found.append([(x - mean) / deviation for x in column])
    return found


def correlation(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / len(a)


def in_loops(one: Tensor, two: Tensor) -> tuple[float, float]:
    first, second = columns(one), columns(two)
    agreement = -sum(correlation(a, b) for a, b in zip(first, second, strict=True))
    repetition = 0.0
    for view in (first, second):
        for i, a in enumerate(view):
            for j, b in enumerate(view):
                repetition += ((i == j) - correlation(a, b)) ** 2
    return agreement, repetition


def test_the_objective_is_the_formula_in_loops() -> None:
    one, two = views()
    agreement, repetition = in_loops(one, two)
    want = agreement + LAMBDA * repetition
    assert_close(float(objective(one, two)), want, rtol=1e-10, atol=0)


@torch.no_grad()
def test_the_loss_is_the_weighted_formula_over_two_encoded_views() -> None:
    graph = Graph.from_data(planted(nodes=40, isolated=2))
    cfg = CcaSsgConfig(
        layers=3,
        width=5,
        activation="elu",
        drop_edges=0.3,
        mask_features=0.25,
        decorrelation=0.05,
        row_normalize=True,
    )
    method = CcaSsg(graph, cfg, Context())
    torch.manual_seed(5)
    got = method.loss(graph)
    torch.manual_seed(5)
    words = graph.dense_features()
    scaled = replace(graph, features=words / words.sum(1, keepdim=True))
    view = both(scaled, [Corrupt(0.3, 0.25)] * 2)
    first, second, third = method.encoder.weights
    assert first.shape == (48, 5)
    assert second.shape == third.shape == (5, 5)
    nodes = view.propagation @ view.project(first)  # biases begin at 0
    for weight in (second, third):
        nodes = view.propagation @ (elu(nodes) @ weight)
    agreement, repetition = in_loops(*nodes.chunk(2))
    assert_close(float(got["agreement"]), agreement, rtol=1e-4, atol=0)
    assert_close(float(got["repetition"]), 0.05 * repetition, rtol=1e-4, atol=0)


def test_the_diagonal_of_a_views_correlation_falls_short_of_one_by_one_node() -> None:
    z = standardised(views()[0])
    assert_close((z.T @ z / 12).diagonal(), torch.full((4,), 11 / 12, dtype=torch.float64))


def test_equal_views_of_uncorrelated_columns_have_a_known_loss() -> None:
    n, d = 12, 4
    centred = torch.randn(n, d, dtype=torch.float64)
    z = torch.linalg.qr(centred - centred.mean(0)).Q  # columns of mean 0, orthonormal
    want = -d * (n - 1) / n + 2 * LAMBDA * d / n**2
    assert_close(float(objective(z, z)), want, rtol=1e-10, atol=0)


def test_scales_shifts_and_a_common_order_or_sign_of_columns_change_nothing() -> None:
    one, two = views()
    want = objective(one, two)
    scale, shift = torch.rand(4, dtype=torch.float64) + 0.1, torch.randn(4, dtype=torch.float64)
    assert_close(objective(one * scale + shift, two), want)
    order, sign = torch.randperm(4), torch.tensor([1.0, -1, -1, 1], dtype=torch.float64)
    assert_close(objective(one[:, order] * sign, two[:, order] * sign), want)
    rotation = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64)).Q
    assert abs(objective(one @ rotation, two @ rotation) - want) > 1e-3


def test_a_dead_column_has_a_finite_loss_and_gradient() -> None:
    one, two = views()
    one[:, 2] = 3.0
    one.requires_grad_()
    loss = objective(one, two)
    (gradient,) = torch.autograd.grad(loss, one)
    assert loss.isfinite()
    assert gradient.isfinite().all()


def test_the_last_layer_is_linear_and_one_layer_is_enough() -> None:
    graph = Graph.from_data(planted(nodes=40))
    for layers in (1, 2):
        method = CcaSsg(graph, CcaSsgConfig(width=6, layers=layers), Context())
        assert [tuple(w.shape)[1] for w in method.encoder.weights] == [6] * layers
        assert (method.embed(graph) < 0).any()
        assert total(method.loss(graph)).isfinite()


def test_settings_out_of_range_are_named() -> None:
    with pytest.raises(UserError, match=r"decorrelation must not be negative, got -1.0"):
        CcaSsgConfig(decorrelation=-1.0)
