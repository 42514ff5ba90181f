"""The fused sums of functions of a cosine against float64, through Triton's interpreter."""

from collections.abc import Callable

import pytest
import torch
from contrast_cases import INTERPRETED, clustered, spread, unit
from pair_sum_cases import assert_agrees, evaluate
from torch.nn.functional import normalize
from torch.testing import assert_close

from muxgcl import kernels
from muxgcl.errors import UserError
from muxgcl.kernels import Exponential, LogGap, PairFunction, Sigmoid

pytest.importorskip("triton", reason="Triton is not installed")
if not torch.cuda.is_available():
    import triton_interpreter  # noqa: F401  mends the interpreter before a kernel runs
from muxgcl.kernels import all_pairs, fused, reference

pytestmark = INTERPRETED
FUNCTIONS = [LogGap(), Sigmoid(0.6, 0.1), Sigmoid(0.2, 0.05), Sigmoid(0.1, 2.0)]
EVERY = pytest.mark.parametrize("function", FUNCTIONS, ids=str)


@EVERY
@pytest.mark.parametrize("n", [1, 2, 65, 130])
@pytest.mark.parametrize("views", [(1, 1), (1, 2), (2, 2)])
def test_sums_and_gradients_are_those_of_the_definition(
    function: PairFunction, n: int, views: tuple[int, int]
) -> None:
    tables = [unit(v * n, 24) for v in views]
    assert_agrees(fused, tables, spread(len(tables[0])), function=function, nodes=n)


@EVERY
@pytest.mark.parametrize("n", [1, 2, 65, 130])
@pytest.mark.parametrize("views", [1, 2])
def test_a_table_meets_itself(function: PairFunction, n: int, views: int) -> None:
    assert_agrees(fused, [unit(views * n, 24)], spread(views * n), function=function, nodes=n)


@EVERY
@pytest.mark.parametrize("precision", ["fp16", "tf32", "fp32"])
@pytest.mark.parametrize("rows", [unit, clustered])
def test_every_precision_takes_rows_that_it_holds(
    function: PairFunction, precision: str, rows: Callable
) -> None:
    for tables in ([rows(130, 32)], [rows(130, 32), rows(130, 32)]):
        how = {"function": function, "nodes": 65, "precision": precision}
        assert_agrees(fused, tables, spread(130), **how)


@pytest.mark.parametrize("d", [1, 16, 129, 512, 700, 1024])
def test_any_width_up_to_1024(d: int) -> None:
    for function in (LogGap(1e-3), Sigmoid(0.3, 0.2)):
        assert_agrees(fused, [unit(70, d)], spread(70), function=function, nodes=70)


def test_tables_of_any_length_and_nodes_by_number() -> None:
    tables, function = [unit(67, 20), unit(131, 20)], LogGap()
    assert_agrees(fused, tables, spread(67), function=function)
    ids = torch.randint(9, (67,)), torch.randint(9, (131,))
    assert_agrees(fused, tables, spread(67), function=function, nodes=ids)
    same = torch.randint(9, (67,))
    assert_agrees(fused, tables[:1], spread(67), function=function, nodes=(same, same))


@pytest.mark.parametrize("precision", ["fp16", "tf32", "fp32"])
@pytest.mark.parametrize(("apart", "value", "gradient"), [(3e-2, 5e-4, 3e-3), (3e-3, 2e-3, 2e-2)])
def test_a_gap_below_the_rounding_of_a_row_keeps_its_digits(
    precision: str, apart: float, value: float, gradient: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gaps of 1e-3 and 1e-5, while rounding to 16 bits moves a product of rows by 1e-4."""
    z = normalize(1 + apart * torch.randn(130, 64), dim=1)
    how = {"function": LogGap(), "precision": precision, "value": value, "gradient": gradient}
    for tables in ([z], [z, z.clone()]):
        assert_agrees(fused, tables, torch.rand(130), **how)
    if precision != "fp32":  # which is due to the lengths of the rounded rows
        monkeypatch.setattr(fused, "_excess", lambda rounded, rows: torch.zeros(len(rows)))
        with pytest.raises(AssertionError):
            assert_agrees(fused, [z], torch.rand(130), **how)


def test_equal_rows_stay_finite_in_any_precision() -> None:
    z = normalize(torch.randn(1, 40), dim=1).repeat(70, 1)
    for precision in ("fp16", "tf32", "fp32"):
        sums, gradient = evaluate(
            fused, [z], torch.ones(70), torch.float32, function=LogGap(), precision=precision
        )
        assert sums.isfinite().all()
        assert gradient.isfinite().all()


def test_a_table_with_itself_needs_one_product_less(monkeypatch: pytest.MonkeyPatch) -> None:
    z = unit(40, 24).requires_grad_()
    walked = []
    real = all_pairs.AllPairs._launch
    monkeypatch.setattr(
        all_pairs.AllPairs,
        "_launch",
        lambda *a, **k: walked.append(k.get("pulls")) or real(*a, **k),
    )
    fused.pair_sum(z, z, LogGap()).sum().backward()
    assert walked == [False, None]  # the sums alone, then one walk for both roles


@pytest.mark.small
def test_the_exponential_is_the_sum_over_negatives() -> None:
    z = unit(40, 24)
    want = fused.negative_sum(z, z, temperature=0.4)
    assert torch.equal(fused.pair_sum(z, z, Exponential(0.4)), want)


@pytest.mark.small
def test_few_rows_are_not_rounded() -> None:
    assert_agrees(fused, [unit(65, 200)], spread(65), function=Sigmoid(0.1, 0.5), gradient=1e-5)


def test_an_upstream_gradient_of_zero_is_zero_everywhere() -> None:
    for tables in ([unit(66, 16)], [unit(66, 16), unit(66, 16)]):
        _, *grads = evaluate(fused, tables, torch.zeros(66), torch.float32, function=LogGap())
        for gradient in grads:
            assert torch.equal(gradient, torch.zeros(66, 16))


def test_the_precision_is_part_of_the_backends_name() -> None:
    z = unit(66, 24)
    exact = reference.pair_sum(z.double(), z.double(), LogGap())
    for backend in ("fused", "fused/fp32", "fused/tf32"):
        got = kernels.pair_sum(z, z, LogGap(), backend=backend)
        assert_close(got.double(), exact, rtol=1e-5, atol=1e-4)
    with pytest.raises(UserError, match="got 2000"):
        fused.pair_sum(unit(2, 2000), unit(2, 2000), LogGap())
