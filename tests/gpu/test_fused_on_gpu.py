"""The fused kernel against the definition in float64, on the device and at real sizes."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from contrast_cases import assert_agrees, clustered, evaluate, pair_weight, spread, unit
from torch.nn.functional import normalize

from muxgcl.kernels import PairWeight

pytest.importorskip("triton", reason="Triton is not installed")
from muxgcl.kernels import fused

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
GPU = "cuda"


@pytest.fixture(autouse=True)
def _poison() -> Iterator[None]:
    """Fresh memory is full of NaN, so that an output that is never written shows."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130, 1301, 2708])
@pytest.mark.parametrize("views", [(1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_and_gradients_are_those_of_the_definition(
    n: int, views: tuple[int, int], weighted: bool
) -> None:
    tables = [unit(v * n, 128, GPU) for v in views]
    weight = pair_weight(n, n, 128, GPU) if weighted else None
    upstream = spread(len(tables[0]), GPU)
    assert_agrees(fused.negative_sum, tables, weight, upstream, temperature=0.4, nodes=n)


@pytest.mark.parametrize("rows", [unit, clustered])
@pytest.mark.parametrize("temperature", [0.05, 0.1, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("n", [1301, 2708])
def test_no_temperature_leaves_the_range(rows: Callable, temperature: float, n: int) -> None:
    tables = [rows(2 * n, 256, GPU), rows(2 * n, 256, GPU)]
    weight = pair_weight(n, n, 128, GPU)
    upstream = spread(2 * n, GPU)
    assert_agrees(fused.negative_sum, tables, weight, upstream, temperature=temperature, nodes=n)


@pytest.mark.parametrize("rows", [unit, clustered])
@pytest.mark.parametrize("temperature", [0.05, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1301, 2708])
def test_the_contrast_of_two_views_is_that_of_the_definition(
    rows: Callable, temperature: float, weighted: bool, n: int
) -> None:
    tables = [rows(2 * n, 256, GPU) for _ in range(2)]
    weight = pair_weight(n, n, 128, GPU) if weighted else None
    upstream = torch.tensor(-0.7, device=GPU)
    assert_agrees(fused.contrast, tables, weight, upstream, temperature=temperature, nodes=n)


@pytest.mark.parametrize("rows", [unit, clustered])
@pytest.mark.parametrize("temperature", [0.05, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1301, 2708])
def test_a_table_is_contrasted_with_itself(
    rows: Callable, temperature: float, weighted: bool, n: int
) -> None:
    weight = pair_weight(n, n, 128, GPU)
    weight = replace(weight, cols=weight.rows) if weighted else None
    upstream = torch.tensor(-0.7, device=GPU)
    tables = [rows(2 * n, 256, GPU)]
    assert_agrees(fused.contrast, tables, weight, upstream, temperature=temperature, nodes=n)


@pytest.mark.parametrize("precision", ["fp16", "tf32", "fp32"])
@pytest.mark.parametrize("d", [24, 128, 200, 512])
def test_a_table_of_any_width_with_itself(precision: str, d: int) -> None:
    weight = pair_weight(140, 140, 40, GPU)
    assert_agrees(
        fused.contrast,
        [unit(280, d, GPU)],
        replace(weight, cols=weight.rows),
        torch.tensor(1.3, device=GPU),
        temperature=0.5,
        nodes=140,
        precision=precision,
    )


@pytest.mark.parametrize(
    ("precision", "d", "r"),
    [
        *(("fp16", *widths) for widths in [(1, 0), (24, 17), (200, 128), (512, 0), (512, 512)]),
        *(("tf32", *widths) for widths in [(24, 17), (128, 128), (200, 128), (512, 512)]),
        *(("fp32", *widths) for widths in [(24, 17), (512, 128)]),
    ],
)
def test_any_width_up_to_512(precision: str, d: int, r: int) -> None:
    tables = [unit(140, d, GPU), unit(280, d, GPU)]
    weight = pair_weight(140, 140, r, GPU) if r else None
    assert_agrees(
        fused.negative_sum,
        tables,
        weight,
        spread(140, GPU),
        temperature=0.5,
        nodes=140,
        precision=precision,
    )


@pytest.mark.parametrize(
    ("precision", "value", "gradient"),
    [("fp16", 1e-4, 5e-4), ("tf32", 1e-4, 5e-4), ("fp32", 1e-5, 1e-5), ("bf16", 1e-3, 5e-3)],
)
def test_tables_in_32_bits_are_rounded_as_asked(
    precision: str, value: float, gradient: float
) -> None:
    """Rows that 16 bits do not hold."""
    n = 1301
    tables = [normalize(torch.randn(2 * n, 256, device=GPU), dim=1) for _ in range(2)]
    rows, cols = (normalize(torch.randn(n, 128, device=GPU), dim=1) for _ in range(2))
    assert_agrees(
        fused.negative_sum,
        tables,
        PairWeight(rows, cols),
        spread(2 * n, GPU),
        temperature=0.4,
        nodes=n,
        precision=precision,
        value=value,
        gradient=gradient,
    )


@pytest.mark.parametrize("function", [fused.negative_sum, fused.contrast])
def test_a_weight_may_be_a_curve(function: Callable) -> None:
    n = 1301
    tables = [unit(2 * n, 128, GPU) for _ in range(2)]
    weight = replace(
        pair_weight(n, n, 64, GPU), curve=torch.linspace(0, 3, 4097, device=GPU).sin() ** 2
    )
    upstream = torch.ones((), device=GPU) if function is fused.contrast else spread(2 * n, GPU)
    assert_agrees(function, tables, weight, upstream, temperature=0.3, nodes=n)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_node_index_leaves_out_the_anchors_own_node(weighted: bool) -> None:
    n, m = 1301, 700
    ids = torch.randint(900, (n,), device=GPU), torch.randint(900, (m,), device=GPU)
    weight = pair_weight(n, m, 100, GPU) if weighted else None
    tables = [unit(n, 128, GPU), unit(m, 128, GPU)]
    upstream = spread(n, GPU)
    assert_agrees(fused.negative_sum, tables, weight, upstream, temperature=0.3, nodes=ids)


@pytest.mark.parametrize("function", [fused.negative_sum, fused.contrast])
def test_two_runs_give_the_same_bits(function: Callable) -> None:
    n = 2708
    tables = [unit(2 * n, 256, GPU) for _ in range(2)]
    weight = pair_weight(n, n, 128, GPU)
    upstream = torch.ones((), device=GPU) if function is fused.contrast else spread(2 * n, GPU)
    first, *more = (
        evaluate(function, tables, weight, upstream, temperature=0.4, nodes=n) for _ in range(5)
    )
    for again in more:
        for one, two in zip(first, again, strict=True):
            assert torch.equal(one, two)


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node")  # leaves met another stream before
def test_a_captured_step_gives_the_same_bits_on_new_numbers() -> None:
    n = 1301
    tables = [unit(2 * n, 128, GPU).requires_grad_() for _ in range(2)]
    weight = pair_weight(n, n, 64, GPU)

    def step() -> list[torch.Tensor]:
        loss = fused.contrast(*tables, weight, temperature=0.4, nodes=n)
        return [loss, *torch.autograd.grad(loss, tables)]

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()  # compiles the kernels before the capture
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    with torch.no_grad():
        for table in tables:
            table.copy_(unit(2 * n, 128, GPU))
    graph.replay()
    for got, want in zip(captured, step(), strict=True):
        assert torch.equal(got, want)


def test_memory_grows_with_the_nodes_and_not_with_their_square() -> None:
    n, d = 20_000, 128
    tables = [unit(n, d, GPU) for _ in range(2)]
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    evaluate(fused.negative_sum, tables, None, torch.rand(n, device=GPU), temperature=0.4)
    peak = torch.cuda.max_memory_allocated() - before
    assert peak < 20 * n * d * 4  # a matrix of pairs would be 1.6 GB, this is 0.2
