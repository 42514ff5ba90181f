r"""Multiplex patch contrast (MPC): the final scale of one view against all scales of the other.

$$\mathcal L_{MUX} = \sum_{k=0}^{L} \lambda_k \frac1{2N} \sum_i
    \big[\ell(u_i^{(L)}, v_i^{(k)}) + \ell(v_i^{(L)}, u_i^{(k)})\big]$$

where the negatives of $u_i^{(L)}$ are all other nodes' $v_j^{(k)}$ and $u_j^{(k)}$, each weighted
by $\omega_{ij}^{Lk} = 1 - \eta(h_i^{(L)}, h_j^{(k)})$ (equations 1 to 5 of the paper, the sign
turned: here it is minimised).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from muxgcl.errors import UserError
from muxgcl.kernels import Backend, PairWeight, contrast
from muxgcl.shapes import Nodes, Scalar

Patches = Float[Tensor, "p r"]  # one row a node
Direction = Literal["paper", "released"]
Likelihood = Literal["half", "clamp"]
# eta, the likelihood of a false negative, as 1 - eta = offset + slope * cosine (then cut to [0, 1])
WEIGHTS: dict[str, tuple[float, float]] = {"half": (0.5, -0.5), "clamp": (1.0, -1.0)}


class MultiplexPatchContrast(nn.Module):
    r"""One contrast per scale, weighted by $\lambda_k$; a scale with $\lambda_k = 0$ costs nothing.

    Paper: Zhao et al. 2024, <https://arxiv.org/abs/2409.08010>, equations 1 to 5.

    Args:
        scale_weights: $\lambda_0, \dots, \lambda_L$; not negative, summing to 1.
        temperature: $\tau > 0$; smaller values sharpen the contrast.
        direction: "paper" has anchors at scale L and samples at scale k; "released", as the
            authors' code does, anchors at scale k and samples at scale L.
        likelihood: how a cosine of patches becomes the likelihood of a false negative: "half" is
            (1 + cosine) / 2, "clamp" is max(0, cosine).
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
        backend: Backend = "auto",
    ) -> None:
        super().__init__()
        if temperature <= 0:
            raise UserError(f"temperature must be positive, got {temperature}")
        if min(scale_weights) < 0 or abs(sum(scale_weights) - 1) > 1e-6:
            raise UserError(
                f"scale_weights must not be negative and must sum to 1, got {list(scale_weights)}"
            )
        if direction not in ("paper", "released"):
            raise UserError(f"direction must be paper or released, got {direction!r}")
        if likelihood not in WEIGHTS:
            raise UserError(f"likelihood must be half or clamp, got {likelihood!r}")
        self.terms = {k: weight for k, weight in enumerate(scale_weights) if weight > 0}
        self.last = len(scale_weights) - 1
        self.temperature, self.direction, self.backend = temperature, direction, backend
        self.offset, self.slope = WEIGHTS[likelihood]

    @property
    def scales(self) -> set[int]:
        """The scales that the loss reads."""
        return {*self.terms, self.last}

    def forward(
        self, tables: Mapping[int, Nodes], patches: Sequence[Patches] | None = None
    ) -> dict[str, Scalar]:
        """The weighted term of each scale.

        Args:
            tables: unit rows at each scale, the two views stacked: [2n, d].
            patches: unit affinity tables [n, r], one a scale; without them every negative weighs 1.
        """
        nodes = len(tables[self.last]) // 2
        terms = {}
        for k, scale_weight in self.terms.items():
            near, far = (self.last, k) if self.direction == "paper" else (k, self.last)
            weight = None
            if patches is not None:
                weight = PairWeight(patches[near], patches[far], self.offset, self.slope)
            terms[f"scale {k}"] = scale_weight * contrast(
                tables[near],
                tables[far],
                weight,
                temperature=self.temperature,
                nodes=nodes,
                backend=self.backend,
            )
        return terms
