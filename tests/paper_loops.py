"""The paper's objective, equations 1 to 5, pair by pair."""

import math

from torch import Tensor


def paper_loss(
    one: dict[int, Tensor],
    two: dict[int, Tensor],
    patches: list[Tensor] | None,
    scale_weights: list[float],
    t: float,
    *,
    released: bool = False,
    eta: str = "half",
) -> float:
    """The paper's objective with its sign turned, pair by pair."""
    last = len(scale_weights) - 1
    n = len(one[last])

    def omega(i: int, j: int, near: int, far: int) -> float:
        if patches is None:
            return 1.0
        cosine = float(patches[near][i] @ patches[far][j])
        return 1 - (1 + cosine) / 2 if eta == "half" else 1 - max(0.0, cosine)

    def pair(u: dict[int, Tensor], v: dict[int, Tensor], i: int, k: int) -> float:
        near, far = (k, last) if released else (last, k)
        positive = math.exp(float(u[near][i] @ v[far][i]) / t)
        negatives = 0.0
        for j in range(n):
            if j == i:
                continue
            inter = math.exp(float(u[near][i] @ v[far][j]) / t)
            intra = math.exp(float(u[near][i] @ u[far][j]) / t)
            negatives += omega(i, j, near, far) * (inter + intra)
        return -math.log(positive / (positive + negatives))

    total = 0.0
    for k, weight in enumerate(scale_weights):
        for i in range(n):
            total += weight * (pair(one, two, i, k) + pair(two, one, i, k)) / (2 * n)
    return total
