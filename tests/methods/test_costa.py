from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from muxgcl.augment import both, clean
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.methods import Context, costa
from muxgcl.methods.costa import Costa, CostaConfig, Gaussian, _Sketched, sparse_sketch

STILL = {"drop_edges": (0.0, 0.0), "mask_features": (0.0, 0.0)}


class Given:
    """A sketch that is known, handed out in blocks of three rows."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    def blocks(self, like: Tensor) -> Iterator[tuple[slice, Tensor]]:
        for start in range(0, len(self.matrix), 3):
            rows = slice(start, min(start + 3, len(self.matrix)))
            yield rows, self.matrix[rows].to(like.dtype)


def whole(sketch: Gaussian, like: Tensor) -> Tensor:
    return torch.cat([block for _, block in sketch.blocks(like)])


def nce(one: Tensor, two: Tensor, t: float) -> Tensor:
    total = 0.0
    for i in range(len(one)):
        total -= torch.log(
            (one[i] @ two[i] / t).exp() / sum((one[i] @ two[j] / t).exp() for j in range(len(two)))
        )
    return total / len(one)


def test_identity_sketch_leaves_inter_view_info_nce(monkeypatch) -> None:
    graph = Graph.from_data(planted(nodes=30))
    method = Costa(graph, CostaConfig(width=8, projection=8), Context())
    n = graph.num_nodes
    monkeypatch.setattr(method, "mix", lambda x, _: _Sketched.apply(x, Given(torch.eye(n))))
    torch.manual_seed(5)
    got = method.loss(graph)["contrast"].double()
    torch.manual_seed(5)
    views = method.encoder.embed(both(graph, method.views)).chunk(2)
    one, two = (method.projector(nodes).double() for nodes in views)
    assert_close(got, (nce(one, two, 0.4) + nce(two, one, 0.4)) / 2, rtol=1e-5, atol=1e-6)


def test_both_views_are_mixed_by_the_same_sketch(monkeypatch) -> None:
    graph = Graph.from_data(planted(nodes=30))
    method = Costa(graph, CostaConfig(width=8, projection=8, ratio=0.5), Context())
    p = torch.randn(15, 30)
    monkeypatch.setattr(method, "mix", lambda x, _: _Sketched.apply(x, Given(p)))
    torch.manual_seed(5)
    got = method.loss(graph)["contrast"].double()
    torch.manual_seed(5)
    views = method.encoder.embed(both(graph, method.views)).chunk(2)
    one, two = (method.projector(p @ nodes).double() for nodes in views)
    assert_close(got, (nce(one, two, 0.4) + nce(two, one, 0.4)) / 2, rtol=1e-5, atol=1e-6)


def test_product_and_gradient_are_those_of_the_whole_sketch(monkeypatch) -> None:
    monkeypatch.setattr(costa, "BLOCK_BYTES", 8 * 7 * 2)  # two rows a block
    nodes = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    sketch = Gaussian(rows=5, nodes=7, seed=11, spread=5**-0.5)
    p, upstream = whole(sketch, nodes), torch.randn(5, 4, dtype=torch.float64)
    assert p.shape == (5, 7)
    got = _Sketched.apply(nodes, sketch)
    assert_close(got, p @ nodes)
    assert_close(torch.autograd.grad(got, nodes, upstream)[0], p.T @ upstream)


def test_every_step_draws_another_sketch_and_a_seed_the_same_one() -> None:
    graph = Graph.from_data(planted(nodes=30))
    method = Costa(graph, CostaConfig(width=8), Context())
    nodes = torch.randn(30, 4)
    torch.manual_seed(1)
    first, second = method.mix(nodes), method.mix(nodes)
    torch.manual_seed(1)
    assert_close(method.mix(nodes), first, rtol=0, atol=0)
    assert not torch.allclose(first, second)


@pytest.mark.parametrize(
    ("sketch", "kept"), [("gaussian", True), ("gaussian", False), ("sparse", True)]
)
def test_sketches_keep_the_covariance_in_expectation(sketch: str, kept: bool, monkeypatch) -> None:
    if not kept:
        monkeypatch.setattr(costa, "BLOCK_BYTES", 0)  # drawn again for the gradient
    n, k, draws = 12, 9, 3000
    graph = Graph.from_data(planted(nodes=n))
    method = Costa(graph, CostaConfig(width=8, ratio=k / n, sketch=sketch), Context())
    assert method.capturable == (kept and sketch == "gaussian")
    mean, eye = torch.zeros(n, n), torch.eye(n)
    for _ in range(draws):
        p = method.mix(eye)
        assert p.shape == (k, n)
        mean += p.T @ p / draws
    assert_close(mean, eye, atol=5 / (draws * k) ** 0.5, rtol=0)


def test_columns_of_a_sparse_sketch_are_units_in_separate_bands() -> None:
    p = sparse_sketch(20, 50, torch.device("cpu")) @ torch.eye(50)
    assert_close(p.norm(dim=0), torch.ones(50))
    assert ((p != 0).sum(0) == costa.ENTRIES).all()
    assert (p != 0).any(1).all()  # 20 rows, 400 entries: none stays empty
    assert set(p[p != 0].sign().tolist()) == {-1.0, 1.0}


def test_there_is_a_row_for_each_share_of_the_nodes() -> None:
    graph = Graph.from_data(planted(nodes=30))
    for kind in ("gaussian", "sparse"):
        method = Costa(graph, CostaConfig(width=8, ratio=0.7, sketch=kind), Context())
        assert method.mix(torch.randn(30, 4)).shape == (21, 4)


def test_embedding_is_not_sketched() -> None:
    graph = Graph.from_data(planted(nodes=30))
    method = Costa(graph, CostaConfig(width=8, **STILL), Context())
    assert_close(method.embed(graph), method.encoder.embed(clean(graph)))
