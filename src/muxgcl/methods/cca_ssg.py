r"""CCA-SSG, canonical correlation of views: Zhang et al. 2021, <https://arxiv.org/abs/2106.12484>.

Two views, one encoder without a projector. Each column should say the same in both views, and the
columns of a view should say different things (`losses/decorrelation.py`). There are no negatives:
time is O(N d^2) and memory O(N d + d^2).

$$\mathcal L = -\operatorname{tr} C + \lambda\big(\|I - C_1\|_F^2 + \|I - C_2\|_F^2\big), \qquad
C = \frac1N Z_1^\top Z_2, \quad C_v = \frac1N Z_v^\top Z_v$$

The embedding is the encoder's output on the whole graph, not standardised. Departs from the
authors' code: a dead column is divided by 1e-6 instead of 0 (theirs then has no finite loss), and
the graph is undirected without repeated edges. A view, in which an edge may be left in one
direction alone, divides it by the roots of what both its ends receive; theirs (DGL) takes what the
source sends and the target receives.
"""

from dataclasses import dataclass
from typing import ClassVar

from muxgcl.augment import Corrupt, both
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.losses.decorrelation import canonical_correlation
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.of_graph import features_scaled
from muxgcl.nn.gcn import GCN, Activation
from muxgcl.nn.readout import Readout, ReadoutConfig
from muxgcl.shapes import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class CcaSsgConfig(ReadoutConfig):
    """Settings of CCA-SSG; both views are drawn at the same rates."""

    layers: int = 2  # of the encoder
    width: int = 512  # of the embedding and between layers
    activation: Activation = "relu"  # between layers
    drop_edges: float = 0.4  # share of edges dropped, in each view
    mask_features: float = 0.1  # share of feature columns masked, in each view
    decorrelation: float = 1e-3  # lambda
    row_normalize: bool = False  # divide each row of features by its sum

    def __post_init__(self) -> None:
        if self.decorrelation < 0:
            raise UserError(f"decorrelation must not be negative, got {self.decorrelation}")


class CcaSsg(Method):
    """Correlate each column across two views, and no two columns within one."""

    name: ClassVar = "cca-ssg"
    paper: ClassVar = "Zhang et al. 2021, https://arxiv.org/abs/2106.12484"
    cost: ClassVar = "linear"
    Config: ClassVar = CcaSsgConfig

    def __init__(self, graph: Graph, cfg: CcaSsgConfig, context: Context) -> None:
        super().__init__()
        self.scaled = features_scaled(cfg.row_normalize)
        self.rates = Corrupt(cfg.drop_edges, cfg.mask_features)
        self.encoder = GCN(
            graph.num_features,
            cfg.width,
            layers=cfg.layers,
            hidden=cfg.width,
            act=cfg.activation,
            final_activation=False,
        )
        self.readout = Readout.of(cfg, last=cfg.layers)
        self.decorrelation = cfg.decorrelation

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """How little the views agree, and how much columns repeat each other."""
        views = both(self.scaled(graph), [self.rates, self.rates])
        one, two = self.encoder.embed(views).chunk(2)
        agreement, repetition = canonical_correlation(one, two)
        return {"agreement": agreement, "repetition": self.decorrelation * repetition}
