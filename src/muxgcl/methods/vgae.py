r"""VGAE, the variational graph auto-encoder: Kipf and Welling 2016, <https://arxiv.org/abs/1611.07308>.

GAE with a mean and a spread for each node: training sees a sample, and a divergence keeps the
distribution near a standard one:

$$\mathcal L = \mathcal L_{GAE}(\mu + \epsilon \sigma)
    + \frac1N\, \mathbb E_i\,
      \mathrm{KL}\big(\mathcal N(\mu_i, \sigma_i^2) \,\|\, \mathcal N(0, 1)\big)$$

The embedding is the mean, never a sample. Departs from the authors' code as GAE does
(`methods/gae.py`), and by a cap on the spread.
"""

from typing import ClassVar

from muxgcl.affinity import Vgae as AutoEncoder
from muxgcl.graph import Graph
from muxgcl.methods.base import Context, Method
from muxgcl.methods.gae import GaeConfig
from muxgcl.shapes import Nodes, Scalar


class Vgae(Method):
    """Tell the edges from a noisy embedding that stays near a standard distribution."""

    name: ClassVar = "vgae"
    paper: ClassVar = "Kipf and Welling 2016, https://arxiv.org/abs/1611.07308"
    cost: ClassVar = "linear"
    counted_as: ClassVar = "autoencoder"
    Config: ClassVar = GaeConfig

    def __init__(self, graph: Graph, cfg: GaeConfig, context: Context) -> None:
        super().__init__()
        self.model = AutoEncoder(graph.num_features, cfg.width, hidden=cfg.hidden)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Reconstruction of the edges, and divergence."""
        return self.model.loss(graph)

    def embed(self, graph: Graph) -> Nodes:
        """The mean."""
        return self.model.embed(graph)
