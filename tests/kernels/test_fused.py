"""The fused kernel against the definition in float64, on the CPU through Triton's interpreter."""

from dataclasses import replace

import pytest
import torch
from contrast_cases import (
    INTERPRETED,
    assert_agrees,
    clustered,
    evaluate,
    pair_weight,
    spread,
    unit,
)
from torch.testing import assert_close

from muxgcl.errors import UserError
from muxgcl.kernels import PairWeight

pytest.importorskip("triton", reason="Triton is not installed")
if not torch.cuda.is_available():
    import triton_interpreter  # noqa: F401  mends the interpreter before a kernel runs
from muxgcl.kernels import all_pairs, fused, reference
from muxgcl.kernels import blocks as dealt

pytestmark = INTERPRETED
SIZES = [1, 2, 63, 64, 65, 130]
VIEWS = [(1, 1), (1, 2), (2, 2)]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("views", VIEWS)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_and_gradients_are_those_of_the_definition(
    n: int, views: tuple[int, int], weighted: bool
) -> None:
    tables = [unit(v * n, 24) for v in views]
    weight = pair_weight(n, n, 12) if weighted else None
    upstream = spread(len(tables[0]))
    assert_agrees(fused.negative_sum, tables, weight, upstream, temperature=0.4, nodes=n)


@pytest.mark.parametrize("rows", [unit, clustered])
@pytest.mark.parametrize("temperature", [0.05, 0.2, 1.0, 3.0])
def test_no_temperature_leaves_the_range(rows, temperature: float) -> None:
    tables = [rows(2 * 65, 32), rows(2 * 65, 32)]
    weight = pair_weight(65, 65, 16)
    upstream = spread(130)
    assert_agrees(fused.negative_sum, tables, weight, upstream, temperature=temperature, nodes=65)


@pytest.mark.parametrize("temperature", [0.01, 0.02])
@pytest.mark.parametrize("itself", [False, True])
def test_a_positive_far_away_has_a_finite_loss(temperature: float, itself: bool) -> None:
    """Its share underflows to nothing beside a near negative; the logarithm of it does not."""
    one = unit(2 * 60, 4)
    two = one if itself else unit(2 * 60, 4)
    want = reference.contrast(one.double(), two.double(), temperature=temperature, nodes=60)
    assert_close(fused.contrast(one, two, temperature=temperature, nodes=60).double(), want,
                 rtol=1e-3, atol=0)  # fmt: skip


@pytest.mark.parametrize(
    ("d", "r"), [(1, 1), (16, 100), (129, 0), (300, 17), (512, 512), (1000, 40)]
)
def test_any_width_up_to_1024(d: int, r: int) -> None:
    tables = [unit(70, d), unit(140, d)]
    weight = pair_weight(70, 70, r) if r else None
    assert_agrees(fused.negative_sum, tables, weight, spread(70), temperature=0.5, nodes=70)


