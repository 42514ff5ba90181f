r"""Multiplex patch contrast (MPC): the final scale of one view against all scales of the other.

$$\mathcal L_{MUX} = \sum_{k=0}^{L} \lambda_k \frac1{2N} \sum_i
    \big[\ell(u_i^{(L)}, v_i^{(k)}) + \ell(v_i^{(L)}, u_i^{(k)})\big]$$

where the negatives of $u_i^{(L)}$ are all other nodes' $v_j^{(k)}$ and $u_j^{(k)}$, each weighted
by $\omega_{ij}^{Lk} = 1 - \eta(h_i^{(L)}, h_j^{(k)})$ (equations 1 to 5 of the paper, the sign
turned: here it is minimised).

With `anchors = "all"` every scale is an anchor as well, weighted as it is among the samples:
$\sum_l \sum_k \lambda_l \lambda_k\, \ell^{lk}$ instead of $\sum_k \lambda_k\, \ell^{Lk}$. Ours.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from muxgcl.errors import UserError
from muxgcl.kernels import (
    Backend,
    PairWeight,
    Sample,
    Selection,
    check_temperature,
    contrast,
    negative_sum,
)
from muxgcl.kernels.reference import info_nce
from muxgcl.shapes import Nodes, Scalar

Patches = Float[Tensor, "p r"]  # one row a node
Direction = Literal["paper", "released"]
Likelihood = Literal["half", "clamp", "literal"]
Anchors = Literal["last", "all"]


class Line(NamedTuple):
    """A negative's weight as a function of the cosine of its patches."""

    offset: float
    slope: float
    most: float = 1.0

    def __call__(self, cosine: Tensor) -> Tensor:
        """The weight, `offset + slope * cosine` cut to [0, most]."""
        return (self.offset + self.slope * cosine).clamp(0, self.most)


# 1 - eta, where eta is the likelihood of a false negative
WEIGHTS: dict[str, Line] = {
    "half": Line(0.5, -0.5),
    "clamp": Line(1.0, -1.0),
    "literal": Line(1.0, -1.0, most=2.0),
}


class MultiplexPatchContrast(nn.Module):
    r"""One contrast per scale, weighted by $\lambda_k$; a scale with $\lambda_k = 0$ costs nothing.

    Paper: Zhao et al. 2024, <https://arxiv.org/abs/2409.08010>, equations 1 to 5.

    Args:
        scale_weights: $\lambda_0, \dots, \lambda_L$; not negative, summing to 1.
        temperature: $\tau > 0$; smaller values sharpen the contrast.
        direction: "paper" has anchors at scale L and samples at scale k. "released" is the loss of
            the authors' code: anchors at scale k, samples at scale L, and weights
            $\omega_{ij}^{Lk}$ where view 1 has the anchors, $\omega_{ij}^{kL}$ where view 2 has.
        likelihood: how a cosine of patches becomes the likelihood $\eta$ of a false negative.
            "half" is (1 + cosine) / 2, as in the authors' code. "clamp" is max(0, cosine).
            "literal" is the cosine itself, equation 5 to the letter: $1 - \eta$ is between 0 and 2,
            twice that of "half", so a negative counts as in GRACE where patches are orthogonal.
        anchors: "last" has anchors at scale L alone, "all" at every scale.
        backend: how to compute it; "auto" takes the fused kernel where it runs.
    """

    __call__: Callable[..., dict[str, Scalar]]  # as `forward`; of a module torch only says Any

    def __init__(
        self,
        scale_weights: Sequence[float],
        temperature: float = 0.5,
        *,
        direction: Direction = "paper",
        likelihood: Likelihood = "half",
        anchors: Anchors = "last",
        backend: Backend = "auto",
    ) -> None:
        super().__init__()
        if temperature <= 0:
            raise UserError(f"temperature must be positive, got {temperature}")
        check_temperature(temperature, backend)
        if min(scale_weights) < 0 or abs(sum(scale_weights) - 1) > 1e-6:
            raise UserError(
                f"scale_weights must not be negative and must sum to 1, got {list(scale_weights)}"
            )
        if direction not in ("paper", "released"):
            raise UserError(f"direction must be paper or released, got {direction!r}")
        if likelihood not in WEIGHTS:
            raise UserError(f"likelihood must be half, clamp or literal, got {likelihood!r}")
        if anchors not in ("last", "all"):
            raise UserError(f"anchors must be last or all, got {anchors!r}")
        self.terms = {k: weight for k, weight in enumerate(scale_weights) if weight > 0}
        self.last = len(scale_weights) - 1
        self.anchors = {self.last: 1.0} if anchors == "last" else self.terms
        self.temperature, self.direction, self.backend = temperature, direction, backend
        self.line = WEIGHTS[likelihood]

    @property
    def scales(self) -> set[int]:
        """The scales that the loss reads."""
        return {*self.terms, *self.anchors}

    def forward(
        self,
        tables: Mapping[int, Nodes],
        patches: Sequence[Patches] | None = None,
        sample: Selection | None = None,
    ) -> dict[str, Scalar]:
        """The weighted term of each scale.

        Args:
            tables: unit rows at each scale, the two views stacked: [2n, d].
            patches: unit affinity tables [n, r], one a scale; without them every negative weighs 1.
            sample: the nodes of this step; `tables` then hold their rows alone.
        """
        if patches is not None and sample is not None:
            patches = [sample.take(table) for table in patches]
        terms = {}
        for k, scale_weight in self.terms.items():
            parts = [
                scale_weight * share * self._contrast(tables, patches, anchor, k, sample)
                for anchor, share in self.anchors.items()
            ]
            terms[f"scale {k}"] = reduce(add, parts)
        return terms

    def _contrast(
        self,
        tables: Mapping[int, Nodes],
        patches: Sequence[Patches] | None,
        anchor: int,
        keys: int,
        sample: Selection | None,
    ) -> Scalar:
        near, far = (anchor, keys) if self.direction == "paper" else (keys, anchor)
        if patches is not None and self.direction == "released" and near != far:
            return self._released(tables[near], tables[far], patches[near], patches[far], sample)
        return contrast(
            tables[near],
            tables[far],
            None if patches is None else self._weight(patches[near], patches[far]),
            temperature=self.temperature,
            nodes=len(tables[near]) // 2,
            backend=self.backend,
            sample=sample,
        )

    def _released(
        self, anchors: Nodes, keys: Nodes, near: Patches, far: Patches, sample: Selection | None
    ) -> Scalar:
        """View 1 weighs its pairs by the transposed weights of view 2."""
        if not isinstance(sample, Sample | None):
            raise UserError("direction released cannot be divided among workers; paper can")
        losses = []
        views = zip(anchors.chunk(2), reversed(keys.chunk(2)), strict=True)
        weights = self._weight(far, near), self._weight(near, far)
        for (anchor, positive), weight in zip(views, weights, strict=True):
            negatives = negative_sum(
                anchor,
                keys,
                weight,
                temperature=self.temperature,
                nodes=len(anchor),
                backend=self.backend,
                sample=sample,
            )
            if sample is not None:
                anchor, positive = sample.take_own(anchor), sample.take_own(positive)
            losses.append(info_nce(anchor, positive, negatives, temperature=self.temperature))
        total = torch.cat(losses).sum()
        return total / (len(anchors) if sample is None else 2 * sample.anchors)

    def _weight(self, rows: Patches, cols: Patches) -> PairWeight:
        return PairWeight(rows, cols, self.line.offset, self.line.slope, most=self.line.most)
