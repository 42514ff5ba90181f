"""The sparse product on the device, on graphs with hubs."""

import pytest
import torch
from torch.testing import assert_close

from muxgcl.kernels.pieces import Pieces
from muxgcl.sparse import compress

pytest.importorskip("triton", reason="Triton is not installed")
from muxgcl.kernels.spmm import spmm

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("d", [1, 7, 64, 256, 1000])
@pytest.mark.parametrize("mean", [4, 36])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_it_is_the_product_in_float64(d: int, mean: int, dtype: torch.dtype) -> None:
    """5000 rows; row 7 meets every column, row 8 none."""
    n = 5000
    row, col = torch.randint(n, (2, n * mean), device="cuda")
    row = torch.cat([row[row != 8], torch.full((n,), 7, device="cuda")])
    col = torch.cat([col[: len(row) - n], torch.arange(n, device="cuda")])
    matrix = compress(row, col, torch.rand(len(row), device="cuda") / mean, rows=n, columns=n)
    dense = torch.randn(n, d, device="cuda").to(dtype)
    full = torch.zeros(n, n, dtype=torch.float64, device="cuda")
    place = row_of(matrix.rowptr), matrix.col.long()
    full.index_put_(place, matrix.value.double(), accumulate=True)
    tolerance = 1e-4 if dtype == torch.float32 else 2e-2
    for pieces in (None, matrix.pieces):
        got = spmm(matrix.rowptr, matrix.col, matrix.value, dense, pieces)
        assert got.dtype == dtype
        assert_close(got.double(), full @ dense.double(), rtol=tolerance, atol=tolerance)
        assert torch.equal(got, spmm(matrix.rowptr, matrix.col, matrix.value, dense, pieces))
        assert not got[8].any()


def test_32_bits_give_what_64_give() -> None:
    n = 3000
    row, col = torch.randint(n, (2, 40_000), device="cuda")
    row[:2000] = 7  # a row of several pieces
    matrix = compress(row, col, torch.rand(40_000, device="cuda"), rows=n, columns=n)
    assert matrix.col.dtype == torch.int32
    rowptr, dense = matrix.rowptr.long(), torch.randn(n, 200, device="cuda")
    for narrow, wide in ((None, None), (matrix.pieces, Pieces.of(rowptr))):
        one = spmm(matrix.rowptr, matrix.col, matrix.value, dense, narrow)
        assert torch.equal(one, spmm(rowptr, matrix.col.long(), matrix.value, dense, wide))


def test_the_last_row_of_a_table_beyond_32_bits_is_found() -> None:
    n, d = 2**21, 1040  # more than 2^31 numbers, 4 GiB
    dense = torch.zeros(n, d, dtype=torch.float16, device="cuda")
    dense[-1] = 1
    row, col = torch.tensor([[0, 2], [n - 1, n - 1]], device="cuda")
    matrix = compress(row, col, torch.ones(2, device="cuda"), rows=3, columns=n)
    for pieces in (None, matrix.pieces):
        got = spmm(matrix.rowptr, matrix.col, matrix.value, dense, pieces)
        assert got.sum(1).tolist() == [d, 0, d]


def row_of(rowptr: torch.Tensor) -> torch.Tensor:
    """The row of every entry."""
    rows = torch.arange(len(rowptr) - 1, device=rowptr.device)
    return rows.repeat_interleave(rowptr.diff())


def test_it_can_be_captured() -> None:
    n = 1000
    row, col = torch.randint(n, (2, 9000), device="cuda")
    matrix = compress(row, col, torch.rand(9000, device="cuda"), rows=n, columns=n)
    dense = torch.randn(n, 128, device="cuda")
    spmm(matrix.rowptr, matrix.col, matrix.value, dense)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = spmm(matrix.rowptr, matrix.col, matrix.value, dense)
    dense.normal_()
    graph.replay()
    assert torch.equal(captured, spmm(matrix.rowptr, matrix.col, matrix.value, dense))
