r"""BLNN, latents of nodes and neighbours: Liu et al. 2024, <https://arxiv.org/abs/2408.05087>.

BGRL (`bgrl.py`: online encoder and predictor, a target that follows as a moving average, the same
schedules) whose nodes also predict their neighbours' targets, each neighbour by how similar the
targets are. With predictions $q_1, q_2$ and targets $y_1, y_2$ of the two views, all unit rows, and
the edges (s, t) of the whole graph:

$$\mathcal L = 2 - \frac1N\sum_i \big(\langle q_{1i}, y_{2i}\rangle
    + \langle q_{2i}, y_{1i}\rangle\big)
    - \frac1N \sum_{(s,t)} a_{st} \big(\langle q_{1s}, y_{2t}\rangle
    + \langle q_{2s}, y_{1t}\rangle\big)$$
$$a_{st} = \frac{e^{\langle y_{1s}, y_{2t}\rangle/\tau}}
    {\sum_{r \sim t} e^{\langle y_{1r}, y_{2t}\rangle/\tau}}$$

The weights of a target's neighbours sum to 1; both come from targets, and carry no gradient.

`second = "released"` is what the authors' code does: it overwrites $q_2$ by $q_1$, so that view 2
gives the online network no gradient and only moves the statistics of its batch normalisation.
The presets with their settings have it; `"paper"` is the formula above. Departs from their code as
BGRL does: the warm-up is a share of the training.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from muxgcl.errors import UserError
from muxgcl.graph import Adjacency, Graph
from muxgcl.methods.base import Context, Method
from muxgcl.methods.bgrl import Bgrl, BgrlConfig
from muxgcl.methods.parts.edge_sums import edge_dot, row_sum
from muxgcl.nn.adam import Adam
from muxgcl.nn.projector import unit_rows
from muxgcl.shapes import Nodes, Scalar
from muxgcl.sparse import SparseMatrix

LOWEST_TEMPERATURE = 0.03  # below it exponentials of a cosine leave the range of 32 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class BlnnConfig:
    """Settings of BLNN; all but the last two are BGRL's."""

    widths: tuple[int, ...] = (256, 128)  # of the layers; the last is that of the embedding
    predictor: int = 512  # width inside the predictor
    drop_edges: tuple[float, float] = (0.3, 0.3)  # share of edges dropped, in each view
    mask_features: tuple[float, float] = (0.2, 0.2)  # share of feature columns masked, in each view
    momentum: float = 0.99  # of the target at the first step; 1 at the last
    warm_up: float = 0.1  # share of the training in which the learning rate rises
    batch_norm_momentum: float = 0.01  # of its running statistics, as torch counts it
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do
    temperature: float = 1.0  # tau
    second: Literal["paper", "released"] = "paper"  # what view 2 predicts with

    def __post_init__(self) -> None:
        if self.temperature < LOWEST_TEMPERATURE:
            raise UserError(
                f"temperature must be at least {LOWEST_TEMPERATURE}, got {self.temperature}"
            )
        if self.second not in ("paper", "released"):
            raise UserError(f"second must be paper or released, got {self.second!r}")


class Blnn(Method):
    """Predict the other view's nodes and their likeliest neighbours, as in BGRL."""

    name: ClassVar = "blnn"
    paper: ClassVar = "Liu et al. 2024, https://arxiv.org/abs/2408.05087"
    cost: ClassVar = "linear"
    Config: ClassVar = BlnnConfig

    def __init__(self, graph: Graph, cfg: BlnnConfig, context: Context) -> None:
        super().__init__()
        self.cfg = cfg
        shared = {name: getattr(cfg, name) for name in BgrlConfig.__dataclass_fields__}
        self.bgrl = Bgrl(graph, BgrlConfig(**shared), context)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Each view predicts the other's nodes, and their neighbours."""
        bgrl = self.bgrl
        one, two = (view(bgrl.scaled(graph)) for view in bgrl.views)
        with torch.no_grad():
            y_one, y_two = (unit_rows(bgrl.target(view)) for view in (one, two))
            weights = attention(y_one, y_two, graph.adjacency, self.cfg.temperature)
        q_one = q_two = unit_rows(bgrl.predictor(bgrl.encoder(one)))
        if self.cfg.second == "paper":
            q_two = unit_rows(bgrl.predictor(bgrl.encoder(two)))
        else:
            with torch.no_grad():
                bgrl.encoder(two)
        pairs = (q_one, y_two), (q_two, y_one)
        own = [(q * y).sum() / len(q) for q, y in pairs]
        near = [((weights @ q) * y).sum() / len(q) for q, y in pairs]
        return {"nodes": 2 - own[0] - own[1], "neighbours": -near[0] - near[1]}

    def embed(self, graph: Graph) -> Nodes:
        """The online encoder's output."""
        return self.bgrl.embed(graph)

    def optimizer(self, lr: float, weight_decay: float) -> Adam:
        """AdamW with warm-up and cosine decay, over what is not the target."""
        return self.bgrl.optimizer(lr, weight_decay)

    def after_step(self) -> None:
        """Let the target follow, then go on in the schedule."""
        self.bgrl.after_step()


def attention(one: Nodes, two: Nodes, adjacency: Adjacency, temperature: float) -> SparseMatrix:
    """Row t holds the weights of t's neighbours s, by row s of `one` and row t of `two`."""
    score = ((edge_dot(two, one, adjacency) - 1) / temperature).exp() * ~adjacency.loop
    total = row_sum(score, adjacency).clamp(min=torch.finfo(score.dtype).tiny)
    return adjacency.matrix(score / total[adjacency.row])
