"""G-BT: the objective against loops, and where it vanishes."""

import torch
from torch.testing import assert_close

from muxgcl.losses.decorrelation import cross_correlation, standardised


def test_the_objective_is_that_of_the_paper_in_loops() -> None:
    n, d = 9, 4
    one, two = torch.randn(2, n, d, dtype=torch.float64)

    def column(table: torch.Tensor, c: int) -> list[float]:
        values = [float(table[i, c]) for i in range(n)]
        mean = sum(values) / n
        deviation = (sum((v - mean) ** 2 for v in values) / (n - 1)) ** 0.5
        return [(v - mean) / deviation for v in values]

    agree = repeat = 0.0
    for a in range(d):
        for b in range(d):
            pairs = zip(column(one, a), column(two, b), strict=True)
            cross = sum(x * y for x, y in pairs) / n
            if a == b:
                agree += (1 - cross) ** 2
            else:
                repeat += cross**2 / d
    got = cross_correlation(one, two)
    assert_close(torch.stack(got), torch.tensor([agree, repeat], dtype=torch.float64))


def test_equal_views_with_orthogonal_columns_cost_next_to_nothing() -> None:
    n, d = 64, 8
    columns = torch.randn(n, d, dtype=torch.float64)
    orthogonal, _ = torch.linalg.qr(columns - columns.mean(0))  # columns stay centred
    invariance, redundancy = cross_correlation(orthogonal, 5 * orthogonal + 1)
    assert_close(float(invariance), d * (1 / n) ** 2, rtol=1e-6, atol=0)  # C_ii = (n - 1) / n
    assert_close(float(redundancy), 0.0, rtol=0, atol=1e-12)


def test_equal_columns_are_redundant() -> None:
    table = torch.randn(50, 1, dtype=torch.float64).expand(50, 3)
    _, redundancy = cross_correlation(table, table)
    assert_close(float(redundancy), 6 * (49 / 50) ** 2 / 3)


def test_a_dead_column_is_zero_and_has_finite_gradients() -> None:
    table = torch.randn(20, 3)
    table[:, 1] = 0.7
    table.requires_grad_()
    assert torch.equal(standardised(table)[:, 1], torch.zeros(20))
    sum(cross_correlation(table, table.flip(0))).backward()
    assert table.grad is not None
    assert table.grad.isfinite().all()
