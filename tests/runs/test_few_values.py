"""Graphs whose nodes have few values: which they are, and what `auto` makes of them."""

import numpy as np
import pytest
import torch

from muxgcl.graph import Graph
from muxgcl.runs.agreement import FEWEST, agreement, few_values
from muxgcl.runs.auto import FOR_FEW_VALUES, settings_of
from muxgcl.runs.edge_signal import BY_CHANCE, neighbours_alike
from muxgcl.tensors import Tensors

NODES, CLASSES = 600, 4
KIND = np.arange(NODES) % CLASSES


def edges(step: int | None, seed: int = 1) -> torch.Tensor:
    """Most lead to the class so many further on; None: anywhere."""
    chance = np.random.default_rng(seed)
    source, target = chance.integers(NODES, size=(2, 4 * NODES))
    if step is not None:
        led = chance.random(len(source)) < 0.8
        same = (KIND[source] + step) % CLASSES + CLASSES * chance.integers(
            NODES // CLASSES, size=len(source)
        )
        target = np.where(led, same, target)
    return torch.from_numpy(np.stack([source, target]))


def numbers(columns: int = 4) -> torch.Tensor:
    chance = np.random.default_rng(2)
    centre = chance.standard_normal((CLASSES, columns))
    return torch.from_numpy(
        (centre[KIND] + chance.standard_normal((NODES, columns))).astype(np.float32)
    )


def categories(*levels: int) -> torch.Tensor:
    chance = np.random.default_rng(3)
    drawn = [chance.integers(k, size=NODES) for k in levels]
    drawn[0] = np.where(chance.random(NODES) < 0.5, KIND, drawn[0])
    return torch.from_numpy(
        np.hstack([np.eye(k, dtype=np.float32)[one] for one, k in zip(drawn, levels, strict=True)])
    )


def graph(x: torch.Tensor, step: int | None = 0) -> Graph:
    return Graph.from_data(Tensors(x=x, edge_index=edges(step)))


@pytest.mark.parametrize("sparse", [False, True])
def test_one_column_of_each_category_is_one_value(sparse: bool) -> None:
    x = categories(4, 20, 9)
    assert x.shape[1] > FEWEST
    assert few_values(graph(x.to_sparse_coo() if sparse else x))
    many = torch.cat([categories(4, 3) for _ in range(FEWEST // 2)], 1)
    assert not few_values(graph(many.to_sparse_coo() if sparse else many))


def test_halves_of_few_values_have_no_answer() -> None:
    assert not few_values(graph(numbers(FEWEST)))
    assert agreement(graph(numbers(FEWEST)), 2) is not None
    assert agreement(graph(numbers(FEWEST - 1)), 2) is None
    assert agreement(graph(categories(4, 20, 9)), 2) is None


@pytest.mark.parametrize("x", [numbers(), categories(4, 20, 9)], ids=["numbers", "categories"])
def test_where_neighbours_are_alike_the_last_scale_counts_most(x: torch.Tensor) -> None:
    settings, choices = settings_of("mux-hop", graph(x))
    assert {key: settings[key] for key in FOR_FEW_VALUES} == FOR_FEW_VALUES
    told = {choice.key: choice.reason for choice in choices}
    assert (
        told["readout_weights"]
        == "a node has fewer than 16 values, and neighbours are alike in them"
    )
    assert settings["norm"] == "layer"  # features are not taken for noise


@pytest.mark.parametrize("x", [numbers(), categories(4, 20, 9)], ids=["numbers", "categories"])
def test_where_neighbours_are_unlike_the_scales_stay_as_they_are(x: torch.Tensor) -> None:
    plain = settings_of("mux-hop", graph(numbers(FEWEST)))[0]["readout_weights"]
    for step in (1, 2):
        settings, _ = settings_of("mux-hop", graph(x, step))
        assert settings["readout_weights"] == plain != FOR_FEW_VALUES["readout_weights"]


def test_alike_is_above_chance_unlike_below_and_anything_else_within() -> None:
    x = torch.eye(CLASSES)[KIND]
    assert neighbours_alike(graph(x)) > 5 * BY_CHANCE
    assert neighbours_alike(graph(x, 2)) < -2 * BY_CHANCE
    assert abs(neighbours_alike(graph(x, None))) < BY_CHANCE
    alone = Graph.from_data(Tensors(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long)))
    assert neighbours_alike(alone) == 0.0


def test_alike_is_the_sum_in_loops_over_what_chance_gives() -> None:
    one = graph(numbers(3))
    x = one.dense_features().double().numpy()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    near: list[list[int]] = [[] for _ in range(NODES)]
    for i, j in one.adjacency.edge_index.numpy().T:
        if i != j:
            near[i].append(j)
    own = np.array([unit[i] for i in range(NODES) if near[i]])
    means = np.array([unit[row].mean(0) for row in near if row])
    own, means = own - own.mean(0), means - means.mean(0)
    chance = np.random.default_rng(1)
    dealt = [(own * chance.permutation(means)).sum() for _ in range(400)]
    assert abs(np.mean(dealt)) < 0.2 * np.std(dealt)  # rows are centred
    want = (own * means).sum() / np.std(dealt)
    found = [neighbours_alike(one, seed) for seed in range(20)]
    assert np.median(found) == pytest.approx(want, rel=0.15)
