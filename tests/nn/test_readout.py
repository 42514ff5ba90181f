"""The readout: which scales become the embedding, and how they lie side by side."""

from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data

from muxgcl.augment import clean
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import METHODS, Context
from muxgcl.nn import readout
from muxgcl.nn.readout import Kind, Readout
from muxgcl.seeding import seeded
from muxgcl.sparse import SparseMatrix

GRAPH = Graph.from_data(planted(nodes=30, isolated=2, featureless=2))


def unit(table: Tensor) -> Tensor:
    length = table.norm(dim=1, keepdim=True)
    return torch.where(length > 0, table / length, 0)


def scales(width: int = 5) -> dict[int, Tensor]:
    return {k: torch.randn(30, width) for k in range(3)}


def test_the_last_scale_is_read_out_as_it_is() -> None:
    found = scales()
    assert Readout("last", (), 0.0, last=2)(found, GRAPH) is found[2]


def test_all_scales_stand_side_by_side_with_unit_rows_and_their_weights() -> None:
    found = scales()
    equal = Readout("all", (), 0.0, last=2)(found, GRAPH)
    assert_close(equal, torch.cat([unit(found[0]), unit(found[1]), unit(found[2])], 1))
    weighted = Readout("all", (0.5, 0.0, 2.0), 0.0, last=2)(found, GRAPH)
    assert_close(weighted, torch.cat([0.5 * unit(found[0]), 2 * unit(found[2])], 1))


@pytest.mark.parametrize("kind", ["last", "all"])
def test_propagated_features_are_one_more_block(kind: Any) -> None:
    found = scales()
    got = Readout(kind, (), 0.25, last=2)(found, GRAPH)
    a = clean(GRAPH).propagation @ torch.eye(30)
    blocks = [unit(found[k]) for k in ((2,) if kind == "last" else range(3))]
    assert_close(got, torch.cat([*blocks, 0.25 * unit(a @ a @ GRAPH.dense_features())], 1))


@pytest.mark.parametrize("kind", ["last", "all"])
def test_features_as_they_are_are_a_block_behind_the_propagated_ones(kind: Any) -> None:
    found, x = scales(), GRAPH.dense_features()
    a = clean(GRAPH).propagation @ torch.eye(30)
    blocks = [unit(found[k]) for k in ((2,) if kind == "last" else range(3))]
    both = Readout(kind, (), 0.25, last=2, raw=0.75)(found, GRAPH)
    assert_close(both, torch.cat([*blocks, 0.25 * unit(a @ a @ x), 0.75 * unit(x)], 1))
    alone = Readout(kind, (), 0.0, last=2, raw=0.75)(found, GRAPH)
    assert_close(alone, torch.cat([*blocks, 0.75 * unit(x)], 1))


# --- what holds for every readout ----------------------------------------------------------------

EVERY = pytest.mark.parametrize("kind", get_args(Kind))


@EVERY
@pytest.mark.parametrize("features", [0.0, 0.25])
def test_rows_that_are_read_out_in_blocks_are_those_of_the_whole(
    kind: Kind, features: float
) -> None:
    found = scales()
    made = Readout(kind, (), features, last=2)
    blocks = list(made.blocks(found, GRAPH, rows=7))
    assert [len(block) for block in blocks] == [7, 7, 7, 7, 2]
    assert_close(torch.cat(blocks), made(found, GRAPH))


@EVERY
def test_a_row_is_read_out_from_that_row_of_the_scales_alone(kind: Kind) -> None:
    found, order = scales(), torch.randperm(30)
    made = Readout(kind, (), 0.0, last=2)
    moved = made({k: table[order] for k, table in found.items()}, GRAPH)
    assert_close(moved, made(found, GRAPH)[order])


@EVERY
@pytest.mark.parametrize("features", [0.0, 0.25])
def test_a_direction_that_comes_twice_keeps_the_inner_products(kind: Kind, features: float) -> None:
    found = scales()
    made = Readout(kind, (), features, last=2)
    (one,), (two,) = (made.directions([(found, GRAPH)] * times, rows=30) for times in (1, 2))
    assert_close(two @ two.T, one @ one.T)


def test_a_table_of_features_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readout, "FEATURE_BYTES", 100)
    with pytest.raises(UserError, match="features in the readout need a table of 30 x"):
        Readout("all", (), 0.5, last=2)(scales(), GRAPH)


@pytest.mark.parametrize("name", ["mux-gcl", "grace"])
def test_graph_convolutions_read_out_every_scale(name: str) -> None:
    def made(**settings: Any) -> Tensor:
        kind = METHODS[name]
        with seeded(0):
            method = kind(GRAPH, kind.Config(width=6, **settings), Context())
        encoded.update(method.encoder(clean(GRAPH)))
        return method.embed(GRAPH)

    encoded: dict[int, Tensor] = {}
    assert_close(made(), encoded[2])
    weights = (0.5, 0.5, 1.0)
    got = made(readout="all", readout_weights=weights)
    assert_close(got, torch.cat([w * unit(encoded[k]) for k, w in enumerate(weights)], 1))


def test_a_new_graph_is_read_out_with_its_own_features() -> None:
    kind = METHODS["mux-gcl"]
    method = kind(GRAPH, kind.Config(width=6, readout="all", readout_features=0.5), Context())
    x = torch.rand(4, GRAPH.num_features)
    new = Graph.from_data(Data(x=x, edge_index=torch.empty(2, 0, dtype=torch.long)))
    assert_close(method.embed(new)[:, 18:], 0.5 * unit(x))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("first", (), 0.0), "readout must be one of last, all.* got 'first'"),
        (("last", (1.0, 1.0, 1.0), 0.0), "readout_weights are for readout all"),
        (("all", (1.0, 1.0), 0.0), "each of the 3 scales"),
        (("all", (1.0, -1.0, 1.0), 0.0), "must not be negative"),
        (("all", (0.0, 0.0, 0.0), 0.0), "one scale must count"),
        (("all", (), -0.5), "must not be negative"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_a_wrong_readout_is_one_clear_line(settings: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Readout(*settings, last=2)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("hops", [0, 1, 2])
def test_features_are_propagated_some_columns_at_a_time(
    hops: int, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, table = GRAPH, GRAPH.dense_features()
    if sparse:
        row, col = table.nonzero().T
        entries = SparseMatrix.from_entries(row, col, table[row, col], tuple(table.shape))
        graph = replace(GRAPH, features=entries)
    else:
        graph = replace(GRAPH, features=table)
    monkeypatch.setattr(readout, "COLUMNS", 3)
    want = table
    for _ in range(hops):
        want = clean(graph).propagation @ want
    assert_close(readout.propagated_features(graph, hops), want)


def test_sparse_rows_are_those_of_the_dense_table() -> None:
    x = torch.zeros(7, 12)
    x[1, 3], x[1, 0], x[4, 11], x[6, 2] = 2.0, -1.0, 3.0, 0.5
    row, col = x.nonzero(as_tuple=True)
    rows = readout.SparseRows(SparseMatrix.from_entries(row, col, x[row, col], (7, 12)).matrix)
    assert len(rows) == 7
    for part in (slice(0, 7), slice(2, 4), slice(4, 99), slice(1, 2), slice(7, 9)):
        assert_close(rows[part], x[part])
