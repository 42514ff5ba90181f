"""Rows from what they depend on alone: the same as from the whole graph."""

import pytest
import torch
from torch.testing import assert_close

from muxgcl.augment import Corrupt, both, clean
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.kernels import Sample
from muxgcl.methods import Method
from muxgcl.nn.field import WHOLE, Field, in_blocks, in_part, inputs, neighbours
from muxgcl.nn.gcn import GCN
from muxgcl.runs.plan import Plan, build
from muxgcl.sparse import SparseMatrix, compress

DATA = planted(nodes=40, isolated=2)
DENSE = DATA.clone()
DENSE.x = torch.rand(40, 48) + 0.1  # planted features are few enough to be kept sparse or not


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("data", [DATA, DENSE])
@pytest.mark.parametrize("drops", [(0.0, 0.0), (0.5, 0.3)])
def test_the_rows_of_a_sample_are_those_of_the_whole_graph(layers: int, data, drops) -> None:
    graph = Graph.from_data(data)
    encoder = GCN(graph.num_features, 6, layers=layers, act="prelu")
    for bias in encoder.biases:
        torch.nn.init.normal_(bias)
    view = both(graph, [Corrupt(*drops), Corrupt(*drops)])
    sample = Sample(torch.tensor([3, 39, 0, 17]), 4, 4, 40)
    found = []
    for tables in (encoder(view, None, sample), encoder(view)):
        rows = {k: t if len(t) == 8 else sample.take(t) for k, t in tables.items()}
        torch.manual_seed(1)
        loss = sum((t * torch.rand_like(t)).sum() for _, t in sorted(rows.items()))
        found.append([rows, torch.autograd.grad(loss, list(encoder.parameters()))])
    assert set(found[0][0]) == set(range(layers + 1))
    assert_close(found[0], found[1])


def test_sparse_and_dense_features_take_both_ways() -> None:
    sparse = DATA.clone()
    sparse.x = torch.zeros(40, 48)
    sparse.x[torch.arange(40), torch.arange(40)] = 1
    graph = Graph.from_data(sparse)
    assert not isinstance(graph.features, torch.Tensor)
    assert isinstance(Graph.from_data(DENSE).features, torch.Tensor)
    encoder, sample = GCN(48, 6), Sample(torch.tensor([5, 1]), 2, 2, 40)
    view = clean(graph)
    assert_close(encoder(view, None, sample)[0], encoder(view)[0][sample.nodes])
    assert_close(encoder(view, None, sample)[2], encoder(view)[2][sample.nodes])


def test_only_rows_that_a_sample_depends_on_are_multiplied(monkeypatch) -> None:
    """Sparse features, two views with masks of their own: the numbers of the whole graph."""
    edges = torch.stack([torch.arange(39), torch.arange(1, 40)])
    graph = Graph.from_data(type(DATA)(x=torch.eye(40), edge_index=edges))
    assert not isinstance(graph.features, torch.Tensor)
    view = both(graph, [Corrupt(0.0, 0.3), Corrupt(0.0, 0.6)])
    encoder, sample = GCN(40, 6), Sample(torch.tensor([20, 7]), 2, 2, 40)
    want = {k: sample.take(table) for k, table in encoder(view).items()}
    seen = []
    real = SparseMatrix.__matmul__

    def watched(self: SparseMatrix, dense: torch.Tensor) -> torch.Tensor:
        seen.append(self.shape)
        return real(self, dense)

    monkeypatch.setattr(SparseMatrix, "__matmul__", watched)
    assert_close(encoder(view, None, sample), want)
    assert (40, 40) not in seen
    assert seen[:2] == [(10, 40), (10, 40)]  # two hops around two nodes of a path, in each view


def test_a_path_is_seen_one_hop_further_a_layer() -> None:
    edges = torch.stack([torch.arange(9), torch.arange(1, 10)])
    graph = Graph.from_data(type(DATA)(x=torch.eye(10), edge_index=edges))
    field = Field.of(clean(graph).propagation, torch.tensor([4]), 2)
    assert [rows.tolist() for rows in field.rows] == [[2, 3, 4, 5, 6], [3, 4, 5], [4]]
    assert field.wanted(torch.arange(5.0)[:, None], 0).tolist() == [[2.0]]


def test_a_dropped_edge_is_not_looked_along() -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    graph = Graph.from_data(type(DATA)(x=torch.eye(3), edge_index=edges))
    weight = graph.adjacency.weight * graph.adjacency.loop
    hop, below = neighbours(graph.adjacency.propagation(weight).matrix, torch.tensor([1]))
    assert below.tolist() == [1]
    assert hop.shape == (1, 1)


def test_a_row_is_among_the_columns_it_uses_though_it_has_no_entry_there() -> None:
    row, col = torch.tensor([0, 1]), torch.tensor([1, 2])
    matrix = compress(row, col, torch.ones(2), rows=3, columns=3)
    hop, below = neighbours(matrix, torch.tensor([0, 2]))
    assert below.tolist() == [0, 1, 2]
    assert (hop @ torch.eye(3)).tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


def dense(hop, below: torch.Tensor, nodes: int) -> torch.Tensor:
    table = torch.zeros(hop.shape[0], nodes)
    table[:, below] = hop @ torch.eye(len(below))
    return table


