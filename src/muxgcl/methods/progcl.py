r"""ProGCL: Xia, Wu, Wang, Chen and Li 2022, <https://arxiv.org/abs/2110.02027>.

In graphs the hardest negatives are often false ones: weigh a negative by its similarity *and* by
how likely it is a true negative. GRACE first; then, once, a two-component Beta mixture is fitted to
$x_{ij} = (1 + u_i \cdot v_j)/2$ (all rows, 100 random columns), and from there on

$$B_{ij} = P(\text{true negative} \mid x_{ij})\, x_{ij} \quad \text{of that moment, frozen},$$

$$\texttt{weight}: \ \ell_i = -\log \frac{e^{u_i \cdot v_i/\tau}}{e^{u_i \cdot v_i/\tau}
 + \sum_{j \ne i} \frac{B_{ij}}{\bar B_i} \big(e^{u_i \cdot v_j/\tau}
 + e^{u_i \cdot u_j/\tau}\big)},
\qquad
\texttt{mix}: \text{ GRACE with } \sum_{j} e^{m_{ij}/\tau} \text{ more in the denominator},$$

$m_{ij} = (B_{ij} s_{ij} + B_{ij'} s_{ij'}) / (B_{ij} + B_{ij'})$, $s = u \cdot v$, over the 1000
negatives j with the largest $B_{ij}$ and $j'$ a permutation of them, drawn anew at each step. B is
used as it is (not transposed) for view 2 and within views. Views are GCA's, by eigenvector
centrality, unless `centrality` says otherwise.

With a sampled contrast `weight` estimates its sums; $\bar B_i$ is that of all nodes. Until the
switch every step still encodes all nodes, since B is made of their rows; the mean of B over all
pairs is computed once. `mix` looks for the hardest of all nodes, and is refused.

Departs from the authors' code: B is not stored, but computed from the two tables of that moment and
a curve of 4097 points; the mixture is handled in logarithms and its components ordered by mean; the
switch comes after a share of the training (theirs: epoch 400 of 2000 to 2500).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from muxgcl.augment import Corrupt, both
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import Sample, contrast, negative_sum, taken
from muxgcl.kernels.reference import info_nce
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.centrality import adaptive_views, drop_weights
from muxgcl.methods.parts.hardness import Hardness
from muxgcl.methods.parts.of_graph import PerGraphCache, features_scaled
from muxgcl.nn.gcn import GCN, Activation
from muxgcl.nn.projector import Projector
from muxgcl.nn.readout import Readout, ReadoutConfig
from muxgcl.shapes import Nodes, PerNode, Scalar

TILE_BYTES = 32 << 20
TINY = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class ProGclConfig(ReadoutConfig):
    """Settings of ProGCL."""

    mode: Literal["weight", "mix"] = "weight"  # weigh negatives, or mix the hardest ones
    centrality: Literal["none", "degree", "pagerank", "eigenvector"] = "eigenvector"
    layers: int = 2  # of the encoder
    width: int = 128  # of the embedding; between layers it is twice that
    projection: int = 128  # width inside the projector
    projection_out: int | None = None  # width of what is contrasted; `width` by default
    activation: Activation = "rrelu"  # of the encoder
    drop_edges: tuple[float, float] = (0.6, 0.3)  # share of edges dropped, in each view
    mask_features: tuple[float, float] = (0.2, 0.3)  # share of feature columns masked, in each view
    temperature: float = 0.2  # of the contrast; a lower one is sharper
    warm_up: float = 0.2  # share of the training that is GRACE
    false_share: float = 0.05  # of the negatives, where the mixture's fit begins
    fit_steps: int = 10  # of expectation maximisation
    mixed: int = 1000  # how many negatives `mix` adds
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do

    def __post_init__(self) -> None:
        if self.temperature <= 0 or self.mixed < 1:
            raise UserError(
                f"temperature and mixed must be positive, got {self.temperature} and {self.mixed}"
            )
        if not (0 <= self.warm_up < 1 and 0 < self.false_share < 1):
            raise UserError(
                "warm_up must be at least 0 and below 1, false_share between 0 and 1, "
                f"got {self.warm_up} and {self.false_share}"
            )


class ProGcl(Method):
    """Push hard the negatives that are near, but only if they are likely to be true ones."""

    name: ClassVar = "progcl"
    paper: ClassVar = "Xia et al. 2022, https://arxiv.org/abs/2110.02027"
    cost: ClassVar = "quadratic"
    samples: ClassVar = True
    Config: ClassVar = ProGclConfig

    @classmethod
    def check_sample(cls, cfg: ProGclConfig) -> None:
        """Refuse `mix`, which looks for the hardest of all nodes."""
        if cfg.mode == "mix":
            raise UserError("progcl with mode mix has no sampled contrast; mode weight has one")

    def __init__(self, graph: Graph, cfg: ProGclConfig, context: Context) -> None:
        super().__init__()
        self.cfg, self.context = cfg, context
        if context.sampling:
            self.check_sample(cfg)
        self.milestones = (max(1, round(cfg.warm_up * context.epochs)),)  # epochs of GRACE
        self.capturable = cfg.mode == "weight"  # `mix` finds its hardest negatives on the way
        self.scaled = features_scaled(cfg.row_normalize)
        self.rates = [Corrupt(*p) for p in zip(cfg.drop_edges, cfg.mask_features, strict=True)]
        self.drop_weights = (
            None
            if cfg.centrality == "none"
            else PerGraphCache(partial(drop_weights, kind=cfg.centrality))
        )
        self.encoder = GCN(graph.num_features, cfg.width, layers=cfg.layers, act=cfg.activation)
        self.readout = Readout.of(cfg, last=cfg.layers)
        self.projector = Projector(cfg.width, cfg.projection, cfg.projection_out)
        self.hardness = Hardness(graph.num_nodes, cfg.projection_out or cfg.width)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """GRACE before the switch, hardness-aware after it."""
        sample = self.context.sample(graph)
        if self.hardness.known:
            return {"contrast": self.contrast(self._encode(graph, sample), sample)}
        unit = self._encode(graph)  # of all nodes: B is made of them
        self.hardness.remember(*unit.chunk(2))
        return {"contrast": self.contrast(taken(unit, sample), sample)}

    def reach(self, milestone: int) -> None:
        """At the switch, freeze the hardness that the last step's similarities show."""
        self.hardness.fit(self.cfg.false_share, self.cfg.fit_steps)

    def contrast(self, unit: Nodes, sample: Sample | None = None) -> Scalar:
        """The mean loss of both views' unit rows, stacked; of a sample's nodes, if there is one."""
        t, n = self.cfg.temperature, len(unit) // 2
        how: dict[str, Any] = {"nodes": n, "backend": self.context.backend, "sample": sample}
        if not self.hardness.known:
            return contrast(unit, unit, temperature=t, **how)
        weigh = self.cfg.mode == "weight"
        weight, mean = self.hardness.of(sample)
        negatives = negative_sum(unit, unit, weight if weigh else None, temperature=t, **how)
        twin = unit.roll(n, 0)  # the same nodes in the other view
        if sample is not None:
            unit, twin, mean = (sample.take_own(rows) for rows in (unit, twin, mean))
        if weigh:
            negatives = negatives / mean.flatten().repeat(2)
        else:
            one, two = unit.chunk(2)
            negatives = negatives + torch.cat([self._mixed(one, two), self._mixed(two, one)])
        return info_nce(unit, twin, negatives, temperature=t).mean()

    def _mixed(self, one: Nodes, two: Nodes) -> PerNode:
        """The sum over synthesised negatives, in blocks of rows that backward computes again."""
        columns, hardness = self.hardness.hardest(self.cfg.mixed)
        order = torch.rand(columns.shape[1], device=one.device).argsort()
        size = max(1, TILE_BYTES // (4 * len(two)))
        block = partial(mixed_sum, keys=two, order=order, temperature=self.cfg.temperature)
        again = partial(checkpoint, block, use_reentrant=False, preserve_rng_state=False)
        parts = zip(one.split(size), columns.split(size), hardness.split(size), strict=True)
        return torch.cat([again(*part) for part in parts])

    def _encode(self, graph: Graph, sample: Sample | None = None) -> Nodes:
        scaled = self.scaled(graph)
        if self.drop_weights is None:
            views = both(scaled, self.rates)
        else:
            views = adaptive_views(scaled, self.drop_weights(graph), self.rates)
        (nodes,) = self.encoder(views, (), sample).values()
        return self.projector(nodes)


def mixed_sum(
    anchor: Nodes,
    columns: Int[Tensor, "n s"],
    hardness: Float[Tensor, "n s"],
    keys: Float[Tensor, "m d"],
    order: Int[Tensor, " s"],
    temperature: float,
) -> PerNode:
    """Sum of exp((m - 1) / t) over mixtures m of two of the anchor's hardest similarities."""
    cosine = (anchor @ keys.T).gather(1, columns.long())  # [n, s]
    other = hardness[:, order]
    mixed = (hardness * cosine + other * cosine[:, order]) / (hardness + other + TINY)
    return ((mixed - 1) / temperature).exp().sum(1)
