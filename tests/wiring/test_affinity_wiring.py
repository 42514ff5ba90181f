"""Affinity settings, and the small trainings behind patches against plain torch."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import logsigmoid
from torch.testing import assert_close

from muxgcl.affinity import AffinityConfig, SkipGram, Vgae, WalkGraph, skip_gram, skipgram
from muxgcl.affinity.autoencoder import LARGEST_LOG_STD, reconstruction, vgae
from muxgcl.affinity.estimate import load_table, store_table
from muxgcl.affinity.walks import MOST_AT_ONCE, contains, walks
from muxgcl.augment import clean
from muxgcl.errors import UserError
from muxgcl.graph import Adjacency, Graph
from muxgcl.io.planted import planted
from muxgcl.seeding import seeded


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.from_data(planted(nodes=30, features=8, isolated=1))


def test_every_kind_of_affinity_reads_its_own_settings_and_defaults() -> None:
    walk = {"epochs": 4, "lr": 0.02, "length": 20, "context": 10, "walks_per_node": 10}
    walk |= {"width": 128, "negatives": 1.0, "p": 1.0, "q": 1.0}
    assert AffinityConfig().embedding_settings() == walk
    given: dict[str, Any] = {
        "affinity_width": 5,
        "affinity_epochs": 6,
        "affinity_lr": 0.5,
        "walk_length": 9,
        "walk_context": 3,
        "walks_per_node": 2,
        "walk_p": 0.25,
        "walk_q": 4.0,
        "walk_negatives": 2.0,
    }
    mine = {"width": 5, "epochs": 6, "lr": 0.5, "length": 9, "context": 3, "walks_per_node": 2}
    second = AffinityConfig(affinity="node2vec", **given)
    assert second.embedding_settings() == {**mine, "negatives": 2.0, "p": 0.25, "q": 4.0}
    first = AffinityConfig(affinity="deepwalk", **given)
    assert first.embedding_settings() == {**mine, "negatives": 2.0, "p": 1.0, "q": 1.0}
    encoder = AffinityConfig(affinity="vgae", **given)
    assert encoder.embedding_settings() == {"width": 5, "epochs": 6, "lr": 0.5}
    plain = AffinityConfig(affinity="vgae").embedding_settings()
    assert plain == {"width": 128, "epochs": 100, "lr": 5e-4}
    with pytest.raises(UserError, match="affinity is none"):
        AffinityConfig(affinity="none").embedding_settings()


@pytest.mark.parametrize("name", ["affinity_width", "affinity_epochs", "walks_per_node"])
def test_a_count_is_at_least_one(name: str) -> None:
    AffinityConfig(**{name: 1})
    with pytest.raises(UserError, match=f"{name} must be at least 1, got 0"):
        AffinityConfig(**{name: 0})


@pytest.mark.parametrize("name", ["affinity_lr", "walk_p", "walk_q", "walk_negatives"])
def test_a_number_is_positive_and_finite(name: str) -> None:
    AffinityConfig(**{name: 1e-9})
    for bad in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(UserError, match=f"{name} must be a positive number, got {bad}"):
            AffinityConfig(**{name: bad})


def test_a_context_has_two_nodes_at_least_and_no_more_than_a_walk() -> None:
    AffinityConfig(walk_context=2, walk_length=2)
    for context in (1, 21):
        with pytest.raises(UserError, match=r"at least 2 and at most walk_length \(20\), got"):
            AffinityConfig(walk_context=context)
    for name in ("affinity", "pooling"):
        with pytest.raises(UserError, match=f"{name} must be one of .*, got 'other'"):
            AffinityConfig(**{name: "other"})


# skip-gram --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.5, 2.0)])
def test_skip_gram_is_adam_with_a_rate_that_falls_to_zero(
    p: float, q: float, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same walks and negatives, by torch's own Adam."""
    monkeypatch.setattr(skipgram, "BATCH", 10)
    lr, rounds, batches, length = 0.1, 2 * 3, 3, 5
    told: list[tuple[int, int]] = []
    how = {"width": 4, "epochs": 2, "lr": lr, "length": length, "context": 3, "p": p, "q": q}
    with seeded(4):
        got = skip_gram(
            graph, **how, walks_per_node=3, negatives=2.0, on_step=lambda *s: told.append(s)
        )
    with seeded(4):
        paths = WalkGraph.of(graph.adjacency)
        linked = paths.linked
        assert len(linked) == 29
        model = SkipGram(30, 4, context=3, negatives=2.0)
        assert 0.05 < float(model.table.detach().std()) < 0.15
        plain = torch.optim.Adam(model.parameters(), lr=lr)
        for number in range(rounds):
            starts = linked[torch.rand(29).argsort()]
            met = walks(paths, starts, length, p, q)
            for k, walked in enumerate(met.tensor_split(batches)):
                others = linked[torch.randint(29, (64,))]
                plain.zero_grad()
                model.loss(walked, others).backward()
                plain.param_groups[0]["lr"] = lr * (1 - (number * batches + k) / (rounds * batches))
                plain.step()
    want = model.table.detach().clone()
    want[[i for i in range(30) if i not in linked.tolist()]] = 0
    assert_close(got, want, rtol=1e-4, atol=1e-5)
    assert told == [(batches * (k + 1), rounds * batches) for k in range(rounds)]


