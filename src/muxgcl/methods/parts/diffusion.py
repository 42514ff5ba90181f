r"""Personalised PageRank between all nodes, kept where it is large.

$$S = \alpha\,(I - (1 - \alpha) \hat A)^{-1}$$

is found for a block of columns at a time by Chebyshev's semi-iteration on
$x = (1 - \alpha) \hat A x + \alpha e$. Its error falls as $1 / T_k(1 / (1 - \alpha))$: for
$\alpha = 0.2$ it halves at every step, where plain iteration keeps four fifths. S is symmetric, so
a block of columns is also a block of rows, of which each keeps its largest entries. Memory is that
of one block; there is no N x N matrix.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.sparse import SparseMatrix

ERROR = 1e-6  # of an entry, in relation to the solution's length
BLOCK_BYTES = 8 << 20  # of one block of columns: near the size of a cache
GPU_BLOCK_BYTES = 256 << 20  # enough columns to fill a GPU


def diffusion(
    graph: Graph,
    alpha: float,
    *,
    neighbours: int,
    threshold: float = 0.0,
    scale_columns: bool = False,
) -> SparseMatrix:
    """Personalised PageRank with the `neighbours` largest entries of each row.

    Args:
        graph: whose normalised adjacency is diffused.
        alpha: probability of returning to the start; 1 gives the identity.
        neighbours: how many entries a row keeps at most.
        threshold: smaller entries are dropped.
        scale_columns: divide each column by its largest entry.
    """
    if not 0 < alpha <= 1:
        raise UserError(f"alpha must be above 0 and at most 1, got {alpha}")
    if neighbours < 1:
        raise UserError(f"neighbours must be at least 1, got {neighbours}")
    nodes = graph.num_nodes
    budget = GPU_BLOCK_BYTES if graph.device.type == "cuda" else BLOCK_BYTES
    block = max(1, budget // (4 * nodes))
    kept = [
        columns_of(graph, alpha, start, min(start + block, nodes)).T.topk(min(neighbours, nodes))
        for start in range(0, nodes, block)
    ]
    value, col = (torch.cat(parts).flatten() for parts in zip(*kept, strict=True))
    row = torch.arange(nodes, device=graph.device).repeat_interleave(len(col) // nodes)
    large = value > threshold
    row, col, value = row[large], col[large], value[large]
    if scale_columns:
        value = value / value.new_zeros(nodes).scatter_reduce_(0, col, value, "amax")[col]
    return SparseMatrix.from_entries(row, col, value, (nodes, nodes))


def columns_of(graph: Graph, alpha: float, start: int, stop: int) -> Tensor:
    """Columns `start:stop` of S, dense [n, b]."""
    spread = graph.adjacency.propagation().matrix
    radius = 1 - alpha  # of the iteration matrix (1 - alpha) A
    before = torch.zeros(graph.num_nodes, stop - start, device=graph.device)
    now = before.clone()
    now[start:stop].fill_diagonal_(alpha)
    relax = 2.0
    for _ in range(steps(alpha)):
        relax = 1 / (1 - radius**2 * relax / 4)
        after = replace(spread, value=spread.value * (relax * radius)).multiply(now)
        after.add_(before, alpha=1 - relax)
        after[start:stop].diagonal().add_(relax * alpha)
        before, now = now, after
    return now


def steps(alpha: float) -> int:
    """How many steps bring the error below `ERROR`."""
    return 0 if alpha == 1 else math.ceil(math.acosh(1 / ERROR) / math.acosh(1 / (1 - alpha)))
