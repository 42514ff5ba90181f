"""What needs no training: a method that does not beat these has learned nothing.

Both return a table for the probe, which scales rows to length one; no other scaling is done.
"""

import numpy as np
from scipy import sparse

from muxgcl.errors import UserError
from muxgcl.evaluate.arrays import Edges, Table, Weights


def raw_features(x: Table) -> Table:
    """The features themselves, as a sparse matrix where most entries are zero."""
    if sparse.issparse(x):
        return sparse.csr_array(x)
    x = np.asarray(x)
    return sparse.csr_array(x) if np.count_nonzero(x) < x.size / 4 else x


def propagated_features(
    x: Table, edge_index: Edges, weight: Weights | None = None, *, steps: int = 2
) -> Table:
    r"""Features averaged over the neighbourhood `steps` times: $\hat{A}^{steps} X$, no training.

    $\hat{A} = D^{-1/2} (A + I) D^{-1/2}$ over the distinct edges, as in SGC: Wu et al. 2019,
    <https://arxiv.org/abs/1902.07153>, eq. 8. An edge listed twice counts once, with its largest
    weight; a node's loop weighs 1. Sparse features stay sparse.
    """
    n = x.shape[0]
    source, target = np.asarray(edge_index)
    if (
        source.size
        and not 0 <= min(source.min(), target.min()) <= max(source.max(), target.max()) < n
    ):
        raise UserError(f"expected edges between nodes 0 and {n - 1}, got one outside")
    weight = np.ones(len(source)) if weight is None else np.asarray(weight)
    apart, loops = source != target, np.arange(n)
    rows, columns = np.append(target[apart], loops), np.append(source[apart], loops)
    value = np.append(weight[apart], np.ones(n))
    place = rows.astype(np.int64) * n + columns
    order = np.lexsort((value, place))
    last = order[np.append(np.diff(place[order]) > 0, True)]  # the heaviest of each place
    adjacency = sparse.csr_array((value[last], (rows[last], columns[last])), shape=(n, n))
    scale = sparse.diags_array(adjacency.sum(1) ** -0.5)
    step = sparse.csr_array(scale @ adjacency @ scale).astype(np.float32)
    x = sparse.csr_array(x, dtype=np.float32) if sparse.issparse(x) else np.asarray(x, np.float32)
    for _ in range(steps):
        x = step @ x
    return x
