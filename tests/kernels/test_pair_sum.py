"""Sums of functions of a cosine over all pairs: every backend against loops and float64."""

import math

import pytest
import torch
from contrast_cases import spread, unit
from pair_sum_cases import evaluate
from torch.autograd import gradcheck
from torch.testing import assert_close

from muxgcl import kernels
from muxgcl.errors import UserError
from muxgcl.kernels import Exponential, LogGap, PairFunction, Sigmoid, chunked, reference

FUNCTIONS = [Exponential(0.4), LogGap(), LogGap(1e-3), Sigmoid(0.6, 0.1), Sigmoid(0.1, 2.0)]
EVERY = pytest.mark.parametrize("function", FUNCTIONS, ids=str)


def as_one_reads_it(function: PairFunction, cosine: float) -> float:
    if isinstance(function, Exponential):
        return math.exp((cosine - 1) / function.temperature)
    if isinstance(function, LogGap):
        return math.log((1 - cosine) / 2 + function.eps)
    return 1 / (1 + math.exp(-(cosine - function.threshold) / function.temperature))


@EVERY
@pytest.mark.parametrize("views", [(1, 1), (1, 2), (2, 2)])
def test_the_definition_is_the_sum_in_loops(function: PairFunction, views: tuple[int, int]) -> None:
    n = 6
    anchor, keys = (unit(v * n, 5).double() for v in views)
    want = [
        sum(
            as_one_reads_it(function, float(anchor[i] @ keys[j]))
            for j in range(len(keys))
            if i % n != j % n
        )
        for i in range(len(anchor))
    ]
    got = reference.pair_sum(anchor, keys, function, nodes=n)
    assert_close(got, torch.tensor(want, dtype=torch.float64))


@EVERY
@pytest.mark.parametrize("backend", [reference, chunked])
def test_gradients_are_those_of_finite_differences(backend, function: PairFunction) -> None:
    inputs = [unit(5, 3).double().requires_grad_() for _ in range(2)]
    assert gradcheck(lambda *x: backend.pair_sum(*x, function), inputs)


@EVERY
def test_a_slope_is_the_derivative_of_the_value_and_never_above_the_steepest(
    function: PairFunction,
) -> None:
    cosine = torch.linspace(-1, 1, 401, dtype=torch.float64).requires_grad_()
    (want,) = torch.autograd.grad(function.value(cosine).sum(), cosine)
    assert_close(function.slope(cosine.detach()), want)
    assert want.abs().max() <= function.steepest * (1 + 1e-12)
    assert want.abs().max() >= function.steepest * 0.99


@EVERY
@pytest.mark.parametrize(("n", "m"), [(1, 1), (17, 5), (33, 70), (65, 130)])
@pytest.mark.parametrize("tile", [64, 4 << 20])
def test_tiles_agree_with_the_definition(
    function: PairFunction, n: int, m: int, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked, "TILE_BYTES", tile)  # 64 bytes: one row a tile
    tables, upstream = [unit(n, 8), unit(m, 8)], spread(n)
    want, got = (
        evaluate(backend, tables, upstream, torch.float64, function=function)
        for backend in (reference, chunked)
    )
    assert_close(got, want)


@pytest.mark.parametrize("backend", [reference, chunked])
def test_a_node_index_leaves_out_the_anchors_own_node(backend) -> None:
    anchor, keys = unit(4, 5).double(), unit(6, 5).double()
    ids = torch.tensor([7, 2, 9, 2]), torch.tensor([2, 9, 9, 1, 7, 3])
    got = backend.pair_sum(anchor, keys, LogGap(), nodes=ids)
    value = LogGap().value(anchor @ keys.T)
    want = [sum(value[i, j] for j in range(6) if ids[0][i] != ids[1][j]) for i in range(4)]
    assert_close(got, torch.stack(want))


@pytest.mark.parametrize("backend", [reference, chunked])
def test_the_exponential_is_the_sum_over_negatives(backend) -> None:
    anchor, keys = unit(12, 5), unit(24, 5)
    want = backend.negative_sum(anchor, keys, temperature=0.3, nodes=12)
    assert_close(backend.pair_sum(anchor, keys, Exponential(0.3), nodes=12), want)


@pytest.mark.parametrize("backend", [reference, chunked])
def test_equal_rows_are_finite_and_get_a_finite_gradient(backend) -> None:
    """In 32 bits such a cosine may be above 1, where the logarithm would leave the numbers."""
    z = unit(1, 40).repeat(9, 1).requires_grad_()
    sums = backend.pair_sum(1.001 * z, z, LogGap())
    assert_close(sums, torch.full((9,), 8 * math.log(1e-6)))
    (gradient,) = torch.autograd.grad(sums.sum(), z)
    assert gradient.isfinite().all()


def test_the_backend_is_chosen_by_name() -> None:
    z = unit(9, 4)
    want = reference.pair_sum(z, z, Sigmoid(0.5, 0.1))
    for backend in ("auto", "reference", "chunked"):
        assert_close(kernels.pair_sum(z, z, Sigmoid(0.5, 0.1), backend=backend), want)
    with pytest.raises(UserError, match="got 'fast'"):
        kernels.pair_sum(z, z, LogGap(), backend="fast")


def test_settings_out_of_range_are_named() -> None:
    with pytest.raises(UserError, match=r"eps must be positive, got 0.0"):
        LogGap(0.0)
    for make in (Exponential, lambda t: Sigmoid(0.5, t)):
        with pytest.raises(UserError, match=r"temperature must be positive, got -1.0"):
            make(-1.0)
