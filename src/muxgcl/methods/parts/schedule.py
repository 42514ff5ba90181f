r"""A learning rate that rises in a straight line and falls along a cosine.

$$\eta(s) = \eta_{max} \cdot \begin{cases} s / w & s < w \\
    \tfrac12\big(1 + \cos(\pi (s - w) / (T - w))\big) & s \ge w \end{cases}$$

Step and rate are tensors on the device, changed in place: a captured step replays the schedule with
everything else, and a resumed run finds both in the checkpoint.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from muxgcl.errors import UserError
from muxgcl.nn.adam import Adam
from muxgcl.shapes import Scalar


class WarmUpCosine(nn.Module):
    """The rate of every step, from 0 up and down to 0 again.

    Args:
        steps: T, the planned number of steps.
        warm_up: w as a share of T.
    """

    step: Tensor
    rate: Tensor

    def __init__(self, steps: int, warm_up: float) -> None:
        super().__init__()
        if not 0 <= warm_up < 1:
            raise UserError(f"warm_up must be at least 0 and below 1, got {warm_up}")
        self.steps, self.rising = steps, warm_up * steps
        self.highest = 0.0
        self.register_buffer("step", torch.zeros(()))
        self.register_buffer("rate", torch.zeros(()))

    def optimizer(self, parameters: Iterable[nn.Parameter], lr: float, weight_decay: float) -> Adam:
        """AdamW whose rate is this schedule's tensor; `lr` is its highest value."""
        self.highest = lr
        self.rate.copy_(self.at(self.step))
        return Adam(parameters, self.rate, weight_decay, decoupled=True)

    def advance(self) -> None:
        """Go on by one step."""
        self.step += 1
        self.rate.copy_(self.at(self.step))

    def at(self, step: Tensor) -> Scalar:
        """The rate of a step."""
        down = (step - self.rising) / (self.steps - self.rising)
        rising = step / max(self.rising, 1)
        return self.highest * torch.where(step < self.rising, rising, cosine_decay(down))


def cosine_decay(progress: Tensor) -> Tensor:
    """From 1 at progress 0 along half a cosine to 0 at progress 1, and 0 from there on."""
    return (1 + (math.pi * progress.clamp(0, 1)).cos()) / 2
