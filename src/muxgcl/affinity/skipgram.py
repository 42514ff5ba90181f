r"""Skip-gram with negative sampling over walks: nodes that walks meet close by lie close together.

$$\mathcal L = -\,\mathbb E_{(i, j)} \log \sigma(z_i \cdot z_j)
               - \kappa\, \mathbb E_i\, \mathbb E_{m} \log \sigma(-z_i \cdot z_m)$$

over pairs (i, j) of different nodes at most `context` - 1 steps apart in a walk, and nodes m drawn
uniformly from those that have a neighbour; $\kappa$ is the number of negatives a pair has.

Papers: Perozzi et al. 2014, <https://arxiv.org/abs/1403.6652>; Grover and Leskovec 2016,
<https://arxiv.org/abs/1607.00653>. Departs from them: one table serves as both word and context,
so that the cosine of two rows is what was trained; every pair of a walk is scored by one product of
its rows, and a whole batch shares its negatives, so a step is two products instead of thousands of
lookups; Adam with a falling rate on a few hundred batches.
"""

from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.functional import softplus

from muxgcl.affinity.pick import pick
from muxgcl.affinity.walks import WalkGraph, Walks, walks
from muxgcl.graph import Graph
from muxgcl.kernels.capture import repeat
from muxgcl.nn.adam import Adam
from muxgcl.shapes import Nodes, Scalar

SHARED_NEGATIVES = 64  # nodes that one batch is pushed away from
BATCH, MOST_BATCHES = 512, 16  # walks a step at least, and steps a round at most
PIECE = 2048  # walks of a step that a CPU looks at together: memory does not grow with the batch
SPREAD = 0.1  # of the first table: near 0, where all pairs are equally likely


class SkipGram(nn.Module):
    """One table, a row per node.

    Args:
        nodes: how many nodes there are.
        width: of the table.
        context: nodes closer than this in a walk are a pair.
        negatives: how much the negatives of a pair weigh together.
    """

    def __init__(
        self, nodes: int, width: int = 128, *, context: int = 10, negatives: float = 1.0
    ) -> None:
        super().__init__()
        self.table = nn.Parameter(SPREAD * torch.randn(nodes, width))
        self.context, self.negatives = context, negatives

    def loss(self, walked: Walks, others: Int[Tensor, " m"]) -> Scalar:
        """The objective on a batch of walks.

        Args:
            walked: walks that start at random nodes.
            others: the negatives that these walks share.
        """
        whole, pairs = self._sums(self.table, walked, others)
        return whole / pairs.clamp(min=1)

    def gradient(self, walked: Walks, others: Int[Tensor, " m"]) -> None:
        """Leave the gradient of `loss` in the table's, from some walks at a time."""
        if len(walked) <= PIECE:
            self.loss(walked, others).backward()
            return
        found = torch.zeros_like(self.table)
        count = torch.zeros((), dtype=torch.long, device=walked.device)
        for piece in walked.split(PIECE):
            nodes, place = torch.cat([piece.flatten(), others]).unique(return_inverse=True)
            met, drawn = place.split([piece.numel(), len(others)])
            rows = self.table.detach()[nodes].requires_grad_()
            whole, pairs = self._sums(rows, met.view_as(piece), drawn)
            found[nodes] += torch.autograd.grad(whole, rows)[0]
            count += pairs
        self.table.grad = found.div_(count.clamp(min=1))

    def _sums(
        self, table: Nodes, walked: Walks, others: Int[Tensor, " m"]
    ) -> tuple[Scalar, Int[Tensor, ""]]:
        """The objective of these rows of the table before it is divided, and its pairs."""
        rows = pick(table, walked)  # [w, t, d]
        time = torch.arange(walked.shape[1], device=walked.device)
        near = (time[:, None] - time).abs() < self.context  # [t, t]
        pair = near & (walked[:, :, None] != walked[:, None, :])  # [w, t, t]
        pairs = pair.sum(2)  # [w, t]
        score = rows @ rows.mT
        pull = (softplus(score) - score) * pair  # -log sigmoid(score)
        push = softplus(rows @ pick(table, others).T).mean(2) * pairs
        return pull.sum() + self.negatives * push.sum(), pairs.sum()


def skip_gram(
    graph: Graph,
    *,
    width: int,
    epochs: int,
    lr: float,
    length: int,
    context: int,
    walks_per_node: int,
    negatives: float,
    p: float = 1.0,
    q: float = 1.0,
    on_step: Callable[[int, int], None] | None = None,
) -> Nodes:
    """Train a table on walks from every node; a node without neighbours gets a zero row."""
    walk_graph = WalkGraph.of(graph.adjacency)
    linked = walk_graph.linked
    if not len(linked):
        return graph.adjacency.weight.new_zeros(graph.num_nodes, width)
    model = SkipGram(graph.num_nodes, width, context=context, negatives=negatives).to(graph.device)
    rate = torch.tensor(lr, device=graph.device)
    optimizer = Adam(model.parameters(), rate)
    rounds = epochs * walks_per_node
    batches = min(MOST_BATCHES, -(-len(linked) // BATCH))
    static = graph.device.type == "cuda" and walk_graph.at_once(p, q) is not None

    def one_round() -> None:
        """One walk from every node."""
        starts = linked[torch.rand(len(linked), device=linked.device).argsort()]
        met = walks(walk_graph, starts, length, p, q, static=static)
        for walked in met.tensor_split(batches):
            drawn = torch.randint(len(linked), (SHARED_NEGATIVES,), device=linked.device)
            optimizer.zero_grad()
            if graph.device.type == "cpu":
                model.gradient(walked, linked[drawn])
            else:  # all at once: what is captured has static shapes
                model.loss(walked, linked[drawn]).backward()
            optimizer.step()
            rate.sub_(lr / (rounds * batches))

    def after(done: int) -> None:
        if on_step is not None:
            on_step(done * batches, rounds * batches)

    repeat(one_round, rounds, graph.device, after, capture=static)
    return model.table.detach() * (walk_graph.degree > 0)[:, None]
