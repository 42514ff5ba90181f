"""GAE and VGAE as methods; the objective has tests of its own."""

import torch
from torch.testing import assert_close

from muxgcl.augment import clean
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import Context
from muxgcl.methods.gae import Gae, GaeConfig
from muxgcl.methods.vgae import Vgae

GRAPH = Graph.from_data(planted(nodes=30, isolated=2))
CONFIG = GaeConfig(width=6, hidden=10)


def test_the_divergence_is_divided_by_the_number_of_nodes_twice() -> None:
    method = Vgae(GRAPH, CONFIG, Context()).requires_grad_(False)
    mean, log_std = method.model.encoder.embed(clean(GRAPH)).chunk(2, 1)
    normal = torch.distributions.Normal
    each = torch.distributions.kl_divergence(normal(mean, log_std.exp()), normal(0.0, 1.0))
    assert_close(method.loss(GRAPH)["divergence"], each.sum() / 30 / 30)


def test_the_embedding_is_the_mean_whatever_the_noise() -> None:
    method = Vgae(GRAPH, CONFIG, Context())
    first, again = method.train().embed(GRAPH), method.eval().embed(GRAPH)
    assert torch.equal(first, again)
    assert first.shape == (30, 6)
    losses = [float(method.loss(GRAPH)["divergence"].detach()) for _ in range(2)]
    assert losses[0] == losses[1]  # it reads mean and spread, not the sample


def test_gae_has_neither_noise_nor_divergence() -> None:
    method = Gae(GRAPH, CONFIG, Context())
    assert set(method.loss(GRAPH)) == {"reconstruction"}
    assert method.embed(GRAPH).shape == (30, 6)
    assert sum(p.numel() for p in method.parameters()) == 48 * 10 + 10 + 10 * 6 + 6
