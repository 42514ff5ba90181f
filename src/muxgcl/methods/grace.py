"""GRACE: Zhu, Xu, Yu, Liu, Wu and Wang 2020, <https://arxiv.org/abs/2006.04131>.

Two views; the negatives of a node are all other nodes, in both views. It is MUX-GCL with all weight
on the last scale and no affinity.
"""

from dataclasses import dataclass
from typing import ClassVar

from muxgcl.augment import Corrupt, both
from muxgcl.graph import Graph
from muxgcl.losses.multiscale import MultiplexPatchContrast
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.contrast import ContrastConfig
from muxgcl.nn.gcn import GCN
from muxgcl.nn.projector import Projector
from muxgcl.nn.readout import Readout
from muxgcl.shapes import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class GraceConfig(ContrastConfig):
    """Settings of GRACE; those that SFA has too come with `ContrastConfig`."""

    fanout: int = 0  # neighbours of a node that a layer of a sampled step looks at; 0: all


class Grace(Method):
    """Pull a node's two views together, push all other nodes away."""

    name: ClassVar = "grace"
    paper: ClassVar = "Zhu et al. 2020, https://arxiv.org/abs/2006.04131"
    cost: ClassVar = "quadratic"
    samples: ClassVar = True
    divides: ClassVar = True
    counted_as: ClassVar = "gcn"
    encodes_sample: ClassVar = True
    Config: ClassVar = GraceConfig

    def __init__(self, graph: Graph, cfg: GraceConfig, context: Context) -> None:
        super().__init__()
        self.context = context
        self.views = [Corrupt(*p) for p in zip(cfg.drop_edges, cfg.mask_features, strict=True)]
        self.encoder = GCN(
            graph.num_features,
            cfg.width,
            layers=cfg.layers,
            act=cfg.activation,
            fanout=cfg.fanout,
        )
        self.projector = Projector(cfg.width, cfg.projection, cfg.projection_out)
        self.readout = Readout.of(cfg, last=cfg.layers)
        only_last = [0.0] * cfg.layers + [1.0]
        self.contrast = MultiplexPatchContrast(only_last, cfg.temperature, backend=context.backend)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """The contrast of the last scale, on two fresh views."""
        sample = self.context.draw(graph)
        scales = self.encoder(both(graph, self.views), (), sample)
        unit = {k: self.projector(nodes) for k, nodes in scales.items()}
        return self.contrast(unit, sample=sample)
