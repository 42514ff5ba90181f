"""The probe that solves all splits at once agrees with the one that solves them one by one."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

from muxgcl.evaluate import device_probe, holdout_splits, probe
from muxgcl.evaluate.device_probe import _conjugate_gradients, _newton, _turned, answers
from muxgcl.evaluate.logistic import fit_path
from muxgcl.evaluate.splits import Split

STRENGTHS = (0.01, 0.5, 8.0, 200.0)


def blobs(n: int, d: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.normal(size=(n, d)) + 1.3 * rng.normal(size=(k, d))[y], y


@pytest.mark.parametrize(("d", "wide"), [(5, False), (40, True)])
def test_answers_are_those_of_the_probe_on_every_split(d: int, wide: bool) -> None:
    z, y = blobs(200, d, 3)
    y[::11] = -1
    names = np.array([-1, 2, 5, 9])[y + 1]  # classes need not be counted from 0
    splits = holdout_splits(names, 4, seed=1)
    assert (d > len(splits[0].train)) == wide
    found = answers(torch.from_numpy(z), names, splits, STRENGTHS)
    want = probe(z, names, splits, strengths=STRENGTHS)
    for one, two, split in zip(found, want.splits, splits, strict=True):
        assert one.strength == two.strength
        assert one.validation == pytest.approx(two.validation)
        right = names[split.test] == one.predicted
        assert 100 * right.mean() == pytest.approx(two.accuracy)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_a_probe_on_a_device_has_the_scores_of_the_probe(layout: str) -> None:
    z, y = blobs(220, 12, 3)
    y[::11] = -1
    table = sparse.csr_matrix(z) if layout == "sparse" else z
    splits = holdout_splits(y, 4, seed=1)
    splits[0] = replace(splits[0], uncounted=None)
    here = probe(table, y, splits, strengths=STRENGTHS)
    there = probe(table, y, splits, strengths=STRENGTHS, device="cpu")
    for name, values in here.to_record().items():
        assert values == pytest.approx(there.to_record()[name])
    assert [s.validation for s in here.splits] == pytest.approx(
        [s.validation for s in there.splits]
    )
    assert here.splits[0].everywhere == here.splits[0].accuracy
    assert here.splits[1].everywhere != here.splits[1].accuracy
    np.testing.assert_array_equal(here.confusion, there.confusion)


def test_a_table_too_large_for_the_device_is_scored_here(monkeypatch: pytest.MonkeyPatch) -> None:
    z, y = blobs(60, 4, 2)
    splits = holdout_splits(y, 2)
    monkeypatch.setattr(device_probe, "answers", None)  # would fail
    monkeypatch.setattr(sys.modules["muxgcl.evaluate.probe"], "ON_DEVICE", 8 * z.size)
    assert probe(z, y, splits, device="cpu").to_record() == probe(z, y, splits).to_record()
    monkeypatch.setattr(sys.modules["muxgcl.evaluate.probe"], "ON_DEVICE", 8 * z.size + 1)
    with pytest.raises(TypeError):
        probe(z, y, splits, device="cpu")


def test_splits_of_several_sizes_come_back_in_their_order() -> None:
    z, y = blobs(60, 4, 2)
    order = np.random.default_rng(3).permutation(60)
    parts = [(10, 20), (15, 25), (10, 30), (20, 40)]
    splits = [Split(order[:a], order[a:b], order[b:]) for a, b in parts]
    found = answers(torch.from_numpy(z), y, splits, STRENGTHS)
    want = [answers(torch.from_numpy(z), y, [split], STRENGTHS)[0] for split in splits]
    for one, two, split in zip(found, want, splits, strict=True):
        assert len(one.predicted) == len(split.test)
        assert np.array_equal(one.predicted, two.predicted)
        assert (one.validation, one.strength) == (two.validation, two.strength)


def test_splits_are_solved_in_batches_that_fit_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    z, y = blobs(60, 4, 2)
    splits = holdout_splits(y, 5)
    want = answers(torch.from_numpy(z), y, splits, STRENGTHS)
    sizes: list[int] = []
    real = device_probe._solve

    def solve(z: torch.Tensor, label: torch.Tensor, splits: list[Split], *rest: object) -> list:
        sizes.append(len(splits))
        return real(z, label, splits, *rest)

    monkeypatch.setattr(device_probe, "_solve", solve)
    rows, width, columns, pairs = len(splits[0].train), 4, 5, len(STRENGTHS) * 2
    each = 8 * (rows * width + 3 * rows * columns + 8 * (rows + columns) * pairs)
    for size, batches in ((2 * each, [2, 2, 1]), (2 * each - 1, [1] * 5), (1, [1] * 5)):
        sizes.clear()
        monkeypatch.setattr(device_probe, "_BATCH_BYTES", size)
        found = answers(torch.from_numpy(z), y, splits, STRENGTHS)
        assert sizes == batches
        for one, two in zip(found, want, strict=True):
            assert np.array_equal(one.predicted, two.predicted)


def test_a_class_without_a_training_row_is_never_answered() -> None:
    z, y = blobs(60, 4, 3)
    train = np.flatnonzero(y < 2)[:20]
    rest = np.setdiff1d(np.arange(60), train)
    split = Split(train, rest[:20], rest[20:])
    (found,) = answers(torch.from_numpy(z), y, [split], STRENGTHS)
    assert set(found.predicted) == {0, 1}
    (want,) = probe(z, y, [split], strengths=STRENGTHS).splits
    assert 100 * (y[split.test] == found.predicted).mean() == pytest.approx(want.accuracy)


def test_the_smallest_strength_wins_a_tie_and_zero_rows_are_allowed() -> None:
    z, y = blobs(60, 4, 2)
    z[y == 0], z[y == 1] = 1.0, -1.0
    z[5] = 0
    split = Split(np.arange(10, 20), np.arange(20, 40), np.arange(40, 60))
    (found,) = answers(torch.from_numpy(z), y, [split], STRENGTHS)
    assert (found.strength, found.validation) == (0.01, 100.0)
    assert np.array_equal(found.predicted, y[40:60])


@pytest.mark.parametrize(("n", "d"), [(30, 4), (12, 25)])
def test_every_strength_and_class_has_the_weights_of_the_path(n: int, d: int) -> None:
    tables = [blobs(n, d, 3, seed) for seed in (1, 2)]
    x = torch.from_numpy(np.stack([z for z, _ in tables]))
    y = tables[0][1]
    centre = x.mean(1, keepdim=True)
    rows, curvature, back = _turned(x - centre)
    torch.testing.assert_close(
        rows.mT @ rows, torch.diag_embed(curvature[:, :, 0]), rtol=1e-8, atol=1e-8
    )
    inside = torch.nn.functional.one_hot(torch.from_numpy(y), 3).double().expand(2, -1, -1)
    strengths = (0.01, 0.5, 4.0)
    solution = _newton(rows, curvature, inside, strengths)
    weight = back(solution[:, :-1])
    intercept = solution[:, -1:] - centre @ weight
    for s, (z, _) in enumerate(tables):
        for c, model in enumerate(fit_path(z, y, strengths)):
            mine = slice(3 * c, 3 * c + 3)
            np.testing.assert_allclose(weight[s][:, mine], model.weight, rtol=1e-3, atol=5e-4)
            np.testing.assert_allclose(intercept[s][0, mine], model.intercept, rtol=1e-3, atol=5e-4)


def test_conjugate_gradients_solve_the_newton_equations() -> None:
    rows = torch.randn(2, 20, 6, dtype=torch.float64)
    spread = torch.rand(2, 20, 4, dtype=torch.float64) / 4
    penalty = torch.rand(6, 4, dtype=torch.float64)
    residual = torch.randn(2, 6, 4, dtype=torch.float64)
    curvature = (rows**2).sum(1)[:, :, None]
    enough = torch.full((2, 4), 1e-10, dtype=torch.float64)
    step = _conjugate_gradients(rows, curvature, spread, penalty, residual, enough)
    for s in range(2):
        for c in range(4):
            matrix = rows[s].T @ (spread[s, :, c, None] * rows[s]) + torch.diag(penalty[:, c])
            want = torch.linalg.solve(matrix, residual[s, :, c])
            torch.testing.assert_close(step[s, :, c], want, rtol=1e-7, atol=1e-8)


def test_a_solver_that_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    z, y = blobs(60, 4, 3)
    every = [Split(np.arange(40), np.arange(40, 50), np.arange(50, 60))]
    monkeypatch.setattr(device_probe, "_NEWTON_STEPS", 4)  # enough for the smaller strength alone
    with pytest.warns(RuntimeWarning, match="no convergence at C = 1000"):
        answers(torch.from_numpy(z), y, every, [1e-3, 1e3])
    monkeypatch.setattr(device_probe, "_NEWTON_STEPS", 60)
    answers(torch.from_numpy(z), y, every, [1e-3, 1e3])  # warnings are errors in these tests


def test_far_classes_are_no_trouble_for_a_whole_step() -> None:
    """Rows that a line parts, at a strength that lets weights grow: a step must be halved."""
    z = np.array([[0.0, 1.0], [0.02, 1.0], [-0.02, 1.0], [1.0, 0.0], [1.0, 0.01], [1.0, -0.01]])
    y = np.array([0, 0, 0, 1, 1, 1])
    every = np.arange(6)
    for strength in (1e-3, 1e6):
        (found,) = answers(torch.from_numpy(z), y, [Split(every, every, every)], [strength])
        assert np.array_equal(found.predicted, y)
        assert found.validation == 100.0
