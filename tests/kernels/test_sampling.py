"""A contrast over a sample: what it estimates, on every backend and in every method that has it."""

import itertools
import math
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
import torch
from test_backends import gradients, pair_weight, unit
from torch import Tensor
from torch.testing import assert_close

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.kernels import (
    LogGap,
    PairFunction,
    PairWeight,
    Sample,
    Sampling,
    Sigmoid,
    contrast,
    negative_sum,
    pair_sum,
    reference,
    taken,
)
from muxgcl.kernels.ring import bounds
from muxgcl.methods import METHODS, Context, Method, total
from muxgcl.runs.plan import Plan
from muxgcl.seeding import seeded

if find_spec("triton") and not torch.cuda.is_available():
    import triton_interpreter  # noqa: F401  mends the interpreter before a kernel runs

BACKENDS = ["reference", "chunked"]
TRITON = pytest.mark.skipif(
    not find_spec("triton") or torch.cuda.is_available(), reason="no interpreter of Triton"
)
SIZES = [(3, 3), (2, 4), (4, 2), (6, 3), (3, 6)]  # anchors and keys out of 6 nodes
SAMPLED = [name for name, kind in METHODS.items() if kind.samples]


def chosen(order: tuple[int, ...], anchors: int, keys: int, of: int) -> Sample:
    return Sample(torch.tensor(order[: max(anchors, keys)]), anchors, keys, of)


def every_sample(anchors: int, keys: int, of: int) -> Iterator[Sample]:
    """One of each pair of sets that a random order begins with; all are as likely."""
    for some in itertools.combinations(range(of), max(anchors, keys)):
        for first in itertools.combinations(some, min(anchors, keys)):
            rest = [node for node in some if node not in first]
            yield chosen((*first, *rest), anchors, keys, of)


Total = Callable[[list[Tensor], Sample | None], Tensor]


def pushes(weight: PairWeight, n: int, backend: str) -> Total:
    def sums(tables: list[Tensor], sample: Sample | None) -> Tensor:
        rows, cols = (taken(table, sample) for table in (weight.rows, weight.cols))
        how = {"temperature": 0.3, "backend": backend, "sample": sample}
        return negative_sum(*tables, PairWeight(rows, cols), nodes=n, **how)

    return sums


def values(function: PairFunction, n: int, backend: str) -> Total:
    def sums(tables: list[Tensor], sample: Sample | None) -> Tensor:
        return pair_sum(*tables, function, nodes=n, backend=backend, sample=sample)

    return sums


@pytest.mark.parametrize(
    ("backend", "anchors", "keys"),
    [
        *((name, *sizes) for name in BACKENDS for sizes in SIZES),
        *(pytest.param("fused", *sizes, marks=TRITON) for sizes in [(3, 3), (6, 3), (3, 6)]),
    ],
)
@pytest.mark.parametrize("function", [None, Sigmoid(0.2, 0.3), LogGap(0.1)])
def test_the_mean_over_all_samples_is_the_exact_sum_and_so_is_its_gradient(
    backend: str, anchors: int, keys: int, function: PairFunction | None
) -> None:
    """Every sample is as likely: their mean is the expectation, not an estimate."""
    n, kind = 6, torch.float32 if backend == "fused" else torch.float64
    tables = [unit(2 * n, 4, kind) for _ in range(2)]
    weight = pair_weight(n, n, 3, kind)
    sums = pushes(weight, n, backend) if function is None else values(function, n, backend)
    upstream, one = torch.rand(2 * n, dtype=kind), torch.ones((), dtype=kind)

    def exact(*leaves: Tensor) -> Tensor:
        return sums(list(leaves), None) @ upstream

    def estimate(*leaves: Tensor) -> Tensor:
        found = []
        for sample in every_sample(anchors, keys, n):
            part = sums([sample.take(table) for table in leaves], sample)
            rows = torch.cat([sample.anchor_nodes, sample.anchor_nodes + n])
            found.append(part @ upstream[rows] * (n / anchors))
        return torch.stack(found).mean()

    near = {"rtol": 1e-4, "atol": 1e-5} if backend == "fused" else {}
    assert_close(gradients(estimate, tables, one), gradients(exact, tables, one), **near)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("anchors", "keys"), SIZES)
