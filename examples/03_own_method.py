"""One's own method in one file: settings, loss, one line in the registry, and it trains like all.

The method: tell each node's features from the average of its neighbours' embeddings.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn
from torch.nn.functional import mse_loss

from muxgcl import METHODS, NodeEmbedder
from muxgcl.augment import Corrupt
from muxgcl.evaluate import holdout
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.methods import Context, Method
from muxgcl.nn.gcn import GCN
from muxgcl.shapes import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class DenoiseConfig:
    """Settings; `params={"width": 64}` or `--set width=64` changes one."""

    width: int = 64
    mask_features: float = 0.3


class Denoise(Method):
    """Restore masked features from what the neighbours say."""

    name: ClassVar = "denoise"
    paper: ClassVar = "none: an example"
    cost: ClassVar = "linear"
    Config: ClassVar = DenoiseConfig

    def __init__(self, graph: Graph, cfg: DenoiseConfig, context: Context) -> None:
        super().__init__()
        self.view = Corrupt(mask_features=cfg.mask_features)
        self.encoder = GCN(graph.num_features, cfg.width)  # `Method.embed` reads it
        self.decoder = nn.Linear(cfg.width, graph.num_features)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """How far the restored features are from the real ones, on a fresh view."""
        restored = self.decoder(self.encoder.embed(self.view(graph)))
        return {"restoration": mse_loss(restored, graph.dense_features())}


METHODS[Denoise.name] = Denoise

graph = planted(nodes=400, classes=4, seed=2)
for method in ("raw", "denoise"):
    z = NodeEmbedder(method, epochs=60, random_state=0).fit_transform(graph)
    result = holdout(z, graph.y.numpy(), count=5)
    print(f"{method}: {result.accuracy.mean:.0f} percent of test nodes right")
