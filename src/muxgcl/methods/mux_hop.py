r"""MUX-GCL over hops: the network apart from the propagation. Ours.

A perceptron f sees each node alone; scale k is its output spread over k hops of the view,

$$U^{(k)} = \hat A_u^k f(X_u), \quad V^{(k)} = \hat A_v^k f(X_v), \qquad k = 0, \dots, L,$$

where each of the two views has lost edges, and single entries of the features, of its own. One
projector and the multiplex patch contrast with soft negatives follow, as in MUX-GCL. Contrasting
scale L with scale 0 makes a node agree with its neighbourhood. The scales side by side are the
embedding; a node without edges has f(x) at every scale.

The projector's first layer is linear up to its bias, so it goes before the propagation:
$\hat A^k (f(X) P) = (\hat A^k f(X)) P$ has fewer columns to propagate.

A directed graph has two propagations: $\vec A = D_{in}^{-1/2} (A + I) D_{out}^{-1/2}$ along the
edges, where $A_{ij}$ weighs the edge from j to i, and $\vec A^\top$ against them. Each takes the
place of $\hat A$ in turn. The loss is the mean of both; the embedding has the scales of both side
by side, each divided by $\sqrt 2$ (scale 0 is the same for both, and is there once). Where every
edge has its reverse, $\vec A = \vec A^\top = \hat A$: loss, inner products and lengths are those of
the undirected graph. Patches are of the graph without directions.

Several types of edges are propagations apart, of which the mean is taken:
$\hat A = \frac1T \sum_t D_t^{-1/2} (A_t + I) D_t^{-1/2}$.

`ema` embeds with an average of the weights, $\bar\theta_s = \bar\theta_{s-1} +
\max(1 - m, 1/s)\,(\theta_s - \bar\theta_{s-1})$: the plain mean until it is an exponential one.

Tried on the development halves and left out, since nothing came of them (records/hop-search.jsonl):
residual blocks, a warm-up and a falling rate, neighbours as explicit positives, and affinities that
are refreshed from the embedding.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from muxgcl.affinity import AffinityConfig
from muxgcl.augment import (
    Corrupt,
    View,
    both,
    clean,
    drop_entries,
    dropped,
    stacked_propagation,
)
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import Sample, Selection, taken
from muxgcl.losses.multiscale import Anchors, Likelihood, MultiplexPatchContrast
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.of_graph import features_scaled
from muxgcl.methods.parts.patch_tables import patch_tables
from muxgcl.nn.adam import Adam
from muxgcl.nn.field import Field, block_rows, in_blocks, in_part, rows_of
from muxgcl.nn.perceptron import Norm, Perceptron, spread
from muxgcl.nn.projector import Projector
from muxgcl.nn.readout import Kind, Readout
from muxgcl.shapes import Candidates, NodeIndex, Nodes, Scalar, Scale
from muxgcl.sparse import SparseMatrix

FeatureDropout = Literal["entries", "columns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MuxHopConfig(AffinityConfig):
    """Settings of MUX-GCL over hops; the affinity's own come with `AffinityConfig`."""

    hops: int = 2  # L
    depth: int = 2  # blocks of the perceptron
    convolutions: int = 0  # how many of its first blocks also see a node's neighbours
    hidden: int = 2048  # width between its blocks
    width: int = 1024  # of each scale
    norm: Norm = "layer"  # at the end of each block of the perceptron
    zero_bias: bool = False  # biases begin at zero: nodes differ from the start
    row_normalize: bool = True  # divide each row of features by its sum
    drop_features: float = 0.4  # share of the features, in each view
    feature_dropout: FeatureDropout = "entries"  # drop single entries, or whole columns
    dropout: float = 0.4  # between the perceptron's blocks
    drop_edges: tuple[float, float] = (0.4, 0.4)  # share of edges dropped, in each view
    fanout: int = 0  # neighbours of a node that a hop of a sampled step looks at; 0: all
    projection: int = 256  # width inside the projector
    projection_out: int = 128  # width of what is contrasted
    temperature: float = 0.3  # of the contrast; a lower one is sharper
    scale_weights: tuple[float, ...] = (0.5, 0.25, 0.25)  # of the contrasts, scale 0 first
    anchors: Anchors = "last"  # scales that are anchors: the last, or each of them
    likelihood: Likelihood = "half"  # a cosine c as an affinity: (1 + c) / 2, max(0, c) or c
    ema: float = 0.0  # how much the average of the weights keeps of itself; 0: no average
    readout: Kind = "all"  # how the scales become the embedding
    readout_weights: tuple[float, ...] = ()  # one a scale; none: all weigh 1
    readout_features: float = 0.0  # weight of propagated features beside the scales
    readout_raw: float = 0.0  # weight of the features as they are beside the scales

    def __post_init__(self) -> None:
        AffinityConfig.__post_init__(self)
        if self.hops < 1:
            raise UserError(f"hops must be at least 1, got {self.hops}")
        if self.fanout < 0:
            raise UserError(f"fanout must be at least 0 (all neighbours), got {self.fanout}")
        if len(self.scale_weights) != self.hops + 1:
            raise UserError(
                f"scale_weights needs one number for each of the {self.hops + 1} scales "
                f"(hops + 1), got {list(self.scale_weights)}"
            )
        for name in ("drop_features", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 0 and below 1, got {getattr(self, name)}")
        if self.feature_dropout not in get_args(FeatureDropout):
            raise UserError(
                f"feature_dropout must be one of {', '.join(get_args(FeatureDropout))}, "
                f"got {self.feature_dropout!r}"
            )
        for p in self.drop_edges:
            Corrupt(p)  # checks it


class MuxHop(Method):
    """Contrast what a perceptron sees in a node with what it sees around it, over several hops."""

    name: ClassVar = "mux-hop"
    paper: ClassVar = "ours, after Zhao et al. 2024, https://arxiv.org/abs/2409.08010"
    cost: ClassVar = "quadratic"
    samples: ClassVar = True
    divides: ClassVar = True
    counted_as: ClassVar = "perceptron"
    encodes_sample: ClassVar = True
    edge_kinds: ClassVar = True
    Config: ClassVar = MuxHopConfig
    readout: Readout
    steps: Tensor  # so far, for the average of the weights

    def __init__(self, graph: Graph, cfg: MuxHopConfig, context: Context) -> None:
        super().__init__()
        self.cfg, self.context = cfg, context
        self.scaled = features_scaled(cfg.row_normalize)
        self.encoder = Perceptron(
            graph.num_features,
            cfg.width,
            hidden=cfg.hidden,
            depth=cfg.depth,
            dropout=cfg.dropout,
            norm=cfg.norm,
            zero_bias=cfg.zero_bias,
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
        self.readout = Readout.of(cfg, last=cfg.hops)
        self.capturable = graph.device.type == "cpu" or not self._in_part(graph)
        self.patches: list[Tensor] | None = None
        self.register_buffer("steps", torch.zeros(()))

    def prepare(self, graph: Graph) -> None:
        """Estimate where patches lie in the graph, once."""
        self.patches = patch_tables(graph, self.cfg, self.cfg.hops, self.context)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """The weighted contrast of each scale, on two fresh views; the mean over directions."""
        sample = self.context.draw(graph)
        each = [self._loss(one, sample) for one in self.scaled(graph).directions]
        if len(each) == 1:
            return each[0]
        return {name: torch.stack([terms[name] for terms in each]).mean() for name in each[0]}

    def _loss(self, graph: Graph, sample: Selection | None) -> dict[str, Scalar]:
        cfg = self.cfg
        # each of several workers with its own rows would drop entries of its own inside f
        if isinstance(sample, Sample) and self._in_part(graph):
            propagation = stacked_propagation(graph, cfg.drop_edges)
            scales = self.contrast.scales
            unit = self._finished(self._of_rows(graph, propagation, sample.rows(2), scales))
        else:
            view = self._view(graph)
            unit = self.projected(view, self.encoder(view), self.contrast.scales, sample)
        return self.contrast(unit, self.patches, sample)

    def scales(self, graph: Graph, nodes: NodeIndex | None = None) -> list[Candidates]:
        """Every scale of two fresh views along the edges, one view below the other.

        Of some nodes, if named.
        """
        scaled = self.scaled(graph).directions[0]
        rows = None if nodes is None else torch.cat([nodes, nodes + graph.num_nodes])
        if rows is not None and self.cfg.feature_dropout == "entries":
            wanted = set(range(self.cfg.hops + 1))
            views = stacked_propagation(scaled, self.cfg.drop_edges)
            return [*self._of_rows(scaled, views, rows, wanted, mixed=False).values()]
        view = self._view(scaled)
        found = spread(view.propagation, self.encoder(view), self.cfg.hops)
        return found if rows is None else [table[rows] for table in found]

    def _view(self, graph: Graph) -> View:
        """Two fresh views of the whole graph, stacked."""
        cfg = self.cfg
        if cfg.feature_dropout == "entries":
            return dropped(graph, cfg.drop_edges, cfg.drop_features)
        return both(graph, [Corrupt(edges, cfg.drop_features) for edges in cfg.drop_edges])

    def projected(
        self, view: View, nodes: Scale, wanted: set[int], sample: Selection | None = None
    ) -> dict[int, Candidates]:
        """Unit rows of the wanted scales of f's output, of a sample's nodes where there is one."""
        mixed = spread(view.propagation, self.projector.mix(nodes), max(wanted))
        return self._finished({k: taken(mixed[k], sample) for k in sorted(wanted)})

    def _of_rows(
        self,
        graph: Graph,
        propagation: SparseMatrix,
        rows: NodeIndex,
        wanted: set[int],
        *,
        mixed: bool = True,
    ) -> dict[int, Scale]:
        """The wanted scales at these rows of two views, from what they depend on alone.

        They are ready for the projector's second part; without `mixed`, as f leaves them.
        """
        below = self.cfg.convolutions  # so many hops are inside f
        fanout = self.cfg.fanout if mixed else 0
        field = Field.of(propagation, rows, below + max(wanted), fanout)

        def start(rows: NodeIndex) -> Candidates:
            features = rows_of(graph.aligned_features, rows % graph.num_nodes)
            part = View(propagation, drop_entries(features, self.cfg.drop_features))
            nodes = self.encoder(part, field.hops[:below])
            return self.projector.mix(nodes) if mixed else nodes

        whole = not self.encoder.takes_blocks
        size = len(field.rows[0]) if whole else block_rows(self.encoder.widths)
        table, found = in_blocks(start, field.rows[0], size), {}
        for k in range(max(wanted) + 1):
            table = field.hops[below + k - 1] @ table if k > 0 else table
            if k in wanted:
                found[k] = field.wanted(table, below + k)
        return found

    def _in_part(self, graph: Graph) -> bool:
        whole = self.cfg.feature_dropout == "columns"
        return not whole and in_part(graph.device, 2 * graph.num_nodes, self.encoder.widths)

    def _finished(self, mixed: dict[int, Scale]) -> dict[int, Nodes]:
        """What follows the projector's first product."""
        unit = self.projector.finish(torch.cat([*mixed.values()]))
        return dict(zip(mixed, unit.chunk(len(mixed)), strict=True))

    def embed(self, graph: Graph) -> Nodes:
        """The scales of the un-augmented graph, read out."""
        if graph.edge_kinds is None:
            return self.readout(self._read(self.scaled(graph)), graph)
        return torch.cat([*self.embed_blocks(graph)])

    def embed_blocks(self, graph: Graph) -> Iterator[Scale]:
        """The embedding, a block of rows at a time; the directions of a scale are side by side."""
        ways = zip(self.scaled(graph).directions, graph.directions, strict=True)
        each = [(self._read(scaled), plain) for scaled, plain in ways]
        same = () if self.cfg.convolutions else (0,)  # f has seen no edge
        return self.readout.directions(each, same)

    def _read(self, graph: Graph) -> dict[int, Nodes]:
        """The scales of the un-augmented graph, up to the last one that is read."""
        view = clean(graph)
        scales = spread(view.propagation, self.network.embed(view), max(self.readout.scales))
        return dict(enumerate(scales))

    @property
    def network(self) -> Perceptron:
        """The perceptron that embeds: the average of the weights, where there is one."""
        return self.encoder if self.average is None else self.average

    def optimizer(self, lr: float, weight_decay: float) -> Adam:
        """AdamW: weight decay beside the gradient."""
        wanted = [p for p in self.parameters() if p.requires_grad]
        return Adam(wanted, lr, weight_decay, decoupled=True)

    @torch.no_grad()
    def after_step(self) -> None:
        """Let the average follow."""
        if self.average is not None:
            self.steps += 1
            share = self.steps.reciprocal().clamp(min=1 - self.cfg.ema)
            pairs = zip(self.average.parameters(), self.encoder.parameters(), strict=True)
            for slow, fast in pairs:
                slow.lerp_(fast, share)
            buffers = zip(self.average.buffers(), self.encoder.buffers(), strict=True)
            for kept, new in buffers:
                kept.copy_(new)

    def forget(self) -> None:
        """Let go of the patches too: only training reads them."""
        super().forget()
        self.patches = None
