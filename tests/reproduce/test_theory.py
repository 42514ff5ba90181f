"""Figure 3's quantities and the proposition's, against loops over the paper's formulas."""

import math

import pytest
import torch
from torch import Tensor

from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.methods import Context
from muxgcl.methods.mux_gcl import MuxGcl, MuxGclConfig
from muxgcl.reproduce import proposition, soft_negatives
from muxgcl.reproduce.proposition import bounds, sentence
from muxgcl.reproduce.soft_negatives import describe, projected, pull
from muxgcl.reproduce.training import epochs_to_look_at

GRAPH = Graph.from_data(planted(nodes=12, classes=3, features=8))
CONFIG = MuxGclConfig(width=6, projection=6, temperature=0.5, affinity_epochs=1)
Views = tuple[dict[int, Tensor], dict[int, Tensor]]


@pytest.fixture
def method(monkeypatch: pytest.MonkeyPatch) -> MuxGcl:
    """Its two views are drawn once, so that a loop sees what the code saw."""
    made = MuxGcl(GRAPH, CONFIG, Context())
    made.prepare(GRAPH)
    with torch.no_grad():
        views = projected(made, GRAPH)
    for module in (soft_negatives, proposition):
        monkeypatch.setattr(module, "projected", lambda *_: views)
    return made


def weight(method: MuxGcl, k: int, i: int, j: int) -> float:
    assert method.patches is not None
    return float(1 - (1 + method.patches[-1][i] @ method.patches[k][j]) / 2)


def test_psi_is_as_printed() -> None:
    one, two = ({k: torch.randn(5, 3) for k in range(3)} for _ in range(2))
    i, j = torch.tensor([0, 3]), torch.tensor([4, 1])
    d, s = pull(one, two, two, 1, i, j), pull(one, two, one, 1, i, j)
    for n, (a, b) in enumerate(zip(i, j, strict=True)):
        positive = one[2][a] @ two[1][a]
        assert d[n] == pytest.approx(float(one[2][a] @ two[1][b] - positive), abs=1e-6)
        assert s[n] == pytest.approx(float(one[2][a] @ one[1][b] - positive), abs=1e-6)


def test_soft_negatives_follow_the_formula(method: MuxGcl, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = torch.tensor([0, 5, 7, 2]), torch.tensor([3, 1, 8, 9])
    monkeypatch.setattr(soft_negatives, "random_pairs", lambda *_: pairs)
    with torch.no_grad():
        found = soft_negatives.soft_negatives(method, GRAPH)
    one, two = soft_negatives.projected(method, GRAPH)
    for k in range(3):
        for name, others in (("D", two), ("S", one)):
            for reading, temperature in (("printed", 1.0), ("tempered", 0.5)):
                want = []
                for i, j in zip(*map(Tensor.tolist, pairs), strict=True):
                    psi = [one[2][i] @ others[m][j] - one[2][i] @ two[m][i] for m in (k, 2)]
                    change = float(psi[0] - psi[1]) / temperature
                    want.append(change + math.log(weight(method, k, i, j)))
                got = found[f"{name}{k} {reading}"]
                assert got["mean"] == pytest.approx(sum(want) / 4, abs=1e-5)
                assert got["above_zero"] == sum(value > 0 for value in want) / 4


def test_bounds_follow_the_paper(method: MuxGcl) -> None:
    """The objectives as log-likelihoods, in loops over anchors and negatives."""
    found = bounds(method, GRAPH)
    views: Views = proposition.projected(method, GRAPH)
    n, tau, scales = 12, 0.5, CONFIG.scale_weights

    def objective(k: int, soft: bool) -> float:
        total = 0.0
        for u, v in (views, views[::-1]):
            for i in range(n):
                positive = math.exp(float(u[2][i] @ v[k][i]) / tau)
                negative = sum(
                    (weight(method, k, i, j) if soft else 1.0)
                    * math.exp(float(u[2][i] @ side[k][j]) / tau)
                    for side in (u, v)
                    for j in range(n)
                    if j != i
                )
                total += math.log(positive / (positive + negative))
        return total / (2 * n)

    def nce(k: int) -> float:
        total = 0.0
        for u, v in (views, views[::-1]):
            for i in range(n):
                scores = [math.exp(float(u[2][i] @ v[k][j]) / tau) for j in range(n)]
                total += math.log(scores[i] / (sum(scores) / n))
        return total / (2 * n)

    assert found["l_gr"] == pytest.approx(objective(2, soft=False), abs=1e-5)
    weighted = [
        sum(w * f(k) for k, w in enumerate(scales))
        for f in (lambda k: objective(k, soft=True), lambda k: objective(k, soft=False), nce)
    ]
    assert [found[key] for key in ("l_mux", "l_mpc", "i_nce")] == pytest.approx(weighted, abs=1e-5)
    assert found["log_n"] == math.log(12)
    assert found["i_nce"] <= found["log_n"]


def test_a_pair_above_zero_lowers_the_objective() -> None:
    """The sign that the paper's argument turns round."""
    psi, t = 0.3, 0.2  # T > 0: the pair's term grows by exp(T)
    assert -math.log1p(math.exp(psi + t)) < -math.log1p(math.exp(psi))


def test_a_gaussian_is_described_as_one() -> None:
    found = describe(torch.randn(200_000, dtype=torch.float64) * 2 + 1)
    assert found["mean"] == pytest.approx(1, abs=0.03)
    assert found["std"] == pytest.approx(2, abs=0.03)
    assert (found["low"], found["high"]) == pytest.approx((1 - 3.92, 1 + 3.92), abs=0.1)
    assert found["above_zero"] == pytest.approx(0.6915, abs=0.01)
    assert found["distance"] < 0.01
    assert sum(found["counts"]) == pytest.approx(200_000, rel=0.005)


def test_negatives_of_weight_zero_count_as_below_zero() -> None:
    found = describe(torch.tensor([1.0, 2.0, 3.0, -math.inf]))
    assert found["above_zero"] == 0.75
    assert found["mean"] == 2.0


def test_ten_points_and_the_papers_epoch() -> None:
    assert epochs_to_look_at(300) == [30, 60, 90, 120, 150, 180, 210, 240, 270, 300]
    assert epochs_to_look_at(2000) == [200, 300, *range(400, 2001, 200)]
    assert epochs_to_look_at(3) == [1, 2, 3]


def test_the_sentence_says_where_the_order_holds() -> None:
    rest = {"l_mux": -6.0, "i_nce": 1.0}
    points = [{"epoch": 10, "l_gr": -7.0, **rest}, {"epoch": 20, "l_gr": -5.0, **rest}]
    assert "holds at 1 of 2 points of training (epochs 10)" in sentence(points, "Cora")
    assert "holds at all 1 points" in sentence(points[:1], "Cora")
    assert "holds at 0 of 1 points of training;" in sentence(points[1:], "Cora")
