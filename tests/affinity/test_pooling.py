"""Pooled patches against brute force."""

from typing import get_args

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.testing import assert_close

from muxgcl.affinity import Pooling, pool, pooling
from muxgcl.errors import UserError
from muxgcl.graph import Adjacency

NODES, LAYERS = 14, 3


def sparse_graph() -> tuple[Adjacency, list[set[int]]]:
    """A weighted random graph whose last node is isolated, and its neighbours as sets."""
    edges = torch.randint(NODES - 1, (2, 12))
    adjacency = Adjacency.from_edges(edges, NODES, torch.rand(12) + 0.5)
    neighbours: list[set[int]] = [set() for _ in range(NODES)]
    for i, j in edges.T.tolist():
        if i != j:
            neighbours[i].add(j)
            neighbours[j].add(i)
    return adjacency, neighbours


def by_hand(table: Tensor, neighbours: list[set[int]], k: int, kind: Pooling) -> Tensor:
    if k == 0:
        return table
    below = by_hand(table, neighbours, k - 1, kind)
    rows = []
    for i, around in enumerate(neighbours):
        if kind == "mean":
            rows.append(sum(below[j] for j in {i, *around}) / (len(around) + 1))
        elif kind == "residual":
            zero = torch.zeros_like(table[i])
            rows.append(sum((below[j] for j in around), zero) / (len(around) + 1) + table[i])
        else:
            reached = {i}
            for _ in range(k):
                reached |= set().union(*(neighbours[j] for j in reached))
            rows.append(sum(table[j] for j in reached) / len(reached))
    return torch.stack(rows)


@pytest.mark.parametrize("kind", get_args(Pooling))
def test_pools_agree_with_brute_force_at_every_scale(kind: Pooling) -> None:
    adjacency, neighbours = sparse_graph()
    table = torch.randn(NODES, 5)
    pooled = pool(table, adjacency, LAYERS, kind)
    assert len(pooled) == LAYERS + 1
    for k, scale in enumerate(pooled):
        assert_close(scale, normalize(by_hand(table, neighbours, k, kind)))


def test_ego_sets_do_not_depend_on_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    adjacency, _ = sparse_graph()
    table = torch.randn(NODES, 5)
    whole = pool(table, adjacency, LAYERS, "ego")
    monkeypatch.setattr(pooling, "BLOCK_ENTRIES", 3 * NODES)  # 14 nodes in blocks of 3
    for one, two in zip(whole, pool(table, adjacency, LAYERS, "ego"), strict=True):
        assert_close(one, two)


@pytest.mark.parametrize("kind", get_args(Pooling))
def test_an_isolated_node_is_its_own_patch_and_a_zero_row_stays_zero(kind: Pooling) -> None:
    adjacency, _ = sparse_graph()
    table = torch.randn(NODES, 5)
    for scale in pool(table, adjacency, LAYERS, kind):
        assert_close(scale[-1], normalize(table[-1], dim=0))
    table[-1] = 0
    for scale in pool(table, adjacency, LAYERS, kind):
        assert_close(scale[-1], torch.zeros(5))
        assert_close(scale[:-1].norm(dim=1), torch.ones(NODES - 1))


@pytest.mark.parametrize("kind", get_args(Pooling))
def test_no_hop_is_the_table_itself(kind: Pooling) -> None:
    adjacency, _ = sparse_graph()
    table = torch.randn(NODES, 5)
    (only,) = pool(table, adjacency, 0, kind)
    assert_close(only, normalize(table))


def test_an_unknown_pooling_is_named() -> None:
    adjacency, _ = sparse_graph()
    with pytest.raises(UserError, match="mean, residual, ego, got 'max'"):
        pool(torch.randn(NODES, 5), adjacency, 1, "max")  # type: ignore[arg-type]
