r"""MUX-GCL over hops: the network apart from the propagation. Ours.

A perceptron f sees each node alone; scale k is its output spread over k hops of the view,

$$U^{(k)} = \hat A_u^k f(X_u), \quad V^{(k)} = \hat A_v^k f(X_v), \qquad k = 0, \dots, L,$$

where each of the two views has lost edges, and single entries of the features, of its own. One
projector and the multiplex patch contrast with soft negatives follow, as in MUX-GCL. Contrasting
scale L with scale 0 makes a node agree with its neighbourhood. The scales side by side are the
embedding; a node without edges has f(x) at every scale.

The projector's first layer is linear up to its bias, so it goes before the propagation:
$\hat A^k (f(X) P) = (\hat A^k f(X)) P$ has fewer columns to propagate.

`neighbours` adds, times $\beta$, the mean over edges (i, j) of $1 - \cos(u_i^{(0)}, v_j^{(0)})$
of projected rows. `ema` embeds with an average of the weights, $\bar\theta_s = \bar\theta_{s-1} +
\max(1 - m, 1/s)\,(\theta_s - \bar\theta_{s-1})$: the plain mean until it is an exponential one.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from muxgcl.affinity import AffinityConfig, patches
from muxgcl.augment import Corrupt, View, clean, dropped
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import resolve
from muxgcl.losses.multiscale import Anchors, Likelihood, MultiplexPatchContrast
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.fresh_patches import FreshPatches
from muxgcl.methods.parts.of_graph import OfGraph, features_scaled
from muxgcl.methods.parts.schedule import WarmUpCosine
from muxgcl.nn.adam import Adam
from muxgcl.nn.perceptron import Norm, Perceptron, spread
from muxgcl.nn.projector import Projector
from muxgcl.nn.readout import Kind, Readout
from muxgcl.shapes import Nodes, Scalar, Scale
from muxgcl.sparse import SparseMatrix


@dataclass(frozen=True, slots=True, kw_only=True)
class MuxHopConfig(AffinityConfig):
    """Settings of MUX-GCL over hops; the affinity's own come with `AffinityConfig`."""

    hops: int = 2  # L
    depth: int = 2  # blocks of the perceptron
    convolutions: int = 0  # how many of its first blocks also see a node's neighbours
    hidden: int = 2048  # width between its blocks
    width: int = 1024  # of each scale
    norm: Norm = "layer"
    residual: bool = False  # a block between equal widths adds its input to its output
    row_normalize: bool = True  # divide each row of features by its sum
    drop_features: float = 0.4  # share of single entries, in each view
    dropout: float = 0.4  # between the perceptron's blocks
    drop_edges: tuple[float, float] = (0.4, 0.4)
    projection: int = 256  # width inside the projector
    projection_out: int = 128  # width of what is contrasted
    temperature: float = 0.3
    scale_weights: tuple[float, ...] = (0.5, 0.25, 0.25)
    anchors: Anchors = "last"
    likelihood: Likelihood = "half"
    neighbours: float = 0.0  # weight of the term that pulls neighbours together
    refresh: int = 0  # epochs after which the affinity looks at the embedding again; 0: never
    refresh_share: float = 0.5  # of the embedding in the affinity then; the walks have the rest
    ema: float = 0.0  # how much the average of the weights keeps of itself; 0: no average
    schedule: Literal["constant", "cosine"] = "constant"
    warm_up: float = 0.0  # share of the training in which the learning rate rises
    readout: Kind = "all"
    readout_weights: tuple[float, ...] = ()  # one a scale; none: all weigh 1
    readout_features: float = 0.0  # weight of propagated features beside the scales

    def __post_init__(self) -> None:
        AffinityConfig.__post_init__(self)
        if self.hops < 1 or self.refresh < 0:
            raise UserError(
                f"hops must be at least 1 and refresh at least 0, got {self.hops}, {self.refresh}"
            )
        if len(self.scale_weights) != self.hops + 1:
            raise UserError(
                f"scale_weights needs one number for each of the {self.hops + 1} scales "
                f"(hops + 1), got {list(self.scale_weights)}"
            )
        if self.neighbours < 0:
            raise UserError(f"neighbours must not be negative, got {self.neighbours}")
        for name in ("drop_features", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 0 and below 1, got {getattr(self, name)}")
        if not 0 <= self.refresh_share <= 1:
            raise UserError(f"refresh_share must be from 0 to 1, got {self.refresh_share}")
        for p in self.drop_edges:
            Corrupt(p)  # checks it


class MuxHop(Method):
    """Contrast what a perceptron sees in a node with what it sees around it, over several hops."""

    name: ClassVar = "mux-hop"
    paper: ClassVar = "ours, after Zhao et al. 2024, https://arxiv.org/abs/2409.08010"
    cost: ClassVar = "quadratic"
    Config: ClassVar = MuxHopConfig

    def __init__(self, graph: Graph, cfg: MuxHopConfig, context: Context) -> None:
        super().__init__()
        self.cfg, self.context = cfg, context
        self.scaled = features_scaled(cfg.row_normalize)
        self.edges = OfGraph(mean_over_edges)
        self.encoder = Perceptron(
            graph.num_features,
            cfg.width,
            hidden=cfg.hidden,
            depth=cfg.depth,
            dropout=cfg.dropout,
            norm=cfg.norm,
            residual=cfg.residual,
            convolutions=cfg.convolutions,
        )
        self.average = deepcopy(self.encoder).requires_grad_(False) if cfg.ema else None
        self.projector = Projector(cfg.width, cfg.projection, cfg.projection_out)
        self.contrast = MultiplexPatchContrast(
            cfg.scale_weights,
            cfg.temperature,
            likelihood=cfg.likelihood,
            anchors=cfg.anchors,
            backend=context.backend,
        )
        self.readout = Readout(
            cfg.readout, cfg.readout_weights, cfg.readout_features, last=cfg.hops
        )
        self.schedule = WarmUpCosine(context.epochs, cfg.warm_up, falls=cfg.schedule == "cosine")
        self.patches: list[Tensor] | None = None
        self.fresh = FreshPatches() if cfg.refresh else None
        if cfg.refresh:
            self.milestones = tuple(range(cfg.refresh, context.epochs, cfg.refresh))
        self._graph: Graph | None = None

    def prepare(self, graph: Graph) -> None:
        """Estimate where patches lie in the graph, once."""
        cfg, context = self.cfg, self.context
        self._graph = graph
        if cfg.affinity != "none":
            self.patches = self._for_kernels(
                patches(
                    graph,
                    cfg,
                    cfg.hops,
                    seed=context.seed,
                    cache=context.cache,
                    on_step=context.on_prepare,
                )
            )

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """The weighted contrast of each scale, on two fresh views."""
        cfg = self.cfg
        view = dropped(self.scaled(graph), cfg.drop_edges, cfg.drop_features)
        wanted = self.contrast.scales | ({0} if cfg.neighbours else set())
        unit = self.projected(view, self.encoder(view), wanted)
        near = self.patches if self.fresh is None else self.fresh.or_else(self.patches)
        terms = self.contrast(unit, near)
        if cfg.neighbours:
            one, two = unit[0].chunk(2)
            terms["neighbours"] = cfg.neighbours * (1 - (one * (self.edges(graph) @ two)).sum())
        return terms

    def projected(self, view: View, nodes: Scale, wanted: set[int]) -> dict[int, Nodes]:
        """Unit rows of the wanted scales of f's output."""
        mixed = spread(view.propagation, self.projector.mix(nodes), max(wanted))
        unit = self.projector.finish(torch.cat([mixed[k] for k in sorted(wanted)]))
        return dict(zip(sorted(wanted), unit.chunk(len(wanted)), strict=True))

    def embed(self, graph: Graph) -> Nodes:
        """The scales of the un-augmented graph, read out."""
        view = clean(self.scaled(graph))
        scales = spread(view.propagation, self.network.embed(view), max(self.readout.scales))
        return self.readout(dict(enumerate(scales)), graph)

    @property
    def network(self) -> Perceptron:
        """The perceptron that embeds: the average of the weights, where there is one."""
        return self.encoder if self.average is None else self.average

    def optimizer(self, lr: float, weight_decay: float) -> Adam:
        """AdamW with the schedule's rate."""
        wanted = [p for p in self.parameters() if p.requires_grad]
        return self.schedule.optimizer(wanted, lr, weight_decay)

    @torch.no_grad()
    def after_step(self) -> None:
        """Go on in the schedule, and let the average follow."""
        self.schedule.advance()
        if self.average is not None:
            share = self.schedule.step.reciprocal().clamp(min=1 - self.cfg.ema)
            pairs = zip(self.average.parameters(), self.encoder.parameters(), strict=True)
            for slow, fast in pairs:
                slow.lerp_(fast, share)
            buffers = zip(self.average.buffers(), self.encoder.buffers(), strict=True)
            for kept, new in buffers:
                kept.copy_(new)

    @torch.no_grad()
    def reach(self, milestone: int) -> None:
        """Look at the embedding again: it joins the walks in saying which nodes are near."""
        if self.fresh is None or self._graph is None:
            return
        view = clean(self.scaled(self._graph))
        unit = self.projected(view, self.network.embed(view), set(range(self.cfg.hops + 1)))
        near = self._for_kernels([*unit.values()])
        self.fresh.mix(self.patches, near, self.cfg.refresh_share)

    def _for_kernels(self, tables: list[Tensor]) -> list[Tensor]:
        on_gpu = tables[0].is_cuda
        fused = resolve(self.context.backend, cuda=on_gpu) == "fused"
        return [table.half() for table in tables] if fused else tables


def mean_over_edges(graph: Graph) -> SparseMatrix:
    """1 / |E| on every edge and 0 on loops: what averages a product of rows over the edges."""
    adjacency = graph.adjacency
    edges = len(adjacency.col) - adjacency.nodes
    return adjacency.matrix((~adjacency.loop).float() / max(edges, 1))
