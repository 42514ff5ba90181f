"""Fused sums of functions of a cosine against the definition in float64, at real sizes."""

from collections.abc import Callable

import pytest
import torch
from contrast_cases import clustered, error, spread, unit
from torch import Tensor
from torch.nn.functional import normalize

from muxgcl.kernels import LogGap, PairFunction, Sigmoid

pytest.importorskip("triton", reason="Triton is not installed")
from muxgcl.kernels import fused, reference

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
GPU = "cuda"
EVERY = pytest.mark.parametrize(
    "function", [LogGap(), Sigmoid(0.6, 0.1), Sigmoid(0.1, 2.0)], ids=str
)


def evaluate(backend, tables: list[Tensor], upstream: Tensor, dtype: torch.dtype, **how) -> list:
    """The sums, and the gradient of every table; one table alone meets itself."""
    leaves = [table.to(dtype).requires_grad_() for table in tables]
    sums = backend.pair_sum(leaves[0], leaves[-1], **how)
    return [sums, *torch.autograd.grad(sums, leaves, upstream.to(sums.dtype))]


def assert_agrees(
    tables: list[Tensor],
    function: PairFunction,
    *,
    value: float = 1e-5,
    gradient: float = 5e-4,
    precision: str | None = None,
    nodes: int | None = None,
) -> None:
    upstream = spread(len(tables[0]), GPU)
    how = {"function": function, "nodes": nodes}
    want = evaluate(reference, tables, upstream, torch.float64, **how)
    got = evaluate(fused, tables, upstream, torch.float32, precision=precision, **how)
    errors = [error(ours, theirs) for ours, theirs in zip(got, want, strict=True)]
    assert errors[0] <= value, errors  # NaN fails too
    assert max(errors[1:]) <= gradient, errors


@EVERY
@pytest.mark.parametrize("n", [1, 65, 1301, 2708])
@pytest.mark.parametrize("rows", [unit, clustered])
def test_sums_and_gradients_are_those_of_the_definition(
    function: PairFunction, n: int, rows: Callable
) -> None:
    assert_agrees([rows(n, 256, GPU)], function, value=5e-5, gradient=1e-3)
    tables = [rows(2 * n, 128, GPU) for _ in range(2)]
    assert_agrees(tables, function, nodes=n, value=5e-5, gradient=1e-3)


@EVERY
@pytest.mark.parametrize("precision", ["fp16", "tf32", "fp32"])
@pytest.mark.parametrize("d", [24, 200, 512, 1024])
def test_every_width_in_every_precision(function: PairFunction, precision: str, d: int) -> None:
    for tables in ([unit(1301, d, GPU)], [unit(1301, d, GPU) for _ in range(2)]):
        assert_agrees(tables, function, precision=precision, value=5e-5, gradient=1e-3)


@pytest.mark.parametrize("precision", ["fp16", "tf32", "fp32"])
@pytest.mark.parametrize(("apart", "value", "gradient"), [(3e-2, 5e-4, 3e-3), (3e-3, 2e-3, 2e-2)])
def test_a_gap_below_the_rounding_of_a_row_keeps_its_digits(
    precision: str, apart: float, value: float, gradient: float
) -> None:
    z = normalize(1 + apart * torch.randn(1301, 64, device=GPU), dim=1)
    assert_agrees([z], LogGap(), precision=precision, value=value, gradient=gradient)


def test_two_runs_give_the_same_bits() -> None:
    tables, upstream = [unit(2708, 256, GPU)], spread(2708, GPU)
    for function in (LogGap(), Sigmoid(0.6, 0.1)):
        first, again = (
            evaluate(fused, tables, upstream, torch.float32, function=function) for _ in range(2)
        )
        for one, two in zip(first, again, strict=True):
            assert torch.equal(one, two)
