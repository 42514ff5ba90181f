"""MUX-GCL: Zhao, Zhu, Wang, Wang, Zhang, Chen and Cai 2024, <https://arxiv.org/abs/2409.08010>.

Departs from the authors' code: any number of layers; anchors at the final scale as in the paper
(their direction is `direction = "released"`); affinities from the mean of the VGAE, detached, and
pooled by a plain average (theirs is `pooling = "residual"`); walks are trained on in fewer, larger
steps at a higher rate; a node without neighbours is neither near nor far; no N x N matrix.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from muxgcl.affinity import AffinityConfig
from muxgcl.augment import Corrupt, both
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.losses.multiscale import Direction, Likelihood, MultiplexPatchContrast
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.patch_tables import patch_tables
from muxgcl.nn.gcn import GCN, Activation
from muxgcl.nn.projector import Projector
from muxgcl.nn.readout import Kind, Readout
from muxgcl.shapes import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class MuxGclConfig(AffinityConfig):
    """Settings of MUX-GCL; the affinity's own come with `AffinityConfig`."""

    layers: int = 2  # of the encoder
    width: int = 128  # of the embedding; between layers it is twice that
    projection: int = 128  # width inside the projector
    projection_out: int | None = None  # width of what is contrasted; `width` by default
    activation: Activation = "relu"  # of the encoder
    drop_edges: tuple[float, float] = (0.2, 0.4)  # share of edges dropped, in each view
    mask_features: tuple[float, float] = (0.3, 0.4)  # share of feature columns masked, in each view
    fanout: int = 0  # neighbours of a node that a layer of a sampled step looks at; 0: all
    temperature: float = 0.4  # of the contrast; a lower one is sharper
    scale_weights: tuple[float, ...] = (0.2, 0.2, 0.6)  # of the contrasts, scale 0 first
    direction: Direction = "paper"  # anchors at the last scale, or as in the released code
    likelihood: Likelihood = "half"  # a cosine c as an affinity: (1 + c) / 2, max(0, c) or c
    readout: Kind = "last"  # how the scales become the embedding
    readout_weights: tuple[float, ...] = ()  # for `all`, one a scale; none: all weigh 1
    readout_features: float = 0.0  # weight of propagated features as one more block
    readout_raw: float = 0.0  # weight of the features as they are as one more block


class MuxGcl(Method):
    """Contrast the last layer with all layers of the other view; spare negatives that lie near."""

    name: ClassVar = "mux-gcl"
    paper: ClassVar = "Zhao et al. 2024, https://arxiv.org/abs/2409.08010"
    cost: ClassVar = "quadratic"
    samples: ClassVar = True
    divides: ClassVar = True
    counted_as: ClassVar = "gcn"
    encodes_sample: ClassVar = True
    Config: ClassVar = MuxGclConfig

    def __init__(self, graph: Graph, cfg: MuxGclConfig, context: Context) -> None:
        super().__init__()
        if len(cfg.scale_weights) != cfg.layers + 1:
            raise UserError(
                f"scale_weights needs one number for each of the {cfg.layers + 1} scales "
                f"(layers + 1), got {list(cfg.scale_weights)}"
            )
        self.cfg, self.context = cfg, context
        self.views = [Corrupt(*p) for p in zip(cfg.drop_edges, cfg.mask_features, strict=True)]
        self.encoder = GCN(
            graph.num_features,
            cfg.width,
            layers=cfg.layers,
            act=cfg.activation,
            fanout=cfg.fanout,
        )
        self.projector = Projector(cfg.width, cfg.projection, cfg.projection_out)
        self.contrast = MultiplexPatchContrast(
            cfg.scale_weights,
            cfg.temperature,
            direction=cfg.direction,
            likelihood=cfg.likelihood,
            backend=context.backend,
        )
        self.readout = Readout.of(cfg, last=cfg.layers)
        self.patches: list[Tensor] | None = None

    def prepare(self, graph: Graph) -> None:
        """Estimate where patches lie in the graph, once."""
        self.patches = patch_tables(graph, self.cfg, self.cfg.layers, self.context)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """The weighted contrast of each scale, on two fresh views."""
        sample = self.context.draw(graph)
        scales = self.encoder(both(graph, self.views), self.contrast.scales, sample)
        unit = self.projector(torch.cat([*scales.values()])).chunk(len(scales))
        return self.contrast(dict(zip(scales, unit, strict=True)), self.patches, sample)

    def forget(self) -> None:
        """Let go of the patches too: only the loss reads them."""
        super().forget()
        self.patches = None
