"""Equations 1 to 5 of the paper as triple loops in float64, against the module."""

import itertools
import math

import pytest
import torch
from paper_loops import paper_loss, released_loss
from torch import Tensor
from torch.nn.functional import normalize
from torch.testing import assert_close

from muxgcl.errors import UserError
from muxgcl.kernels import Sample
from muxgcl.losses.multiscale import WEIGHTS, Line, MultiplexPatchContrast


def tables(layers: int, n: int, d: int) -> dict[int, Tensor]:
    make = lambda: normalize(torch.randn(n, d, dtype=torch.float64), dim=1)  # noqa: E731
    return {k: make() for k in range(layers + 1)}


def stacked(one: dict[int, Tensor], two: dict[int, Tensor]) -> dict[int, Tensor]:
    return {k: torch.cat([one[k], two[k]]) for k in one}


@pytest.mark.parametrize("weights", [[0.3, 0.7], [0.2, 0.2, 0.6], [0.1, 0.4, 0.2, 0.3]])
@pytest.mark.parametrize("affinity", [False, True])
@pytest.mark.parametrize("eta", ["half", "clamp", "literal"])
@pytest.mark.parametrize("backend", ["reference", "chunked"])
def test_the_loss_is_the_papers_equations(
    weights: list[float], affinity: bool, eta: str, backend: str
) -> None:
    layers, n = len(weights) - 1, 7
    one, two = tables(layers, n, 5), tables(layers, n, 5)
    patches = list(tables(layers, n, 4).values()) if affinity else None
    loss = MultiplexPatchContrast(weights, 0.4, likelihood=eta, backend=backend)
    got = sum(loss(stacked(one, two), patches).values())
    want = paper_loss(one, two, patches, weights, 0.4, eta=eta)
    assert_close(got, torch.tensor(want, dtype=torch.float64))


@pytest.mark.parametrize("lambdas", [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.2, 0.5, 0.3], [0.6, 0.4]])
@pytest.mark.parametrize("affinity", [False, True])
@pytest.mark.parametrize("backend", ["reference", "chunked"])
def test_direction_released_is_the_loss_of_the_authors_code(
    lambdas: list[float], affinity: bool, backend: str
) -> None:
    layers, n, t = len(lambdas) - 1, 9, 0.4
    given = [tables(layers, n, 5) for _ in "ab"]
    for side in given:
        for table in side.values():
            table.requires_grad_()
    patches = list(tables(layers, n, 4).values()) if affinity else None
    loss = MultiplexPatchContrast(lambdas, t, direction="released", backend=backend)
    leaves = [table for side in given for table in side.values()]

    def gradients(value: Tensor) -> list[Tensor]:
        found = torch.autograd.grad(value, leaves, allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]

    got = sum(loss(stacked(*given), patches).values())
    want = released_loss(*given, patches, lambdas, t)
    assert_close(got, want)
    assert_close(gradients(got), gradients(want))


def test_the_views_of_the_authors_code_weigh_by_transposed_matrices() -> None:
    one, two, patches = tables(2, 9, 4), tables(2, 9, 4), list(tables(2, 9, 3).values())
    loss = MultiplexPatchContrast([1.0, 0.0, 0.0], 0.5, direction="released")
    there, back = loss(stacked(one, two), patches), loss(stacked(two, one), patches)
    assert abs(float(there["scale 0"] - back["scale 0"])) > 1e-3


def test_literal_weights_are_twice_those_of_half() -> None:
    cosine = torch.linspace(-1, 1, 9)
    assert_close(WEIGHTS["literal"](cosine), 2 * WEIGHTS["half"](cosine))
    assert_close(WEIGHTS["literal"](cosine), 1 - cosine)
    assert_close(WEIGHTS["clamp"](cosine), 1 - cosine.clamp(min=0))


def test_both_views_count_the_same() -> None:
    one, two, patches = tables(2, 9, 4), tables(2, 9, 4), list(tables(2, 9, 3).values())
    loss = MultiplexPatchContrast([0.2, 0.3, 0.5], 0.5)
    assert_close(loss(stacked(one, two), patches), loss(stacked(two, one), patches))


def test_a_scale_without_weight_is_not_even_read() -> None:
    one, two = tables(2, 5, 4), tables(2, 5, 4)
    loss = MultiplexPatchContrast([0.0, 0.0, 1.0], 0.5)
    assert loss.scales == {2}
    assert list(loss(stacked({2: one[2]}, {2: two[2]}))) == ["scale 2"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0.5, 0.4], 0.5), "sum to 1"),
        (([-0.5, 1.5], 0.5), "negative"),
        (([0.5, 0.5], 0.0), "temperature must be positive, got 0.0"),
        (([0.5, 0.5], -1.0), "got -1.0"),
        (([1 + 2e-6], 0.5), "sum to 1"),
    ],
)
def test_bad_settings_are_named(arguments: tuple, words: str) -> None:
    with pytest.raises(UserError, match=words):
        MultiplexPatchContrast(*arguments)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("direction", "paper or released"),
        ("likelihood", "half, clamp or literal"),
        ("anchors", "last or all"),
    ],
)
def test_an_unknown_word_is_refused_with_the_known_ones(name: str, known: str) -> None:
    with pytest.raises(UserError, match=f"{name} must be {known}, got 'other'"):
        MultiplexPatchContrast([1.0], **{name: "other"})


