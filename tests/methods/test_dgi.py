"""DGI: the objective against loops, and what is shuffled."""

import math

import torch
from torch.testing import assert_close

from muxgcl.augment import View, clean
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.losses.infomax import Discriminator, infomax
from muxgcl.methods.dgi import real_and_shuffled, shuffle
from muxgcl.nn.gcn import GCN


def test_the_objective_is_that_of_the_paper_in_loops() -> None:
    n, d = 5, 3
    real, fake = torch.randn(2, n, d, dtype=torch.float64)
    judge = Discriminator(d).double().requires_grad_(False)
    torch.nn.init.constant_(judge.bias, 0.3)
    summary = [1 / (1 + math.exp(-sum(float(real[i, c]) for i in range(n)) / n)) for c in range(d)]

    def probability(row: torch.Tensor) -> float:
        score = sum(
            float(row[a]) * float(judge.matrix[a, b]) * summary[b]
            for a in range(d)
            for b in range(d)
        )
        return 1 / (1 + math.exp(-score - 0.3))

    want = 0.0
    for i in range(n):
        want -= math.log(probability(real[i])) + math.log(1 - probability(fake[i]))
    got = infomax(judge(real, of=real), judge(fake, of=real))
    assert_close(float(got), want / (2 * n), rtol=1e-12, atol=0)


def test_the_matrix_begins_within_the_bound_of_a_bilinear_layer_with_one_output() -> None:
    for width in (20, 30):
        bound = math.sqrt(6 / (width * width + width))
        largest = float(Discriminator(width).matrix.detach().abs().max())
        assert 0.985 * bound < largest <= bound  # of two outputs it would be 0.977 or less


def test_the_summary_gets_gradients() -> None:
    nodes = torch.randn(4, 3, requires_grad=True)
    Discriminator(3)(torch.randn(4, 3), of=nodes).sum().backward()
    assert nodes.grad is not None
    assert nodes.grad.abs().sum() > 0


def test_an_undecided_discriminator_costs_log_2() -> None:
    assert_close(infomax(torch.zeros(7), torch.zeros(7)), torch.tensor(math.log(2)))


def test_shuffling_the_products_is_shuffling_the_features() -> None:
    graph = Graph.from_data(planted(nodes=30))
    encoder = GCN(graph.num_features, 8, layers=1, act="prelu")
    order = shuffle(graph)
    assert sorted(order.tolist()) == list(range(30))
    view = clean(graph)
    real, shuffled = real_and_shuffled(encoder, view, order)
    by_hand = View(view.propagation, graph.dense_features()[order])
    assert_close(real, encoder.embed(view))
    assert_close(shuffled, encoder.embed(by_hand))
