"""Which node is which: one graph stored twice, its nodes in another order."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.tensors import Tensors

Colour = NDArray[np.uint64]  # equal colour: not (yet) told apart; arithmetic wraps at 2^64


def same_nodes(one: Tensors, two: Tensors) -> Tensor:
    """Find `order` such that node i of `one` is node `order[i]` of `two`.

    Nodes are coloured by features and label, then by their neighbours' colours, both graphs side
    by side, until no colour splits further (colour refinement). Nodes still alike, such as two
    papers with the same words and citations, are paired one by one. Only which features are not
    zero counts.
    """
    n = one.num_nodes
    if (n, one.num_edges, one.num_features) != (two.num_nodes, two.num_edges, two.num_features):
        raise UserError(f"not the same graph: {one} and {two}")
    edges = torch.cat([one.edge_index, two.edge_index + n], 1).numpy()  # [2, 2e]
    colour = _refine(_first_colour(torch.cat([one.x, two.x]), torch.cat([one.y, two.y])), edges)
    while True:
        first, second = (np.argsort(side, kind="stable") for side in (colour[:n], colour[n:]))
        ranked = colour[:n][first]
        if not np.array_equal(ranked, colour[n:][second]):
            raise UserError("not the same graph: its nodes cannot be matched one to one")
        alike = np.flatnonzero(ranked[1:] == ranked[:-1])
        if not len(alike):
            break
        colour[[first[alike[0]], n + second[alike[0]]]] += np.uint64(1)  # pair these two
        colour = _refine(colour, edges)
    order = np.empty(n, dtype=np.int64)
    order[first] = second
    return torch.from_numpy(order)


def _first_colour(x: Tensor, y: Tensor) -> Colour:
    weights = np.random.default_rng(0).integers(2**63, size=x.shape[1] + 1, dtype=np.uint64)
    described = torch.cat([x != 0, y[:, None]], 1).numpy().astype(np.uint64)
    return described @ weights


def _refine(colour: Colour, edges: NDArray[np.int64]) -> Colour:
    """Mix in the neighbours' colours until the number of colours no longer grows."""
    count = 0
    while (now := len(np.unique(colour))) > count:
        count = now
        around = np.zeros_like(colour)
        np.add.at(around, edges[0], _mix(colour)[edges[1]])
        colour = _mix(colour + _mix(around))
    return colour


def _mix(colour: Colour) -> Colour:
    """A fixed scrambling of 64 bits, so that sums of colours do not collide."""
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (29, 0xC4CEB9FE1A85EC53)):
        colour = (colour ^ (colour >> np.uint64(shift))) * np.uint64(factor)
    return colour ^ (colour >> np.uint64(32))
