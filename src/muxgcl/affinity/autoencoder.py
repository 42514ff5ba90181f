r"""Graph auto-encoders: an embedding from which the edges can be told.

$$\mathcal L = -\,\mathbb E_{(i,j) \in E} \log \sigma(z_i \cdot z_j)
               - \mathbb E_{(i,j) \notin E} \log \sigma(-z_i \cdot z_j)
               + \frac1N\, \mathbb E_i\, \mathrm{KL}\big(\mathcal N(\mu_i, \sigma_i^2)
                 \,\|\, \mathcal N(0, 1)\big)$$

Paper: Kipf and Welling 2016, <https://arxiv.org/abs/1611.07308>. Departs from it: as many pairs
without an edge are drawn afresh each time as there are edges, instead of weighing all N x N pairs;
self-loops are no edges to be told; layers have biases.
"""

from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from muxgcl.affinity.pick import pick
from muxgcl.affinity.walks import contains
from muxgcl.augment import clean
from muxgcl.graph import Adjacency, Graph
from muxgcl.kernels.capture import repeat
from muxgcl.nn.adam import Adam
from muxgcl.nn.gcn import GCN
from muxgcl.nn.objective import total
from muxgcl.shapes import EdgeIndex, Nodes, PerEdge, Scalar
from muxgcl.sparse import entry_number

LARGEST_LOG_STD = 10.0  # keeps the noise finite


class Vgae(nn.Module):
    """A GCN of two layers; `variational` gives each node a mean and a spread (VGAE, else GAE).

    Args:
        in_features: how many features a node has.
        width: of the embedding.
        hidden: width after the first layer; twice `width` by default.
        variational: sample the embedding around its mean while training, and keep it near N(0, 1).
    """

    def __init__(
        self,
        in_features: int,
        width: int = 128,
        *,
        hidden: int | None = None,
        variational: bool = True,
    ) -> None:
        super().__init__()
        self.variational = variational
        # mean and log of the spread are the two halves of one last layer
        outputs = 2 * width if variational else width
        self.encoder = GCN(in_features, outputs, hidden=hidden or 2 * width, final_activation=False)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """How badly edges are told from pairs without an edge, and the divergence from N(0, 1)."""
        if not self.variational:
            return {"reconstruction": reconstruction(self.embed(graph), graph.adjacency)}
        mean, log_std = self.encoder.embed(clean(graph)).chunk(2, 1)
        log_std = log_std.clamp(max=LARGEST_LOG_STD)
        sample = mean + torch.randn_like(mean) * log_std.exp()
        divergence = (mean.square() + (2 * log_std).exp() - 1 - 2 * log_std).sum(1) / 2
        return {
            "reconstruction": reconstruction(sample, graph.adjacency),
            "divergence": divergence.mean() / graph.num_nodes,
        }

    def embed(self, graph: Graph) -> Nodes:
        """The mean; never a sample."""
        nodes = self.encoder.embed(clean(graph))
        return nodes.chunk(2, 1)[0] if self.variational else nodes


def reconstruction(nodes: Nodes, adjacency: Adjacency) -> Scalar:
    """Cross-entropy of edges and of as many drawn pairs, each averaged on its own."""
    edges = one_direction(adjacency)
    pairs = torch.randint_like(edges, adjacency.nodes)
    known = entry_number(adjacency.row, adjacency.col, adjacency.nodes)  # loops among them
    strangers = ~contains(known, entry_number(pairs[0], pairs[1], adjacency.nodes))
    told = logsigmoid(_score(nodes, edges))
    untold = logsigmoid(-_score(nodes, pairs)) * strangers
    return -told.sum() / max(len(told), 1) - untold.sum() / strangers.sum().clamp(min=1)


def one_direction(adjacency: Adjacency) -> EdgeIndex:
    """Each edge once. Its size follows from the shapes alone, so nothing waits for a GPU."""
    count = (len(adjacency.row) - adjacency.nodes) // 2  # neither loops nor mirror images
    upper_first = (adjacency.row >= adjacency.col).byte().argsort(stable=True)[:count]
    return torch.stack([adjacency.row[upper_first], adjacency.col[upper_first]]).long()


def _score(nodes: Nodes, pairs: Int[Tensor, "2 e"]) -> PerEdge:
    return (pick(nodes, pairs[0]) * pick(nodes, pairs[1])).sum(1)


def vgae(
    graph: Graph,
    *,
    width: int,
    epochs: int,
    lr: float,
    on_step: Callable[[int, int], None] | None = None,
) -> Nodes:
    """Train on all edges; the mean embedding."""
    model = Vgae(graph.num_features, width).to(graph.device)
    optimizer = Adam(model.parameters(), lr)

    def step() -> None:
        optimizer.zero_grad()
        total(model.loss(graph)).backward()
        optimizer.step()

    after = None if on_step is None else lambda done: on_step(done, epochs)
    repeat(step, epochs, graph.device, after)
    with torch.no_grad():
        return model.embed(graph)
