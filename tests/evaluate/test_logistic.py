"""The fast solver against scikit-learn run to convergence."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from muxgcl.evaluate import eigenbasis
from muxgcl.evaluate.arrays import unit_rows
from muxgcl.evaluate.logistic import Linear, fit_path, predict_path


def clusters(n: int, d: int, k: int, spread: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + d + k)
    y = rng.permutation(np.arange(n) % k)
    return unit_rows(spread * rng.normal(size=(k, d))[y] + rng.normal(size=(n, d))), y


def scikit(x: np.ndarray, y: np.ndarray, strength: float, solver: str) -> Linear:
    """One binary `LogisticRegression` for each class."""
    fits = [
        LogisticRegression(C=strength, solver=solver, tol=1e-12, max_iter=10_000).fit(x, y == label)
        for label in np.unique(y)
    ]
    return Linear(
        np.unique(y),
        np.stack([fit.coef_[0] for fit in fits], axis=1),
        np.array([fit.intercept_[0] for fit in fits]),
    )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("n", "d", "k"), [(60, 5, 3), (60, 59, 3), (40, 90, 4), (30, 7, 2)])
def test_the_path_agrees_with_scikit_learn_for_tall_and_wide_tables(n, d, k, form) -> None:
    x, y = clusters(n, d, k)
    strengths = [2.0**-10, 0.5, 1.0, 512.0]
    for strength, got in zip(strengths, fit_path(form(x), y, strengths), strict=True):
        want = scikit(x, y, strength, "newton-cholesky")
        assert_allclose(got.scores(x), want.scores(x), rtol=1e-3, atol=1e-3)
        assert_allclose(got.weight, want.weight, rtol=1e-3, atol=1e-3 * np.abs(want.weight).max())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("n", "d"), [(60, 5), (40, 90)])
def test_a_penalised_intercept_is_that_of_liblinear(n, d, form) -> None:
    x, y = clusters(n, d, 3)
    for strength in (0.01, 1.0, 64.0):
        (got,) = fit_path(form(x), y, [strength], penalise_intercept=True)
        want = scikit(x, y, strength, "liblinear")
        assert_allclose(got.scores(x), want.scores(x), rtol=1e-3, atol=1e-3)


def test_the_gradient_of_the_stated_objective_vanishes() -> None:
    x, y = clusters(50, 6, 3)
    for strength, model in zip([0.1, 10.0], fit_path(x, y, [0.1, 10.0]), strict=True):
        error = 1 / (1 + np.exp(-model.scores(x))) - (y[:, None] == model.classes)
        assert_allclose(x.T @ error + model.weight / strength, 0, atol=1e-6 * len(y))
        assert_allclose(error.sum(0), 0, atol=1e-6 * len(y))


def test_a_rotation_of_the_columns_changes_no_score() -> None:
    x, y = clusters(40, 90, 4)
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(90, 90)))
    (plain,), (turned,) = fit_path(x, y, [8.0]), fit_path(x @ turn, y, [8.0])
    assert_allclose(turned.scores(x @ turn), plain.scores(x), atol=1e-4)


def test_a_wide_table_is_solved_as_its_narrow_rotation() -> None:
    x, y = clusters(40, 90, 4)
    turn, _ = np.linalg.qr(x.T)  # [90, 40]: the rows live in these 40 directions
    (wide,), (narrow,) = fit_path(x, y, [8.0]), fit_path(x @ turn, y, [8.0])
    assert_allclose(wide.scores(x), narrow.scores(x @ turn), atol=1e-4)
    assert_allclose(turn @ narrow.weight, wide.weight, atol=1e-4)


def test_where_the_path_starts_does_not_matter() -> None:
    x, y = clusters(60, 20, 3)
    *_, walked = fit_path(x, y, [2.0**power for power in range(-10, 10)])
    (jumped,) = fit_path(x, y, [2.0**9])
    assert_allclose(walked.scores(x), jumped.scores(x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("n", "d"), [(60, 20), (40, 90)])
@pytest.mark.parametrize("columns", [1, 7, 1000])
def test_strengths_side_by_side_have_the_solutions_that_each_has_by_itself(
    n: int, d: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = clusters(n, d, 3)
    strengths = [2.0**power for power in range(-10, 10)]
    want = [fit_path(x, y, [strength])[0] for strength in strengths]
    monkeypatch.setattr("muxgcl.evaluate.logistic._COLUMNS", columns)
    found = fit_path(x, y, strengths)
    for one, two in zip(found, want, strict=True):
        assert_allclose(one.scores(x), two.scores(x), rtol=1e-3, atol=1e-3)
    assert np.array_equal(predict_path(found, x), [model.predict(x) for model in found])


def test_repeated_zero_and_constant_columns_and_rows_do_no_harm() -> None:
    x, y = clusters(60, 5, 3)
    odd = np.hstack([x, x, np.zeros((60, 3)), np.ones((60, 1))])
    odd[:4] = 0
    (got,) = fit_path(odd, y, [4.0])
    assert_allclose(got.scores(odd), scikit(odd, y, 4.0, "newton-cholesky").scores(odd), atol=1e-3)


@pytest.mark.parametrize("penalised", [False, True])
def test_rows_that_are_all_zero_predict_the_largest_class(penalised: bool) -> None:
    y = np.array([0, 1, 1, 2, 1, 0])
    (model,) = fit_path(np.zeros((6, 3)), y, [1.0], penalise_intercept=penalised)
    assert set(model.predict(np.zeros((4, 3)))) == {1}


def test_one_class_alone_is_always_predicted_and_accepted() -> None:
    x, _ = clusters(10, 4, 2)
    (model,) = fit_path(x, np.full(10, 5), [1.0])
    assert set(model.predict(x)) == {5}
    assert (model.scores(x) > 0).all()


@pytest.mark.parametrize(
    ("values", "kept"), [([1e-9, 1e6], 1), ([1e-13, 1e-3], 1), ([1e-5, 1e6], 2)]
)
def test_eigenvalues_that_are_rounding_beside_the_trace_do_not_count(
    values: list[float], kept: int
) -> None:
    found, vectors = eigenbasis._eigen(np.diag(values))
    assert len(found) == kept
    assert vectors.shape == (2, kept)
