"""From where nodes lie to where patches lie: pool a table over each node's k-hop surroundings.

Every neighbour counts once, whatever its edge weighs.
"""

from typing import Literal, get_args

import numpy as np
import torch
from scipy.sparse import csr_array, identity
from torch.nn.functional import normalize

from muxgcl.errors import UserError
from muxgcl.graph import Adjacency
from muxgcl.shapes import Nodes

Pooling = Literal["mean", "residual", "ego"]
BLOCK_ENTRIES = 2**24  # of the k-hop sets held at a time: a few hundred MiB at most


def pool(nodes: Nodes, adjacency: Adjacency, layers: int, pooling: Pooling) -> list[Nodes]:
    r"""Unit rows of the patches at scales 0 to `layers`; a zero row stays zero.

    With $S_i$ the node itself and its neighbours, and $D_i$ the number of neighbours:

    - `mean`: $h_i^{(k)} = \frac1{D_i + 1} \sum_{j \in S_i} h_j^{(k-1)}$.
    - `residual`: $h_i^{(k)} = \frac1{D_i + 1} \sum_{j \in S_i, j \ne i} h_j^{(k-1)} + h_i^{(0)}$,
      as the authors' code does.
    - `ego`: the average of $h_j^{(0)}$ over all nodes at most k steps away.
    """
    if pooling == "ego":
        scales = [nodes, *_ego(nodes, adjacency, layers)]
    elif pooling in get_args(Pooling):
        scales = [nodes]
        size = adjacency.rowptr.diff()[:, None]  # D + 1
        value = torch.ones_like(adjacency.weight)
        if pooling == "residual":
            value = value.masked_fill(adjacency.loop, 0)
        around = adjacency.csr(value)
        for _ in range(layers):
            pooled = around.multiply(scales[-1]) / size
            scales.append(pooled + nodes if pooling == "residual" else pooled)
    else:
        raise UserError(f"pooling must be one of {', '.join(get_args(Pooling))}, got {pooling!r}")
    return [normalize(scale) for scale in scales]


def _ego(nodes: Nodes, adjacency: Adjacency, layers: int) -> list[Nodes]:
    """Averages over the exact k-hop sets, for a block of nodes at a time."""
    n, table = adjacency.nodes, nodes.cpu().numpy()
    col, rowptr = adjacency.col.cpu().numpy(), adjacency.rowptr.cpu().numpy()
    hop = csr_array((np.ones(len(col), table.dtype), col, rowptr), (n, n))  # the node itself too
    itself = csr_array(identity(n, table.dtype, "csr"))
    pooled = np.empty((layers, *table.shape), table.dtype)
    rows = max(1, BLOCK_ENTRIES // n)
    for start in range(0, n, rows):
        block = slice(start, start + rows)
        reached = itself[block]
        for k in range(layers):
            reached = reached @ hop
            reached.data[:] = 1  # a set: how many ways lead to a node does not matter
            pooled[k, block] = (reached @ table) / np.diff(reached.indptr)[:, None]
    return list(torch.from_numpy(pooled).to(nodes))
