r"""The linear probe on a GPU: all splits, strengths and classes in one batch of float64 products.

The same problem as `logistic.py`, solved to the same tolerance, so the same answers; only the order
of the work differs. Each split's training rows are turned into the eigenbasis of their Gram matrix,
then Newton's method with conjugate gradients runs for all (strength, class) pairs side by side.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from muxgcl.evaluate.arrays import Labels
from muxgcl.evaluate.splits import Split

_TOLERANCE = 1e-6  # largest entry of the gradient, per row: as in `logistic.py`
_NEWTON_STEPS, _CG_STEPS, _HALVINGS = 60, 200, 20
_RANK = 1e-12  # an eigenvalue this small beside the trace is rounding
_BATCH_BYTES = 4 << 30  # training rows and solutions held at once


@dataclass(frozen=True, slots=True)
class SplitPrediction:
    """What one split gave: the predicted classes of its test nodes, and how C was chosen."""

    predicted: Labels
    validation: float  # accuracy on the validation nodes, in percent
    strength: float


def answers(
    z: Float[Tensor, "n d"], y: Labels, splits: Sequence[Split], strengths: Sequence[float]
) -> list[SplitPrediction]:
    """Fit on train, choose C on val, predict test; splits of one size are solved together."""
    z = normalize(z.double(), dim=1, eps=torch.finfo(torch.float64).tiny)
    classes = np.unique(y[y >= 0])
    label = torch.as_tensor(np.searchsorted(classes, np.maximum(y, classes[0])), device=z.device)
    found: dict[int, SplitPrediction] = {}
    groups: dict[int, list[int]] = {}
    for number, split in enumerate(splits):
        groups.setdefault(len(split.train), []).append(number)
    for rows, numbers in groups.items():
        columns = min(rows, z.shape[1]) + 1
        wide = len(strengths) * len(classes)
        each = 8 * (rows * z.shape[1] + 3 * rows * columns + 8 * (rows + columns) * wide)
        step = max(1, _BATCH_BYTES // each)
        for start in range(0, len(numbers), step):
            some = numbers[start : start + step]
            solved = _solve(z, label, [splits[i] for i in some], len(classes), strengths)
            found |= dict(zip(some, solved, strict=True))
    return [
        SplitPrediction(classes[found[i].predicted], found[i].validation, found[i].strength)
        for i in range(len(splits))
    ]


def _solve(
    z: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    splits: list[Split],
    classes: int,
    strengths: Sequence[float],
) -> list[SplitPrediction]:
    """One batch of splits with as many training rows each."""
    train = torch.as_tensor(np.stack([split.train for split in splits]), device=z.device)
    x = z[train]  # [s, n, d]
    centre = x.mean(1, keepdim=True)
    x = x - centre
    rows, curvature, back = _turned(x)
    inside = torch.nn.functional.one_hot(label[train], classes).to(z.dtype)  # [s, n, k]
    seen = inside.any(1)  # [s, k]: a class without a training row cannot win
    solution = _newton(rows, curvature, inside, strengths)  # [s, r, c * k]
    weight = back(solution[:, :-1])  # [s, d, c * k]
    intercept = solution[:, -1:] - centre @ weight  # [s, 1, c * k]
    answers = []
    for i, split in enumerate(splits):
        unseen = ~seen[i]

        def scores(nodes: Tensor, i: int = i, unseen: Tensor = unseen) -> Tensor:
            found: Tensor = z[nodes] @ weight[i] + intercept[i]
            by_class = found.view(len(nodes), len(strengths), classes)
            return by_class.masked_fill(unseen, -torch.inf)

        val = torch.as_tensor(split.val, device=z.device)
        right = (scores(val).argmax(2) == label[val, None]).sum(0)  # [c]
        best = int(right.cpu().numpy().argmax())  # the smallest strength wins a tie
        test = torch.as_tensor(split.test, device=z.device)
        predicted = scores(test)[:, best].argmax(1).cpu().numpy()
        answers.append(
            SplitPrediction(predicted, 100 * float(right[best]) / len(val), strengths[best])
        )
    return answers


def _turned(
    x: Float[Tensor, "s n d"],
) -> tuple[Float[Tensor, "s n r"], Float[Tensor, "s r 1"], Callable[[Tensor], Tensor]]:
    """Centred rows in their eigenbasis with a column of ones, the diagonal, and the way back."""
    _, n, d = x.shape
    wide = d > n
    values, vectors = torch.linalg.eigh(x @ x.mT if wide else x.mT @ x)
    real = values > _RANK * values.sum(1, keepdim=True).clamp(min=1)
    values = values * real
    scale = values.sqrt()
    if wide:
        rows = vectors * scale[:, None]
        inverse = torch.where(real, 1 / scale.clamp(min=1e-300), 0.0)[:, :, None]

        def back(solution: Tensor) -> Tensor:
            return torch.matmul(x.mT, vectors @ (solution * inverse))
    else:
        rows = x @ vectors

        def back(solution: Tensor) -> Tensor:
            return torch.matmul(vectors, solution)

    ones = x.new_ones(len(x), n, 1)
    curvature = torch.cat([values, values.new_full((len(x), 1), n)], 1)[:, :, None]
    return torch.cat([rows, ones], 2), curvature, back


def _newton(
    rows: Float[Tensor, "s n r"],
    curvature: Float[Tensor, "s r 1"],
    inside: Float[Tensor, "s n k"],
    strengths: Sequence[float],
) -> Float[Tensor, "s r ck"]:
    """Newton's method for every split, strength and class at once."""
    _, n, r = rows.shape
    goal, classes = _TOLERANCE * n, inside.shape[2]
    inside = inside.repeat(1, 1, len(strengths))  # [s, n, c * k]
    ridge = torch.tensor(strengths, dtype=rows.dtype, device=rows.device).reciprocal()
    penalty = ridge.repeat_interleave(classes).repeat(r, 1)  # [r, c * k]
    penalty[-1] = 0  # the intercept is free
    solution = rows.new_zeros(len(rows), r, inside.shape[2])
    margin = rows @ solution

    def loss(margin: Tensor, solution: Tensor) -> Tensor:
        likely = torch.nn.functional.softplus(margin, threshold=700) - inside * margin
        return likely.sum(1) + (penalty * solution**2).sum(1) / 2

    for _ in range(_NEWTON_STEPS):
        likely = margin.sigmoid()
        gradient = rows.mT @ (likely - inside) + penalty * solution
        steep = gradient.abs().amax(1)  # [s, c * k]
        if float(steep.max()) <= goal:
            break
        enough = torch.maximum(
            steep * (steep / n).sqrt().clamp(max=0.5), steep.new_tensor(goal / 2)
        )
        step = _conjugate_gradients(
            rows, curvature, likely * (1 - likely), penalty, -gradient, enough
        )
        change = rows @ step
        start, slope = loss(margin, solution), (gradient * step).sum(1)
        length = torch.ones_like(steep)
        for _ in range(_HALVINGS):
            wanted = start + 1e-4 * length * slope + 1e-12 * start
            trial = length[:, None]
            too_far = loss(margin + trial * change, solution + trial * step) > wanted
            if not bool(too_far.any()):
                break
            length = torch.where(too_far, length / 2, length)
        solution = solution + length[:, None] * step
        margin = margin + length[:, None] * change
    else:
        first = int((~(steep <= goal)).any(0).nonzero()[0]) // classes
        warnings.warn(f"no convergence at C = {strengths[first]:g}", RuntimeWarning, stacklevel=2)
    return solution


