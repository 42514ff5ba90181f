"""How far halves of the features agree: against loops, and where the answer is known."""

from itertools import permutations
from math import sqrt

import numpy as np
import pytest
import torch

from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.io.load import load
from muxgcl.io.sbm import Sbm, make_sbm
from muxgcl.runs import agreement as module
from muxgcl.runs.agreement import agreement
from muxgcl.runs.auto import FOR_NOISE, NOISY, settings_for, settings_of
from muxgcl.runs.plan import Plan
from muxgcl.tensors import Tensors


def graph_of(x: torch.Tensor, edges: int = 60) -> Graph:
    ends = torch.randint(len(x), (2, edges), generator=torch.Generator().manual_seed(3))
    return Graph.from_data(Tensors(x=x, edge_index=ends))


def test_it_is_the_formula_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.rand(20, 18, generator=torch.Generator().manual_seed(1)) ** 4
    graph = graph_of(x)
    a = np.arange(9), np.arange(9, 18)
    monkeypatch.setattr(module, "HALVINGS", 1)
    monkeypatch.setattr(module, "BLOCK", 7)
    monkeypatch.setattr(np, "array_split", lambda *given: list(a))
    found = agreement(graph, 2)
    assert found is not None
    hat = torch.zeros(20, 20, dtype=torch.float64)
    for i, row in enumerate(torch.eye(20)):
        hat[:, i] = graph.adjacency.propagation().matrix.multiply(row[:, None])[:, 0].double()
    for table, got in zip((x.double(), hat @ hat @ x.double()), found, strict=True):
        halves = []
        for part in a:
            rows = [row / sqrt(sum(v * v for v in row)) for row in table[:, part].numpy()]
            halves.append([row - sum(rows) / 20 for row in rows])
        one, two = halves
        pairs = list(permutations(range(20), 2))
        products = [(float(one[i] @ one[j]), float(two[i] @ two[j])) for i, j in pairs]
        both = sum(p * q for p, q in products)
        want = both / sqrt(sum(p * p for p, _ in products) * sum(q * q for _, q in products))
        assert got == pytest.approx(want, rel=1e-4)


def test_halves_that_say_the_same_agree_wholly() -> None:
    kind = torch.arange(40) % 4
    x = torch.eye(4)[kind].repeat(1, 16)  # every column sixteen times: any half has all of them
    found = agreement(graph_of(x), 1)
    assert found is not None
    assert found[0] > 0.9


def test_independent_columns_agree_on_nothing_but_what_hops_share() -> None:
    x = torch.randn(1500, 40, generator=torch.Generator().manual_seed(2))
    found = agreement(graph_of(x, 4000), 2)
    assert found is not None
    assert abs(found[0]) < 0.01 < found[1]


def test_few_columns_or_nodes_have_no_answer() -> None:
    assert agreement(graph_of(torch.rand(40, 15)), 2) is None
    assert agreement(graph_of(torch.rand(15, 40)), 2) is None


def test_columns_that_are_all_zero_are_no_error() -> None:
    some = torch.zeros(30, 40)
    some[:, :16] = 1.0
    found = agreement(graph_of(some), 2)
    assert found is not None
    assert np.isfinite(found).all()
    assert agreement(graph_of(torch.zeros(30, 20)), 2) is None
    assert settings_of("mux-hop", graph_of(torch.zeros(30, 20)))[0]["norm"] == "layer"


@pytest.mark.parametrize(("signal", "noisy"), [(0.04, True), (0.5, False)])
def test_where_words_are_noise_the_earlier_scales_count_for_less(
    signal: float, noisy: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("sbm") / "graph"
    make_sbm(folder, Sbm(nodes=4000, classes=10, features=400, signal=signal))
    graph = Graph.from_data(load(folder).tensors)
    found = agreement(graph, 2)
    assert found is not None
    assert (found[0] < NOISY * found[1]) == noisy
    plan = Plan.make("mux-hop", "auto", graph=graph)
    named = {choice.key: choice.reason for choice in plan.choices}
    plain = settings_for(graph.num_nodes, graph.num_features, len(graph.adjacency.col))[0]
    for key, value in FOR_NOISE.items():
        usual = tuple(plain[key]) if isinstance(plain[key], list) else plain[key]
        assert getattr(plan.settings, key) == (value if noisy else usual)
        assert ("noise" in named.get(key, "")) == (noisy and value != usual)


def test_settings_of_noise_fit_the_hops_that_auto_has() -> None:
    graph = Graph.from_data(planted(nodes=60))
    assert len(FOR_NOISE["readout_weights"]) == settings_of("mux-hop", graph)[0]["hops"] + 1


def test_a_table_of_features_that_is_left_out_stays_out(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.from_data(planted(nodes=60))
    monkeypatch.setattr("muxgcl.runs.auto.agreement", lambda graph, hops: (0.0, 1.0))
    for key in ("readout_features", "readout_raw"):
        assert settings_of("mux-hop", graph)[0][key] == FOR_NOISE[key]
    monkeypatch.setattr("muxgcl.runs.auto.FEATURE_BYTES", 0)
    for key in ("readout_features", "readout_raw"):
        assert settings_of("mux-hop", graph)[0][key] == 0.0
