"""What settings are chosen by: labels of the development half, structure, or hidden links."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from muxgcl.errors import UserError
from muxgcl.evaluate import (
    development_half,
    development_splits,
    holdout_splits,
    probe,
    structure,
)
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.io.load import Loaded, load
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan
from muxgcl.tune import ByLabels, ByLinks, ByStructure, measure_of, tune

SMALL = {"width": 8, "projection": 8, "projection_out": 8, "affinity": "none"}
FAST = {**SMALL, "epochs": 2}


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load(planted(nodes=60, seed=3))


@pytest.fixture(scope="module")
def graph(loaded: Loaded) -> Graph:
    return Graph.from_data(loaded.data)


def test_by_labels_is_the_mean_accuracy_in_the_development_half(
    loaded: Loaded, graph: Graph
) -> None:
    y, plan = loaded.data.y.numpy(), Plan.make("mux-gcl", "auto", overrides=FAST, graph=graph)
    splits = development_splits(y, 3, seed=5)
    tables = [fit(replace(plan, seed=seed), graph).embed().numpy() for seed in (100, 101)]
    want = np.mean([s.accuracy for z in tables for s in probe(z, y, splits).splits])
    found = ByLabels(graph, y, splits, seeds=2)(plan)
    assert found == {"development_accuracy": pytest.approx(want)}


def test_a_search_by_labels_keeps_the_accuracy_of_every_split_for_its_verdict(
    loaded: Loaded, graph: Graph, tmp_path: Path
) -> None:
    y = loaded.data.y.numpy()
    splits = development_splits(y, 3)
    measure = ByLabels(graph, y, splits, seeds=2)
    tune(graph, measure, tmp_path / "s", trials=1, fixed=FAST)
    outcome = tune(graph, measure, tmp_path / "s", trials=1, fixed=FAST)  # from the file
    rows = np.array(outcome.best.accuracies)
    assert rows.shape == (2, 3)
    assert rows.mean() == pytest.approx(outcome.best.value)
    judged = outcome.verdict
    assert judged is not None
    pairs = rows - np.array(outcome.controls[judged.control])
    assert (judged.seeds, judged.difference.n) == (2, 6)
    assert judged.difference.mean == pytest.approx(pairs.mean())
    assert judged.ahead == (pairs > 0).sum()
    assert outcome.scores["development"]["accuracy"]["n"] == 6


def test_labels_of_the_report_half_change_nothing(
    loaded: Loaded, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = loaded.data.y.numpy()
    splits, half = development_splits(y, 2), development_half(y)
    wrong = y.copy()
    wrong[~half] = np.roll(y[~half], 7)
    assert (wrong != y).sum() > 10
    for name, labels in {"right": y, "wrong": wrong}.items():
        with monkeypatch.context() as patch:  # the halves themselves hang on the classes
            patch.setattr("muxgcl.evaluate.development.development_half", lambda _: half)
            tune(graph, ByLabels(graph, labels, splits), tmp_path / name, trials=3, fixed=FAST)
    one, two = (
        tune(graph, ByLabels(graph, y, splits), tmp_path / name, trials=3, fixed=FAST)
        for name in ("right", "wrong")  # the second study is continued with the right labels
    )
    assert one == two
    other = ByLabels(graph, y, development_splits(y, 2, seed=1))
    with pytest.raises(UserError, match="another choice of seeds and splits"):
        tune(graph, other, tmp_path / "right", trials=3, fixed=FAST)


def test_splits_that_leave_the_development_half_are_refused(graph: Graph, loaded: Loaded) -> None:
    y = loaded.data.y.numpy()
    with pytest.raises(UserError, match="inside the development half"):
        ByLabels(graph, y, holdout_splits(y, 1))


def test_a_graph_without_labels_is_judged_by_structure(loaded: Loaded, graph: Graph) -> None:
    bare = load(Data(x=loaded.data.x, edge_index=loaded.data.edge_index))
    assert isinstance(measure_of(bare, graph), ByStructure)
    assert isinstance(measure_of(loaded, graph, "structure"), ByStructure)
    assert isinstance(measure_of(loaded, graph, "links"), ByLinks)
    assert isinstance(measure_of(loaded, graph), ByLabels)
    with pytest.raises(UserError, match=r"no labels: --label-column .* --by structure"):
        measure_of(bare, graph, "labels")


def test_structure_is_that_of_the_embedding_over_seeds(loaded: Loaded, graph: Graph) -> None:
    plan = Plan.make("mux-gcl", "auto", overrides=FAST, graph=graph)
    found = ByStructure(graph, seeds=2)(plan)
    each = []
    for seed in (100, 101):
        z = fit(replace(plan, seed=seed), graph).embed().numpy()
        judged = structure(z, loaded.data.edge_index.numpy())
        assert judged is not None
        each.append(judged.to_dict())
    assert found == {name: (each[0][name] + each[1][name]) / 2 for name in each[0]}


def test_a_tiny_graph_is_judged_by_links_unless_structure_is_asked_for() -> None:
    tiny = load(Data(x=torch.rand(12, 3), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])))
    few = Graph.from_data(tiny.tensors)
    assert isinstance(measure_of(tiny, few), ByLinks)
    with pytest.raises(UserError, match="at least 20 nodes, got 4 edges and 12 nodes"):
        measure_of(tiny, few, "structure")


def test_training_by_links_never_sees_a_hidden_edge(
    loaded: Loaded, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[tuple[int, int]]] = []

    def spy(plan: Plan, left: Graph, **rest: Any) -> Any:
        seen.append({(a, b) for a, b in left.adjacency.edge_index.T.tolist()})
        return fit(plan, left, **rest)

    monkeypatch.setattr("muxgcl.tune.measure.fit", spy)
    measure = ByLinks(loaded, seeds=2)
    found = measure(Plan.make("mux-gcl", "auto", overrides=FAST, graph=graph))
    assert set(found) == {"auc", "ap"}
    assert 0 <= min(found.values()) <= max(found.values()) <= 1
    whole = {(a, b) for a, b in loaded.data.edge_index.T.tolist()}
    for edges, (_, hidden) in zip(seen, measure.questions.values(), strict=True):
        gone = {(a, b) for a, b in hidden.positives.tolist()}
        assert len(gone) == round(0.1 * len(whole) / 2)
        assert whole - edges == gone | {(b, a) for a, b in gone}
    assert seen[0] != seen[1]