def _conjugate_gradients(
    rows: Float[Tensor, "s n r"],
    curvature: Float[Tensor, "s r 1"],
    spread: Float[Tensor, "s n ck"],
    penalty: Float[Tensor, "r ck"],
    residual: Float[Tensor, "s r ck"],
    enough: Float[Tensor, "s ck"],
) -> Float[Tensor, "s r ck"]:
    """Solve (rows' diag(spread) rows + penalty) step = residual, each column by itself."""
    tiny = torch.finfo(rows.dtype).tiny
    diagonal = (curvature * spread.mean(1, keepdim=True) + penalty).clamp(min=tiny)
    step = torch.zeros_like(residual)
    direction = residual / diagonal
    energy = (residual * direction).sum(1, keepdim=True)
    for number in range(_CG_STEPS):
        product = rows.mT @ (spread * (rows @ direction)) + penalty * direction
        length = energy / ((direction * product).sum(1, keepdim=True) + tiny)
        step = step + length * direction
        residual = residual - length * product
        # a look at the device costs more than a step: look now and then
        if number % 4 == 3 and bool((residual.abs().amax(1) <= enough).all()):
            break
        eased = residual / diagonal
        before, energy = energy, (residual * eased).sum(1, keepdim=True)
        direction = eased + energy / (before + tiny) * direction
    return step
