"""Products of rounded tables: what they compute, where they are taken, and where not."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from contrast_cases import clustered, evaluate, pair_weight, spread, unit
from mux_hop_cases import graph_of
from torch import Tensor

from muxgcl.kernels import PairWeight, Sample, chunked, contrast, reference
from muxgcl.kernels import rounded as module
from muxgcl.kernels.rounded import padded_rows, product, rounded, short
from muxgcl.runs.fit import fit
from muxgcl.runs.loop import Trainer
from muxgcl.runs.plan import Plan, build


@pytest.fixture
def on_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_fast", lambda: True)


def tables(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    shapes = (70, 33), (33, 20)
    one, two = (torch.randn(s, generator=draw).to(dtype).requires_grad_() for s in shapes)
    return one, two


@pytest.mark.usefixtures("on_fast")
def test_a_rounded_product_and_its_gradients_are_those_of_rounded_tables() -> None:
    a, b = tables()
    with rounded():
        found = product(a, b)
    grad = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    found.backward(grad)
    x, w, g = (t.detach().bfloat16().double() for t in (a, b, grad))
    for got, want in ((found, x @ w), (a.grad, g @ w.T), (b.grad, x.T @ g)):
        assert got is not None
        assert got.dtype == torch.float32
        assert (got - want).abs().max() <= 2**-8 * want.abs().max()
    assert not torch.equal(found, a @ b)


@pytest.mark.usefixtures("on_fast")
def test_products_are_rounded_inside_alone_and_in_32_bits_alone() -> None:
    a, b = tables()
    with rounded():
        with rounded(False):
            assert torch.equal(product(a, b), a @ b)
        assert not torch.equal(product(a, b), a @ b)
    assert torch.equal(product(a, b), a @ b)
    long, weight = tables(torch.float64)
    with rounded():
        assert torch.equal(product(long, weight), long @ weight)


def test_nothing_is_rounded_where_the_processor_gains_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "is_fast", lambda: False)
    a, b = tables()
    with rounded():
        assert torch.equal(product(a, b), a @ b)


def embedded(backend: str, anchors: int | None) -> Tensor:
    graph = graph_of()
    plan = Plan.make(
        "mux-hop",
        "quick",
        "default",
        {"epochs": 2, "affinity": "none", "hidden": 16, "width": 16},
        graph=graph,
        device="cpu",
        backend=backend,
        anchors=anchors,
        keys=anchors,
    )
    return fit(plan, graph).embed()


@pytest.mark.parametrize(
    ("backend", "anchors", "changes"),
    [
        ("chunked", 8, True),
        ("chunked/fp32", 8, False),
        ("chunked", None, False),
        ("chunked", 10**6, False),  # all nodes: nothing is left out
    ],
)
def test_a_sampled_training_rounds_unless_it_is_told_not_to(
    backend: str, anchors: int | None, changes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "is_fast", lambda: False)
    plain = embedded(backend, anchors)
    monkeypatch.setattr(module, "is_fast", lambda: True)
    assert torch.equal(embedded(backend, anchors), plain) is not changes


def test_products_of_many_sizes_have_few_shapes() -> None:
    shapes = {padded_rows(rows) for rows in range(4096, 8192)}
    assert len(shapes) <= 17
    for rows in (1, 63, 64, 65, 1000, 4096, 4097, 100_000):
        assert rows <= padded_rows(rows) <= rows + max(63, rows // 16)
        assert padded_rows(padded_rows(rows)) == padded_rows(rows)
    table = short(torch.full((1000, 3), 2.0))
    assert table.shape == (padded_rows(1000), 3)
    assert table.sum() == 6000


@pytest.mark.usefixtures("on_fast")
def test_nothing_is_rounded_between_two_epochs() -> None:
    graph, (a, b) = graph_of(), tables()
    plan = Plan.make("mux-hop", "quick", "default", {"epochs": 2, "affinity": "none"}, graph=graph)
    trainer = Trainer(build(plan, graph), graph, plan.train, rounds=True)
    for _ in trainer.blocks():
        assert torch.equal(product(a, b), a @ b)


def weights(kind: str, nodes: int) -> PairWeight | None:
    if kind == "none":
        return None
    weight = pair_weight(nodes, nodes, 24)
    return replace(weight, curve=torch.rand(9)) if kind == "curve" else weight


@pytest.mark.usefixtures("on_fast")
@pytest.mark.parametrize("rows", [unit, clustered])
@pytest.mark.parametrize("kind", ["none", "line", "curve"])
@pytest.mark.parametrize("temperature", [0.1, 0.3])
@pytest.mark.parametrize("extra", [0.0, 2.5])
def test_a_rounded_contrast_is_close_to_the_definition(
    rows: Callable[[int, int], Tensor], kind: str, temperature: float, extra: float
) -> None:
    nodes = 150
    inputs, weight = [rows(2 * nodes, 32), rows(2 * nodes, 32)], weights(kind, nodes)
    how = {"temperature": temperature, "nodes": nodes, "extra": extra}
    up = torch.tensor(1.7)
    want = evaluate(reference.contrast, inputs, weight, up, torch.float64, **how)
    plain = evaluate(chunked.contrast, inputs, weight, up, **how)
    with rounded():
        found = evaluate(chunked.contrast, inputs, weight, up, **how)
    assert found[0].dtype == torch.float32
    assert abs(found[0] - want[0]) < 2e-3 * want[0]
    for got, right, exact in zip(found[1:], want[1:], plain[1:], strict=True):
        assert (got - right).norm() < 0.02 * right.norm()
        assert not torch.equal(got, exact)  # it was rounded


@pytest.mark.usefixtures("on_fast")
@pytest.mark.parametrize("rows", [unit, clustered])
@pytest.mark.parametrize("kind", ["none", "line", "curve"])
@pytest.mark.parametrize(("anchors", "keys"), [(150, 150), (40, 130), (130, 40)])
@pytest.mark.parametrize("temperature", [0.1, 0.3])
def test_rounded_sums_over_any_number_of_keys_are_close_to_the_definition(
    rows: Callable[[int, int], Tensor], kind: str, anchors: int, keys: int, temperature: float
) -> None:
    inputs = [rows(2 * anchors, 32), rows(2 * keys, 32)]
    order = torch.randperm(max(anchors, keys))  # a node may be an anchor, a key, or both
    ids = order[:anchors].repeat(2), order.flip(0)[:keys].repeat(2)
    weight = None if kind == "none" else weights(kind, max(anchors, keys))
    if weight is not None:
        weight = weight.between((0, anchors), (0, keys))
    how, up = {"temperature": temperature, "nodes": ids}, spread(2 * anchors)
    want = evaluate(reference.negative_sum, inputs, weight, up, torch.float64, **how)
    plain = evaluate(chunked.negative_sum, inputs, weight, up, **how)
    with rounded():
        found = evaluate(chunked.negative_sum, inputs, weight, up, **how)
    for got, right, exact in zip(found, want, plain, strict=True):
        assert got.dtype == torch.float32
        assert (got - right).norm() < 0.02 * right.norm()
        assert (exact - right).norm() < 1e-4 * right.norm()
        assert not torch.equal(got, exact)  # it was rounded


@pytest.mark.usefixtures("on_fast")
@pytest.mark.parametrize(("anchors", "keys"), [(60, 60), (20, 60), (60, 20)])
def test_a_rounded_contrast_of_a_sample_is_close_to_its_sum_over_pairs(
    anchors: int, keys: int
) -> None:
    nodes, t = 90, 0.3
    sample = Sample(torch.randperm(nodes)[:60], anchors, keys, nodes)
    one, two = (clustered(120, 16) for _ in range(2))  # of both views
    a, b = one.double(), two.double()
    losses = []
    for view, i in itertools.product(range(2), range(anchors)):
        row = 60 * view + i
        pull = math.exp(float(a[row] @ b[60 * (1 - view) + i]) / t)
        others = [k for k in range(keys) if k != i]
        met = [float(a[row] @ b[60 * other + k]) / t for k in others for other in range(2)]
        push = sum(map(math.exp, met)) * (nodes - 1) / len(others)
        losses.append(math.log((pull + push) / pull))

    def estimate(*tables: Tensor) -> tuple[Tensor, ...]:
        leaves = [table.clone().requires_grad_() for table in tables]
        loss = contrast(*leaves, temperature=t, backend="chunked", sample=sample)
        return loss, *torch.autograd.grad(loss, leaves)

    want, plain = sum(losses) / len(losses), estimate(one, two)
    with rounded():
        found = estimate(one, two)
    assert abs(plain[0].item() - want) < 1e-5 * want
    assert abs(found[0].item() - want) < 2e-3 * want
    for got, right in zip(found[1:], plain[1:], strict=True):
        assert (got - right).norm() < 0.02 * right.norm()
        assert not torch.equal(got, right)  # it was rounded


@pytest.mark.usefixtures("on_fast")
@pytest.mark.parametrize("function", [chunked.contrast, chunked.negative_sum])
def test_nothing_is_rounded_where_exponentials_would_overflow(
    function: Callable[..., Tensor],
) -> None:
    inputs, how = [unit(20, 8), unit(20, 8)], {"temperature": 0.01, "nodes": 10}
    up = torch.ones(() if function is chunked.contrast else 20)
    plain = evaluate(function, inputs, None, up, **how)
    with rounded():
        found = evaluate(function, inputs, None, up, **how)
    assert all(torch.equal(a, b) for a, b in zip(found, plain, strict=True))
