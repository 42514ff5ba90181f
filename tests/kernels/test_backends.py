"""Every backend against the definition, and the definition against loops."""

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn.functional import normalize
from torch.testing import assert_close

from muxgcl import kernels
from muxgcl.errors import UserError
from muxgcl.kernels import PairWeight, chunked, reference, resolve
from muxgcl.losses.multiscale import MultiplexPatchContrast


def unit(n: int, d: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return normalize(torch.randn(n, d, dtype=dtype), dim=1)


def pair_weight(n: int, m: int, r: int, dtype: torch.dtype = torch.float32) -> PairWeight:
    return PairWeight(unit(n, r, dtype), unit(m, r, dtype))


def loop_negative_sum(
    anchor: Tensor, keys: Tensor, weight: PairWeight | None, t: float, nodes: int
) -> Tensor:
    """The sum as one reads it aloud."""
    sums = []
    for i, a in enumerate(anchor):
        total = torch.zeros((), dtype=anchor.dtype)
        for j, b in enumerate(keys):
            if i % nodes == j % nodes:
                continue
            w = 1.0
            if weight is not None:
                p, q = weight.rows[i % len(weight.rows)], weight.cols[j % len(weight.cols)]
                w = min(weight.most, max(0.0, float(weight.offset + weight.slope * (p @ q))))
            total = total + w * torch.exp((a @ b - 1) / t)
        sums.append(total)
    return torch.stack(sums)


def gradients(function, inputs: list[Tensor], upstream: Tensor) -> tuple[Tensor, list[Tensor]]:
    leaves = [x.clone().requires_grad_() for x in inputs]
    out = function(*leaves)
    return out, torch.autograd.grad(out, leaves, upstream)


@pytest.mark.parametrize("views", [(1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_definition_is_the_sum_in_loops(views: tuple[int, int], weighted: bool) -> None:
    n = 7
    anchor, keys = (unit(v * n, 5, torch.float64) for v in views)
    weight = pair_weight(n, n, 3, torch.float64) if weighted else None
    got = reference.negative_sum(anchor, keys, weight, temperature=0.4, nodes=n)
    assert_close(got, loop_negative_sum(anchor, keys, weight, 0.4, n))


SHAPES = [(1, 1, 4), (2, 2, 3), (17, 5, 8), (33, 70, 16), (16, 32, 8), (65, 65, 7)]


@pytest.mark.parametrize(("n", "m", "d"), SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tile", [64, 4 << 20])
def test_tiles_agree_with_the_definition(
    n: int, m: int, d: int, weighted: bool, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked, "TILE_BYTES", tile)  # 64 bytes: one row a tile
    inputs = [unit(n, d, torch.float64), unit(m, d, torch.float64)]
    weight = pair_weight(n, m, 5, torch.float64) if weighted else None
    upstream = torch.logspace(-6, 0, n, dtype=torch.float64)  # a backward that drops it fails
    want, got = (
        gradients(lambda *x, f=f: f.negative_sum(*x, weight, temperature=0.3), inputs, upstream)
        for f in (reference, chunked)
    )
    assert_close(got, want)


@pytest.mark.parametrize("n", [1, 2, 13, 40])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tile", [64, 4096, 4 << 20])
def test_tiled_contrast_of_two_views_agrees_with_the_definition(
    n: int, weighted: bool, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked, "TILE_BYTES", tile)
    inputs = [unit(2 * n, 6, torch.float64) for _ in range(2)]
    weight = pair_weight(n, n, 4, torch.float64) if weighted else None
    upstream = torch.tensor(0.7, dtype=torch.float64)
    want, got = (
        gradients(
            lambda *x, f=f: f.contrast(*x, weight, temperature=0.2, nodes=n), inputs, upstream
        )
        for f in (reference, chunked)
    )
    assert_close(got, want)


@pytest.mark.parametrize("function", [reference.negative_sum, chunked.negative_sum])
def test_gradients_are_those_of_finite_differences(function) -> None:
    inputs = [unit(5, 3, torch.float64).requires_grad_() for _ in range(2)]
    weight = pair_weight(5, 5, 3, torch.float64)
    assert gradcheck(lambda *x: function(*x, weight, temperature=0.5), inputs)


def test_the_contrast_is_the_log_loss_in_loops() -> None:
    n, t = 5, 0.4
    anchor, keys = unit(2 * n, 4, torch.float64), unit(2 * n, 4, torch.float64)
    losses = []
    for i in range(2 * n):
        score = [math.exp(float(anchor[i] @ keys[j]) / t) for j in range(2 * n)]
        positive = score[(i + n) % (2 * n)]  # the same node in the other view
        negatives = sum(score[j] for j in range(2 * n) if j % n != i % n)
        losses.append(-math.log(positive / (positive + negatives)))
    want = torch.tensor(sum(losses) / len(losses), dtype=torch.float64)
    assert_close(reference.contrast(anchor, keys, temperature=t, nodes=n), want)


def test_gradient_of_the_tiled_contrast_is_that_of_finite_differences() -> None:
    inputs = [unit(6, 3, torch.float64).requires_grad_() for _ in range(2)]
    weight = pair_weight(3, 3, 3, torch.float64)
    assert gradcheck(lambda *x: chunked.contrast(*x, weight, temperature=0.5, nodes=3), inputs)


@pytest.mark.parametrize("backend", [reference, chunked])
def test_keys_with_a_node_index_leave_out_the_anchors_own_node(backend) -> None:
    anchor, keys = unit(4, 5, torch.float64), unit(6, 5, torch.float64)
    ids = torch.tensor([7, 2, 9, 2]), torch.tensor([2, 9, 9, 1, 7, 3])
    got = backend.negative_sum(anchor, keys, temperature=0.4, nodes=ids)
    push = ((anchor @ keys.T - 1) / 0.4).exp()
    want = [sum(push[i, j] for j in range(6) if ids[0][i] != ids[1][j]) for i in range(4)]
    assert_close(got, torch.stack(want))


@pytest.mark.parametrize("backend", [reference, chunked])
def test_equal_rows_sum_to_the_number_of_other_nodes(backend) -> None:
    z = torch.ones(6, 4) / 2
    assert_close(backend.negative_sum(z, z, temperature=0.3), torch.full((6,), 5.0))


@pytest.mark.parametrize("backend", [reference, chunked])
def test_a_weight_of_zero_is_absence(backend) -> None:
    """Tables under which node 3 weighs 0 as a key: the sum is that without node 3."""
    z = unit(6, 4, torch.float64)
    rows = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(6, 1)
    cols = torch.tensor([[-1.0, 0.0]], dtype=torch.float64).repeat(6, 1)
    cols[3] = -cols[3]
    got = backend.negative_sum(z, z, PairWeight(rows, cols), temperature=0.3)
    others = torch.arange(6) != 3
    push = ((z @ z.T - 1) / 0.3).exp().fill_diagonal_(0)
    assert_close(got, push[:, others].sum(1))


@pytest.mark.parametrize("backend", [reference, chunked])
def test_without_negatives_there_is_no_loss_and_no_gradient(backend) -> None:
    z = unit(1, 4).requires_grad_()
    loss = backend.contrast(z, z, temperature=0.5)
    assert loss == 0
    (gradient,) = torch.autograd.grad(loss, z)
    assert_close(gradient, torch.zeros(1, 4))


def test_the_positive_is_counted_once() -> None:
    """Orthogonal nodes, the same in both views: 1 positive, 2 (n - 1) negatives in closed form."""
    n, t = 5, 0.5
    z = torch.eye(n, dtype=torch.float64)
    both = torch.cat([z, z])
    got = chunked.contrast(both, both, temperature=t, nodes=n)
    want = math.log(1 + 2 * (n - 1) * math.exp(-1 / t))
    assert_close(got, torch.tensor(want, dtype=torch.float64))


@pytest.mark.parametrize("backend", [reference, chunked])
def test_a_curve_that_is_a_line_is_the_linear_weight(backend) -> None:
    z, rows, cols = unit(9, 4), unit(9, 3), unit(9, 3)
    line = PairWeight(rows, cols, offset=0.5, slope=-0.5)
    curve = PairWeight(rows, cols, curve=torch.linspace(1, 0, 33))
    want, got = (backend.negative_sum(z, z, w, temperature=0.5) for w in (line, curve))
    assert_close(got, want)


@pytest.mark.parametrize("backend", [reference, chunked])
def test_weights_end_at_the_most(backend) -> None:
    anchor, keys = unit(10, 4, torch.float64), unit(10, 4, torch.float64)
    for most in (1.0, 1.5, 2.0):
        weight = PairWeight(*(unit(5, 2, torch.float64) for _ in "pq"), 1.0, -1.0, most=most)
        got = backend.negative_sum(anchor, keys, weight, temperature=0.4, nodes=5)
        assert_close(got, loop_negative_sum(anchor, keys, weight, 0.4, 5))


@pytest.mark.parametrize("backend", [reference, chunked])
def test_weights_that_are_all_one_change_nothing(backend) -> None:
    anchor, keys = unit(2 * 9, 5), unit(2 * 9, 5)
    ones = PairWeight(unit(9, 3), unit(9, 3), offset=1.0, slope=0.0)
    with_ones, without = (
        gradients(
            lambda a, b, w=weight: backend.contrast(a, b, w, temperature=0.4, nodes=9),
            [anchor, keys],
            torch.ones(()),
        )
        for weight in (ones, None)
    )
    assert_close(with_ones, without)


@pytest.mark.parametrize("backend", [reference, chunked, kernels])
@pytest.mark.parametrize("temperature", [0.0005, 0.005, 0.02])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tile", [64, 4 << 20])
def test_a_low_temperature_loses_nothing_in_32_bits(
    backend, temperature: float, weighted: bool, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every exponential of a row underflows; their quotients do not."""
    monkeypatch.setattr(chunked, "TILE_BYTES", tile)
    n = 20
    tables = [unit(2 * n, 24) for _ in range(2)]
    weight = pair_weight(n, n, 4) if weighted else None
    if weight is not None:
        weight.cols[3] = weight.rows[5] = torch.eye(4)[0]  # and one that weighs nothing
    if temperature < 0.01:
        assert not reference.negative_sum(*tables, temperature=temperature, nodes=n).all()
    want = gradients(
        lambda *x: reference.contrast(*x, in_double(weight), temperature=temperature, nodes=n),
        [table.double() for table in tables],
        torch.ones((), dtype=torch.float64),
    )
    got = gradients(
        lambda *x: backend.contrast(*x, weight, temperature=temperature, nodes=n),
        tables,
        torch.ones(()),
    )
    assert_close(got[0].double(), want[0], rtol=1e-4, atol=0)
    for mine, theirs in zip(got[1], want[1], strict=True):
        assert (mine - theirs).norm() < 2e-3 * theirs.norm()


@pytest.mark.parametrize("backend", ["fused", "fused/fp16", "fused/fp32"])
def test_fused_by_name_refuses_a_temperature_at_which_rows_underflow(backend: str) -> None:
    z = unit(8, 4)
    words = rf"backend {backend} needs a temperature of at least 0.025, got 0.02: .* chunked"
    with pytest.raises(UserError, match=words):
        kernels.contrast(z, z, temperature=0.02, nodes=8, backend=backend)
    with pytest.raises(UserError, match=words):  # before training, too
        MultiplexPatchContrast([0.5, 0.5], 0.02, backend=backend)
    MultiplexPatchContrast([0.5, 0.5], 0.025, backend=backend)
    for other in ("auto", "chunked", "reference"):
        MultiplexPatchContrast([0.5, 0.5], 0.0005, backend=other)


def in_double(weight: PairWeight | None) -> PairWeight | None:
    if weight is None:
        return None
    return PairWeight(weight.rows.double(), weight.cols.double())


@pytest.mark.parametrize(("anchors", "keys", "nodes"), [(7, 9, 3), (5, 5, 8), (6, 7, 3), (4, 9, 5)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tile", [64, 4 << 20])
def test_rows_that_are_no_whole_number_of_views_are_summed_as_defined(
    anchors: int,
    keys: int,
    nodes: int,
    weighted: bool,
    tile: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunked, "TILE_BYTES", tile)
    inputs = [unit(anchors, 4, torch.float64), unit(keys, 4, torch.float64)]
    weight = pair_weight(nodes, nodes, 3, torch.float64) if weighted else None
    upstream = torch.logspace(-3, 0, anchors, dtype=torch.float64)
    want, got = (
        gradients(
            lambda *x, f=f: f.negative_sum(*x, weight, temperature=0.3, nodes=nodes),
            inputs,
            upstream,
        )
        for f in (reference, chunked)
    )
    assert_close(want[0], loop_negative_sum(*inputs, weight, 0.3, nodes))
    assert_close(got, want)


@pytest.mark.parametrize("backend", [reference, chunked])
def test_stacked_anchors_with_a_node_index_read_their_nodes_weights(backend) -> None:
    n = 4
    anchor, keys = unit(2 * n, 5, torch.float64), unit(2 * n, 5, torch.float64)
    weight = pair_weight(n, n, 3, torch.float64)
    node = torch.arange(2 * n) % n
    got = backend.negative_sum(anchor, keys, weight, temperature=0.4, nodes=(node, node))
    assert_close(got, loop_negative_sum(anchor, keys, weight, 0.4, n))


@pytest.mark.parametrize("backend", [reference, chunked])
def test_no_rows_and_views_of_no_nodes_are_refused(backend) -> None:
    z, none = unit(4, 5), unit(4, 5)[:0]
    how = {"temperature": 0.5}
    for wrong in (0, -2):
        for function in (backend.negative_sum, backend.contrast):
            with pytest.raises(UserError, match=f"nodes must be at least 1, got {wrong}"):
                function(z, z, **how, nodes=wrong)
        with pytest.raises(UserError, match=f"nodes must be at least 1, got {wrong}"):
            backend.pair_sum(z, z, kernels.Sigmoid(2.0, 0.5), nodes=wrong)
    for tables, name in (((none, z), "anchor"), ((z, none), "keys"), ((none, none), "anchor")):
        with pytest.raises(UserError, match=f"{name} must have at least 1 row, got 0"):
            backend.negative_sum(*tables, **how)
    with pytest.raises(UserError, match="anchor must have at least 1 row, got 0"):
        backend.contrast(none, none, **how)


WRONG = [
    "fast",
    "",
    "auto/fp32",
    "chunked/fp16",
    "chunked/tf32",
    "reference/fp16",
    "reference/tf32",
]
WRONG += ["fused/", "fused/fp8", "fused/fp32/"]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_unknown_backend_is_named_with_all_that_there_are(wrong: str) -> None:
    with pytest.raises(UserError, match=f"got '{wrong}'$") as refused:
        resolve(wrong, cuda=False)
    told = str(refused.value).removeprefix("backend must be one of ").partition(", got ")[0]
    assert told.split(", ") == list(kernels.BACKENDS)


@pytest.mark.parametrize("cuda", [False, True])
def test_every_backend_that_is_named_is_taken_as_it_is_and_auto_stands_for_one(cuda: bool) -> None:
    assert kernels.BACKENDS[0] == "auto"
    assert resolve("auto", cuda=cuda) == ("fused" if cuda else "chunked")
    for backend in kernels.BACKENDS[1:]:
        assert resolve(backend, cuda=cuda) == backend
