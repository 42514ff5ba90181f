r"""Logistic regression, one class against the rest, along a whole path of strengths $C$.

$$\min_{w, b} \sum_i \log(1 + e^{-s_i (w \cdot x_i + b)}) + \frac{1}{2C} |w|^2,
  \qquad s_i = \pm 1 \text{ inside and outside the class}$$

Problem and $C$ are scikit-learn's, and so is the solution once scikit-learn is run to convergence
(at its default tolerance it stops earlier, and nodes near a tie may fall the other way). A probe
asks for it thousands of times on a few rows, and three facts make that cheap:

- In the eigenbasis of the rows a diagonal matrix preconditions well, and wide tables are narrow.
- All classes share the rows: one step of conjugate gradients for all is two matrix products.
- Each strength starts from the solution of the one before.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
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

_TOLERANCE = 1e-6  # largest entry of the gradient, per row; scikit-learn stops at 1e-4
_NEWTON_STEPS, _CG_STEPS, _HALVINGS = 100, 100, 30
_TINY = np.finfo(np.float64).tiny  # 0 / _TINY = 0: a class that has arrived stays


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
    if len(classes) == 1:  # nothing to tell apart
        return [Linear(classes, np.zeros((x.shape[1], 1)), np.array([np.inf]))] * len(strengths)
    inside = (y[:, None] == classes).astype(np.float64)  # [n, k]
    problem = with_penalised_intercept(x) if penalise_intercept else with_free_intercept(x)
    path, solution = [], np.zeros((problem.rows.shape[1], len(classes)))
    for strength in strengths:
        solution = _newton(problem, inside, 1 / strength, solution)
        path.append(Linear(classes, *problem.back(solution)))
    return path


def _newton(problem: Turned, inside: Margins, ridge: float, solution: Solution) -> Solution:
    """Newton's method for all classes at once; a step far from the goal is solved roughly."""
    rows, penalty = problem.rows, ridge * problem.penalised
    goal = _TOLERANCE * len(rows)

    def loss(margin: Margins, solution: Solution) -> Intercepts:
        softplus = np.maximum(margin, 0) + np.log1p(np.exp(-np.abs(margin)))
        return (softplus - inside * margin).sum(0) + (penalty * solution**2).sum(0) / 2

    margin = rows @ solution
    for _ in range(_NEWTON_STEPS):
        likely = expit(margin)
        gradient = rows.T @ (likely - inside) + penalty * solution
        steep = np.abs(gradient).max(0)  # [k]
        if steep.max() <= goal:
            return solution
        enough = np.maximum(steep * np.minimum(0.5, np.sqrt(steep / len(rows))), goal / 2)
        step = _conjugate_gradients(problem, likely * (1 - likely), penalty, -gradient, enough)
        change = rows @ step
        length, start, slope = np.ones_like(steep), loss(margin, solution), (gradient * step).sum(0)
        for _ in range(_HALVINGS):
            wanted = start + 1e-4 * length * slope + 1e-12 * start  # Armijo, give or take rounding
            too_far = loss(margin + length * change, solution + length * step) > wanted
            if not too_far.any():
                break
            length[too_far] /= 2
        solution, margin = solution + length * step, margin + length * change
    warnings.warn(f"no convergence at C = {1 / ridge:g}", RuntimeWarning, stacklevel=2)
    return solution


def _conjugate_gradients(
    problem: Turned,
    spread: Margins,  # p (1 - p)
    penalty: Float[np.ndarray, "r 1"],
    residual: Solution,
    enough: Intercepts,
) -> Solution:
    """Solve (rows.T diag(spread) rows + penalty) step = residual, each class by itself."""
    rows = problem.rows
    diagonal = problem.curvature * spread.mean(0) + penalty  # exact if all rows had one spread
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
    return step