@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_sampled_contrast_is_the_loss_with_negatives_that_count_for_more(
    backend: str, anchors: int, keys: int, views: int, weighted: bool
) -> None:
    n, t = 6, 0.4
    one, two = (unit(views * n, 4, torch.float64) for _ in range(2))
    weight = pair_weight(n, n, 3, torch.float64) if weighted else None
    order = tuple(torch.randperm(n).tolist())
    sample = chosen(order, anchors, keys, n)
    losses = []
    for view, i in itertools.product(range(views), order[:anchors]):
        a = one[view * n + i]
        pull = (a @ two[(view + 1) % views * n + i]) / t
        others = [j for j in order[:keys] if j != i]
        push = 0.0
        for j, other in itertools.product(others, range(views)):
            w = 1.0 if weight is None else 0.5 - 0.5 * float(weight.rows[i] @ weight.cols[j])
            push += w * math.exp(float(a @ two[other * n + j]) / t)
        whole = math.exp(float(pull)) + push * (n - 1) / len(others)
        losses.append(math.log(whole) - float(pull))
    if weight is not None:
        weight = PairWeight(sample.take(weight.rows), sample.take(weight.cols))
    got = contrast(
        sample.take(one), sample.take(two), weight, temperature=t, backend=backend, sample=sample
    )
    assert_close(got, torch.tensor(sum(losses) / len(losses), dtype=torch.float64))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("anchors", "keys", "workers"), [(6, 3, 2), (9, 3, 3), (6, 6, 2), (3, 6, 3)]
)
def test_parts_of_a_sample_add_up_to_it(
    backend: str, anchors: int, keys: int, workers: int
) -> None:
    """Also where the anchors of a worker end where the keys do."""
    n = 12
    one, two = (unit(2 * n, 4, torch.float64) for _ in range(2))
    sample = chosen(tuple(torch.randperm(n).tolist()), anchors, keys, n)

    def loss(sample: Sample) -> Tensor:
        near, far = sample.take(one), sample.take(two)
        return contrast(near, far, temperature=0.4, backend=backend, sample=sample)

    parts = [loss(sample.part(*bounds(anchors, rank, workers))) for rank in range(workers)]
    assert_close(torch.stack(parts).sum(), loss(sample))


@pytest.mark.parametrize(("anchors", "keys"), SIZES)
def test_tiles_and_the_definition_agree_on_gradients_of_a_sample(anchors: int, keys: int) -> None:
    n = 6
    sample = chosen(tuple(torch.randperm(n).tolist()), anchors, keys, n)
    weight = pair_weight(len(sample.nodes), len(sample.nodes), 3, torch.float64)
    tables = [unit(2 * len(sample.nodes), 4, torch.float64) for _ in range(2)]
    want, got = (
        gradients(
            lambda *x, b=b: contrast(*x, weight, temperature=0.2, backend=b, sample=sample),
            tables,
            torch.tensor(0.7, dtype=torch.float64),
        )
        for b in BACKENDS
    )
    assert_close(got, want)


def test_the_logarithm_lies_below_the_exact_loss_and_nears_it_with_more_keys() -> None:
    n, how = 400, {"temperature": 0.2}
    z = unit(n, 4).repeat(2, 1)  # a node is its own positive: all chance is in the negatives
    exact = float(reference.contrast(z, z, nodes=n, **how))
    gaps = []
    for keys in (8, 16, 32):
        samples = [Sampling(keys, keys).draw(n) for _ in range(500)]
        found = [contrast(s.take(z), s.take(z), sample=s, **how) for s in samples if s]
        gaps.append(exact - float(torch.stack(found).mean()))
    assert gaps[0] > 1.3 * gaps[1] > 1.3 * 1.3 * gaps[2] > 0


def test_a_sample_is_uniform_without_repeats_and_anchors_and_keys_share_nodes() -> None:
    counts = torch.zeros(10)
    for _ in range(2000):
        sample = Sampling(3, 5).draw(10)
        assert sample is not None
        assert len(sample.nodes.unique()) == 5
        assert (sample.anchors, sample.keys, sample.of) == (3, 5, 10)
        counts[sample.nodes[:3]] += 1
    assert ((counts / 2000 - 0.3).abs() < 0.05).all()  # five standard deviations


