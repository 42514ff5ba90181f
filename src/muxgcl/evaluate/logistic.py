r"""Logistic regression, one class against the rest, along a whole path of strengths $C$.

$$\min_{w, b} \sum_i \log(1 + e^{-s_i (w \cdot x_i + b)}) + \frac{1}{2C} |w|^2,
  \qquad s_i = \pm 1 \text{ inside and outside the class}$$

Problem and $C$ are scikit-learn's, and so is the solution once scikit-learn is run to convergence
(at its default tolerance it stops earlier, and nodes near a tie may fall the other way). A probe
asks for it thousands of times on a few rows, and three facts make that cheap:

- In the eigenbasis of the rows a diagonal matrix preconditions well, and wide tables are narrow.
- All classes and several strengths share the rows: a step of conjugate gradients is two products.
- A Newton step may be rough, so it is found in single precision; where it leads is seen in double.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int
from scipy.special import expit

from muxgcl.evaluate.arrays import Labels, Table
from muxgcl.evaluate.eigenbasis import (
    Intercepts,
    Solution,
    Turned,
    Weights,
    with_free_intercept,
    with_penalised_intercept,
)

Margins = Float[np.ndarray, "n k"]
Single = Float32[np.ndarray, "n r"]

_TOLERANCE = 1e-6  # largest entry of the gradient, per row; scikit-learn stops at 1e-4
_NEWTON_STEPS, _CG_STEPS, _HALVINGS = 100, 100, 30
_COLUMNS = 64  # (strength, class) pairs side by side: a product of fewer waits for memory
_TINY = np.finfo(np.float32).tiny  # 0 / _TINY = 0: a column that has arrived stays


@dataclass(frozen=True, slots=True)
class Linear:
    """One linear score for each class seen in training; the largest wins."""

    classes: Labels
    weight: Weights
    intercept: Intercepts

    def scores(self, x: Table) -> Margins:
        """Positive where the class would be accepted on its own."""
        return x @ self.weight + self.intercept

    def predict(self, x: Table) -> Labels:
        """The class of the largest score."""
        return self.classes[self.scores(x).argmax(1)]


def fit_path(
    x: Table, y: Labels, strengths: Sequence[float], *, penalise_intercept: bool = False
) -> list[Linear]:
    """Fit all classes for each strength; neighbouring strengths should stand side by side.

    Args:
        x: training rows [n, d], dense or sparse.
        y: their classes.
        strengths: the values of C.
        penalise_intercept: let the penalty cover the intercept too, as liblinear does.
    """
    classes = np.unique(y)
    if (k := len(classes)) == 1:  # nothing to tell apart
        return [Linear(classes, np.zeros((x.shape[1], 1)), np.array([np.inf]))] * len(strengths)
    inside = (y[:, None] == classes).astype(np.float64)  # [n, k]
    problem = with_penalised_intercept(x) if penalise_intercept else with_free_intercept(x)
    path: list[Linear] = []
    last = np.zeros((problem.rows.shape[1], k))  # where the next ones start from
    together = max(1, _COLUMNS // k)
    for first in range(0, len(strengths), together):
        ridge = 1 / np.asarray(strengths[first : first + together], np.float64)
        c = len(ridge)
        found = _newton(problem, np.tile(inside, c), np.repeat(ridge, k), np.tile(last, c))
        weight, intercept = problem.back(found)
        parts = zip(np.split(weight, c, axis=1), np.split(intercept, c), strict=True)
        path += [Linear(classes, *part) for part in parts]
        last = found[:, -k:]
    return path


def predict_path(path: Sequence[Linear], x: Table) -> Int[np.ndarray, "c n"]:
    """What each model predicts, all of them in one product."""
    weight = np.hstack([model.weight for model in path])  # [d, c * k]
    scores = x @ weight + np.concatenate([model.intercept for model in path])
    best = scores.reshape(len(scores), len(path), -1).argmax(2)  # [n, c]
    answers: Int[np.ndarray, "c n"] = path[0].classes[best.T]
    return answers


def _newton(problem: Turned, inside: Margins, ridge: Intercepts, solution: Solution) -> Solution:
    """Newton's method for all columns at once; a step far from the goal is solved roughly."""
    rows, single = problem.rows, problem.rows.astype(np.float32)
    goal, penalty = _TOLERANCE * len(rows), ridge * problem.penalised
    left, arrived = np.arange(len(ridge)), solution.copy()
    margin = rows @ solution

    def loss(margin: Margins, solution: Solution) -> Intercepts:
        softplus = np.maximum(margin, 0) + np.log1p(np.exp(-np.abs(margin)))
        return (softplus - inside * margin).sum(0) + (penalty * solution**2).sum(0) / 2

    for _ in range(_NEWTON_STEPS):
        likely = expit(margin)
        gradient = rows.T @ (likely - inside) + penalty * solution
        steep = np.abs(gradient).max(0)
        far = steep > goal
        if not far.all():  # go on with the others alone
            arrived[:, left] = solution
            left, steep = left[far], steep[far]
            inside, penalty, solution, margin, likely, gradient = (
                table[:, far] for table in (inside, penalty, solution, margin, likely, gradient)
            )
        if not len(left):
            return arrived
        enough = np.maximum(steep * np.minimum(0.5, np.sqrt(steep / len(rows))), goal / 2)
        spread = likely * (1 - likely)
        diagonal = problem.curvature * spread.mean(0) + penalty  # exact if all rows had one spread
        step = _conjugate_gradients(single, spread, penalty, diagonal, -gradient, enough)
        change = rows @ step
        length, start, slope = np.ones_like(steep), loss(margin, solution), (gradient * step).sum(0)
        for _ in range(_HALVINGS):
            wanted = start + 1e-4 * length * slope + 1e-12 * start  # Armijo, give or take rounding
            too_far = loss(margin + length * change, solution + length * step) > wanted
            if not too_far.any():
                break
            length[too_far] /= 2
        solution, margin = solution + length * step, margin + length * change
    warnings.warn(f"no convergence at C = {1 / ridge[left[0]]:g}", RuntimeWarning, stacklevel=2)
    arrived[:, left] = solution
    return arrived


def _conjugate_gradients(
    rows: Single,
    spread: Margins,  # p (1 - p)
    penalty: Solution,
    diagonal: Solution,
    residual: Solution,
    enough: Intercepts,
) -> Solution:
    """Solve (rows.T diag(spread) rows + penalty) step = residual, each column by itself."""
    spread, penalty, diagonal, residual = (
        table.astype(rows.dtype) for table in (spread, penalty, diagonal, residual)
    )
    step = np.zeros_like(residual)
    direction = residual / diagonal
    energy = (residual * direction).sum(0)
    for _ in range(_CG_STEPS):
        product = rows.T @ (spread * (rows @ direction)) + penalty * direction
        length = energy / ((direction * product).sum(0) + _TINY)
        step = step + length * direction
        residual = residual - length * product
        if (np.abs(residual).max(0) <= enough).all():
            break
        eased = residual / diagonal
        before, energy = energy, (residual * eased).sum(0)
        direction = eased + energy / (before + _TINY) * direction
    return step.astype(np.float64)
