"""Products on the entries of a pattern, through Triton's interpreter."""

import pytest
import torch
from torch.testing import assert_close

pytest.importorskip("triton", reason="Triton is not installed")
if not torch.cuda.is_available():
    import triton_interpreter  # noqa: F401  mends the interpreter before a kernel runs
from muxgcl.kernels.edge_dot import edge_dot

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("entries", [0, 1, 16, 37])
@pytest.mark.parametrize("d", [1, 24, 128, 300])
def test_every_entry_is_the_product_of_its_two_rows(entries: int, d: int) -> None:
    left, right = torch.randn(9, d, device=DEVICE), torch.randn(11, d, device=DEVICE)
    row = torch.randint(9, (entries,), device=DEVICE)
    col = torch.randint(11, (entries,), device=DEVICE)
    want = [float(left[i].double() @ right[j].double()) for i, j in zip(row, col, strict=True)]
    got = edge_dot(left, right, row, col)
    assert_close(got.double().cpu(), torch.tensor(want, dtype=torch.float64), rtol=1e-5, atol=1e-5)
    assert torch.equal(got, edge_dot(left, right, row.int(), col.int()))
