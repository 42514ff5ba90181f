import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data

from muxgcl.augment import both, clean
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.kernels import negative_sum
from muxgcl.kernels.reference import info_nce
from muxgcl.methods import Context, homogcl
from muxgcl.methods.homogcl import HomoGcl, HomoGclConfig, disagreement, kmeans, soft_clusters
from muxgcl.methods.parts import edge_sums
from muxgcl.methods.parts.edge_sums import edge_dot, row_sum

N, T = 25, 0.5


@pytest.fixture
def graph() -> Graph:
    return Graph.from_data(planted(nodes=N, degree=4, isolated=1))


def unit(n: int, d: int) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(n, d, dtype=torch.float64))


def some_edges(graph: Graph) -> Tensor:
    kept = torch.rand(len(graph.adjacency.col)) < 0.6
    return (kept & ~graph.adjacency.loop).double()


def as_dense(graph: Graph, values: Tensor) -> Tensor:
    matrix = torch.zeros(N, N, dtype=values.dtype)
    matrix[graph.adjacency.row, graph.adjacency.col] = values
    return matrix


def slow_loss(u: Tensor, v: Tensor, near: Tensor, far: Tensor, p: Tensor, mean: bool) -> Tensor:
    """One direction: `near`, `far` are the dense adjacencies of the anchor's and the other view."""
    total = 0.0
    for i in range(N):
        pos = neighbours = torch.zeros((), dtype=u.dtype)
        neg = torch.zeros((), dtype=u.dtype)
        for j in range(N):
            intra, inter = (u[i] @ u[j] / T).exp(), (u[i] @ v[j] / T).exp()
            if near[i, j]:
                neighbours = neighbours + torch.cosine_similarity(p[i], p[j], dim=0) * intra
            elif j != i:
                neg = neg + intra
            if not far[i, j]:
                neg = neg + inter  # j = i as well: the positive is counted twice
        if mean:
            neighbours = neighbours / (near[i].sum() + 0.01)
        pos = (u[i] @ v[i] / T).exp() + neighbours
        total = total - (pos / (pos + neg)).log() / N
    return total


@pytest.mark.parametrize("mean", [False, True])
def test_contrast_is_the_formula_in_loops_with_gradients(graph: Graph, mean: bool) -> None:
    cfg = HomoGclConfig(width=8, temperature=T, mean_neighbors=mean)
    method = HomoGcl(graph, cfg, Context(backend="reference"))
    inputs = [unit(N, 6), unit(N, 6), torch.rand(N, 3, dtype=torch.float64)]
    one, two, p = (x.requires_grad_() for x in inputs)
    kept = [some_edges(graph), some_edges(graph)]
    near, far = (as_dense(graph, k) for k in kept)
    got = method.contrast(graph.adjacency, one, two, torch.cat(kept), p)
    want = (slow_loss(one, two, near, far, p, mean) + slow_loss(two, one, far, near, p, mean)) / 2
    assert_close(got, want)
    for mine, theirs in zip(
        torch.autograd.grad(got, [one, two, p]),
        torch.autograd.grad(want, [one, two, p]),
        strict=True,
    ):
        assert theirs.abs().max() > 1e-4
        assert_close(mine, theirs)


def test_without_edges_it_is_grace_with_the_positive_counted_twice(graph: Graph) -> None:
    method = HomoGcl(graph, HomoGclConfig(width=8, temperature=T), Context())
    one, two = unit(N, 6), unit(N, 6)
    none = torch.zeros(len(graph.adjacency.col), dtype=torch.float64)
    got = method.contrast(
        graph.adjacency, one, two, torch.cat([none, none]), torch.rand(N, 3).double()
    )
    u, v = torch.cat([one, two]), torch.cat([two, one])
    pull = ((u * v).sum(1) - 1) / T
    grace = info_nce(u, v, negative_sum(u, u, temperature=T, nodes=N), temperature=T)
    twice = ((grace + pull).exp() + pull.exp()).log() - pull
    assert_close(got, twice.mean())


def test_a_complete_graph_leaves_no_negative_but_the_positive_itself() -> None:
    edges = torch.ones(6, 6).nonzero().T
    graph = Graph.from_data(Data(x=torch.rand(6, 4), edge_index=edges))
    method = HomoGcl(graph, HomoGclConfig(width=8, temperature=0.05), Context())
    all_edges = (~graph.adjacency.loop).float()
    one = torch.nn.functional.normalize(torch.randn(6, 4))
    p = torch.eye(6)  # every node its own cluster: no neighbour is salient
    loss = method.contrast(graph.adjacency, one, one, all_edges.repeat(2), p)
    assert_close(loss, torch.tensor(2.0).log())  # own / (own + own), whatever rounding does


