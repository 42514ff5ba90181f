r"""The definitions: dense, plain torch, right in float64. Every other backend answers to this file.

$$S_i = \sum_{j \not\sim i} w_{ij}\, e^{(\langle a_i, b_j\rangle - 1)/\tau}, \qquad
\ell_i = \log\!\big(e^{(\langle a_i, p_i\rangle - 1)/\tau} + S_i\big)
         - (\langle a_i, p_i\rangle - 1)/\tau$$

$j \not\sim i$: key j is not the anchor's own node. Tables of several views are stacked: row i of a
table belongs to node `i % nodes` (by default as many nodes as anchors), or the node of every anchor
and key is given. Subtracting 1, a cosine's maximum, keeps the exponential in range. `contrast` adds
up logarithms, so no temperature is too low for it.

`pair_sum` has any function of `pair_function.py` in the place of the exponential, and no weights:
$\sum_{j \not\sim i} f(\langle a_i, b_j\rangle)$.
"""

import torch
from jaxtyping import Bool
from torch import Tensor

from muxgcl.kernels.pair_function import PairFunction
from muxgcl.kernels.pair_weight import Ids, PairWeight, check_nodes
from muxgcl.shapes import Candidates, Nodes, PerNode, Scalar


def same_node(anchors: int, keys: int, nodes: Ids, device: torch.device) -> Bool[Tensor, "n m"]:
    """Which keys are the anchor's own node, in any view."""
    check_nodes(anchors, keys, nodes)
    if isinstance(nodes, tuple):
        return nodes[0][:, None] == nodes[1]
    nodes = nodes or anchors
    of_anchor = torch.arange(anchors, device=device) % nodes
    of_key = torch.arange(keys, device=device) % nodes
    return of_anchor[:, None] == of_key


def negative_sum(
    anchor: Nodes,
    keys: Candidates,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: Ids = None,
) -> PerNode:
    """Sum over the other nodes' keys of `weight * exp((cosine - 1) / temperature)`."""
    push = ((anchor @ keys.T - 1) / temperature).exp()  # [n, m]
    if weight is not None:
        push = push * weight.stacked(len(anchor), len(keys))
    own = same_node(len(anchor), len(keys), nodes, anchor.device)
    return push.masked_fill(own, 0).sum(1)


def pair_sum(
    anchor: Nodes, keys: Candidates, function: PairFunction, *, nodes: Ids = None
) -> PerNode:
    """Sum over the other nodes' keys of a function of the cosine."""
    value = function.value(anchor @ keys.T)  # [n, m]
    own = same_node(len(anchor), len(keys), nodes, anchor.device)
    return value.masked_fill(own, 0).sum(1)


def contrast(
    anchor: Nodes,
    keys: Nodes,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: int | None = None,
    extra: float = 0.0,
) -> Scalar:
    """Mean over the anchors of the InfoNCE loss with weighted negatives.

    The positive of an anchor is its own node in the next view of the keys (in the only one, where
    there is one): of two stacked views each is pulled to the other. Every negative counts
    `exp(extra)` times.
    """
    exponent = (anchor @ keys.T - 1) / temperature  # [n, m]
    if weight is not None:
        exponent = exponent + weight.stacked(len(anchor), len(keys)).log()
    own = same_node(len(anchor), len(keys), nodes, anchor.device)
    exponent = (exponent + extra).masked_fill(own, -torch.inf)
    positive = keys.roll(-(nodes or len(anchor)), 0)
    pull = ((anchor * positive).sum(1) - 1) / temperature
    return (torch.cat([pull[:, None], exponent], 1).logsumexp(1) - pull).mean()


def info_nce(anchor: Nodes, positive: Nodes, negatives: PerNode, *, temperature: float) -> PerNode:
    """The loss of each anchor, given the sum over its negatives."""
    pull = ((anchor * positive).sum(1) - 1) / temperature
    return (pull.exp() + negatives).log() - pull
