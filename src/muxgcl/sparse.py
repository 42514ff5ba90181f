"""Sparse matrices with a fixed pattern, and their product with a dense table.

Propagation is `adjacency @ table`, and wide sparse features are `features @ weights`: both are one
product with rows of CSR, and its gradient is the same product with the transpose. Nothing of size
(entries x width) is ever built. Patterns are kept in 32 bits where they fit (`index_dtype`).
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from jaxtyping import Float, Int
from torch import Tensor

from muxgcl.kernels.dropout import dropout
from muxgcl.kernels.pieces import Pieces


@dataclass(frozen=True, slots=True, eq=False)
class Csr:
    """Rows of a sparse matrix: entries `rowptr[i]:rowptr[i + 1]` belong to row i."""

    rowptr: Int[Tensor, " _"]  # rows + 1 of them
    col: Int[Tensor, " e"]
    value: Float[Tensor, " e"]
    columns: int
    pieces: Pieces | None = None  # of rows, for the programs of a GPU; else a row at a time

    @property
    def rows(self) -> int:
        """How many rows there are, empty ones included."""
        return len(self.rowptr) - 1

    @property
    def row(self) -> Int[Tensor, " e"]:
        """The row of every entry; nothing waits for a GPU."""
        numbers = torch.arange(self.rows, device=self.col.device)
        return numbers.repeat_interleave(self.rowptr.diff(), output_size=len(self.col))

    def part(self, start: int, stop: int) -> Self:
        """The rows from the first to before the second."""
        ends = self.rowptr[start : stop + 1]
        entries = slice(int(ends[0]), int(ends[-1]))
        return replace(
            self,
            rowptr=ends - ends[0],
            col=self.col[entries],
            value=self.value[entries],
            pieces=None,
        )

    def multiply(self, dense: Float[Tensor, "columns d"]) -> Float[Tensor, "rows d"]:
        """The product with a dense table, outside of autograd."""
        if dense.is_cuda:
            from muxgcl.kernels.spmm import spmm  # Triton loads only where it runs

            return spmm(self.rowptr, self.col, self.value, dense, self.pieces)
        with warnings.catch_warnings():  # torch calls its CSR layout a beta, and unchecked
            warnings.filterwarnings("ignore", "Sparse (CSR|invariant)", UserWarning)
            matrix = torch.sparse_csr_tensor(
                self.rowptr,
                self.col,
                self.value.to(dense.dtype),
                (self.rows, self.columns),
                check_invariants=False,  # `compress` and `Adjacency` keep them
            )
        return matrix @ dense.contiguous()

    def to(self, device: torch.device | str) -> Self:
        """The same matrix on another device."""
        return replace(
            self,
            rowptr=self.rowptr.to(device),
            col=self.col.to(device),
            value=self.value.to(device),
            pieces=None if self.pieces is None else self.pieces.to(device),
        )


class _Product(torch.autograd.Function):
    """`matrix @ dense`; the matrix is constant, so only `dense` has a gradient."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Csr, transpose: Csr) -> Tensor:
        ctx.transpose = transpose
        return matrix.multiply(dense)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None]:
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return ctx.transpose.multiply(grads[0]), None, None


@dataclass(frozen=True, slots=True, eq=False)
class SparseMatrix:
    """A constant sparse matrix that a differentiable table can be multiplied with."""

    matrix: Csr
    transpose: Csr
    order: Int[Tensor, " e"] | None = None  # where the transpose's entries are in the matrix

    def __matmul__(self, dense: Float[Tensor, "columns d"]) -> Float[Tensor, "rows d"]:
        found: Tensor = _Product.apply(dense, self.matrix, self.transpose)
        return found

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.matrix.rows, self.matrix.columns

    @property
    def device(self) -> torch.device:
        """Where the entries are."""
        return self.matrix.value.device

    def to(self, device: torch.device | str) -> Self:
        """The same matrix on another device."""
        return replace(
            self,
            matrix=self.matrix.to(device),
            transpose=self.transpose.to(device),
            order=None if self.order is None else self.order.to(device),
        )

    def with_values(self, value: Float[Tensor, " e"]) -> Self:
        """The same pattern with other values, given in the order of the rows."""
        if self.order is None:
            raise ValueError("a matrix without the order of its transpose cannot change its values")
        return replace(
            self,
            matrix=replace(self.matrix, value=value),
            transpose=replace(self.transpose, value=value.index_select(0, self.order)),
        )

    def dropout(self, p: float) -> Self:
        """Each stored entry 0 with probability `p`, the others scaled up by 1 / (1 - p)."""
        return self.with_values(dropout(self.matrix.value, p)) if p else self

    def repeated(self, copies: int) -> Self:
        """So many copies, one below the other."""
        rows = self.matrix
        step = torch.arange(copies, device=self.device)[:, None] * rows.rows
        return self.from_entries(
            (rows.row + step).flatten(),
            rows.col.repeat(copies),
            rows.value.repeat(copies),
            (copies * rows.rows, rows.columns),
        )

    @classmethod
    def from_entries(
        cls,
        row: Int[Tensor, " e"],
        col: Int[Tensor, " e"],
        value: Float[Tensor, " e"],
        shape: tuple[int, int],
    ) -> Self:
        """From a list of entries in any order."""
        rows, columns = shape
        by_row = entry_number(row, col, columns).argsort()
        matrix = compress(row, col, value, rows=rows, columns=columns, order=by_row)
        order = matrix.col.argsort(stable=True)  # the rows of a column stay in order
        by_column = by_row[order]
        return cls(
            matrix=matrix,
            transpose=compress(col, row, value, rows=columns, columns=rows, order=by_column),
            order=order.to(matrix.col.dtype),
        )


def compress(
    row: Int[Tensor, " e"],
    col: Int[Tensor, " e"],
    value: Float[Tensor, " e"],
    *,
    rows: int,
    columns: int,
    order: Int[Tensor, " e"] | None = None,
) -> Csr:
    """Entries in any order, sorted by row and column into CSR; `order` sorts them, if known."""
    if order is None:
        order = entry_number(row, col, columns).argsort()
    kind = index_dtype(len(row), rows, columns)
    rowptr = row_pointer(row, rows).to(kind)
    return Csr(rowptr, col.to(kind)[order], value[order], columns, Pieces.of(rowptr))


def index_dtype(*sizes: int) -> torch.dtype:
    """How a pattern of so many entries, rows and columns is kept: in 32 bits, if these fit."""
    return torch.int32 if max(sizes) <= torch.iinfo(torch.int32).max else torch.int64


def entry_number(row: Int[Tensor, " e"], col: Int[Tensor, " e"], columns: int) -> Int[Tensor, " e"]:
    """`row * columns + col`, in 64 bits: ascending by row and column."""
    return row.long() * columns + col


def row_pointer(row: Int[Tensor, " e"], rows: int) -> Int[Tensor, " {rows}+1"]:
    """Where each row's entries begin once they are sorted by row."""
    counts = torch.bincount(row, minlength=rows)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