def test_edge_products_and_their_gradients_are_those_of_the_dense_table(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_sums, "BLOCK_BYTES", 5 * 8 * 7)  # seven edges a block
    a, b = (torch.randn(N, 5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    where = graph.adjacency.row, graph.adjacency.col
    upstream = torch.randn(len(where[0]), dtype=torch.float64)
    got, want = edge_dot(a, b, graph.adjacency), (a @ b.T)[where]
    assert_close(got, want)
    for mine, theirs in zip(
        torch.autograd.grad(got, [a, b], upstream),
        torch.autograd.grad(want, [a, b], upstream),
        strict=True,
    ):
        assert_close(mine, theirs)


def test_row_sums_and_their_gradients_are_those_of_the_dense_table(graph: Graph) -> None:
    values = torch.randn(len(graph.adjacency.col), dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(N, dtype=torch.float64)
    got, want = row_sum(values, graph.adjacency), as_dense(graph, values).sum(1)
    assert_close(got, want)
    assert_close(
        torch.autograd.grad(got, values, upstream), torch.autograd.grad(want, values, upstream)
    )


def test_disagreement_is_the_mean_square_over_edges_loops_and_clusters(graph: Graph) -> None:
    p = torch.rand(N, 4, dtype=torch.float64, requires_grad=True)
    got = disagreement(graph.adjacency, p)
    want = (p[graph.adjacency.row] - p[graph.adjacency.col]).square().mean()
    assert_close(got, want)
    assert_close(torch.autograd.grad(got, p), torch.autograd.grad(want, p))


def test_kmeans_finds_separated_groups_and_their_means() -> None:
    groups = torch.tensor([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    points = groups.repeat_interleave(20, 0) + torch.randn(60, 2)
    # three starts in one group are mended only by luck: many starts, the best of them is the truth
    found = min(
        (kmeans(points, 3, 20) for _ in range(10)),
        key=lambda c: torch.cdist(points.double(), c).min(1).values.sum(),
    )
    want = points.view(3, 20, 2).mean(1).double()
    assert_close(found[found[:, 0].argsort()], want[want[:, 0].argsort()])


def test_no_cluster_of_kmeans_stays_empty() -> None:
    # more clusters than groups: with duplicate points some start empty and must move
    points = torch.tensor([[0.0]] * 30 + [[1.0]] * 2 + [[9.0]])
    for seed in range(20):
        torch.manual_seed(seed)
        centres = kmeans(points, 3, 20)
        assert torch.isfinite(centres).all()
        assert_close(centres.flatten().sort().values, torch.tensor([0.0, 1.0, 9.0]).double())


def test_soft_clusters_are_a_softmax_of_squared_distances_without_overflow() -> None:
    nodes, centres = torch.randn(7, 3, dtype=torch.float64), torch.randn(4, 3).double()
    want = (-torch.cdist(nodes, centres).square() / 0.3).softmax(1)
    assert_close(soft_clusters(nodes, centres, 0.3), want)
    sharp = soft_clusters(1e3 * nodes.float(), 1e3 * centres, 0.001)
    assert_close(sharp.sum(1), torch.ones(7))
    assert (sharp.argmax(1) == want.argmax(1)).all()


def test_gradients_pass_through_clusters_and_saliency_but_not_through_centres(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    monkeypatch.setattr(
        homogcl, "kmeans", lambda nodes, *rest: given.append(nodes) or kmeans(nodes, *rest)
    )
    method = HomoGcl(graph, HomoGclConfig(width=8, cluster_temperature=1.0), Context())
    terms = method.loss(graph)
    assert not given[0].requires_grad
    assert_close(given[0], method.encoder.embed(clean(graph)))
    weight = method.encoder.weights[0]
    assert torch.autograd.grad(terms["clusters"], weight)[0].abs().max() > 0


def test_views_lend_their_own_edges_to_the_contrast(graph: Graph, monkeypatch) -> None:
    method = HomoGcl(graph, HomoGclConfig(width=8, drop_edges=0.5), Context())
    seen = []
    monkeypatch.setattr(method, "contrast", lambda *given: seen.append(given) or given[1].sum())
    torch.manual_seed(9)
    method.loss(graph)
    torch.manual_seed(9)
    view = both(graph, [method.rates, method.rates])
    adjacency, one, two, kept, *_ = seen[0]
    dense = view.propagation @ torch.eye(2 * N)
    for v, (edges, nodes) in enumerate(zip(kept.chunk(2), (one, two), strict=True)):
        part = slice(v * N, (v + 1) * N)
        of_view = (dense[part, part] > 0).double().fill_diagonal_(0)
        assert_close(as_dense(graph, edges.double()), of_view.T)  # row i: whom i sends to
        assert 0 < edges.sum() < (~adjacency.loop).sum()
        assert_close(nodes, method.projector(method.encoder.embed(view))[part])


def test_edges_of_a_view_are_divided_by_what_their_ends_send_and_receive(graph: Graph) -> None:
    method = HomoGcl(graph, HomoGclConfig(width=8, drop_edges=0.5), Context())
    found = both(graph, [method.rates, method.rates]).propagation @ torch.eye(2 * N)
    weight = (found > 0).float()  # row i receives from column j
    want = weight / (weight.sum(1)[:, None] * weight.sum(0)).sqrt()
    assert (weight.sum(0) != weight.sum(1)).any()
    assert_close(found, want)


def test_without_a_projector_embeddings_are_contrasted(graph: Graph) -> None:
    bare = HomoGcl(graph, HomoGclConfig(width=8, projection=0), Context())
    assert all(name.startswith("encoder.") for name in bare.state_dict())
    assert_close(
        bare.projector(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))[0], torch.tensor([0.6, 0.8])
    )
