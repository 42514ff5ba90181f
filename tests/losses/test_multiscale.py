"""Equations 1 to 5 of the paper as triple loops in float64, against the module."""

import pytest
import torch
from paper_loops import paper_loss, released_loss
from torch import Tensor
from torch.nn.functional import normalize
from torch.testing import assert_close

from muxgcl.errors import UserError
from muxgcl.losses.multiscale import WEIGHTS, MultiplexPatchContrast


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
    ],
)
def test_bad_settings_are_named(arguments: tuple, words: str) -> None:
    with pytest.raises(UserError, match=words):
        MultiplexPatchContrast(*arguments)
