"""The paper's objective, equations 1 to 5, pair by pair; and that of the authors' code."""

import math

import torch
from torch import Tensor


def paper_loss(
    one: dict[int, Tensor],
    two: dict[int, Tensor],
    patches: list[Tensor] | None,
    scale_weights: list[float],
    t: float,
    *,
    eta: str = "half",
) -> float:
    """The paper's objective with its sign turned, pair by pair."""
    last = len(scale_weights) - 1
    n = len(one[last])

    def omega(i: int, j: int, near: int, far: int) -> float:
        if patches is None:
            return 1.0
        cosine = float(patches[near][i] @ patches[far][j])
        return 1 - {"half": (1 + cosine) / 2, "clamp": max(0.0, cosine), "literal": cosine}[eta]

    def pair(u: dict[int, Tensor], v: dict[int, Tensor], i: int, k: int) -> float:
        positive = math.exp(float(u[last][i] @ v[k][i]) / t)
        negatives = 0.0
        for j in range(n):
            if j == i:
                continue
            inter = math.exp(float(u[last][i] @ v[k][j]) / t)
            intra = math.exp(float(u[last][i] @ u[k][j]) / t)
            negatives += omega(i, j, last, k) * (inter + intra)
        return -math.log(positive / (positive + negatives))

    total = 0.0
    for k, weight in enumerate(scale_weights):
        for i in range(n):
            total += weight * (pair(one, two, i, k) + pair(two, one, i, k)) / (2 * n)
    return total


def released_loss(
    one: dict[int, Tensor],
    two: dict[int, Tensor],
    patches: list[Tensor] | None,
    lambdas: list[float],
    t: float,
) -> Tensor:
    """The authors' code as dense matrices: anchors at scale k, samples at the last scale."""
    last = len(lambdas) - 1

    def weights(k: int, m: int) -> Tensor:
        n = len(one[0])
        if patches is None:
            return torch.ones(n, n, dtype=torch.float64).fill_diagonal_(0)
        likelihood = (patches[k] @ patches[m].T + 1) / 2
        return (1 - likelihood).fill_diagonal_(0)

    def anchored(a: dict[int, Tensor], b: dict[int, Tensor], k: int, w: Tensor) -> Tensor:
        within = (a[k] @ a[last].T / t).exp()
        between = (a[k] @ b[last].T / t).exp()
        positive = between.diagonal()
        return -(positive / (positive + (w * (within + between)).sum(1))).log()

    loss = torch.zeros((), dtype=torch.float64)
    for k, weight in enumerate(lambdas):
        first = anchored(one, two, k, weights(last, k))
        second = anchored(two, one, k, weights(k, last))
        loss = loss + weight * ((first + second) / 2).mean()
    return loss
