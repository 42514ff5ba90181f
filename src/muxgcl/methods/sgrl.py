r"""SGRL, representation scattering: He et al. 2024, <https://openreview.net/forum?id=R8SolCx62K>.

There are no augmentations and no negatives. A target encoder is pushed away from the mean of its
own directions; an online encoder, smoothed over neighbours, predicts it. With $H_o, H_t$ the
outputs of two graph convolutions, $h = H_o + \hat A H_o$, unit rows n of $H_t$ and their mean c:

$$\mathcal L_{on} = -\frac1N \sum_i \cos\big(q(h_i), \mathrm{sg}(H_{t,i})\big), \qquad
\mathcal L_{tg} = -\frac1N \sum_i \|n_i - c\|^2$$

A step is Adam on the online encoder and the predictor q, then the target follows,
$\theta_t \leftarrow m\,\theta_t + (1 - m)\,\theta_o$, then Adam on the target. As in the authors'
code the two encoders begin with weights of their own but share one PReLU: its slope takes both
steps, the second one along the sum of both gradients. The embedding is h of the online encoder at
the lowest online loss (`parts/lowest.py`; `lowest_loss = false` takes the last).

Departs from their code: the gradient of the target is taken where that of the online encoder is,
before both moved, so that a step needs one pass; a state is kept with the loss that it gave, theirs
is one step later.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.losses.bootstrap import bootstrap
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.lowest import Lowest
from muxgcl.methods.parts.of_graph import PerGraphCache, features_scaled
from muxgcl.methods.parts.residual import with_propagated
from muxgcl.nn.adam import Adam, Optimizer
from muxgcl.nn.gcn import GCN
from muxgcl.nn.projector import unit_rows
from muxgcl.shapes import Nodes, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class SgrlConfig:
    """Settings of SGRL."""

    width: int = 1024  # of the embedding and inside the predictor
    hops: int = 1  # propagations of the online encoder's output
    momentum: float = 0.99  # m
    target_lr: float | None = None  # learning rate of the target; `lr` by default
    lowest_loss: bool = True  # embed with the weights of the lowest online loss, not the last
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do

    def __post_init__(self) -> None:
        if self.hops < 0:
            raise UserError(f"hops must not be negative, got {self.hops}")
        if not 0 <= self.momentum <= 1:
            raise UserError(f"momentum must be at least 0 and at most 1, got {self.momentum}")
        if self.target_lr is not None and self.target_lr <= 0:
            raise UserError(f"target_lr must be positive, got {self.target_lr}")


class Sgrl(Method):
    """Scatter a target's nodes from their mean, and predict them from the neighbourhood."""

    name: ClassVar = "sgrl"
    paper: ClassVar = "He et al. 2024, https://openreview.net/forum?id=R8SolCx62K"
    cost: ClassVar = "linear"
    Config: ClassVar = SgrlConfig

    def __init__(self, graph: Graph, cfg: SgrlConfig, context: Context) -> None:
        super().__init__()
        self.cfg = cfg
        self.scaled = features_scaled(cfg.row_normalize)
        self.view = PerGraphCache(self.plain_view)
        self.encoder, self.target = (
            GCN(graph.num_features, cfg.width, layers=1, act="prelu") for _ in range(2)
        )
        self.predictor = nn.Sequential(
            nn.Linear(cfg.width, cfg.width), nn.PReLU(), nn.Linear(cfg.width, cfg.width)
        )
        self.lowest = Lowest(self.encoder)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """How badly the target is predicted, and how little it is scattered."""
        target = self.target.embed(self.view(graph))
        predicted = self.predictor(self.smoothed(self.encoder, graph))
        online = bootstrap(predicted, target) - 1
        self.lowest.update(self.encoder, online.detach())
        return {"online": online, "target": -scatter(target)}

    def embed(self, graph: Graph) -> Nodes:
        """The online encoder's output plus its propagation."""
        encoder = self.lowest.module if self.cfg.lowest_loss else self.encoder
        return self.smoothed(encoder, graph)

    def smoothed(self, encoder: GCN, graph: Graph) -> Nodes:
        """The encoder's output plus its propagation."""
        view = self.view(graph)
        return with_propagated(encoder.embed(view), view.propagation, self.cfg.hops)

    def optimizer(self, lr: float, weight_decay: float) -> Optimizer:
        """Adam for the online part and Adam for the target, one after the other."""
        return _Turns(self, lr, weight_decay)


class _Turns:
    """The online part's step, the target's following, the target's step.

    The one slope that both encoders share is two parameters here, so that each has a gradient of
    its own; they are equal before and after every step.
    """

    def __init__(self, method: Sgrl, lr: float, weight_decay: float) -> None:
        self.encoder, self.target = method.encoder, method.target
        online = [*method.encoder.parameters(), *method.predictor.parameters()]
        self.online = Adam(online, lr, weight_decay)
        self.scattered = Adam(self.target.parameters(), method.cfg.target_lr or lr, weight_decay)
        self.follow = 1 - method.cfg.momentum

    @property
    def slots(self) -> list[dict[str, Tensor]]:
        return [*self.online.slots, *self.scattered.slots]

    def zero_grad(self) -> None:
        self.online.zero_grad()
        self.scattered.zero_grad()

    @torch.no_grad()
    def step(self) -> None:
        slope, target_slope = (e.act.get_parameter("weight") for e in (self.encoder, self.target))
        self.online.step()
        for slow, fast in zip(self.target.parameters(), self.encoder.parameters(), strict=True):
            slow.lerp_(fast, self.follow)
        target_slope.copy_(slope)
        assert slope.grad is not None
        assert target_slope.grad is not None
        target_slope.grad += slope.grad
        self.scattered.step()
        slope.copy_(target_slope)


def scatter(nodes: Nodes) -> Scalar:
    """Mean squared distance of the unit rows from their mean."""
    rows = unit_rows(nodes)
    return (rows - rows.mean(0)).square().sum(1).mean()
