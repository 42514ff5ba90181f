"""The controls against their dense definitions."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import sparse

from muxgcl.evaluate import (
    feature_controls,
    holdout,
    holdout_splits,
    majority,
    raw_features,
    subsampled,
)
from muxgcl.graph import Adjacency, Graph
from muxgcl.io import planted
from muxgcl.runs.control_scores import control_tables, each_control, score_controls
from muxgcl.runs.plan import Plan
from muxgcl.runs.scipy_tables import features_table, scipy_rows
from muxgcl.runs.scoring import score
from muxgcl.tensors import Tensors

EDGES = np.array([[0, 1, 1, 2, 3, 0, 4], [1, 0, 2, 1, 0, 3, 4]])  # node 4: a loop; node 5: alone
WEIGHT = np.array([2.0, 2, 3, 3, 0.5, 0.5, 7])


def dense_propagation(weight: np.ndarray | None = None) -> np.ndarray:
    adjacency = np.zeros((6, 6))
    adjacency[EDGES[1], EDGES[0]] = 1 if weight is None else weight
    np.fill_diagonal(adjacency, 1)
    degree = adjacency.sum(1)
    return adjacency / np.sqrt(np.outer(degree, degree))


def graph_of(x: torch.Tensor, weight: np.ndarray | None = None) -> Graph:
    data = Tensors(x=x, edge_index=torch.tensor(EDGES))
    if weight is not None:
        data.edge_weight = torch.tensor(weight)
    return Graph.from_data(data)


def plain(table: np.ndarray) -> np.ndarray:
    return table.toarray() if sparse.issparse(table) else table


def unit(table: np.ndarray) -> np.ndarray:
    return table / np.linalg.norm(table, axis=1, keepdims=True)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_controls_are_powers_of_the_normalised_adjacency(
    weight: np.ndarray | None, layout: str
) -> None:
    x = np.random.default_rng(0).normal(size=(6, 30))
    if layout == "sparse":
        x *= np.arange(30) < 2
    given = torch.tensor(x)
    graph = graph_of(given.to_sparse() if layout == "sparse" else given, weight)
    found = control_tables(Plan.make("raw"), graph)
    step = dense_propagation(weight)
    once, twice = step @ x, step @ step @ x
    assert list(found) == ["raw", "A X", "A^2 X", "X|AX|A^2X"]
    assert sparse.issparse(found["A^2 X"]) == (layout == "sparse")
    assert_allclose(plain(found["raw"]), x, atol=1e-6)
    assert_allclose(plain(found["A X"]), once, atol=1e-6)
    assert_allclose(plain(found["A^2 X"]), twice, atol=1e-6)
    beside = np.hstack([unit(x), unit(once), unit(twice)])
    assert_allclose(plain(found["X|AX|A^2X"]), beside, atol=1e-6)


def test_an_isolated_node_keeps_its_features() -> None:
    x = torch.randn(6, 3)
    table = control_tables(Plan.make("raw"), graph_of(x))["A^2 X"]
    assert_allclose(table[[4, 5]], x[[4, 5]], atol=1e-6)


def test_a_trained_method_has_its_untrained_encoder_as_a_control() -> None:
    plan = Plan.make("grace", "quick", overrides={"width": 4, "projection": 4}, device="cpu")
    found = control_tables(plan, graph_of(torch.randn(6, 3)))
    assert found["untrained"].shape == (6, 4)


def test_sparse_matrices_are_the_same_as_scipy_holds_them() -> None:
    x = torch.zeros(6, 40)
    x[1, 3], x[5, 0] = 2.0, -1.0
    graph = graph_of(x)
    assert not isinstance(graph.features, torch.Tensor)
    assert_allclose(features_table(graph.features).toarray(), x)
    adjacency = Adjacency.from_edges(torch.tensor(EDGES), 6)
    assert_allclose(scipy_rows(adjacency.propagation().matrix).toarray(), dense_propagation())


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
    adjacency = Adjacency.from_edges(torch.tensor(np.array([source, target])), n)
    found = feature_controls(x, scipy_rows(adjacency.propagation().matrix))
    plain_score = holdout(found["raw"], y, count=5).accuracy.mean
    assert holdout(found["A^2 X"], y, count=5).accuracy.mean > plain_score + 10


def test_large_tables_are_scored_on_fewer_splits_and_not_clustered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = planted(nodes=60)
    graph = Graph.from_data(data)
    monkeypatch.setattr(
        "muxgcl.runs.control_scores.LARGE", 60 * 100
    )  # three tables side by side have more
    found = dict(score_controls(Plan.make("raw"), graph, data, splits=8))
    few, many = (found[name]["holdout"]["per_split"]["accuracy"] for name in ("X|AX|A^2X", "raw"))
    assert (len(few), len(many)) == (5, 8)
    assert "clustering" not in found["X|AX|A^2X"]
    assert "clustering" in found["raw"]
    monkeypatch.undo()
    whole = dict(score_controls(Plan.make("raw"), graph, data, splits=8))
    assert whole["X|AX|A^2X"]["holdout"]["per_split"]["accuracy"][:5] == few


@pytest.mark.parametrize("layout", ["dense", "sparse", "filling"])
def test_rows_of_controls_are_those_of_the_whole_tables(layout: str) -> None:
    data = planted(nodes=90, features=60)
    if layout == "dense":
        data.x = data.x + 0.1
    if layout == "sparse":
        data.x[:, 5:] = 0
    graph, plan = Graph.from_data(data), Plan.make("mux-hop", "quick", device="cpu")
    rows = np.array([0, 3, 4, 50, 89])
    whole, some = dict(each_control(plan, graph)), dict(each_control(plan, graph, rows))
    assert list(some) == list(whole) == ["raw", "A X", "A^2 X", "X|AX|A^2X", "untrained"]
    assert sparse.issparse(whole["A^2 X"]) == (layout == "sparse")
    assert sparse.issparse(whole["raw"]) == (layout != "dense")
    for name, table in whole.items():
        assert_allclose(plain(some[name]), plain(table)[rows], atol=1e-6)


def test_a_large_graphs_controls_have_the_scores_of_its_whole_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = planted(nodes=200)
    graph, plan = Graph.from_data(data), Plan.make("sgc")
    few = lambda split: subsampled(split, (15, 15, 20))  # noqa: E731
    monkeypatch.setattr("muxgcl.runs.scoring.subsampled", few)
    whole = dict(score_controls(plan, graph, data, splits=5, clusters=False))
    sizes: list[int] = []

    def counting(z: np.ndarray, *rest: object, **how: object) -> object:
        sizes.append(z.shape[0])
        return score(z, *rest, **how)

    monkeypatch.setattr("muxgcl.runs.control_scores.score", counting)
    monkeypatch.setattr("muxgcl.runs.control_scores.LARGE", 1)
    some = dict(score_controls(plan, graph, data, splits=5))
    assert some == whole
    assert max(sizes) < 200


def test_majority_is_the_most_frequent_training_class_of_each_split() -> None:
    y = np.r_[np.zeros(70, int), np.ones(30, int), np.full(10, -1)]
    splits = holdout_splits(y, 4)
    found = majority(y, splits)
    for split, got in zip(splits, found.splits, strict=True):
        answer = np.bincount(y[split.train]).argmax()
        assert got.accuracy == pytest.approx(100 * np.mean(y[split.test] == answer))
        assert got.confusion.sum() == len(split.test)
        assert got.confusion[:, 1 - answer].sum() == 0
