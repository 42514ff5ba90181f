r"""Only what some rows depend on: each layer at the nodes that the next one looks at.

Row i of layer k is $(\hat A U^{(k-1)})_i W_k$, so the rows $R_L$ that are wanted need the rows
$R_{L-1}$ = their neighbours (by edges that were not dropped) of the layer below, and so on down to
$R_0$. The rows come out as they would from the whole graph, unless a `fanout` is given: then a row
looks at no more than so many of its $d$ neighbours, drawn afresh, and each of those weighs $d$ over
their number. The mean over draws is the row of the whole graph.

How many rows that are changes from step to step, so such a step cannot be captured. A CPU gains by
it always; a GPU where the whole graph's tables would be large.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from muxgcl.augment import View
from muxgcl.sparse import Csr, SparseMatrix, compress, index_dtype, row_pointer

Rows = Int[Tensor, " n"]
Entries = Int[Tensor, " e"]
WHOLE = 2**30  # numbers in the tables of all nodes, up to which a GPU computes them all
BLOCK = 2**26  # numbers in the tables of a block of rows


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """What the wanted rows depend on: `hops[k]` leads from rows `rows[k]` to rows `rows[k + 1]`."""

    rows: list[Int[Tensor, " _"]]
    hops: list[SparseMatrix]

    @classmethod
    def of(cls, propagation: SparseMatrix, rows: Rows, layers: int, fanout: int = 0) -> "Field":
        """Receptive field over `layers` hops; fanout 0 keeps all neighbours."""
        found, hops = [rows], []
        for _ in range(layers):
            hop, below = neighbours(propagation.matrix, found[-1], fanout)
            found.append(below)
            hops.append(hop)
        return cls(found[::-1], hops[::-1])

    def wanted(self, table: Float[Tensor, "m d"], layer: int) -> Float[Tensor, "n d"]:
        """The wanted rows out of a layer's table: they are among its rows."""
        if layer == len(self.hops):
            return table
        return table[torch.searchsorted(self.rows[layer], self.rows[-1])]


def neighbours(matrix: Csr, rows: Rows, fanout: int = 0) -> tuple[SparseMatrix, Int[Tensor, " m"]]:
    """The rows of a matrix with the columns they use, and which columns these are.

    A row's own column is always among them; entries that weigh 0 do not count.
    """
    row, col, value = _entries(matrix, rows)
    if fanout:
        row, col, value = _thinned(row, col, value, rows, fanout)
    used = torch.zeros(matrix.columns, dtype=torch.bool, device=rows.device)
    used[col] = True
    used[rows] = True
    below = used.nonzero().squeeze(1)
    place = matrix.col.new_zeros(matrix.columns)
    place[below] = torch.arange(len(below), dtype=place.dtype, device=rows.device)
    return _matrix(row, place[col], value, (len(rows), len(below))), below


def _thinned(
    row: Entries, col: Entries, value: Float[Tensor, " e"], rows: Rows, fanout: int
) -> tuple[Int[Tensor, " k"], Int[Tensor, " k"], Float[Tensor, " k"]]:
    """At most `fanout` entries of each row beside its own column, scaled to the same mean."""
    chance = torch.rand(len(row), device=row.device, dtype=torch.float64)
    chance[col == rows[row]] = -1  # first in its row, and always kept
    order = (2 * row + chance).argsort()  # rows stay together
    row, col, value = row[order], col[order], value[order]
    own = (col == rows[row]).long()
    pointer = row_pointer(row, len(rows))
    place = torch.arange(len(row), device=row.device) - pointer[row]
    mine = torch.zeros_like(rows).index_add_(0, row, own)  # 1 where a row has its own column
    others = pointer.diff() - mine
    kept = place - mine[row] < fanout
    scale = (others / others.clamp(1, fanout)).to(value.dtype)[row]
    value = torch.where(own.bool(), value, value * scale)
    return row[kept], col[kept], value[kept]


