"""GCA, adaptive augmentation: Zhu, Xu, Yu, Liu, Wu and Wang 2021, <https://arxiv.org/abs/2010.14945>.

GRACE with views that spare what matters: an edge into a central node and a feature of central nodes
are dropped less often (`methods/parts/centrality.py`). Encoder, projector and contrast are GRACE's.

Departs from the authors' code: an empty feature column is left out of the statistics (theirs gives
NaN on Cora, which their cap turns into a drop rate of 0.7 for every column); eigenvector centrality
by power iteration.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from muxgcl.augment import Corrupt
from muxgcl.graph import Graph
from muxgcl.losses.multiscale import MultiplexPatchContrast
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.centrality import Centrality, adaptive_views, drop_weights
from muxgcl.methods.parts.of_graph import PerGraphCache, features_scaled
from muxgcl.nn.gcn import GCN, Activation
from muxgcl.nn.projector import Projector
from muxgcl.nn.readout import Readout, ReadoutConfig
from muxgcl.shapes import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class GcaConfig(ReadoutConfig):
    """Settings of GCA."""

    centrality: Centrality = "degree"  # what is central by it is dropped less often
    layers: int = 2  # of the encoder
    width: int = 256  # of the embedding; between layers it is twice that
    projection: int = 64  # width inside the projector
    activation: Activation = "relu"  # of the encoder
    drop_edges: tuple[float, float] = (0.3, 0.5)  # share of edges dropped, in each view
    mask_features: tuple[float, float] = (0.1, 0.1)  # share of feature columns masked, in each view
    fanout: int = 0  # neighbours of a node that a layer of a sampled step looks at; 0: all
    temperature: float = 0.3  # of the contrast; a lower one is sharper
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do


class Gca(Method):
    """Pull a node's two views together, push all others away; views spare what is central."""

    name: ClassVar = "gca"
    paper: ClassVar = "Zhu et al. 2021, https://arxiv.org/abs/2010.14945"
    cost: ClassVar = "quadratic"
    samples: ClassVar = True
    divides: ClassVar = True
    counted_as: ClassVar = "gcn"
    encodes_sample: ClassVar = True
    Config: ClassVar = GcaConfig

    def __init__(self, graph: Graph, cfg: GcaConfig, context: Context) -> None:
        super().__init__()
        self.context = context
        self.scaled = features_scaled(cfg.row_normalize)
        self.drop_weights = PerGraphCache(partial(drop_weights, kind=cfg.centrality))
        self.rates = [Corrupt(*p) for p in zip(cfg.drop_edges, cfg.mask_features, strict=True)]
        self.encoder = GCN(
            graph.num_features,
            cfg.width,
            layers=cfg.layers,
            act=cfg.activation,
            fanout=cfg.fanout,
        )
        self.readout = Readout.of(cfg, last=cfg.layers)
        self.projector = Projector(cfg.width, cfg.projection)
        only_last = [0.0] * cfg.layers + [1.0]
        self.contrast = MultiplexPatchContrast(only_last, cfg.temperature, backend=context.backend)

    def prepare(self, graph: Graph) -> None:
        """Find out what is central, once."""
        self.drop_weights(graph)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """GRACE's contrast on two adaptive views."""
        weights, graph = self.drop_weights(graph), self.scaled(graph)
        views = adaptive_views(graph, weights, self.rates)
        sample = self.context.draw(graph)
        (nodes,) = self.encoder(views, (), sample).values()
        return self.contrast({self.contrast.last: self.projector(nodes)}, sample=sample)
