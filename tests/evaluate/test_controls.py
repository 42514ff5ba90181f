"""The controls against their dense definitions."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import sparse

from muxgcl.errors import UserError
from muxgcl.evaluate import holdout, propagated_features, raw_features
from muxgcl.graph import Adjacency

EDGES = np.array([[0, 1, 1, 2, 3, 0, 4], [1, 0, 2, 1, 0, 3, 4]])  # node 4: a loop; node 5: alone


def dense_propagation(x: np.ndarray, steps: int) -> np.ndarray:
    adjacency = np.eye(len(x))
    adjacency[EDGES[1], EDGES[0]] = 1
    degree = adjacency.sum(1)
    for _ in range(steps):
        x = (adjacency / np.sqrt(np.outer(degree, degree))) @ x
    return x


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_propagation_is_powers_of_the_normalised_adjacency(steps: int) -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    want = dense_propagation(x, steps)
    assert_allclose(propagated_features(x, EDGES, steps=steps), want, atol=1e-6)
    thin = propagated_features(sparse.csr_array(x), EDGES, steps=steps)
    assert sparse.issparse(thin)
    assert_allclose(thin.toarray(), want, atol=1e-6)


def test_listing_an_edge_twice_changes_nothing() -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    twice = np.hstack([EDGES, EDGES[:, :2]])
    assert_allclose(propagated_features(x, twice), propagated_features(x, EDGES))


def test_weights_of_edges_count_as_in_the_encoders() -> None:
    x = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    weight = np.array([2.0, 2, 3, 3, 0.5, 0.5, 7])
    edges = torch.tensor(EDGES)
    adjacency = Adjacency.from_edges(edges, 6, torch.tensor(weight)).propagation()
    want = adjacency @ (adjacency @ torch.tensor(x))
    assert_allclose(propagated_features(x, EDGES, weight), want, atol=1e-6)


def test_an_isolated_node_keeps_its_features() -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    assert_allclose(propagated_features(x, EDGES)[[4, 5]], x[[4, 5]], atol=1e-6)


def test_raw_features_are_the_features_sparse_where_that_pays() -> None:
    x = np.random.default_rng(0).normal(size=(20, 10))
    assert raw_features(x) is x
    x[:, 1:] = 0
    assert sparse.issparse(raw_features(x))
    assert_allclose(raw_features(x).toarray(), x)
    assert sparse.issparse(raw_features(sparse.coo_matrix(x)))


def test_propagation_helps_where_neighbours_share_a_class() -> None:
    rng = np.random.default_rng(0)
    n, y = 300, np.arange(300) % 3
    x = np.eye(3)[y] + 1.5 * rng.normal(size=(n, 3))
    source = rng.integers(0, n, 3000)
    target = (source + 3 * rng.integers(1, n // 3, 3000)) % n  # the same class
    edges = np.array([np.append(source, target), np.append(target, source)])
    plain = holdout(raw_features(x), y, count=5).accuracy.mean
    assert holdout(propagated_features(x, edges), y, count=5).accuracy.mean > plain + 10


def test_an_edge_to_a_missing_node_is_refused() -> None:
    with pytest.raises(UserError, match="between nodes 0 and 2, got one outside"):
        propagated_features(np.ones((3, 2)), np.array([[0], [3]]))
