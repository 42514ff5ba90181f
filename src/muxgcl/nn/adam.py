r"""Adam, each step of which is one kernel.

$$m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2) g^2,$$
$$\theta \leftarrow \theta - \eta\, \hat m / (\sqrt{\hat v} + \epsilon), \qquad
\hat m = m / (1 - \beta_1^s), \quad \hat v = v / (1 - \beta_2^s).$$

Papers: Kingma and Ba 2015, <https://arxiv.org/abs/1412.6980>; weight decay beside the gradient
instead of in it: Loshchilov and Hutter 2019, <https://arxiv.org/abs/1711.05101>. The step is
torch's functional form, `torch.optim.adam.adam`. Its classes create their state at the first step,
too late for a capture, and load torch's compiler, which takes seconds (docs/decisions/0007).
"""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


@runtime_checkable
class Optimizer(Protocol):
    """What a training loop asks of an optimizer; `slots` is all that a checkpoint must hold."""

    @property
    def slots(self) -> list[dict[str, Tensor]]:
        """What it remembers of each parameter."""

    def zero_grad(self) -> None:
        """Forget the gradients."""

    def step(self) -> None:
        """Go down along the gradients."""


class Adam:
    """Adam over these parameters, or AdamW where the decay is `decoupled`.

    Args:
        parameters: those without a gradient at a step are left alone.
        lr: a number, or a tensor that somebody else changes.
        weight_decay: how fast weights shrink.
        decoupled: whether they shrink beside the gradient's step.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float | Tensor,
        weight_decay: float = 0.0,
        *,
        decoupled: bool = False,
    ) -> None:
        self.parameters = list(parameters)
        self.lr, self.weight_decay, self.decoupled = lr, weight_decay, decoupled
        self.slots: list[dict[str, Tensor]] = [
            {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter, requires_grad=False),
                "exp_avg_sq": torch.zeros_like(parameter, requires_grad=False),
            }
            for parameter in self.parameters
        ]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Go down along the gradients."""
        pairs = zip(self.parameters, self.slots, strict=True)
        live = [(p, p.grad, slot) for p, slot in pairs if p.grad is not None]
        if not live:
            return
        steps, means, squares = (
            [slot[name] for *_, slot in live] for name in ("step", "exp_avg", "exp_avg_sq")
        )
        adam(
            [parameter for parameter, *_ in live],
            [grad for _, grad, _ in live],
            means,
            squares,
            [],
            steps,
            lr=self.lr,
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=self.weight_decay,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
            fused=True,
            capturable=True,
            decoupled_weight_decay=self.decoupled,
        )
