r"""Fewer columns: the linear map that keeps most of a table's products.

With unit rows $\bar Z$ of the table that is read out, [n, d], the columns of $V$ are the W leading
eigenvectors of $\bar Z^\top \bar Z$ and the output is $Z V$. No other W columns keep the products
of rows, and so their cosines, as well. The table is not centred: a zero row stays a zero row, and
the map of a new node depends on nothing but its own row.

Up to `EXACT` columns the eigenvectors are exact. With fewer rows than columns, and `EXACT`$^2$
numbers at most, they come from the smaller $\bar Z \bar Z^\top = U \Lambda U^\top$,
$V = \bar Z^\top U \Lambda^{-1/2}$. Beyond that they come from subspace iteration (Halko, Martinsson
and Tropp 2011, <https://arxiv.org/abs/0909.4061>), begun with fixed random numbers.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from muxgcl.errors import UserError
from muxgcl.shapes import Nodes

Map = Float[Tensor, "d w"]
Columns = Float[Tensor, "d r"]

EXACT = 8_000  # columns; a matrix of 8,000 x 8,000 numbers takes half a gibibyte
ROWS = 4_096  # of the table that are multiplied at once
SPARE = 128  # columns more than asked for, in subspace iteration
ROUNDS = 3
SMALLEST = 1e-5  # share of the largest singular value, below which rounding shows


def check_width(width: int, columns: int) -> None:
    """Refuse an output that is wider than what is read out."""
    if not 1 <= width <= columns:
        raise UserError(
            f"output_width must be from 1 to {columns:,}, the width of what is read out, "
            f"got {width:,}"
        )


def learn_map(table: Nodes, width: int, device: torch.device | None = None) -> Map:
    """The map from a table's columns to `width` columns, 32-bit numbers on the CPU.

    Args:
        table: what is read out of the training graph.
        width: columns to keep.
        device: where to compute; on the CPU by default.
    """
    columns = table.shape[1]
    check_width(width, columns)
    device = device or torch.device("cpu")
    few = len(table) < columns and table.numel() <= EXACT**2
    vectors = by_rows(table, width, device) if few else None
    if vectors is None:
        find = by_columns if columns <= EXACT else iterated
        vectors = find(table, width, device)
    return with_signs(vectors).float().cpu().contiguous()  # the bits of a product depend on it


def unit_blocks(
    table: Nodes, device: torch.device, kind: torch.dtype = torch.float64
) -> Iterator[Nodes]:
    """Rows of length 1, some at a time; a zero row stays one."""
    for rows in table.split(ROWS):
        rows = rows.to(device, kind)
        yield normalize(rows, dim=1, eps=torch.finfo(rows.dtype).tiny)


def by_columns(table: Nodes, width: int, device: torch.device) -> Columns:
    """From the products of columns."""
    columns = table.shape[1]
    products = torch.zeros(columns, columns, dtype=torch.float64, device=device)
    for unit in unit_blocks(table, device):
        products += unit.mT @ unit
    return leading(products, width)


def by_rows(table: Nodes, width: int, device: torch.device) -> Columns | None:
    """From the products of rows; None where they have fewer directions than `width`."""
    if len(table) < width:
        return None
    unit = torch.cat([*unit_blocks(table, device)])
    inside = leading(unit @ unit.mT, width)
    vectors = unit.mT @ inside
    lengths = vectors.norm(dim=0)
    return vectors / lengths if lengths.min() > SMALLEST * lengths.max() else None


def leading(products: Float[Tensor, "d d"], width: int) -> Columns:
    """Eigenvectors of the largest eigenvalues, the largest first."""
    if products.is_cuda:
        every: Tensor = torch.linalg.eigh(products).eigenvectors
        return every[:, -width:].flip(1)
    from scipy.linalg import eigh  # finds some of them without the rest

    size = len(products)
    _, vectors = eigh(products.numpy(), subset_by_index=[size - width, size - 1])
    return torch.from_numpy(vectors).flip(1)


def iterated(table: Nodes, width: int, device: torch.device) -> Columns:
    """Nearly the same by subspace iteration: repeated products turn any start to the leading ones.

    In 32 bits: rounding is far below what a few rounds leave.
    """
    columns = table.shape[1]
    generator = torch.Generator().manual_seed(0)
    size = min(columns, width + SPARE)
    start = torch.randn(columns, size, generator=generator).to(device)

    def times(right: Columns) -> Columns:
        total = torch.zeros_like(right)
        for unit in unit_blocks(table, device, right.dtype):
            total += unit.mT @ (unit @ right)
        return total

    basis: Tensor = torch.linalg.qr(start).Q
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(times(basis)).Q
    inside = (basis.mT @ times(basis)).double()
    turned: Tensor = torch.linalg.eigh((inside + inside.mT) / 2).eigenvectors
    return basis @ turned[:, -width:].flip(1).float()


def with_signs(vectors: Columns) -> Columns:
    """An eigenvector may point either way: here its largest entry is positive."""
    largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return vectors * torch.where(largest < 0, -1.0, 1.0)
