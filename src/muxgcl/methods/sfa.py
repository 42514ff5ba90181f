r"""SFA: Zhang, Zhu, Song, Koniusz and King 2023, <https://arxiv.org/abs/2212.01026>.

GRACE with a rebalanced spectrum: between encoder and projector each view's table $H$ (n x d) loses
one random direction, found by a power iteration that is stopped early,

$$\tilde H = H \Big(I - \frac{r r^\top}{\lVert r\rVert^2}\Big), \qquad
r = (H^\top H)^k r_0, \qquad r_0 \sim N(0, I_d).$$

Of one table, in expectation, large singular values shrink, small ones stay, and both get some
noise. The direction is found for each view and step, never for the embedding.

To mind: no gradient reaches what is removed. Where steps are large beside the rows of the features
(a high rate, rows of hundreds of ones) the leading direction can grow without bound; it then hides
the others from a probe that reads rows of length one. A smaller rate prevents it.

The authors published no code, so some choices are ours: r is constant, no gradient passes through
it (`through_direction = true` lets it pass), $r_0$ is drawn per view (`shared_start = true`
draws one for both, so that they lose nearly the same), and loss and encoder are GRACE's.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from muxgcl.augment import Corrupt, both
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import taken
from muxgcl.losses.multiscale import MultiplexPatchContrast
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.contrast import ContrastConfig
from muxgcl.methods.parts.of_graph import features_scaled
from muxgcl.nn.gcn import GCN
from muxgcl.nn.projector import Projector
from muxgcl.nn.readout import Readout
from muxgcl.shapes import Nodes, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class SfaConfig(ContrastConfig):
    """Settings of SFA: those of the contrast, and how to find the direction."""

    power_steps: int = 1  # k; 1 in all of the paper's experiments
    through_direction: bool = False  # whether gradients pass through r
    shared_start: bool = False  # whether both views begin at the same r_0
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do

    def __post_init__(self) -> None:
        if self.power_steps < 0:
            raise UserError(f"power_steps must not be negative, got {self.power_steps}")


class Sfa(Method):
    """GRACE on tables that each lost a random, mostly leading, direction."""

    name: ClassVar = "sfa"
    paper: ClassVar = "Zhang et al. 2023, https://arxiv.org/abs/2212.01026"
    cost: ClassVar = "quadratic"
    samples: ClassVar = True
    divides: ClassVar = True
    counted_as: ClassVar = "gcn"
    Config: ClassVar = SfaConfig

    def __init__(self, graph: Graph, cfg: SfaConfig, context: Context) -> None:
        super().__init__()
        self.cfg, self.context = cfg, context
        self.scaled = features_scaled(cfg.row_normalize)
        self.views = [Corrupt(*p) for p in zip(cfg.drop_edges, cfg.mask_features, strict=True)]
        self.encoder = GCN(graph.num_features, cfg.width, layers=cfg.layers, act=cfg.activation)
        self.readout = Readout.of(cfg, last=cfg.layers)
        self.projector = Projector(cfg.width, cfg.projection, cfg.projection_out)
        only_last = [0.0] * cfg.layers + [1.0]
        self.contrast = MultiplexPatchContrast(only_last, cfg.temperature, backend=context.backend)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """GRACE's contrast of the flattened tables of two fresh views."""
        views = self.encoder.embed(both(self.scaled(graph), self.views)).chunk(2)
        draws = 1 if self.cfg.shared_start else 2
        starts = torch.randn(draws, views[0].shape[1], device=graph.device).expand(2, -1)
        flat = [self.flatten(nodes, start) for nodes, start in zip(views, starts, strict=True)]
        sample = self.context.draw(graph)
        unit = self.projector(taken(torch.cat(flat), sample))
        return self.contrast({self.contrast.last: unit}, sample=sample)

    def flatten(self, nodes: Nodes, start: Float[Tensor, " d"]) -> Nodes:
        """The table without the direction that a power iteration finds from this start."""
        table = nodes if self.cfg.through_direction else nodes.detach()
        found = direction(table, start, self.cfg.power_steps)
        return nodes - (nodes @ found)[:, None] * found


def direction(nodes: Nodes, start: Float[Tensor, " d"], steps: int) -> Float[Tensor, " d"]:
    r"""$(H^\top H)^k r_0$ as a unit vector; 0 where that is 0, so that nothing is removed."""
    found = normalize(start, dim=0)
    for _ in range(steps):
        found = normalize(nodes.T @ (nodes @ found), dim=0)  # d x d is never built
    return found
