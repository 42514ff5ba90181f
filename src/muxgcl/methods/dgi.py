r"""DGI, Deep Graph Infomax: Veličković et al. 2019, <https://arxiv.org/abs/1809.10341>.

One graph convolution encodes the graph, and once more the same graph with its rows of features
shuffled. A bilinear discriminator is asked which node belongs to the summary of the real graph
(`losses/infomax.py`).

$$H = \mathrm{PReLU}(\hat A X W + b), \qquad \tilde H = \mathrm{PReLU}(\hat A P X W + b)$$

Departs from the authors' code: training has a fixed length (theirs stops once the training loss has
not fallen for 20 epochs and goes back to the lowest); shuffling rows of X is shuffling rows of X W,
so the features are multiplied once.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from muxgcl.augment import View, clean
from muxgcl.graph import Graph
from muxgcl.losses.infomax import Discriminator, infomax
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.of_graph import features_scaled
from muxgcl.nn.gcn import GCN, Activation
from muxgcl.shapes import NodeIndex, Nodes, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class DgiConfig:
    """Settings of DGI."""

    width: int = 512  # of the embedding
    activation: Activation = "prelu"  # of the encoder
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do


class Dgi(Method):
    """Tell the nodes of the graph from those of a graph with shuffled features."""

    name: ClassVar = "dgi"
    paper: ClassVar = "Veličković et al. 2019, https://arxiv.org/abs/1809.10341"
    cost: ClassVar = "linear"
    Config: ClassVar = DgiConfig

    def __init__(self, graph: Graph, cfg: DgiConfig, context: Context) -> None:
        super().__init__()
        self.scaled = features_scaled(cfg.row_normalize)
        self.encoder = GCN(graph.num_features, cfg.width, layers=1, act=cfg.activation)
        self.discriminator = Discriminator(cfg.width)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """The discriminator's cross entropy on real and shuffled nodes."""
        view = clean(self.scaled(graph))
        real, shuffled = real_and_shuffled(self.encoder, view, shuffle(graph))
        logits = (self.discriminator(nodes, of=real) for nodes in (real, shuffled))
        return {"infomax": infomax(*logits)}


def shuffle(graph: Graph) -> NodeIndex:
    """A random order of the nodes, drawn without waiting for the device."""
    return torch.rand(graph.num_nodes, device=graph.device).argsort()


def real_and_shuffled(encoder: GCN, view: View, order: NodeIndex) -> tuple[Nodes, Nodes]:
    """One convolution over the features as they are and over their rows in another order."""
    mixed = view.project(encoder.weights[0])
    real, shuffled = (view.propagation @ rows + encoder.biases[0] for rows in (mixed, mixed[order]))
    return encoder.act(real), encoder.act(shuffled)
