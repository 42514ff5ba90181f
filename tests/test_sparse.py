"""Patterns in 32 bits where they fit: half the bytes, and nothing else changes."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from muxgcl.affinity import WalkGraph
from muxgcl.graph import Adjacency, Graph, graph_fingerprint
from muxgcl.methods.deepwalk import key_of
from muxgcl.nn.field import Field, rows_of
from muxgcl.sparse import Csr, SparseMatrix, index_dtype
from muxgcl.tensors import Tensors

EDGES = torch.tensor([[0, 1, 2, 3, 0, 5], [1, 2, 3, 4, 4, 0]])
LARGEST = 2**31 - 1
MANY = 70_000  # nodes: their square is beyond 32 bits


def wide(matrix: SparseMatrix) -> SparseMatrix:
    """The same matrix in 64 bits."""

    def rows(part: Csr) -> Csr:
        return replace(part, rowptr=part.rowptr.long(), col=part.col.long(), pieces=None)

    assert matrix.order is not None
    return SparseMatrix(rows(matrix.matrix), rows(matrix.transpose), matrix.order.long())


def patterns(adjacency: Adjacency) -> list[Tensor]:
    """All numbers of nodes and entries that an adjacency holds."""
    pieces = adjacency.pieces
    of_pieces = [pieces.row, pieces.begin, pieces.end, pieces.slot, pieces.long, pieces.first]
    return [adjacency.rowptr, adjacency.row, adjacency.col, adjacency.reverse, *of_pieces]


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [
        ((0, 1), torch.int32),
        ((LARGEST, 5), torch.int32),
        ((LARGEST + 1, 5), torch.int64),
        ((5, LARGEST), torch.int32),
        ((5, LARGEST + 1), torch.int64),
        ((5, 6, LARGEST + 1), torch.int64),
    ],
)
def test_32_bits_are_taken_up_to_the_largest_number_they_hold(
    sizes: tuple[int, ...], kind: torch.dtype
) -> None:
    assert index_dtype(*sizes) == kind


def test_a_graph_its_copies_its_features_and_its_samples_are_kept_in_32_bits() -> None:
    graph = Graph.from_data(Tensors(x=torch.eye(6, 12), edge_index=EDGES))
    assert isinstance(graph.features, SparseMatrix)
    field = Field.of(graph.adjacency.propagation(), torch.tensor([1, 3]), layers=2, fanout=1)
    some = rows_of(graph.features, torch.tensor([4, 2]))
    assert isinstance(some, SparseMatrix)
    matrices = [graph.features, graph.features.repeated(2), some, *field.hops]
    kept = patterns(graph.adjacency) + patterns(graph.twice)
    for matrix in matrices:
        assert matrix.order is not None
        kept.append(matrix.order)
        for rows in (matrix.matrix, matrix.transpose):
            kept += [rows.rowptr, rows.col]
    assert {index.dtype for index in kept} == {torch.int32}


def test_copies_that_are_too_many_for_32_bits_are_kept_in_64(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    adjacency = Adjacency.from_edges(EDGES, 6)
    limit = len(adjacency.col)  # what "32 bits" hold here

    def small(*sizes: int) -> torch.dtype:
        return torch.int32 if max(sizes) <= limit else torch.int64

    monkeypatch.setattr("muxgcl.graph.index_dtype", small)
    narrow, two = Adjacency.from_edges(EDGES, 6), adjacency.repeated(2)
    assert {index.dtype for index in patterns(narrow)} == {torch.int32}
    assert {index.dtype for index in patterns(two)} == {torch.int64}
    dense = torch.randn(12, 3)
    blocks = torch.cat([narrow.propagation() @ half for half in dense.chunk(2)])
    assert torch.equal(two.propagation() @ dense, blocks)


def test_both_widths_give_the_same_product_and_gradient() -> None:
    graph = Graph.from_data(
        Tensors(x=torch.randn(50, 90).relu() * (torch.rand(50, 90) < 0.1), edge_index=EDGES)
    )
    assert isinstance(graph.features, SparseMatrix)
    weight = torch.rand_like(graph.adjacency.weight)  # not symmetric
    for matrix in (
        graph.adjacency.propagation(weight),
        graph.features,
        graph.features.dropout(0.5),
    ):
        table, up = torch.randn(matrix.shape[1], 7), torch.randn(matrix.shape[0], 7)
        found = []
        for each in (matrix, wide(matrix)):
            leaf = table.clone().requires_grad_()
            out = each @ leaf
            found.append((out, *torch.autograd.grad(out, leaf, up)))
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_no_number_of_an_entry_overflows_in_a_graph_of_many_nodes() -> None:
    ends = torch.randint(MANY, (2, 300))
    ends[:, 0] = torch.tensor([MANY - 1, MANY - 2])
    adjacency = Adjacency.from_edges(ends, MANY)
    assert adjacency.col.dtype == torch.int32
    row, col = adjacency.row.long(), adjacency.col.long()
    number = row * MANY + col
    assert (number.diff() > 0).all()
    assert int(number[-1]) == MANY**2 - 1
    assert torch.equal(number[adjacency.reverse], col * MANY + row)
    matrix = SparseMatrix.from_entries(
        adjacency.row.flip(0), adjacency.col.flip(0), torch.arange(len(row)).float(), (MANY, MANY)
    )
    assert torch.equal(matrix.matrix.col, adjacency.col)
    assert torch.equal(matrix.transpose.col, adjacency.col)
    assert matrix.order is not None
    assert torch.equal(matrix.order, adjacency.reverse)
    walker = WalkGraph.of(adjacency)
    assert torch.equal(walker.key, number[~adjacency.loop])
    one, other = (
        key_of(Graph(torch.ones(MANY, 1), each))
        for each in (adjacency, replace(adjacency, row=row, col=col))
    )
    assert torch.equal(one, other)


def test_edges_are_given_back_in_64_bits_as_pyg_holds_them() -> None:
    adjacency = Adjacency.from_edges(EDGES, 6)
    assert adjacency.edge_index.dtype == torch.int64
    assert adjacency.edge_index.shape == (2, 2 * EDGES.shape[1])


@pytest.mark.parametrize(
    ("x", "before"),
    [
        (torch.arange(12.0).reshape(6, 2), "0afd326533659b30d611464f"),
        (torch.eye(6, 12), "02f117a18174c2208f623b1b"),
    ],
)
def test_a_fingerprint_is_that_of_graphs_in_64_bits(x: Tensor, before: str) -> None:
    """Those before 32 bits came: runs of that time can be resumed, caches are found."""
    graph = Graph.from_data(Tensors(x=x, edge_index=EDGES))
    assert graph_fingerprint(graph) == before
    assert key_of(graph).tolist() == [6, 18, -6194386220085962676]
