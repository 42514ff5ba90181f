import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor
from torch.testing import assert_close

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.methods import Context, progcl
from muxgcl.methods.grace import Grace, GraceConfig
from muxgcl.methods.parts import hardness
from muxgcl.methods.parts.beta_mixture import BetaMixture
from muxgcl.methods.parts.hardness import KNOTS, Hardness
from muxgcl.methods.progcl import ProGcl, ProGclConfig
from muxgcl.runs.loop import Trainer
from muxgcl.runs.settings import TrainConfig

N = 24
SMALL = {"width": 8, "projection": 8, "centrality": "none", "temperature": 0.4}


@pytest.fixture
def graph() -> Graph:
    return Graph.from_data(planted(nodes=N))


def unit(n: int = N, d: int = 8) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(n, d, dtype=torch.float64))


def fitted(graph: Graph, **settings: object) -> ProGcl:
    """In double precision, with a B that is neither constant nor monotonic."""
    cfg = ProGclConfig(**SMALL, **settings)
    method = ProGcl(graph, cfg, Context(backend="reference")).double()
    method.hardness.remember(unit(), unit())
    x = torch.linspace(0, 1, KNOTS, dtype=torch.float64)
    method.hardness.freeze(x * (1 - x) + 0.1)
    return method


def dense_b(method: ProGcl) -> Tensor:
    """The straight definition of B, off the diagonal."""
    x = (method.hardness.rows @ method.hardness.cols.T + 1) / 2
    return x * (1 - x) + 0.1


def grads(loss: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, inputs)


def test_before_the_switch_it_is_grace(graph: Graph) -> None:
    views = {"drop_edges": (0.2, 0.4), "mask_features": (0.3, 0.4), "activation": "relu"}
    mine = ProGcl(graph, ProGclConfig(**SMALL, **views), Context(epochs=10))
    cfg = GraceConfig(width=8, projection=8, temperature=0.4, **views)
    grace = Grace(graph, cfg, Context())
    grace.load_state_dict(
        {k: v for k, v in mine.state_dict().items() if not k.startswith("hardness.")}
    )
    torch.manual_seed(4)
    got = mine.loss(graph)["contrast"]
    torch.manual_seed(4)
    assert_close(got, grace.loss(graph)["scale 2"], rtol=0, atol=0)


def test_constant_hardness_is_grace(graph: Graph) -> None:
    method = ProGcl(graph, ProGclConfig(**SMALL), Context(backend="reference")).double()
    one, two = unit().requires_grad_(), unit().requires_grad_()
    before = method.contrast(torch.cat([one, two]))  # GRACE
    method.hardness.remember(unit(), unit())
    method.hardness.freeze(torch.full((KNOTS,), 0.25))  # a power of two: exact in every step
    after = method.contrast(torch.cat([one, two]))
    assert method.hardness.known
    assert_close(after, before, rtol=1e-15, atol=0)
    assert_close(grads(after, [one, two]), grads(before, [one, two]))


