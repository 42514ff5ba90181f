r"""SGC, training-free propagation: Wu et al. 2019, <https://arxiv.org/abs/1902.07153>.

$$Z = \hat A^K X$$

The part of SGC before its classifier, as a control: a method that does not beat it has learned
nothing that averaging over neighbours does not give for free. With `side_by_side` the embedding is
$[X, \hat A X, \dots, \hat A^K X]$, each part with rows of length one.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch.nn.functional import normalize

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.methods.base import Context, Method
from muxgcl.shapes import Nodes, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class SgcConfig:
    """Settings of training-free propagation."""

    steps: int = 2  # K
    side_by_side: bool = False  # the tables after 0, 1, ... K steps, each with rows of length one

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise UserError(f"steps must not be negative, got {self.steps}")


class Sgc(Method):
    """Features averaged over the neighbourhood a few times."""

    name: ClassVar = "sgc"
    paper: ClassVar = "Wu et al. 2019, https://arxiv.org/abs/1902.07153 (a control)"
    cost: ClassVar = "none"
    trainable: ClassVar = False
    Config: ClassVar = SgcConfig

    def __init__(self, graph: Graph, cfg: SgcConfig, context: Context) -> None:
        super().__init__()
        self.steps, self.side_by_side = cfg.steps, cfg.side_by_side

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Nothing to minimise."""
        return {}

    def embed(self, graph: Graph) -> Nodes:
        """The propagated features."""
        nodes, propagation = graph.dense_features(), graph.adjacency.propagation()
        seen = [nodes]
        for _ in range(self.steps):
            nodes = propagation @ nodes
            if self.side_by_side:
                seen.append(nodes)
        return torch.cat([normalize(part) for part in seen], 1) if self.side_by_side else nodes
