"""Methods with more than a contrast in their loss: what of it is sampled, and what is not."""

import itertools
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.testing import assert_close

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.kernels import Sample, Sampling, Sigmoid
from muxgcl.kernels.ring import Shard, Workers
from muxgcl.methods import METHODS, Context, total
from muxgcl.methods.costa import Costa, CostaConfig
from muxgcl.methods.homogcl import HomoGcl, HomoGclConfig
from muxgcl.methods.ns4gc import similarities
from muxgcl.methods.parts.hardness import KNOTS
from muxgcl.methods.progcl import ProGcl, ProGclConfig
from muxgcl.methods.signa import contrast
from muxgcl.runs.plan import Plan, build

N, T = 7, 0.5
GRAPH = Graph.from_data(planted(nodes=N, degree=3))
ADJACENCY = GRAPH.adjacency
SIZES = [(3, 3), (2, 5), (5, 2), (7, 4)]


def rows(n: int = N, d: int = 4) -> Tensor:
    return normalize(torch.randn(n, d, dtype=torch.float64), dim=1)


def sample_of(first: tuple[int, ...], anchors: int, keys: int) -> Sample:
    return Sample(torch.tensor(first), anchors, keys, N)


def every_sample(anchors: int, keys: int) -> Iterator[Sample]:
    for some in itertools.combinations(range(N), max(anchors, keys)):
        for first in itertools.combinations(some, min(anchors, keys)):
            rest = [node for node in some if node not in first]
            yield sample_of((*first, *rest), anchors, keys)


def mean_and_gradients(losses: list[Tensor], tables: list[Tensor]) -> list[Tensor]:
    loss = torch.stack(losses).mean()
    return [loss, *torch.autograd.grad(loss, tables, retain_graph=True)]


@pytest.mark.parametrize(("anchors", "keys"), SIZES)
def test_the_mean_of_signa_over_all_samples_is_its_exact_loss(anchors: int, keys: int) -> None:
    table = rows().requires_grad_()
    kept = ((torch.rand(len(ADJACENCY.col)) < 0.6) & ~ADJACENCY.loop).double()
    found = [contrast(table, ADJACENCY, kept, sample=s) for s in every_sample(anchors, keys)]
    exact = contrast(table, ADJACENCY, kept)
    for term in exact:
        want = mean_and_gradients([exact[term]], [table])
        assert_close(mean_and_gradients([f[term] for f in found], [table]), want)
    assert not torch.allclose(found[0]["others"], found[1]["others"])


@pytest.mark.parametrize(("anchors", "keys"), SIZES)
def test_the_mean_of_ns4gc_over_all_samples_is_its_exact_loss(anchors: int, keys: int) -> None:
    tables, above = [rows().requires_grad_() for _ in range(2)], Sigmoid(0.3, 0.2)
    found = [similarities(*tables, ADJACENCY, above, sample=s) for s in every_sample(anchors, keys)]
    exact = similarities(*tables, ADJACENCY, above)
    for k in range(3):
        want = mean_and_gradients([exact[k]], tables)
        assert_close(mean_and_gradients([f[k] for f in found], tables), want)


@pytest.mark.parametrize(("anchors", "keys"), SIZES)
@pytest.mark.parametrize("mean", [False, True])
def test_homogcl_has_all_positives_and_estimates_negatives(
    anchors: int, keys: int, mean: bool
) -> None:
    cfg = HomoGclConfig(width=8, temperature=T, mean_neighbors=mean)
    method = HomoGcl(GRAPH, cfg, Context())
    one, two, p = rows(), rows(), torch.rand(N, 3, dtype=torch.float64)
    kept = ((torch.rand(2, len(ADJACENCY.col)) < 0.7) & ~ADJACENCY.loop).double()
    edges = torch.zeros(2, N, N, dtype=torch.float64)
    edges[:, ADJACENCY.row, ADJACENCY.col] = kept
    sample = sample_of(tuple(torch.randperm(N)[: max(anchors, keys)].tolist()), anchors, keys)
    nodes, losses = sample.nodes.tolist(), []
    for u, v, (near, far) in ((one, two, edges), (two, one, edges.flip(0))):
        for i in nodes[:anchors]:
            own = (u[i] @ v[i] / T).exp()
            salient = sum(
                near[i, j] * torch.cosine_similarity(p[i], p[j], dim=0) * (u[i] @ u[j] / T).exp()
                for j in range(N)
            )
            positive = own + (salient / (near[i].sum() + 0.01) if mean else salient)
            others = [j for j in nodes[:keys] if j != i]
            push = sum(
                (1 - near[i, j]) * (u[i] @ u[j] / T).exp()
                + (1 - far[i, j]) * (u[i] @ v[j] / T).exp()
                for j in others
            )
            whole = positive + own + push * (N - 1) / len(others)
            losses.append((whole / positive).log())
    got = method.contrast(ADJACENCY, one, two, kept.flatten(), p, sample)
    assert_close(got, torch.stack(losses).mean())


