r"""BGRL, bootstrapped graph latents: Thakoor et al. 2022, <https://arxiv.org/abs/2102.06514>.

An online encoder f and a predictor q learn to predict, from one view, what a target encoder g sees
in the other. The target follows the online weights as a moving average and gets no gradient. There
are no negatives, so time and memory are linear in the number of nodes.

$$\mathcal L = 2 - \frac1N\sum_i \cos(q(f(G_1))_i, g(G_2)_i)
    - \frac1N\sum_i \cos(q(f(G_2))_i, g(G_1)_i)$$
$$\theta_g \leftarrow m\,\theta_g + (1 - m)\,\theta_f, \qquad
m = 1 - (1 - m_0) \cdot \tfrac12\big(1 + \cos(\pi s / T)\big)$$

As in the authors' code the target begins with its own random weights, the average moves parameters
and not the batch normalisation's statistics, weight decay spares nothing, and the first step has
rate 0. Departs from it: the warm-up is a share of the training, so that a short run has the same
schedule; their batch normalisation keeps almost only the statistics of the last view
(`batch_norm_momentum = 0.99`), the default here averages over many.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from muxgcl.augment import Corrupt
from muxgcl.graph import Graph
from muxgcl.losses.bootstrap import bootstrap
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.of_graph import features_scaled
from muxgcl.methods.parts.schedule import WarmUpCosine, cosine_decay
from muxgcl.nn.adam import Adam
from muxgcl.nn.norm_gcn import NormGCN
from muxgcl.shapes import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class BgrlConfig:
    """Settings of BGRL."""

    widths: tuple[int, ...] = (512, 256)  # of the layers; the last is that of the embedding
    predictor: int = 512  # width inside the predictor
    drop_edges: tuple[float, float] = (0.3, 0.3)  # share of edges dropped, in each view
    mask_features: tuple[float, float] = (0.2, 0.2)  # share of feature columns masked, in each view
    momentum: float = 0.99  # of the target at the first step; 1 at the last
    warm_up: float = 0.1  # share of the training in which the learning rate rises
    batch_norm_momentum: float = 0.01  # of its running statistics, as torch counts it
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do


class Bgrl(Method):
    """Predict the other view's nodes as a moving average of the network sees them."""

    name: ClassVar = "bgrl"
    paper: ClassVar = "Thakoor et al. 2022, https://arxiv.org/abs/2102.06514"
    cost: ClassVar = "linear"
    Config: ClassVar = BgrlConfig

    def __init__(self, graph: Graph, cfg: BgrlConfig, context: Context) -> None:
        super().__init__()
        self.scaled = features_scaled(cfg.row_normalize)
        self.views = [Corrupt(*p) for p in zip(cfg.drop_edges, cfg.mask_features, strict=True)]
        self.encoder, self.target = (
            NormGCN(
                graph.num_features, cfg.widths, bare_last=False, momentum=cfg.batch_norm_momentum
            )
            for _ in range(2)
        )
        self.target.requires_grad_(False)
        width = cfg.widths[-1]
        self.predictor = nn.Sequential(
            nn.Linear(width, cfg.predictor), nn.PReLU(), nn.Linear(cfg.predictor, width)
        )
        self.schedule = WarmUpCosine(context.epochs, cfg.warm_up)
        self.momentum = cfg.momentum

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Each view predicts the other."""
        one, two = (view(self.scaled(graph)) for view in self.views)
        with torch.no_grad():
            target_one, target_two = self.target(one), self.target(two)
        return {
            "1 to 2": bootstrap(self.predictor(self.encoder(one)), target_two),
            "2 to 1": bootstrap(self.predictor(self.encoder(two)), target_one),
        }

    def optimizer(self, lr: float, weight_decay: float) -> Adam:
        """AdamW with warm-up and cosine decay, over what is not the target."""
        wanted = [p for p in self.parameters() if p.requires_grad]
        return self.schedule.optimizer(wanted, lr, weight_decay)

    @torch.no_grad()
    def after_step(self) -> None:
        """Let the target follow, then go on in the schedule."""
        follow = 1 - self.target_momentum(self.schedule.step)
        for slow, fast in zip(self.target.parameters(), self.encoder.parameters(), strict=True):
            slow.lerp_(fast, follow)
        self.schedule.advance()

    def target_momentum(self, step: Tensor) -> Scalar:
        """How much of itself the target keeps at a step."""
        return 1 - (1 - self.momentum) * cosine_decay(step / self.schedule.steps)
