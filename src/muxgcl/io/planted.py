"""A generated graph whose classes show both in its edges and in its features."""

from typing import TYPE_CHECKING

import numpy as np
import torch

from muxgcl.errors import UserError
from muxgcl.tensors import Tensors, both_ways

if TYPE_CHECKING:
    from torch_geometric.data import Data


def planted(
    nodes: int = 120,
    classes: int = 3,
    features: int = 48,
    seed: int = 0,
    *,
    degree: int = 6,
    homophily: float = 0.85,
    isolated: int = 0,
    featureless: int = 0,
) -> "Data":
    """A planted-partition graph with binary features, the same for the same seed everywhere.

    Node i is of class `i % classes`. Every node draws `degree / 2` partners, each of its own class
    with probability `homophily`, else any other node. A word belongs to one class, whose nodes
    use it six times as often as the others do.

    Args:
        nodes: how many nodes, the isolated ones included.
        classes: how many classes, of equal size up to one node.
        features: how many words.
        seed: the one source of chance.
        degree: average number of neighbours, up to repeated draws; at least 2.
        homophily: share of partners drawn from the node's own class.
        isolated: this many nodes, the last ones, have no edge.
        featureless: this many nodes, the first ones, have no word.

    Example:
        >>> planted(nodes=30, classes=2, features=16, isolated=1)
        Data(x=[30, 16], edge_index=[2, 154], y=[30], name='planted')
    """
    linked = nodes - isolated
    if classes < 1 or degree < 2 or linked < 2 * classes:
        raise UserError(
            "a planted graph needs a class, degree 2 and two linked nodes a class, got "
            f"classes={classes}, degree={degree}, nodes={nodes}, isolated={isolated}"
        )
    chance = np.random.default_rng(seed)
    y = np.arange(nodes) % classes

    node = np.repeat(np.arange(linked), degree // 2)
    size = (linked - y[node] + classes - 1) // classes  # linked nodes in the class of `node`
    akin = (node // classes + chance.integers(1, size)) % size * classes + y[node]
    other = (node + chance.integers(1, linked, len(node))) % linked
    partner = np.where(chance.random(len(node)) < homophily, akin, other)
    edge_index = torch.from_numpy(np.stack([node, partner]))

    owner = np.arange(features) % classes
    often = np.where(y[:, None] == owner, 0.3, 0.05)  # [nodes, features]
    x = (chance.random((nodes, features)) < often).astype(np.float32)
    x[:featureless] = 0
    return Tensors(
        x=torch.from_numpy(x),
        edge_index=both_ways(edge_index, nodes),
        y=torch.from_numpy(y),
        name="planted",
    ).to_pyg()
