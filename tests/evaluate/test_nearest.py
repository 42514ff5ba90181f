"""Nearest rows against all cosines, sorted."""

import numpy as np
import pytest

from muxgcl.errors import UserError
from muxgcl.evaluate.nearest import nearest


@pytest.mark.parametrize("block", [1, 7, 8192])
@pytest.mark.parametrize("k", [1, 4, 19, 50])
def test_neighbours_are_those_of_the_sorted_cosines(
    block: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muxgcl.evaluate.nearest.BLOCK", block)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(20, 3)).astype(np.float32)
    z[3], z[9] = 0, 2 * z[4]  # a zero row, and one with the same direction
    queries = np.array([4, 3, 0])
    rows, cosines = nearest(z, queries, k)
    length = np.linalg.norm(z.astype(float), axis=1)
    unit = z / np.where(length > 0, length, 1)[:, None]
    for query, found, near in zip(queries, rows, cosines, strict=True):
        all_of_them = unit @ unit[query]
        want = sorted((i for i in range(20) if i != query), key=lambda i: (-all_of_them[i], i))
        assert found.tolist()[:1] == want[:1]
        np.testing.assert_allclose(near, all_of_them[want[:k]], atol=1e-7)
        assert len(found) == min(k, 19)
        assert query not in found


def test_of_equal_cosines_the_lower_row_comes_first() -> None:
    z = np.eye(4)[[0, 1, 0, 0, 2, 0]]
    rows, cosines = nearest(z, np.array([2]), 3)
    assert rows.tolist() == [[0, 3, 5]]
    assert cosines.tolist() == [[1.0, 1.0, 1.0]]
    rows, cosines = nearest(np.zeros((3, 2)), np.array([1]))
    assert (rows.tolist(), cosines.tolist()) == ([[0, 2]], [[0.0, 0.0]])


def test_no_neighbour_is_not_asked_for() -> None:
    with pytest.raises(UserError, match="k must be at least 1, got 0"):
        nearest(np.eye(3), np.array([0]), 0)
    assert nearest(np.eye(3), np.array([0]), 1)[0].shape == (1, 1)
    assert nearest(np.random.default_rng(0).normal(size=(30, 2)), np.array([0]))[0].shape == (1, 10)


def test_many_rows_alike_stay_in_their_order() -> None:
    rows, _ = nearest(np.ones((60, 2)), np.array([7]), 59)
    assert rows.tolist() == [[i for i in range(60) if i != 7]]