def test_the_temperature_is_half_by_default() -> None:
    stack = stacked(tables(0, 5, 3), tables(0, 5, 3))
    assert_close(MultiplexPatchContrast([1.0])(stack), MultiplexPatchContrast([1.0], 0.5)(stack))


def test_scale_weights_may_miss_one_by_rounding() -> None:
    assert MultiplexPatchContrast([0.1] * 10).terms.keys() == set(range(10))
    MultiplexPatchContrast([1 - 9e-7])


def test_a_weight_is_cut_to_its_range() -> None:
    assert_close(Line(0.5, -1.0)(torch.tensor([-1.0, 0.0, 1.0])), torch.tensor([1.0, 0.5, 0.0]))
    assert {name: line.most for name, line in WEIGHTS.items()} == {
        "half": 1.0,
        "clamp": 1.0,
        "literal": 2.0,
    }


def sampled_loss(
    views: list[dict[int, Tensor]],
    patches: list[Tensor] | None,
    near_and_far: tuple[int, int],
    sample: Sample,
    released: bool,
    t: float,
) -> float:
    """One contrast of two scales over a sample, pair by pair."""
    near, far = near_and_far
    order = sample.nodes.tolist()
    total = 0.0
    for v, i in itertools.product(range(2), order[: sample.anchors]):
        here, there = views[v], views[1 - v]
        pull = float(here[near][i] @ there[far][i]) / t
        others = [j for j in order[: sample.keys] if j != i]
        push = 0.0
        for j in others:
            weight = 1.0
            if patches is not None:
                rows, cols = (far, near) if released and v == 0 else (near, far)
                weight = (1 - float(patches[rows][i] @ patches[cols][j])) / 2
            push += weight * sum(math.exp(float(here[near][i] @ w[far][j]) / t) for w in views)
        whole = math.exp(pull) + push * (sample.of - 1) / len(others)
        total += math.log(whole) - pull
    return total / (2 * sample.anchors)


@pytest.mark.parametrize("affinity", [False, True])
@pytest.mark.parametrize("direction", ["paper", "released"])
@pytest.mark.parametrize(("anchors", "keys"), [(3, 6), (5, 4)])
@pytest.mark.parametrize("backend", ["reference", "chunked"])
def test_a_sampled_loss_meets_the_samples_nodes_alone(
    affinity: bool, direction: str, anchors: int, keys: int, backend: str
) -> None:
    n, t, weights = 8, 0.4, [0.3, 0.2, 0.5]
    views = [tables(2, n, 5), tables(2, n, 5)]
    patches = list(tables(2, n, 4).values()) if affinity else None
    sample = Sample(torch.randperm(n)[: max(anchors, keys)], anchors, keys, n)
    loss = MultiplexPatchContrast(weights, t, direction=direction, backend=backend)
    rows = {k: sample.take(table) for k, table in stacked(*views).items()}
    got = loss(rows, patches, sample)
    released = direction == "released"
    for k, weight in enumerate(weights):
        scales = (k, 2) if released else (2, k)
        want = weight * sampled_loss(views, patches, scales, sample, released, t)
        assert_close(got[f"scale {k}"], torch.tensor(want, dtype=torch.float64))


@pytest.mark.parametrize("affinity", [False, True])
def test_with_all_anchors_every_pair_of_scales_is_contrasted(affinity: bool) -> None:
    n, t, weights = 6, 0.4, [0.3, 0.2, 0.5]
    views = [tables(2, n, 5), tables(2, n, 5)]
    patches = list(tables(2, n, 4).values()) if affinity else None
    got = MultiplexPatchContrast(weights, t, anchors="all")(stacked(*views), patches)
    every = Sample(torch.arange(n), n, n, n)
    for k, of_samples in enumerate(weights):
        want = sum(
            of_samples * of_anchors * sampled_loss(views, patches, (a, k), every, False, t)
            for a, of_anchors in enumerate(weights)
        )
        assert_close(got[f"scale {k}"], torch.tensor(want, dtype=torch.float64))


def test_the_authors_direction_is_not_dealt_out_to_workers() -> None:
    class Share:
        """As much of a worker's selection as the loss reads first."""

        take = rows = contrast = staticmethod(lambda table: table)

    loss = MultiplexPatchContrast([0.5, 0.5], direction="released")
    patches, n = list(tables(1, 4, 3).values()), 4
    with pytest.raises(UserError, match="cannot be divided among workers"):
        loss(stacked(tables(1, n, 3), tables(1, n, 3)), patches, Share())


@pytest.mark.parametrize("direction", ["paper", "released"])
def test_the_asked_backend_computes_the_loss(
    direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a backend that says so: its own answer comes back."""
    asked = []

    def spy(*tables: Tensor, backend: str, **rest: object) -> Tensor:
        asked.append(backend)
        return torch.zeros(len(tables[0]) if direction == "released" else (), dtype=torch.float64)

    for name in ("contrast", "negative_sum"):
        monkeypatch.setattr(f"muxgcl.losses.multiscale.{name}", spy)
    loss = MultiplexPatchContrast([1.0, 0.0], direction=direction, backend="reference")
    loss(stacked(tables(1, 4, 3), tables(1, 4, 3)), list(tables(1, 4, 3).values()))
    assert set(asked) == {"reference"}
