"""An untrained GCN: random weights, drawn as for GRACE. A control; nothing is trained."""

from dataclasses import dataclass
from typing import ClassVar

from muxgcl.graph import Graph
from muxgcl.methods.base import Context, Method
from muxgcl.nn.gcn import GCN, Activation
from muxgcl.shapes import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomGcnConfig:
    """Settings of the untrained encoder."""

    layers: int = 2  # of the encoder
    width: int = 256  # of the embedding; between layers it is twice that
    activation: Activation = "relu"  # of the encoder


class RandomGcn(Method):
    """What the encoder's shape gives before any training."""

    name: ClassVar = "random-gcn"
    paper: ClassVar = "a control"
    cost: ClassVar = "none"
    trainable: ClassVar = False
    Config: ClassVar = RandomGcnConfig

    def __init__(self, graph: Graph, cfg: RandomGcnConfig, context: Context) -> None:
        super().__init__()
        self.encoder = GCN(graph.num_features, cfg.width, layers=cfg.layers, act=cfg.activation)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Nothing to minimise."""
        return {}
