"""Skip-gram against loops, and what it learns."""

import math

import pytest
import torch
from torch.testing import assert_close

from muxgcl.affinity import SkipGram, WalkGraph, skip_gram, skipgram
from muxgcl.graph import Graph
from muxgcl.io import planted


def by_hand(model: SkipGram, walked: list[list[int]], others: list[int]) -> float:
    """The definition: pairs of different nodes less than `context` steps apart."""
    z = model.table.tolist()

    def log_sigmoid(i: int, j: int, sign: int) -> float:
        score = sign * sum(a * b for a, b in zip(z[i], z[j], strict=True))
        return -math.log1p(math.exp(-score))

    loss, pairs = 0.0, 0
    for walk in walked:
        for s, i in enumerate(walk):
            for t, j in enumerate(walk):
                if i != j and abs(s - t) < model.context:
                    pairs += 1
                    loss -= log_sigmoid(i, j, 1)
                    pushes = [log_sigmoid(i, m, -1) for m in others]
                    loss -= model.negatives * sum(pushes) / len(others)
    return loss / pairs


def test_the_loss_agrees_with_loops() -> None:
    model = SkipGram(7, 4, context=3, negatives=2.5).double()
    with torch.no_grad():
        model.table.normal_()
    walked, others = torch.randint(7, (5, 6)), torch.randint(7, (4,))
    want = by_hand(model, walked.tolist(), others.tolist())
    assert_close(model.loss(walked, others).item(), want)


def test_a_walk_that_stays_in_place_costs_nothing_and_teaches_nothing() -> None:
    model = SkipGram(3, 4)
    loss = model.loss(torch.full((2, 12), 1), torch.tensor([0, 2]))
    loss.backward()
    assert loss.item() == 0
    assert model.table.grad is not None
    assert not model.table.grad.any()


def settings(epochs: int) -> dict[str, float]:
    return {
        "width": 16,
        "epochs": epochs,
        "lr": 0.05,
        "length": 10,
        "context": 5,
        "walks_per_node": 4,
        "negatives": 1.0,
    }


def test_every_node_is_walked_from_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skipgram, "BATCH", 7)
    graph = Graph.from_data(planted(nodes=30, classes=2, isolated=2))
    linked = WalkGraph.of(graph.adjacency).linked
    steps: list[tuple[int, int]] = []
    begun: list[torch.Tensor] = []
    real = SkipGram.loss

    def watched(self: SkipGram, walked: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        begun.append(walked[:, 0])
        return real(self, walked, others)

    monkeypatch.setattr(SkipGram, "loss", watched)
    skip_gram(graph, **settings(2), on_step=lambda done, total: steps.append((done, total)))
    assert steps == [(4 * (k + 1), 32) for k in range(8)]  # 28 starts in 4 batches of 7
    assert [len(batch) for batch in begun] == [7] * 32
    for k in range(0, 32, 4):
        assert torch.equal(torch.cat(begun[k : k + 4]).sort().values, linked)
    assert not torch.equal(begun[0], begun[4])


@pytest.mark.parametrize("piece", [1, 3, 8, 9])
def test_the_gradient_in_pieces_is_that_of_the_whole_batch(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SkipGram(30, 4, context=3, negatives=2.5).double()
    walked, others = torch.randint(20, (8, 6)), torch.randint(30, (4,))
    walked[2] = 7  # a walk without a pair: pieces do not count alike
    (want,) = torch.autograd.grad(model.loss(walked, others), [model.table])
    monkeypatch.setattr(skipgram, "PIECE", piece)
    model.gradient(walked, others)
    assert_close(model.table.grad, want)


def test_a_table_trained_in_pieces_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, found, seen = Graph.from_data(planted(nodes=60)), [], []
    monkeypatch.setattr(skipgram, "MOST_BATCHES", 2)
    real = SkipGram._sums

    def watched(self: SkipGram, table: torch.Tensor, walked: torch.Tensor, others: torch.Tensor):
        seen.append(len(walked))
        return real(self, table, walked, others)

    monkeypatch.setattr(SkipGram, "_sums", watched)
    for piece in (2048, 16):
        monkeypatch.setattr(skipgram, "PIECE", piece)
        torch.manual_seed(1)
        found.append(skip_gram(graph, **settings(1)))
    assert max(seen[len(seen) // 2 :]) <= 16 < max(seen)
    assert_close(found[1], found[0], rtol=1e-3, atol=1e-4)
