r"""Personalised PageRank between all nodes, kept where it is large.

$$S = \alpha\,(I - (1 - \alpha) \hat A)^{-1}$$

is found for a block of columns at a time by Chebyshev's semi-iteration on
$x = (1 - \alpha) \hat A x + \alpha e$. Its error falls as $1 / T_k(1 / (1 - \alpha))$: for
$\alpha = 0.2$ it halves at every step, where plain iteration keeps four fifths. S is symmetric, so
a block of columns is also a block of rows, of which each keeps its largest entries. Memory is that
of one block; there is no N x N matrix.
"""

import math

import torch
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.sparse import SparseMatrix

ERROR = 1e-6  # of an entry, in relation to the solution's length
BLOCK_BYTES = 64 << 20  # of one block of columns


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
    block = max(1, BLOCK_BYTES // (4 * nodes))
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
    source = torch.zeros(graph.num_nodes, stop - start, device=graph.device)
    source[start:stop].fill_diagonal_(alpha)
    before, now, relax = torch.zeros_like(source), source, 2.0
    for _ in range(steps(alpha)):
        relax = 1 / (1 - radius**2 * relax / 4)
        after = before + relax * (radius * spread.multiply(now) + source - before)
        before, now = now, after
    return now


def steps(alpha: float) -> int:
    """How many steps bring the error below `ERROR`."""
    return 0 if alpha == 1 else math.ceil(math.acosh(1 / ERROR) / math.acosh(1 / (1 - alpha)))