@pytest.mark.parametrize(("anchors", "keys"), SIZES)
def test_progcl_weighs_the_sampled_negatives_by_means_over_all_nodes(
    anchors: int, keys: int
) -> None:
    cfg = ProGclConfig(width=4, temperature=T, centrality="none")
    method = ProGcl(GRAPH, cfg, Context()).double()
    method.hardness.remember(rows(), rows())
    x = torch.linspace(0, 1, KNOTS, dtype=torch.float64)
    method.hardness.freeze(x * (1 - x) + 0.1)
    x = (method.hardness.rows @ method.hardness.cols.T + 1) / 2
    b = x * (1 - x) + 0.1
    tables = [rows(), rows()]
    sample = sample_of(tuple(torch.randperm(N)[: max(anchors, keys)].tolist()), anchors, keys)
    nodes, losses = sample.nodes.tolist(), []
    for u, v in (tables, tables[::-1]):
        for i in nodes[:anchors]:
            mean = (b[i].sum() - b[i, i]) / (N - 1)
            others = [j for j in nodes[:keys] if j != i]
            push = sum(
                b[i, j] / mean * ((u[i] @ v[j] / T).exp() + (u[i] @ u[j] / T).exp()) for j in others
            )
            pull = (u[i] @ v[i] / T).exp()
            losses.append(((pull + push * (N - 1) / len(others)) / pull).log())
    got = method.contrast(sample.take(torch.cat(tables)), sample)
    assert_close(got, torch.stack(losses).mean(), rtol=1e-6, atol=0)  # B is a curve of knots


def test_progcl_remembers_all_nodes_until_the_switch_and_then_encodes_the_sample_alone() -> None:
    cfg = ProGclConfig(width=4, centrality="none")
    method, seen = ProGcl(GRAPH, cfg, Context(sampling=Sampling(2, 3))), []
    method.projector.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    method.loss(GRAPH)
    assert (method.hardness.rows.norm(dim=1) > 0.99).all()
    method.reach(1)
    before = method.hardness.rows.clone()
    method.loss(GRAPH)
    assert seen == [2 * N, 2 * 3]
    assert torch.equal(method.hardness.rows, before)


def test_progcl_refuses_to_sample_where_it_mixes() -> None:
    with pytest.raises(UserError, match="mode mix has no sampled contrast; mode weight has one"):
        Plan.make("progcl", "quick", overrides={"mode": "mix"}, anchors=2, keys=3)
    context = Context(sampling=Sampling(2, 3))
    with pytest.raises(UserError, match="mode mix has no sampled contrast; mode weight has one"):
        ProGcl(GRAPH, ProGclConfig(mode="mix"), context)


@pytest.mark.parametrize("sketch", ["gaussian", "sparse"])
@pytest.mark.parametrize("kept", [True, False])
def test_costa_contrasts_some_rows_of_its_sketch(
    sketch: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a sample are as long as those of the whole sketch."""
    if not kept:
        monkeypatch.setattr("muxgcl.methods.costa.BLOCK_BYTES", 0)
    graph = Graph.from_data(planted(nodes=40))
    cfg = CostaConfig(width=8, sketch=sketch)
    method = Costa(graph, cfg, Context(sampling=Sampling(4, 6)))
    samples = [method.context.sample(graph, 20) for _ in range(300)]
    assert {(s.of, len(s.nodes)) for s in samples if s is not None} == {(20, 6)}
    mixed = [method.mix(torch.eye(40), sample) for sample in samples]
    squares = [table.square().sum() for table in mixed]
    assert mixed[0].shape == (6, 40)
    assert float(torch.stack(squares).mean()) == pytest.approx(6 * 40 / 20, rel=0.05)
    assert total(method.loss(graph)).isfinite()


@pytest.mark.parametrize("name", [k for k, v in METHODS.items() if v.samples and not v.divides])
def test_what_cannot_be_divided_among_workers_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = build(Plan.make(name, "quick"), GRAPH)
    shard = Shard(Workers(0, 2), N)
    monkeypatch.setattr(Context, "draw", lambda self, *given: shard)
    with pytest.raises(UserError, match="cannot be divided among workers"):
        method.loss(GRAPH)


@pytest.mark.parametrize("name", ["mux-gcl", "mux-hop", "grace", "gca"])
def test_workers_with_nodes_of_their_own_draw_the_same_random_numbers(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else their next views would differ, whatever the fanout is."""
    graph = Graph.from_data(planted(nodes=41))
    monkeypatch.setattr(Shard, "contrast", lambda self, f, anchor, *rest, **how: anchor.sum())
    after = []
    for rank in (0, 1):
        settings = {"width": 8, "fanout": 2}
        method = build(Plan.make(name, "quick", overrides=settings, device="cpu"), graph)
        shard = Shard(Workers(rank, 2), 41)
        monkeypatch.setattr(Context, "draw", lambda self, *given, s=shard: s)
        torch.manual_seed(1)
        method.loss(graph)
        after.append(torch.get_rng_state())
    assert torch.equal(*after)