def test_a_step_has_many_walks_and_a_round_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def loss(self: SkipGram, walked: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        seen.append(len(walked))
        assert len(others) == skipgram.SHARED_NEGATIVES == 64
        return self.table.sum() * 0

    monkeypatch.setattr(SkipGram, "loss", loss)
    how = {"width": 1, "epochs": 1, "lr": 0.1, "length": 2, "context": 2}
    for nodes, sizes in ((512, [512]), (514, [257, 257]), (16 * 512 + 16, [513] * 16)):
        seen.clear()
        ring = torch.arange(nodes)
        edges = torch.stack([ring, (ring + 1) % nodes])
        skip_gram(
            Graph(torch.ones(nodes, 1), Adjacency.from_edges(edges, nodes)),
            **how,
            walks_per_node=1,
            negatives=1.0,
        )
        assert seen == sizes


def test_a_graph_without_edges_needs_no_walks() -> None:
    none = Adjacency.from_edges(torch.empty(2, 0, dtype=torch.long), 3)
    how = {"width": 4, "epochs": 1, "lr": 0.1, "length": 3, "context": 2}
    table = skip_gram(Graph(torch.ones(3, 1), none), **how, walks_per_node=1, negatives=1.0)
    assert torch.equal(table, torch.zeros(3, 4))


def test_a_skip_gram_table_has_the_usual_settings_by_default() -> None:
    model = SkipGram(3)
    assert (model.table.shape, model.context, model.negatives) == ((3, 128), 10, 1.0)


# auto-encoder -----------------------------------------------------------------------------------


def test_an_auto_encoder_is_two_layers_and_half_of_the_last_is_the_mean(graph: Graph) -> None:
    model = Vgae(8, 3)
    assert [tuple(w.shape) for w in model.encoder.weights] == [(8, 6), (6, 6)]
    whole = model.encoder.embed(clean(graph))
    assert_close(model.embed(graph), whole[:, :3])
    plain = Vgae(8, 3, variational=False, hidden=5)
    assert [tuple(w.shape) for w in plain.encoder.weights] == [(8, 5), (5, 3)]
    assert_close(plain.embed(graph), plain.encoder.embed(clean(graph)))
    assert (plain.embed(graph) < 0).any()  # no activation at the end
    assert Vgae(8).embed(graph).shape == (30, 128)


def test_the_variational_loss_draws_around_the_mean(graph: Graph) -> None:
    model = Vgae(8, 3)
    with torch.no_grad():
        model.encoder.biases[1].copy_(torch.tensor([0.0, 0.0, 0.0, -1.0, 0.5, 40.0]))
    mean, log_std = model.encoder.embed(clean(graph)).chunk(2, 1)
    assert (log_std > LARGEST_LOG_STD).any()
    log_std = log_std.clamp(max=10.0)
    with seeded(2):
        terms = model.loss(graph)
    with seeded(2):
        drawn = mean + torch.randn(30, 3) * log_std.exp()
        want = reconstruction(drawn, graph.adjacency)
    assert_close(terms["reconstruction"], want)
    divergence = 0.5 * (mean**2 + torch.exp(2 * log_std) - 1 - 2 * log_std).sum(1)
    assert_close(terms["divergence"], divergence.mean() / 30)


def test_one_drawn_pair_without_an_edge_counts_once() -> None:
    one_edge = adjacency((0, 1), nodes=3)
    nodes = torch.tensor([[1.0, 0.5], [0.3, -0.2], [0.7, 2.0]])
    told = -logsigmoid(nodes[0] @ nodes[1])
    found = []
    for seed in range(12):
        with seeded(seed):
            got = reconstruction(nodes, one_edge)
        with seeded(seed):
            i, j = torch.randint(3, (2, 1)).flatten().tolist()
        stranger = i != j and {i, j} != {0, 1}
        found.append(stranger)
        assert_close(got, told - logsigmoid(-nodes[i] @ nodes[j]) * stranger)
    assert set(found) == {True, False}


def test_vgae_is_trained_by_adam_on_both_terms_and_told_of(graph: Graph) -> None:
    told: list[tuple[int, int]] = []
    with seeded(6):
        got = vgae(graph, width=3, epochs=4, lr=0.05, on_step=lambda *step: told.append(step))
    with seeded(6):
        model = Vgae(8, 3)
        plain = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(4):
            plain.zero_grad()
            torch.stack([*model.loss(graph).values()]).sum().backward()
            plain.step()
    assert_close(got, model.embed(graph).detach(), rtol=1e-4, atol=1e-5)
    assert not got.requires_grad
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with seeded(6):
        assert torch.equal(vgae(graph, width=3, epochs=4, lr=0.05), got)


# walks ------------------------------------------------------------------------------------------


def adjacency(*edges: tuple[int, int], nodes: int = 4, weight: list[float] | None = None) -> Any:
    index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    weights = None if weight is None else torch.tensor(weight)
    return Adjacency.from_edges(index, nodes, weights)


def test_a_number_is_found_in_a_sorted_list_wherever_it_lies() -> None:
    listed = torch.tensor([2, 5, 9])
    wanted = torch.tensor([[1, 2, 3, 5], [8, 9, 10, 99]])
    assert contains(listed, wanted).tolist() == [
        [False, True, False, True],
        [False, True, False, False],
    ]
    assert not contains(listed[:0], wanted).any()


def test_a_walk_graph_lists_edges_without_loops_and_weights_where_they_differ() -> None:
    paths = WalkGraph.of(adjacency((0, 1), (0, 2), (1, 1)))
    assert paths.degree.tolist() == [2, 1, 1, 0]
    assert paths.first.tolist() == [0, 2, 3, 4]
    assert paths.target.tolist() == [1, 2, 0, 0]
    assert paths.key.tolist() == [1, 2, 4, 8]
    assert paths.mass is None
    assert paths.linked.tolist() == [0, 1, 2]
    weighted = WalkGraph.of(adjacency((0, 1), (0, 2), (2, 3), weight=[1.0, 3.0, 0.0]))
    assert weighted.mass is not None
    assert weighted.mass.tolist() == [0.0, 1.0, 4.0, 5.0, 8.0]
    assert weighted.mass.dtype == torch.float64
    assert weighted.degree.tolist() == [2, 1, 1, 0]  # an edge of weight 0 is none
    pairs = [(i, j) for i in range(4) for j in range(4)]
    found = paths.adjacent(*torch.tensor(pairs).T)
    assert [pair for pair, is_edge in zip(pairs, found.tolist(), strict=True) if is_edge] == [
        (0, 1),
        (0, 2),
        (1, 0),
        (2, 0),
    ]


@pytest.mark.parametrize(
    ("p", "q", "weighted", "least"),
    [
        (1.0, 1.0, False, 1.0),
        (2.0, 1.0, False, 0.75),  # (1/2 + 1) / 2: one of two neighbours is the way back
        (2.0, 1.0, True, 0.5),
        (1.0, 4.0, False, 0.25),
        (0.5, 1.0, False, 0.5),  # against a most of 2
        (1.0, 0.5, False, 0.5),
        (4.0, 2.0, False, 0.375),
        (4.0, 2.0, True, 0.25),
    ],
)
def test_proposals_at_once_miss_once_in_a_billion_steps(
    p: float, q: float, weighted: bool, least: float
) -> None:
    paths = WalkGraph.of(adjacency((0, 1), (1, 2), weight=[1.0, 2.0] if weighted else None))
    count = paths.at_once(p, q)
    assert count is not None
    assert (1 - least) ** count <= 1e-9
    assert count == 1 or (1 - least) ** (count - 1) > 1e-9


def test_at_most_512_proposals_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = WalkGraph.of(adjacency((0, 1), (1, 2)))
    counts = {q: paths.at_once(1.0, q) for q in (24.0, 25.0, 26.0)}
    assert MOST_AT_ONCE == 512
    assert counts == {24.0: 487, 25.0: 508, 26.0: None}
    monkeypatch.setattr(sys.modules["muxgcl.affinity.walks"], "MOST_AT_ONCE", 508)
    assert paths.at_once(1.0, 25.0) == 508


def test_no_step_leads_into_another_nodes_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """At both ends of what a generator can draw, and where one edge's share ends."""
    plain, weighted = None, [1.0, 3.0, 2.0]
    for weight, chance, want in (
        (plain, 0.0, [1, 0, 0, 2]),
        (plain, 0.25, [1, 0, 0, 2]),
        (plain, 0.5, [2, 0, 3, 2]),
        (plain, 1.0, [2, 0, 3, 2]),
        (weighted, 0.0, [1, 0, 0, 2]),
        (weighted, 0.25, [2, 0, 0, 2]),  # the first quarter is the lighter edge's
        (weighted, 1.0, [2, 0, 3, 2]),
    ):
        paths = WalkGraph.of(adjacency((0, 1), (0, 2), (2, 3), weight=weight))
        drawn = torch.full((4,), chance, dtype=torch.float64)
        monkeypatch.setattr(torch, "rand", lambda shape, drawn=drawn, **how: drawn)
        assert paths.step(torch.arange(4)).tolist() == want


def test_a_first_order_walk_draws_once_a_step(graph: Graph) -> None:
    paths, starts = WalkGraph.of(graph.adjacency), torch.arange(30)
    with seeded(8):
        got = walks(graph.adjacency, starts, 4)
    with seeded(8):
        want = [starts]
        for _ in range(3):
            want.append(paths.step(want[-1]))
    assert torch.equal(got, torch.stack(want, 1))


# cache ------------------------------------------------------------------------------------------


def test_a_cached_table_comes_back_and_a_changed_one_does_not(tmp_path: Path) -> None:
    table, file = torch.randn(4, 3), tmp_path / "a.safetensors"
    assert load_table(file) is None
    store_table(file, table.T)
    assert torch.equal(load_table(file), table.T)  # type: ignore[arg-type]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert load_table(file) is None


def test_half_written_files_are_cleared_after_an_hour(tmp_path: Path) -> None:
    young, old = (tmp_path / f".muxgcl.{name}.part" for name in ("young", "old"))
    for file, age in ((young, 3500), (old, 3700)):
        file.touch()
        then = time.time() - age
        os.utime(file, (then, then))
    store_table(tmp_path / "a.safetensors", torch.ones(1, 1))
    assert young.exists()
    assert not old.exists()
