r"""G-BT, Graph Barlow Twins: Bielak, Kajdanowicz and Chawla 2022, <https://arxiv.org/abs/2106.02466>.

Two views, one encoder; the cross-correlation of the two embeddings' columns is pulled towards the
identity (`losses/decorrelation.py`). There is no projector, no target and no negative: time is
O(N d^2) and memory O(N d).

Departs from the authors' code: a dead column is divided by 1e-6 instead of 1e-15 (with theirs a
rounding error decides the loss); the warm-up is a share of the training.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from muxgcl.augment import Corrupt
from muxgcl.graph import Graph
from muxgcl.losses.decorrelation import cross_correlation
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.of_graph import features_scaled
from muxgcl.methods.parts.schedule import WarmUpCosine
from muxgcl.nn.adam import Adam
from muxgcl.nn.norm_gcn import NormGCN
from muxgcl.shapes import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class GbtConfig:
    """Settings of G-BT; both views are drawn at the same rates."""

    width: int = 256  # of the embedding; between layers it is twice that
    drop_edges: float = 0.3  # share of edges dropped, in each view
    mask_features: float = 0.2  # share of feature columns masked, in each view
    warm_up: float = 0.1  # share of the training in which the learning rate rises
    batch_norm_momentum: float = 0.01  # of its running statistics, as torch counts it
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do


class Gbt(Method):
    """Make the columns of two views agree and say different things."""

    name: ClassVar = "gbt"
    paper: ClassVar = "Bielak et al. 2022, https://arxiv.org/abs/2106.02466"
    cost: ClassVar = "linear"
    Config: ClassVar = GbtConfig

    def __init__(self, graph: Graph, cfg: GbtConfig, context: Context) -> None:
        super().__init__()
        self.scaled = features_scaled(cfg.row_normalize)
        self.view = Corrupt(cfg.drop_edges, cfg.mask_features)
        self.encoder = NormGCN(
            graph.num_features,
            (2 * cfg.width, cfg.width),
            bare_last=True,
            momentum=cfg.batch_norm_momentum,
        )
        self.schedule = WarmUpCosine(context.epochs, cfg.warm_up)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Disagreement of the views and repetition among the columns."""
        one, two = (self.encoder(self.view(self.scaled(graph))) for _ in range(2))
        invariance, redundancy = cross_correlation(one, two)
        return {"invariance": invariance, "redundancy": redundancy}

    def optimizer(self, lr: float, weight_decay: float) -> Adam:
        """AdamW with warm-up and cosine decay."""
        return self.schedule.optimizer(self.parameters(), lr, weight_decay)

    @torch.no_grad()
    def after_step(self) -> None:
        """Go on in the schedule."""
        self.schedule.advance()