def test_all_nodes_are_no_sample_and_draw_nothing() -> None:
    before = torch.get_rng_state()
    for sampling in (Sampling(), Sampling(10, 10), Sampling(99, None)):
        assert sampling.draw(10) is None
    assert torch.equal(torch.get_rng_state(), before)
    table = torch.rand(4, 2)
    assert taken(table, None) is table


def test_rows_are_taken_in_every_view() -> None:
    sample = Sample(torch.tensor([2, 0]), 2, 2, 3)
    assert sample.take(torch.arange(6.0)[:, None]).flatten().tolist() == [2, 0, 5, 3]


@pytest.mark.parametrize(("anchors", "keys"), [(0, None), (None, 1), (-3, 4)])
def test_too_few_nodes_are_refused(anchors: int | None, keys: int | None) -> None:
    with pytest.raises(UserError, match="must be at least"):
        Sampling(anchors, keys)


GRAPH = Graph.from_data(planted(nodes=40))


def made(name: str, sampling: Sampling) -> Method:
    kind = METHODS[name]
    of_method = {"mux-gcl": {"affinity_epochs": 1}, "mux-hop": {"affinity_epochs": 1}}
    cfg = kind.Config(width=8, **{"costa": {"ratio": 1.0}, **of_method}.get(name, {}))
    with seeded(0):
        method = kind(GRAPH, cfg, Context(sampling=sampling))
        method.prepare(GRAPH)
    return method


@pytest.mark.parametrize("name", SAMPLED)
def test_a_sample_of_all_nodes_costs_what_the_exact_contrast_costs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same views with all nodes in another order: the same loss and gradients."""
    exact, sampled = made(name, Sampling()), made(name, Sampling(40, 40))
    order = torch.randperm(40)
    found = []
    for method, sample in ((exact, None), (sampled, Sample(order, 40, 40, 40))):
        monkeypatch.setattr(Context, "draw", lambda self, *given, s=sample: s)
        with seeded(3):
            loss = total(method.loss(GRAPH))
        found.append([loss, *torch.autograd.grad(loss, list(method.parameters()))])
    assert_close(found[1], found[0])


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize(("anchors", "keys"), [(8, 8), (5, 20), (20, 5)])
def test_every_method_trains_on_samples_that_its_seed_decides(
    name: str, anchors: int, keys: int
) -> None:
    losses = []
    for seed in (1, 1, 2):
        method = made(name, Sampling(anchors, keys))
        with seeded(seed):
            losses.append(total(method.loss(GRAPH)))
    losses[0].backward()
    assert torch.isfinite(losses[0])
    assert losses[0] == losses[1] != losses[2]


def test_only_rows_of_the_sample_are_projected(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mux-gcl", "grace", "gca", "sfa"):
        method, seen = made(name, Sampling(4, 6)), []
        method.projector.register_forward_pre_hook(lambda _, args, s=seen: s.append(len(args[0])))
        method.loss(GRAPH)
        scales = 3 if name == "mux-gcl" else 1
        assert sum(seen) == scales * 2 * 6


def test_a_plan_keeps_its_sampling_and_names_methods_that_have_none() -> None:
    plan = Plan.make("grace", "quick", anchors=8, keys=16)
    assert plan.sampling == Sampling(8, 16)
    assert Plan.from_tables(plan.tables()) == plan
    assert "keys" not in {k for k, v in Plan.make("grace").tables()["run"].items() if v is not None}
    with pytest.raises(UserError, match="progcl with mode mix has no sampled contrast"):
        Plan.make("progcl", anchors=8, overrides={"mode": "mix"})
    with pytest.raises(UserError, match=r"negatives \(keys\) must be at least 2.*got 1"):
        Plan.make("grace", keys=1)
    with pytest.raises(UserError, match=r"dgi has no sampled contrast .*: mux-gcl, mux-hop"):
        Plan.make("dgi", anchors=8)
