"""Edges drawn at random look so; edges that go with features, or with each other, do not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.runs import edge_signal as module
from muxgcl.runs.auto import FOR_NOISE, FOR_SILENCE, settings_of
from muxgcl.runs.edge_signal import EdgeSignal, edge_signal
from muxgcl.tensors import Tensors

NODES, CLASSES = 600, 3


def graph(step: int | None, signal: float, seed: int, pure: float = 0.8, degree: int = 6) -> Graph:
    """Edges go from a class to the one that many steps on, or anywhere; features tell the class."""
    chance = np.random.default_rng(seed)
    y = chance.integers(CLASSES, size=NODES)
    source, target = chance.integers(NODES, size=(2, NODES * degree // 2))
    if step is not None:
        for c in range(CLASSES):
            led = np.flatnonzero((y[source] == c) & (chance.random(len(source)) < pure))
            there = np.flatnonzero(y == (c + step) % CLASSES)
            target[led] = chance.choice(there, len(led))
    x = signal * chance.standard_normal((CLASSES, 20))[y] + chance.standard_normal((NODES, 20))
    edges = torch.from_numpy(np.stack([source, target]))
    return Graph.from_data(Tensors(x=torch.from_numpy(x).float(), edge_index=edges))


def measured(one: Graph) -> EdgeSignal:
    found = edge_signal(one)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("signal", [0.0, 0.5])
def test_edges_drawn_at_random_are_silent_whatever_features_say(seed: int, signal: float) -> None:
    assert measured(graph(None, signal, seed)).silent


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("step", [0, 1])
def test_neighbours_that_are_alike_or_opposite_are_heard_in_features(step: int, seed: int) -> None:
    found = measured(graph(step, 0.5, seed))
    assert found.features > 20
    assert (found.edges, found.silent) == (0.0, False)


@pytest.mark.parametrize("seed", range(3))
def test_edges_within_groups_are_heard_where_features_are_noise(seed: int) -> None:
    found = measured(graph(0, 0.0, seed, pure=0.95, degree=10))
    assert abs(found.features) < 4
    assert found.edges > 6
    assert not found.silent


def test_the_first_measure_is_the_sum_in_loops_over_what_chance_gives() -> None:
    one = graph(0, 0.3, 0)
    x, edges = one.dense_features().double().numpy(), one.adjacency.edge_index.numpy()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    near: list[list[int]] = [[] for _ in range(NODES)]
    for i, j in edges.T:
        if i != j:
            near[i].append(j)
    linked = [i for i in range(NODES) if near[i]]
    own = np.array([unit[i] for i in linked])
    means = np.array([unit[near[i]].mean(0) for i in linked])
    own, means = own - own.mean(0), means - means.mean(0)
    value = sum(float(a @ b) ** 2 for a in own.T for b in means.T)
    expected = (own**2).sum() * (means**2).sum() / (len(linked) - 1)  # over all orders of rows
    chance = np.random.default_rng(1)
    dealt = [((own.T @ chance.permutation(means)) ** 2).sum() for _ in range(400)]
    assert np.mean(dealt) == pytest.approx(expected, rel=0.05)
    want = (value - expected) / np.std(dealt)
    found = [edge_signal(one, seed) for seed in range(20)]
    assert np.median([each.features for each in found if each]) == pytest.approx(want, rel=0.1)


def test_the_length_of_a_row_changes_nothing() -> None:
    one = graph(0, 0.3, 0)
    x = one.dense_features()
    longer = replace(one, features=x * (0.1 + torch.rand(NODES, 1)))
    assert measured(longer).features == pytest.approx(measured(one).features, rel=1e-3)


def test_many_columns_are_mixed_and_sparse_ones_are_as_dense_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = planted(nodes=400, classes=4, seed=2)
    sparse, dense = (Graph.from_data(Tensors(x=x, edge_index=made.edge_index))
                     for x in (made.x.to_sparse_coo(), made.x))  # fmt: skip
    assert measured(sparse) == measured(dense)
    monkeypatch.setattr(module, "COLUMNS", 24)
    assert measured(dense).features > 20


def test_equal_rows_say_nothing_and_are_no_error() -> None:
    one = replace(graph(0, 0.3, 0), features=torch.ones(NODES, 3))
    assert measured(one).features == 0.0


def test_few_edges_have_no_answer() -> None:
    few = Graph.from_data(planted(nodes=40))
    assert edge_signal(few) is None
    assert settings_of("mux-hop", few)[0]["readout_raw"] != FOR_SILENCE["readout_raw"]


def test_where_edges_are_silent_the_features_as_they_are_count_most() -> None:
    settings, choices = settings_of("mux-hop", graph(None, 0.5, 0))
    assert {key: settings[key] for key in FOR_SILENCE} == FOR_SILENCE
    told = {choice.key: choice.reason for choice in choices}
    for key in FOR_SILENCE:
        assert told[key].startswith("edges look drawn at random")
    assert settings["norm"] != FOR_NOISE["norm"]  # features are not taken for noise as well


def test_where_edges_are_heard_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    one = graph(0, 0.5, 0)
    heard = settings_of("mux-hop", one)
    monkeypatch.setattr("muxgcl.runs.auto.edge_signal", lambda graph: None)
    assert settings_of("mux-hop", one) == heard


def test_a_table_of_features_that_is_left_out_stays_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muxgcl.runs.auto.FEATURE_BYTES", 0)
    settings, _ = settings_of("mux-hop", graph(None, 0.5, 0))
    assert (settings["readout_raw"], settings["readout_features"]) == (0.0, 0.0)
    assert settings["readout_weights"] == FOR_SILENCE["readout_weights"]
