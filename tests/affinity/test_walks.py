"""Walks step along edges, as often as Node2Vec's transition probabilities say."""

import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from muxgcl.affinity import WalkGraph, walks
from muxgcl.graph import Adjacency

# a triangle 0-1-2 with a tail 2-3-4, a chord 1-3, and nobody at 5
EDGES = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (1, 3)]
WEIGHTS = [1.0, 2.0, 0.5, 4.0, 1.0, 3.0]
NODES = 6


def adjacency(weights: list[float] | None = None) -> Adjacency:
    weight = None if weights is None else torch.tensor(weights)
    return Adjacency.from_edges(torch.tensor(EDGES).T, NODES, weight)


def dense(weights: list[float] | None = None) -> Tensor:
    matrix = torch.zeros(NODES, NODES, dtype=torch.float64)
    for (i, j), weight in zip(EDGES, weights or [1.0] * len(EDGES), strict=True):
        matrix[i, j] = matrix[j, i] = weight
    return matrix


def transition(matrix: Tensor, before: int, here: int, p: float, q: float) -> Tensor:
    """Probability of each next node, straight from the paper's definition."""
    chance = matrix[here].clone()
    for x in range(NODES):
        if x == before:
            chance[x] /= p
        elif matrix[before, x] == 0:
            chance[x] /= q
    return chance / chance.sum()


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (4.0, 0.25)])
def test_walks_start_where_told_and_step_along_edges(
    weights: list[float] | None, p: float, q: float
) -> None:
    starts = torch.arange(5).repeat(40)
    found = walks(adjacency(weights), starts, 12, p, q)
    assert found.shape == (200, 12)
    assert torch.equal(found[:, 0], starts)
    assert (dense()[found[:, :-1], found[:, 1:]] > 0).all()


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (4.0, 0.25), (0.5, 0.5), (3.0, 1.0)])
def test_steps_follow_the_second_order_probabilities(
    weights: list[float] | None, p: float, q: float, static: bool
) -> None:
    found = walks(adjacency(weights), torch.arange(5).repeat(2000), 6, p, q, static=static)
    triples = found.unfold(1, 3, 1).reshape(-1, 3)  # (before, here, next) anywhere in a walk
    counts = torch.zeros(NODES, NODES, NODES)
    counts.index_put_(tuple(triples.T), torch.ones(len(triples)), accumulate=True)
    matrix = dense(weights)
    for before, here in matrix.nonzero().tolist():
        seen = counts[before, here].double()
        expected = transition(matrix, before, here, p, q) * seen.sum()
        possible = expected > 0
        assert seen[~possible].sum() == 0
        assert seen.sum() > 250
        if possible.sum() > 1:
            assert chisquare(seen[possible], expected[possible]).pvalue > 1e-4


def test_the_first_step_follows_the_edge_weights() -> None:
    found = walks(adjacency(WEIGHTS), torch.full((20000,), 2), 2, 0.1, 10.0)
    seen = found[:, 1].bincount(minlength=NODES).double()
    expected = dense(WEIGHTS)[2] / dense(WEIGHTS)[2].sum() * 20000
    assert chisquare(seen[expected > 0], expected[expected > 0]).pvalue > 1e-4


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0)])
def test_a_node_without_neighbours_stays_where_it_is(p: float, q: float) -> None:
    found = walks(adjacency(), torch.tensor([5, 0, 5]), 7, p, q)
    assert (found[[0, 2]] == 5).all()
    assert (found[1] != 5).all()


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0)])
@pytest.mark.parametrize("static", [False, True])
def test_without_any_edge_everybody_stays(p: float, q: float, static: bool) -> None:
    empty = Adjacency.from_edges(torch.empty(2, 0, dtype=torch.long), 3)
    assert torch.equal(
        walks(empty, torch.arange(3), 4, p, q, static=static),
        torch.arange(3)[:, None].repeat(1, 4),
    )
    assert not WalkGraph.of(empty).adjacent(torch.arange(3), torch.arange(3)).any()
    assert len(WalkGraph.of(empty).linked) == 0


def test_an_edge_that_weighs_nothing_is_never_taken() -> None:
    weights = [0.0, *WEIGHTS[1:]]
    found = walks(adjacency(weights), torch.tensor([0, 1]).repeat(200), 8)
    assert (dense(weights)[found[:, :-1], found[:, 1:]] > 0).all()


def test_a_node_with_one_neighbour_turns_back_however_large_p_is() -> None:
    pair = Adjacency.from_edges(torch.tensor([[0], [1]]), 2)
    assert walks(pair, torch.tensor([0]), 5, 1e9, 1.0).tolist() == [[0, 1, 0, 1, 0]]


def test_equal_weights_walk_like_no_weights() -> None:
    starts = torch.arange(5).repeat(10)
    torch.manual_seed(3)
    plain = walks(adjacency(), starts, 6)
    torch.manual_seed(3)
    assert torch.equal(walks(adjacency([2.0] * len(EDGES)), starts, 6), plain)


def test_edges_are_found_and_other_pairs_are_not() -> None:
    source, target = torch.cartesian_prod(torch.arange(NODES), torch.arange(NODES)).T
    found = WalkGraph.of(adjacency()).adjacent(source, target)
    assert torch.equal(found, dense()[source, target] > 0)


@pytest.mark.parametrize(("p", "q"), [(4.0, 0.25), (0.25, 4.0), (1.0, 1.0), (2.0, 1.0)])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_enough_proposals_are_made_at_once(weights: list[float] | None, p: float, q: float) -> None:
    """However its neighbours are composed, no node rejects them all more often than `MISS`."""
    count = WalkGraph.of(adjacency(weights)).at_once(p, q)
    assert count is not None
    biases = [1 / p, 1.0, 1 / q]
    for degree in range(2, 40):
        others = [(1 / p + (degree - 1) * bias) / degree for bias in (1.0, 1 / q)]
        worst = min(others if weights is None else biases)
        assert (1 - worst / max(biases)) ** count <= 1e-9


def test_too_many_proposals_are_not_made_at_once() -> None:
    assert WalkGraph.of(adjacency()).at_once(100.0, 100.0) is None
