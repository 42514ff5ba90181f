"""The sparse product on the device, on graphs with hubs."""

import pytest
import torch
from torch.testing import assert_close

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
    full.index_put_((row_of(matrix.rowptr), matrix.col), matrix.value.double(), accumulate=True)
    tolerance = 1e-4 if dtype == torch.float32 else 2e-2
    for pieces in (None, matrix.pieces):
        got = spmm(matrix.rowptr, matrix.col, matrix.value, dense, pieces)
        assert got.dtype == dtype
        assert_close(got.double(), full @ dense.double(), rtol=tolerance, atol=tolerance)
        assert torch.equal(got, spmm(matrix.rowptr, matrix.col, matrix.value, dense, pieces))
        assert not got[8].any()


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