@pytest.mark.parametrize(("n", "m"), [(17, 5), (33, 70), (3, 130), (130, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_that_are_no_multiple_of_the_nodes(n: int, m: int, weighted: bool) -> None:
    weight = pair_weight(n, m, 8) if weighted else None
    tables = [unit(n, 20), unit(m, 20)]
    assert_agrees(fused.negative_sum, tables, weight, spread(n), temperature=0.3)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_node_index_leaves_out_the_anchors_own_node(weighted: bool) -> None:
    n, m = 67, 131
    ids = torch.randint(9, (n,)) + (1 << 40), torch.randint(9, (m,)) + (1 << 40)
    weight = pair_weight(n, m, 8) if weighted else None
    tables = [unit(n, 20), unit(m, 20)]
    assert_agrees(fused.negative_sum, tables, weight, spread(n), temperature=0.3, nodes=ids)


@pytest.mark.parametrize(("offset", "slope"), [(1.0, -1.0), (0.2, 2.0), (3.0, 0.0)])
@pytest.mark.parametrize("most", [1.0, 2.0])
def test_weights_are_cut_to_0_and_the_most(offset: float, slope: float, most: float) -> None:
    z = unit(70, 20)
    weight = PairWeight(unit(70, 4), unit(70, 4), offset, slope, most=most)
    assert_agrees(fused.negative_sum, [z, z], weight, spread(70), temperature=0.5)


@pytest.mark.parametrize("temperature", [0.05, 0.4, 3.0])
def test_weights_may_count_twice(temperature: float) -> None:
    n = 70
    weight = PairWeight(unit(n, 4), unit(n, 4), 1.0, -1.0, most=2.0)
    how = {"temperature": temperature, "nodes": n}
    upstream = torch.tensor(-0.7)
    assert_agrees(fused.contrast, [unit(2 * n, 24) for _ in "ab"], weight, upstream, **how)
    same = replace(weight, cols=weight.rows)
    assert_agrees(fused.contrast, [unit(2 * n, 24)], same, upstream, **how)


def test_pushes_that_count_twice_stay_in_the_range_of_16_bits() -> None:
    n = 1030  # enough rows to be rounded
    z = unit(1, 32).repeat(n, 1)  # every cosine is 1, every push as large as can be
    rows = unit(1, 4)
    weight = PairWeight(rows.repeat(n, 1), -rows.repeat(n, 1), 1.0, -1.0, most=2.0)
    anchor = z.clone().requires_grad_()
    got = fused.negative_sum(anchor, z, weight, temperature=0.5, precision="fp16")
    assert_close(got, torch.full((n,), 2.0 * (n - 1)), rtol=1e-3, atol=0)
    (gradient,) = torch.autograd.grad(got.sum(), anchor)
    assert_close(gradient, 2.0 * (n - 1) * z / 0.5, rtol=2e-3, atol=1)


@pytest.mark.parametrize(
    ("n", "views", "temperature"),
    [(n, views, 0.4) for n in SIZES for views in (1, 2, 3)]
    # in one view a row is its own positive: at 0.05 hardly a push is left beside it
    + [(n, *how) for n in (2, 65) for how in ((1, 3.0), (2, 0.05), (2, 3.0), (3, 0.05))],
)
def test_a_table_is_contrasted_with_itself(n: int, views: int, temperature: float) -> None:
    weight = pair_weight(n, n, 12)
    how = {"temperature": temperature, "nodes": n}
    for given in (None, replace(weight, cols=weight.rows), weight):
        assert_agrees(fused.contrast, [unit(views * n, 24)], given, torch.tensor(-0.7), **how)


@pytest.mark.parametrize("extra", [-1.5, 3.0, 8.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_negatives_may_count_for_more_than_one(extra: float, weighted: bool) -> None:
    n = 65
    weight = pair_weight(n, n, 12) if weighted else None
    how = {"temperature": 0.2, "nodes": n, "extra": extra}
    for tables in ([unit(2 * n, 24)], [unit(2 * n, 24) for _ in "ab"]):
        assert_agrees(fused.contrast, tables, weight, torch.tensor(-0.7), **how)


def test_stacked_views_of_different_nodes_share_one_row_of_weights_a_node() -> None:
    """As a sample with more keys than anchors needs it."""
    anchors, keys = 30, 70
    ids = torch.arange(anchors).repeat(2), torch.arange(keys).repeat(2)
    tables, weight = [unit(2 * anchors, 20), unit(2 * keys, 20)], pair_weight(anchors, keys, 8)
    upstream = spread(2 * anchors)
    assert_agrees(fused.negative_sum, tables, weight, upstream, temperature=0.3, nodes=ids)


@pytest.mark.small
@pytest.mark.parametrize("n", [1, 2, 65])
@pytest.mark.parametrize("temperature", [0.05, 3.0])
@pytest.mark.parametrize("rows", [unit, clustered])
def test_few_rows_are_not_rounded(n: int, temperature: float, rows) -> None:
    """Among few pairs rounding errors do not even out."""
    how = {"temperature": temperature, "nodes": n, "gradient": 5e-5}
    upstream = torch.tensor(-0.7)
    for weight in (None, pair_weight(n, n, 12)):
        assert_agrees(fused.contrast, [rows(2 * n, 256)], weight, upstream, **how)
        assert_agrees(fused.contrast, [rows(2 * n, 256) for _ in "ab"], weight, upstream, **how)


@pytest.mark.parametrize("n", [63, 64, 200])
def test_nearly_equal_pushes_are_not_all_rounded_the_same_way(n: int) -> None:
    for tables in ([clustered(2 * n, 256)], [clustered(2 * n, 256) for _ in "ab"]):
        upstream = torch.tensor(-0.7)
        assert_agrees(fused.contrast, tables, None, upstream, temperature=3.0, nodes=n)


def test_a_table_with_itself_needs_one_product_less(monkeypatch) -> None:
    z = unit(40, 24).requires_grad_()
    walked = []
    real = all_pairs.AllPairs._launch
    monkeypatch.setattr(
        all_pairs.AllPairs,
        "_launch",
        lambda *a, **k: walked.append(k.get("pulls")) or real(*a, **k),
    )
    fused.contrast(z, z, temperature=0.4, nodes=20).backward()
    assert walked == [False, None]  # the sums alone, then one walk for both roles


@pytest.mark.parametrize("knots", [2, 33, 4097])
def test_a_weight_may_be_a_curve(knots: int) -> None:
    tables = [unit(130, 20), unit(130, 20)]
    curve = torch.linspace(0, 3, knots).sin() ** 2
    weight = PairWeight(unit(65, 3), unit(65, 3), curve=curve)
    assert_agrees(fused.negative_sum, tables, weight, spread(130), temperature=0.5, nodes=65)
    upstream = torch.tensor(0.3)
    assert_agrees(fused.contrast, tables, weight, upstream, temperature=0.5, nodes=65)


@pytest.mark.parametrize(
    ("precision", "value", "gradient"),
    [("fp16", 1e-4, 1e-3), ("tf32", 1e-4, 5e-4), ("fp32", 2e-6, 2e-6)],
)
def test_tables_in_32_bits_are_rounded_as_asked(
    precision: str, value: float, gradient: float
) -> None:
    """Rows of 24 numbers that 16 bits do not hold."""
    tables = [torch.nn.functional.normalize(torch.randn(130, 24), dim=1) for _ in range(2)]
    assert_agrees(
        fused.negative_sum,
        tables,
        pair_weight(65, 65, 10),
        spread(130),
        temperature=0.4,
        nodes=65,
        precision=precision,
        value=value,
        gradient=gradient,
    )


def test_half_tables_are_taken_as_they_are_and_get_half_gradients() -> None:
    tables = [unit(65, 16), unit(65, 16)]
    value, *grads = evaluate(
        fused.negative_sum, tables, None, torch.rand(65), torch.float16, temperature=0.4
    )
    assert value.dtype == torch.float32
    assert {grad.dtype for grad in grads} == {torch.float16}
    assert_agrees(
        fused.negative_sum,
        tables,
        None,
        torch.rand(65),
        dtype=torch.float16,
        gradient=1e-3,
        temperature=0.4,
    )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_contrast_of_two_views_is_that_of_the_definition(n: int, weighted: bool) -> None:
    tables = [unit(2 * n, 24) for _ in range(2)]
    weight = pair_weight(n, n, 12) if weighted else None
    upstream = torch.tensor(-0.7)
    assert_agrees(fused.contrast, tables, weight, upstream, temperature=0.2, nodes=n)


def test_two_runs_give_the_same_bits() -> None:
    tables, weight, upstream = (
        [unit(260, 24) for _ in range(2)],
        pair_weight(130, 130, 12),
        spread(260),
    )
    first, again = (
        evaluate(fused.negative_sum, tables, weight, upstream, temperature=0.4, nodes=130)
        for _ in range(2)
    )
    for one, two in zip(first, again, strict=True):
        assert torch.equal(one, two)


def test_an_upstream_gradient_of_zero_is_zero_everywhere() -> None:
    z = unit(66, 16)
    _, *grads = evaluate(fused.negative_sum, [z, z], None, torch.zeros(66), temperature=0.4)
    for grad in grads:
        assert torch.equal(grad, torch.zeros(66, 16))


@pytest.mark.parametrize(
    ("blocks", "tiles", "parts"),
    [(44, 85, 3), (22, 85, 6), (120, 240, 1), (216, 430, 3), (1, 1, 1)],
)
def test_programs_fill_the_processors(blocks: int, tiles: int, parts: int) -> None:
    assert dealt.split(blocks, tiles) == parts


def test_what_the_kernel_cannot_do_is_said_in_a_line() -> None:
    z, wide = unit(4, 8), unit(2, 1100)
    with pytest.raises(UserError, match="got 1100"):
        fused.negative_sum(wide, wide, temperature=0.4)
    with pytest.raises(UserError, match="got 'fp8'"):
        fused.negative_sum(z, z, temperature=0.4, precision="fp8")
