import pytest
import torch
from torch.testing import assert_close

from muxgcl.augment import both
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.methods import Context
from muxgcl.methods.grace import Grace, GraceConfig
from muxgcl.methods.sfa import Sfa, SfaConfig, direction


def test_direction_is_a_power_of_the_gram_matrix_times_the_start() -> None:
    nodes, start = torch.randn(9, 4, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    gram = nodes.T @ nodes
    for steps in (0, 1, 2, 3):
        want = torch.linalg.matrix_power(gram, steps) @ start
        assert_close(direction(nodes, start, steps), want / want.norm())


def test_many_steps_find_the_leading_direction() -> None:
    nodes = torch.randn(30, 5, dtype=torch.float64)
    leading = torch.linalg.svd(nodes).Vh[0]
    found = direction(nodes, torch.randn(5, dtype=torch.float64), steps=500)
    assert_close((found @ leading).abs(), torch.tensor(1.0, dtype=torch.float64))


def test_the_mean_of_many_draws_shrinks_leading_singular_values_as_the_paper_says() -> None:
    # in the basis of singular vectors: E[1 - r_i^2 / |r|^2] with r_i = y_i sigma_i^2, k = 1
    sigma = torch.tensor([3.0, 2.0, 1.0], dtype=torch.float64)
    left, right = (torch.linalg.qr(torch.randn(s, 3, dtype=torch.float64)).Q for s in (8, 3))
    nodes = left @ torch.diag(sigma) @ right.T
    kept = []
    for _ in range(4000):
        found = direction(nodes, torch.randn(3, dtype=torch.float64), steps=1)
        kept.append(nodes - (nodes @ found)[:, None] * found)
    spectrum = (left.T @ torch.stack(kept).mean(0) @ right).diagonal()
    y = torch.randn(400_000, 3, dtype=torch.float64) * sigma**2
    share = (y.square() / y.square().sum(1, keepdim=True)).mean(0)
    assert_close(spectrum, (1 - share) * sigma, atol=0.05, rtol=0)
    assert spectrum[0] / sigma[0] < spectrum[2] / sigma[2]


def test_a_table_of_zeros_has_no_direction_to_lose() -> None:
    assert_close(direction(torch.zeros(5, 3), torch.randn(3), steps=1), torch.zeros(3))


def test_without_a_direction_it_is_grace(monkeypatch) -> None:
    graph = Graph.from_data(planted())
    views = {"drop_edges": (0.0, 0.0), "mask_features": (0.0, 0.0), "width": 16}
    sfa = Sfa(graph, SfaConfig(**views), Context())
    grace = Grace(graph, GraceConfig(**views), Context())
    grace.load_state_dict(sfa.state_dict())
    assert not torch.equal(sfa.loss(graph)["scale 2"], grace.loss(graph)["scale 2"])
    monkeypatch.setattr(torch, "randn", lambda *s, **k: torch.zeros(*s, **k))
    assert_close(sfa.loss(graph)["scale 2"], grace.loss(graph)["scale 2"], rtol=0, atol=0)


def test_a_flattened_table_has_nothing_left_along_the_direction() -> None:
    sfa = Sfa(Graph.from_data(planted()), SfaConfig(width=16), Context())
    nodes, start = torch.randn(30, 16), torch.randn(16)
    left, found = sfa.flatten(nodes, start), direction(nodes, start, steps=1)
    assert_close(left @ found, torch.zeros(30), atol=1e-5, rtol=0)
    assert_close(left, nodes - nodes @ torch.outer(found, found), atol=1e-5, rtol=0)


@pytest.mark.parametrize("shared", [False, True])
def test_both_views_lose_a_direction_of_their_own_start_or_of_one(monkeypatch, shared) -> None:
    graph = Graph.from_data(planted())
    sfa = Sfa(graph, SfaConfig(width=16, shared_start=shared), Context())
    seen = []
    monkeypatch.setattr(sfa, "flatten", lambda *given: seen.append(given) or 0 * given[0])
    torch.manual_seed(1)
    loss = sfa.loss(graph)["scale 2"]
    torch.manual_seed(1)
    assert_close(
        [nodes for nodes, _ in seen], list(sfa.encoder.embed(both(graph, sfa.views)).chunk(2))
    )
    assert torch.equal(seen[0][1], seen[1][1]) is shared
    assert_close(loss, torch.tensor(2.0 * 120 - 1).log())  # rows are alike: nothing to tell apart


def test_the_direction_is_constant_unless_asked_otherwise() -> None:
    graph = Graph.from_data(planted())
    grads = {}
    for through in (False, True):
        torch.manual_seed(1)
        sfa = Sfa(graph, SfaConfig(width=16, through_direction=through), Context())
        torch.manual_seed(2)
        sfa.loss(graph)["scale 2"].backward()
        grads[through] = sfa.encoder.weights[1].grad
    assert not torch.allclose(grads[False], grads[True], rtol=1e-3)