@pytest.mark.parametrize("fanout", [1, 3, 100])
def test_a_fanout_keeps_so_many_neighbours_and_scales_them(fanout: int) -> None:
    graph = Graph.from_data(DATA)
    matrix, rows = clean(graph).propagation.matrix, torch.tensor([7, 3, 39, 0, 17])
    whole = dense(*neighbours(matrix, rows), 40)
    torch.manual_seed(0)
    some = dense(*neighbours(matrix, rows, fanout), 40)
    mine = torch.arange(5), rows
    assert_close(some[mine], whole[mine])  # a node's own entry stays as it is
    some[mine] = whole[mine] = 0
    count = (whole != 0).sum(1)
    assert count.max() > 3
    assert ((some != 0).sum(1) == count.clamp(max=fanout)).all()
    scale = (count / count.clamp(1, fanout))[:, None]
    assert_close(some, torch.where(some != 0, whole * scale, 0.0))
    if fanout == 100:
        assert_close(some, whole)


def test_a_single_neighbour_keeps_its_weight_whatever_the_fanout() -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    matrix = clean(Graph.from_data(type(DATA)(x=torch.eye(3), edge_index=edges))).propagation.matrix
    rows = torch.tensor([0, 2])
    for fanout in (1, 2, 5):
        some, whole = (dense(*neighbours(matrix, rows, f), 3) for f in (fanout, 0))
        assert_close(some, whole)


@pytest.mark.parametrize("views", [1, 2])
def test_rows_of_masked_features_are_those_of_the_view(views: int) -> None:
    graph, rate = Graph.from_data(DENSE), Corrupt(0.0, 0.4)
    view = rate(graph) if views == 1 else both(graph, [rate, rate])
    rows = torch.tensor([3, 0, 39, 40 * views - 1])
    whole = torch.cat([view.features * kept for kept in view.kept_columns.view(views, -1)])
    assert (whole == 0).any()
    assert_close(inputs(view, rows), whole[rows])


def test_the_mean_over_draws_of_a_fanout_is_the_whole_row() -> None:
    graph = Graph.from_data(DATA)
    matrix, rows = clean(graph).propagation.matrix, torch.tensor([3, 17])
    torch.manual_seed(0)
    draws = torch.stack([dense(*neighbours(matrix, rows, 2), 40) for _ in range(3000)])
    whole = dense(*neighbours(matrix, rows), 40)
    error = draws.std(0) / len(draws) ** 0.5
    assert ((draws.mean(0) - whole).abs() <= 4 * error + 1e-6).all()


def test_a_field_with_a_fanout_is_smaller() -> None:
    propagation, rows = clean(Graph.from_data(DATA)).propagation, torch.tensor([3, 17])
    whole, some = Field.of(propagation, rows, 2), Field.of(propagation, rows, 2, fanout=1)
    assert len(some.rows[0]) <= 2 * 2 * 2 < len(whole.rows[0])


@pytest.mark.parametrize("data", [DATA, DENSE])
def test_one_layer_of_a_gcn_with_a_fanout_is_right_on_average(data) -> None:
    graph = Graph.from_data(data)
    encoder = GCN(graph.num_features, 3, layers=1, act="none", fanout=2)
    view, sample = clean(graph), Sample(torch.tensor([3, 17]), 2, 2, 40)
    torch.manual_seed(0)
    with torch.no_grad():
        draws = torch.stack([encoder(view, (), sample)[1] for _ in range(2000)])
        whole = encoder(view)[1][sample.nodes]
    error = draws.std(0) / len(draws) ** 0.5
    assert error.min() > 0
    assert ((draws.mean(0) - whole).abs() <= 4.5 * error).all()
    assert_close(encoder(view)[1], encoder(view)[1])  # without a sample nothing is drawn


def test_a_cpu_always_computes_in_part_and_a_gpu_where_all_tables_are_large() -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert in_part(cpu, 10, (3, 4))
    assert in_part(cpu, WHOLE, (3, 4))
    assert not in_part(gpu, WHOLE // 8, (3, 5))
    assert in_part(gpu, WHOLE // 8 + 1, (3, 5))


@pytest.mark.parametrize(("size", "blocks"), [(7, [7]), (8, [7]), (6, [4, 3]), (2, [2, 2, 2, 1])])
def test_blocks_are_of_equal_size_and_all_but_a_single_one_are_computed_again(
    size: int, blocks: list[int]
) -> None:
    weight, asked = torch.tensor(2.0, dtype=torch.float64, requires_grad=True), []

    def network(rows: torch.Tensor) -> torch.Tensor:
        asked.append(len(rows))
        return (weight * rows[:, None]).sin()

    rows = torch.arange(7)
    found = in_blocks(network, rows, size)
    assert asked == blocks
    assert_close(found, (2.0 * rows[:, None].double()).sin())
    found.sum().backward()
    assert_close(weight.grad, (rows * (2.0 * rows.double()).cos()).sum())
    assert sorted(asked[len(blocks) :]) == ([] if len(blocks) == 1 else sorted(blocks))


def test_a_fanout_is_a_setting_of_methods_that_look_at_the_nodes_of_a_sample_alone() -> None:
    graph = Graph.from_data(DATA)

    def built(method: str, fanout: int) -> Method:
        settings = {"fanout": fanout, "width": 8}
        return build(Plan.make(method, "quick", overrides=settings, device="cpu"), graph)

    for method in ("mux-gcl", "grace", "gca"):
        assert built(method, 3).encoder.fanout == 3
        with pytest.raises(UserError, match="fanout must be at least 0"):
            built(method, -1)
    with pytest.raises(UserError, match=r"fanout is a setting of mux-gcl, .*, not of sfa"):
        built("sfa", 3)