def rows_of(
    features: Float[Tensor, "all f"] | SparseMatrix, rows: Rows
) -> Float[Tensor, "n f"] | SparseMatrix:
    """These rows of a table of features, sparse or dense."""
    if isinstance(features, Tensor):
        return features[rows]
    shape = len(rows), features.shape[1]
    return _matrix(*_entries(features.matrix, rows), shape)


def _entries(matrix: Csr, rows: Rows) -> tuple[Entries, Entries, Float[Tensor, " e"]]:
    """Row, column and value of what is not 0 in these rows; they are numbered as they come."""
    begin, count = matrix.rowptr[rows], matrix.rowptr[rows + 1] - matrix.rowptr[rows]
    entry = torch.arange(int(count.sum()), device=rows.device)
    entry += (begin - (count.cumsum(0) - count)).repeat_interleave(count)
    row = torch.arange(len(rows), device=rows.device).repeat_interleave(count)
    value, col = matrix.value[entry], matrix.col[entry]
    kept = value != 0
    return row[kept], col[kept], value[kept]


def _matrix(
    row: Entries, col: Entries, value: Float[Tensor, " e"], shape: tuple[int, int]
) -> SparseMatrix:
    """From entries that are sorted by row."""
    rows, columns = shape
    kind = index_dtype(len(col), rows, columns)
    col = col.to(kind)
    order = col.argsort(stable=True)
    return SparseMatrix(
        matrix=Csr(row_pointer(row, rows).to(kind), col, value, columns),
        transpose=compress(col, row, value, rows=columns, columns=rows, order=order),
        order=order.to(kind),
    )


def in_part(device: torch.device, rows: int, widths: Sequence[int]) -> bool:
    """Whether to compute only what a sample depends on, given the tables of all rows."""
    return device.type == "cpu" or rows * sum(widths) > WHOLE


def block_rows(widths: Sequence[int]) -> int:
    """How many rows of such tables are computed at a time."""
    return max(1, BLOCK // sum(widths))


def in_blocks(
    network: Callable[[Rows], Float[Tensor, "_ d"]], rows: Rows, size: int
) -> Float[Tensor, "m d"]:
    """What a network makes of the rows, at most so many at a time, in blocks of equal size.

    What it computed on the way is thrown away and computed again in the backward pass, with the
    same random numbers: memory holds the tables of one block. A single block is kept as it is.
    Running statistics of batch normalisation move twice in a step then, towards the same values.
    """
    if len(rows) <= size:
        return network(rows)
    blocks = rows.tensor_split(-(-len(rows) // size))
    return torch.cat([checkpoint(network, some, use_reentrant=False) for some in blocks])


def projected(view: View, weight: Float[Tensor, "f h"], rows: Rows) -> Float[Tensor, "n h"]:
    """These rows of `View.project`, of sparse features; ascending, so that views stay together."""
    assert isinstance(view.features, SparseMatrix)
    nodes, kept = view.features.shape[0], view.kept_columns
    views = (rows // nodes).bincount(minlength=1).tolist()  # how many rows each one has
    masks = [kept] * len(views) if kept is None or kept.ndim == 1 else list(kept)
    parts = []
    for part, mask in zip((rows % nodes).split(views), masks, strict=False):
        masked = weight if mask is None else weight * mask[:, None]
        parts.append(cast(SparseMatrix, rows_of(view.features, part)) @ masked)
    return torch.cat(parts)


def inputs(view: View, rows: Rows) -> Float[Tensor, "n f"]:
    """These rows of a view's masked dense features."""
    assert isinstance(view.features, Tensor)
    nodes = len(view.features)
    table, kept = view.features[rows % nodes], view.kept_columns
    if kept is None:
        return table
    columns = kept.shape[-1]
    return table[:, :columns] * (kept if kept.ndim == 1 else kept[rows // nodes])
