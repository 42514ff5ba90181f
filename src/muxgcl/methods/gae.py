r"""GAE, the graph auto-encoder: Kipf and Welling 2016, <https://arxiv.org/abs/1611.07308>.

A GCN of two layers whose embeddings tell edges from other pairs by their product:

$$\mathcal L = -\,\mathbb E_{(i,j) \in E} \log \sigma(z_i \cdot z_j)
               - \mathbb E_{(i,j) \notin E} \log \sigma(-z_i \cdot z_j)$$

Departs from the authors' code: as many pairs without an edge are drawn at each step as there are
edges (theirs weighs all N x N pairs, loops among the edges); layers have biases; all edges that a
run is given are trained on.
"""

from dataclasses import dataclass
from typing import ClassVar

from muxgcl.affinity import Vgae as AutoEncoder
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.methods.base import Context, Method
from muxgcl.shapes import Nodes, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class GaeConfig:
    """Settings of GAE and VGAE."""

    width: int = 128  # of the embedding
    hidden: int = 256  # width after the first layer

    def __post_init__(self) -> None:
        if self.width < 1 or self.hidden < 1:
            raise UserError(
                f"width and hidden must be at least 1, got {self.width} and {self.hidden}"
            )


class Gae(Method):
    """Tell the edges from the embedding."""

    name: ClassVar = "gae"
    paper: ClassVar = "Kipf and Welling 2016, https://arxiv.org/abs/1611.07308"
    cost: ClassVar = "linear"
    counted_as: ClassVar = "autoencoder"
    Config: ClassVar = GaeConfig

    def __init__(self, graph: Graph, cfg: GaeConfig, context: Context) -> None:
        super().__init__()
        self.model = AutoEncoder(
            graph.num_features, cfg.width, hidden=cfg.hidden, variational=False
        )

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """How badly edges are told apart from pairs without an edge."""
        return self.model.loss(graph)

    def embed(self, graph: Graph) -> Nodes:
        """The second layer's output."""
        return self.model.embed(graph)
