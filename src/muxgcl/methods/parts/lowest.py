"""The weights of the epoch whose training loss was lowest, kept without waiting for the device."""

from copy import deepcopy
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from muxgcl.shapes import Scalar

M = TypeVar("M", bound=nn.Module)


class Lowest(nn.Module, Generic[M]):
    """A copy of a module as it was when its loss was lowest; before training, as it began.

    Args:
        module: what is trained.
    """

    module: M
    loss: Tensor

    def __init__(self, module: M) -> None:
        super().__init__()
        self.module = deepcopy(module).requires_grad_(False)
        self.register_buffer("loss", torch.tensor(float("inf")))

    @torch.no_grad()
    def update(self, module: M, loss: Scalar) -> None:
        """Take the weights over if the loss they gave is lower than any before."""
        better = loss < self.loss
        for kept, now in zip(self.module.parameters(), module.parameters(), strict=True):
            kept.copy_(torch.where(better, now, kept))
        self.loss.copy_(torch.where(better, loss, self.loss))
