"""The sparse product against the dense one, on the CPU through Triton's interpreter."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import muxgcl.kernels.pieces
from muxgcl.kernels.pieces import Pieces
from muxgcl.sparse import Csr, compress

pytest.importorskip("triton", reason="Triton is not installed")
if not torch.cuda.is_available():
    import triton_interpreter  # noqa: F401  mends the interpreter before a kernel runs
from muxgcl.kernels.spmm import spmm

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="tests/gpu states it on the device"
)


@pytest.fixture(autouse=True)
def _poison() -> Iterator[None]:
    """Fresh memory is full of NaN, so that an output that is never written shows."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def sparse(rows: int, columns: int, share: float) -> tuple[Csr, Tensor]:
    """A random matrix with an empty row and a full one, and the same in float64, dense."""
    full = torch.randn(rows, columns) * (torch.rand(rows, columns) < share)
    full[0] = torch.randn(columns)
    full[rows // 2] = 0
    row, col = full.nonzero().T
    return compress(row, col, full[row, col], rows=rows, columns=columns), full.double()


@pytest.mark.parametrize("d", [1, 3, 16, 100, 1024])
@pytest.mark.parametrize(("rows", "columns", "share"), [(7, 300, 0.02), (20, 30, 0.5), (1, 5, 1.0)])
def test_it_is_the_dense_product(d: int, rows: int, columns: int, share: float) -> None:
    matrix, full = sparse(rows, columns, share)
    dense = torch.randn(columns, d)
    for pieces in (None, matrix.pieces):
        got = spmm(matrix.rowptr, matrix.col, matrix.value, dense, pieces)
        assert_close(got.double(), full @ dense.double(), rtol=1e-5, atol=1e-5)


def test_32_bits_give_what_64_give() -> None:
    matrix, _ = sparse(20, 600, 0.1)
    assert matrix.col.dtype == torch.int32
    rowptr, dense = matrix.rowptr.long(), torch.randn(600, 40)
    cut = Pieces.of(rowptr)
    assert cut.slots > 0
    assert cut.row.dtype == torch.int64
    for narrow, wide in ((None, None), (matrix.pieces, cut)):
        one = spmm(matrix.rowptr, matrix.col, matrix.value, dense, narrow)
        assert torch.equal(one, spmm(rowptr, matrix.col.long(), matrix.value, dense, wide))


@pytest.mark.parametrize("d", [1, 100, 1030])
@pytest.mark.parametrize(("size", "columns"), [(1, 20), (7, 60), (64, 300), (256, 300), (300, 300)])
def test_a_long_row_is_read_in_pieces(
    d: int, size: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(muxgcl.kernels.pieces, "PIECE", size)
    matrix, full = sparse(9, columns, 0.3)
    assert matrix.pieces is not None
    longest = int(matrix.rowptr.diff().max())
    assert (matrix.pieces.slots > 0) == (longest > size)
    assert int((matrix.pieces.end - matrix.pieces.begin).max()) <= size
    dense = torch.randn(columns, d)
    got = spmm(matrix.rowptr, matrix.col, matrix.value, dense, matrix.pieces)
    assert_close(got.double(), full @ dense.double(), rtol=1e-5, atol=1e-5)
    half = spmm(matrix.rowptr, matrix.col, matrix.value, dense.half(), matrix.pieces)
    assert_close(half.double(), full @ dense.half().double(), rtol=2e-3, atol=2e-2)


def test_pieces_cover_every_row_once() -> None:
    matrix, _ = sparse(20, 900, 0.5)
    pieces = matrix.pieces
    assert pieces is not None
    covered = torch.zeros(len(matrix.col))
    for row, begin, end in torch.stack([pieces.row, pieces.begin, pieces.end], 1).tolist():
        assert matrix.rowptr[row] <= begin <= end <= matrix.rowptr[row + 1]
        covered[begin:end] += 1
    assert covered.eq(1).all()
    assert set(pieces.row.tolist()) == set(range(20))  # an empty row is a piece, and written
    assert sorted(pieces.slot[pieces.slot >= 0].tolist()) == list(range(pieces.slots))
    lengths = (pieces.end - pieces.begin).tolist()
    assert lengths == sorted(lengths, reverse=True)


def test_a_half_table_is_summed_in_32_bits() -> None:
    """4096 + 1 + ... + 1: in 16 bits the ones would be lost."""
    col = torch.arange(101)
    dense = torch.ones(101, 2, dtype=torch.float16)
    dense[0] = 4096
    got = spmm(torch.tensor([0, 101]), col, torch.ones(101), dense)
    assert got.dtype == torch.float16
    assert_close(got, torch.full((1, 2), 4196.0, dtype=torch.float16))


def test_an_entry_that_occurs_twice_counts_twice() -> None:
    got = spmm(
        torch.tensor([0, 3]), torch.tensor([1, 1, 0]), torch.tensor([2.0, 3.0, 1.0]), torch.eye(2)
    )
    assert_close(got, torch.tensor([[1.0, 5.0]]))


def test_without_entries_all_is_zero() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    got = spmm(torch.zeros(4, dtype=torch.int64), none, torch.zeros(0), torch.randn(5, 6))
    assert torch.equal(got, torch.zeros(3, 6))


def test_a_transposed_table_is_read_rightly() -> None:
    matrix, full = sparse(9, 12, 0.3)
    dense = torch.randn(5, 12).T
    got = spmm(matrix.rowptr, matrix.col, matrix.value, dense)
    assert_close(got.double(), full @ dense.double(), rtol=1e-5, atol=1e-5)


def test_two_runs_give_the_same_bits() -> None:
    matrix, _ = sparse(20, 500, 0.2)
    dense = torch.randn(500, 33)
    first, again = (spmm(matrix.rowptr, matrix.col, matrix.value, dense) for _ in range(2))
    assert torch.equal(first, again)
