"""Fused sums of functions of a cosine against the definition in float64, at real sizes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from contrast_cases import clustered, spread, unit
from pair_sum_cases import assert_agrees, evaluate
from torch import Tensor
from torch.nn.functional import normalize

from muxgcl.kernels import LogGap, PairFunction, Sigmoid

pytest.importorskip("triton", reason="Triton is not installed")
from muxgcl.kernels import fused

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
GPU = "cuda"
EVERY = pytest.mark.parametrize(
    "function", [LogGap(), Sigmoid(0.6, 0.1), Sigmoid(0.1, 2.0)], ids=str
)


def agrees(tables: list[Tensor], function: PairFunction, **how: Any) -> None:
    assert_agrees(fused, tables, spread(len(tables[0]), GPU), function=function, **how)


@EVERY
@pytest.mark.parametrize("n", [1, 65, 1301, 2708])
@pytest.mark.parametrize("rows", [unit, clustered])
def test_sums_and_gradients_are_those_of_the_definition(
    function: PairFunction, n: int, rows: Callable
) -> None:
    agrees([rows(n, 256, GPU)], function, value=5e-5, gradient=1e-3)
    tables = [rows(2 * n, 128, GPU) for _ in range(2)]
    agrees(tables, function, nodes=n, value=5e-5, gradient=1e-3)


@EVERY
@pytest.mark.parametrize("precision", ["fp16", "tf32", "fp32"])
@pytest.mark.parametrize("d", [24, 200, 512, 1024])
def test_every_width_in_every_precision(function: PairFunction, precision: str, d: int) -> None:
    for tables in ([unit(1301, d, GPU)], [unit(1301, d, GPU) for _ in range(2)]):
        agrees(tables, function, precision=precision, value=5e-5, gradient=1e-3)


@pytest.mark.parametrize("precision", ["fp16", "tf32", "fp32"])
@pytest.mark.parametrize(("apart", "value", "gradient"), [(3e-2, 5e-4, 3e-3), (3e-3, 2e-3, 2e-2)])
def test_a_gap_below_the_rounding_of_a_row_keeps_its_digits(
    precision: str, apart: float, value: float, gradient: float
) -> None:
    z = normalize(1 + apart * torch.randn(1301, 64, device=GPU), dim=1)
    agrees([z], LogGap(), precision=precision, value=value, gradient=gradient)


def test_two_runs_give_the_same_bits() -> None:
    tables, upstream = [unit(2708, 256, GPU)], spread(2708, GPU)
    for function in (LogGap(), Sigmoid(0.6, 0.1)):
        first, again = (
            evaluate(fused, tables, upstream, torch.float32, function=function) for _ in range(2)
        )
        for one, two in zip(first, again, strict=True):
            assert torch.equal(one, two)