def test_weighted_loss_is_the_formula_in_loops(graph: Graph) -> None:
    method, t = fitted(graph), 0.4
    one, two = unit().requires_grad_(), unit().requires_grad_()
    b, want = dense_b(method), 0.0
    for u, v in ((one, two), (two, one)):
        for i in range(N):
            others = [j for j in range(N) if j != i]
            mean = sum(b[i, j] for j in others) / len(others)
            pos = (u[i] @ v[i] / t).exp()
            neg = sum(
                b[i, j] / mean * ((u[i] @ v[j] / t).exp() + (u[i] @ u[j] / t).exp()) for j in others
            )
            want = want - (pos / (pos + neg)).log() / (2 * N)
    got = method.contrast(torch.cat([one, two]))
    assert_close(got, want, rtol=1e-6, atol=0)  # the curve is straight between its knots
    for mine, theirs in zip(grads(got, [one, two]), grads(want, [one, two]), strict=True):
        assert_close(mine, theirs, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("mixed", [5, 1000])
def test_mixing_loss_is_the_formula_in_loops(graph: Graph, monkeypatch, mixed: int) -> None:
    monkeypatch.setattr(progcl, "TILE_BYTES", 4 * N * 7)  # seven rows a block
    method, t = fitted(graph, mode="mix", mixed=mixed), 0.4
    one, two = unit().requires_grad_(), unit().requires_grad_()
    b, want = dense_b(method), 0.0
    count = min(mixed, N - 1)
    torch.manual_seed(8)
    orders = [torch.rand(count).argsort() for _ in range(2)]
    for (u, v), order in zip(((one, two), (two, one)), orders, strict=True):
        for i in range(N):
            others = [j for j in range(N) if j != i]
            hardest = sorted(others, key=lambda j: -b[i, j])[:count]
            partner = [hardest[k] for k in order.tolist()]
            denominator = sum((u[i] @ v[j] / t).exp() for j in range(N))
            denominator = denominator + sum((u[i] @ u[j] / t).exp() for j in others)
            for j, k in zip(hardest, partner, strict=True):
                mixture = b[i, j] * (u[i] @ v[j]) + b[i, k] * (u[i] @ v[k])
                denominator = denominator + (mixture / (b[i, j] + b[i, k]) / t).exp()
            want = want - ((u[i] @ v[i] / t).exp() / denominator).log() / (2 * N)
    torch.manual_seed(8)
    got = method.contrast(torch.cat([one, two]))
    assert_close(got, want, rtol=1e-6, atol=0)
    for mine, theirs in zip(grads(got, [one, two]), grads(want, [one, two]), strict=True):
        assert_close(mine, theirs, rtol=1e-5, atol=1e-9)


def test_row_means_leave_out_the_node_itself_in_any_tiling(graph: Graph, monkeypatch) -> None:
    monkeypatch.setattr(hardness, "TILE_BYTES", 4 * N * 5)  # five rows a tile
    method = fitted(graph)
    b = dense_b(method).fill_diagonal_(0)
    assert_close(method.hardness.row_mean, b.sum(1) / (N - 1), rtol=1e-6, atol=0)


def test_the_switch_freezes_the_similarities_of_its_own_step(graph: Graph) -> None:
    method = ProGcl(graph, ProGclConfig(**SMALL, warm_up=0.3), Context(epochs=10))
    trainer = Trainer(method, graph, TrainConfig(epochs=10))
    known, rows = [], []
    for _ in trainer.blocks():
        known.append(method.hardness.known)
        rows.append(method.hardness.rows.clone())
    assert known == [False] * 2 + [True] * 8
    assert not torch.equal(rows[1], rows[2])
    assert all(torch.equal(later, rows[2]) for later in rows[3:])  # they leave it alone
    assert method.hardness.curve.std() > 0


def test_a_short_training_still_switches(graph: Graph) -> None:
    method = ProGcl(graph, ProGclConfig(**SMALL, warm_up=0.0), Context(epochs=2))
    assert method.milestones == (1,)
    method.loss(graph)
    method.reach(1)
    assert method.hardness.known


@pytest.mark.parametrize("mode", ["weight", "mix"])
def test_a_resumed_run_has_the_same_hardness(graph: Graph, mode: str) -> None:
    cfg = ProGclConfig(**SMALL, mode=mode)
    first, second = (ProGcl(graph, cfg, Context(epochs=4)) for _ in range(2))
    first.loss(graph)
    first.reach(1)
    second.load_state_dict(first.state_dict())
    losses = []
    for method in (first, second):
        torch.manual_seed(6)
        losses.append(method.loss(graph)["contrast"])
    assert_close(losses[0], losses[1], rtol=0, atol=0)


def test_weights_of_a_trained_model_load_for_another_graph(graph: Graph) -> None:
    other = Graph.from_data(planted(nodes=2 * N))
    cfg = ProGclConfig(**SMALL)
    trained, fresh = ProGcl(graph, cfg, Context()), ProGcl(other, cfg, Context())
    fresh.load_state_dict(trained.state_dict())
    assert_close(fresh.embed(other), trained.embed(other))


def test_the_curve_is_posterior_times_similarity() -> None:
    found = Hardness(400, 4)
    found.remember(unit(400, 4), unit(400, 4))
    torch.manual_seed(2)
    found.fit(0.05, 10)
    torch.manual_seed(2)
    some = torch.randint(400, (hardness.COLUMNS,))
    cosine = found.rows @ found.cols.T
    mixture = BetaMixture.fit((cosine[:, some] + 1).flatten() / 2, 0.05, 10)
    x = (cosine.double() + 1) / 2
    want = (mixture.posterior(x.flatten())[0] * x.flatten()).view(400, 400)
    inside = (x > 0.01) & (x < 0.99)  # the posterior has infinite slopes at 0 and 1
    assert_close(found.weight.tile(0, 400).double()[inside], want[inside], atol=1e-5, rtol=1e-4)


def test_posterior_is_bayes_rule_with_scipys_densities() -> None:
    share, alpha, beta = ([0.7, 0.3], [2.0, 9.0], [8.0, 2.5])
    column = lambda v: torch.tensor(v, dtype=torch.float64)[:, None]  # noqa: E731
    x = np.linspace(0.01, 0.99, 50)
    density = [s * stats.beta.pdf(x, a, b) for s, a, b in zip(share, alpha, beta, strict=True)]
    got = BetaMixture(column(share), column(alpha), column(beta)).posterior(torch.from_numpy(x))
    assert_close(got, torch.from_numpy(np.stack(density) / np.sum(density, 0)))


@pytest.mark.parametrize("share", [0.05, 0.4])
def test_fit_is_weighted_moments_in_turns_with_bayes_rule(share: float) -> None:
    chance = np.random.default_rng(0)
    x = np.concatenate([chance.beta(4, 12, 4000), chance.beta(14, 3, 1000)])
    w, a, b = np.array([1 - share, share]), np.array([1.0, 2.0]), np.array([2.0, 1.0])
    for _ in range(10):
        part = np.stack([w[k] * stats.beta.pdf(x, a[k], b[k]) for k in (0, 1)])
        part /= part.sum(0)
        for k in (0, 1):
            m = np.average(x, weights=part[k])
            v = np.average((x - m) ** 2, weights=part[k])
            a[k] = m * (m * (1 - m) / v - 1)
            b[k] = a[k] * (1 - m) / m
        b[1] = 1.01 if b[1] < 1 else b[1]
        w = part.mean(1)
    found = BetaMixture.fit(torch.from_numpy(x), share, 10)
    for got, want in ((found.share, w), (found.alpha, a), (found.beta, b)):
        assert_close(got.flatten(), torch.from_numpy(want))


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_equal_similarities_give_finite_hardness(value: float) -> None:
    found = BetaMixture.fit(torch.full((50,), value), 0.05, 10)
    for part in (found.share, found.alpha, found.beta, found.posterior(torch.rand(20).double())):
        assert torch.isfinite(part).all()


def test_the_lower_component_comes_first() -> None:
    # two groups that swap the components: the start expects the large one below
    chance = np.random.default_rng(1)
    x = np.concatenate([chance.beta(2, 30, 500), chance.beta(30, 28, 5000)])
    found = BetaMixture.fit(torch.from_numpy(x), 0.95, 30)
    mean = found.alpha / (found.alpha + found.beta)
    assert mean[0] < mean[1]


def test_views_spare_central_nodes_by_default(graph: Graph) -> None:
    assert ProGclConfig().centrality == "eigenvector"
    method = ProGcl(graph, ProGclConfig(width=8), Context())
    assert method.drop_weights is not None
    assert method.drop_weights(graph).edges.std() > 0


def test_a_share_outside_its_range_is_named() -> None:
    with pytest.raises(UserError, match="warm_up"):
        ProGclConfig(warm_up=1.0)
