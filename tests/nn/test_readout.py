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
from muxgcl.methods import METHODS, Context, Method
from muxgcl.nn import readout
from muxgcl.nn.projector import unit_rows
from muxgcl.nn.readout import Kind, Readout
from muxgcl.reproduce.job import settings_of
from muxgcl.runs.plan import Plan
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


CONVOLUTIONS = [
    name for name, kind in METHODS.items() if hasattr(kind.Config, "readout") and name != "mux-hop"
]


def convolution(name: str, **settings: Any) -> Method:
    """With weights that do not depend on the readout; rows of features are divided where they may.

    Divided are what the encoder sees, not the features that stand beside its scales.
    """
    kind = METHODS[name]
    divided = {"row_normalize": True} if hasattr(kind.Config, "row_normalize") else {}
    with seeded(0):
        return kind(GRAPH, kind.Config(width=6, **divided, **settings), Context()).eval()


def finished(name: str, table: Tensor) -> Tensor:
    """What NS4GC does with all that is read out: rows of length 1."""
    return unit(table) if name == "ns4gc" else table


def test_every_method_that_has_scales_is_known() -> None:
    kin = {"gca", "progcl", "homogcl", "costa", "sfa", "cca-ssg", "ns4gc"}
    assert {"mux-gcl", "grace"} | kin == set(CONVOLUTIONS)


@torch.no_grad()
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_graph_convolutions_read_out_every_scale(name: str) -> None:
    method = convolution(name)
    scales = method.encoder(method.plain_view(GRAPH))
    weights = (0.5, 0.5, 1.0)
    got = convolution(name, readout="all", readout_weights=weights)
    want = torch.cat([w * unit(scales[k]) for k, w in enumerate(weights)], 1)
    assert_close(got.embed(GRAPH), finished(name, want))
    assert_close(torch.cat([*got.embed_blocks(GRAPH)]), got.embed(GRAPH))


@torch.no_grad()
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_features_stand_beside_a_graph_convolution(name: str) -> None:
    alone, x = convolution(name), GRAPH.dense_features()
    a = clean(GRAPH).propagation @ torch.eye(30)
    blocks = [unit(alone.embed(GRAPH)), 0.5 * unit(a @ a @ x), 0.25 * unit(x)]
    both = convolution(name, readout_features=0.5, readout_raw=0.25)
    assert_close(both.embed(GRAPH), finished(name, torch.cat(blocks, 1)))
    assert_close(torch.cat([*both.embed_blocks(GRAPH)]), both.embed(GRAPH))


@torch.no_grad()
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_by_default_the_encoders_output_is_read_out_as_it_is(name: str) -> None:
    method = convolution(name)
    own = method.encoder.embed(method.plain_view(GRAPH))
    want = unit_rows(own) if name == "ns4gc" else own
    assert torch.equal(method.embed(GRAPH), want)
    assert_close(torch.cat([*method.embed_blocks(GRAPH)]), want)
    plan = Plan.make(name, "paper", "cora")
    settings = {n for n in settings_of(plan)["settings"] if n.startswith("readout")}
    assert not settings  # records from before these settings were there match theirs


@pytest.mark.parametrize("name", ["homogcl", "cca-ssg", "ns4gc"])
def test_carried_scales_end_without_an_activation_where_the_last_layer_has_none(name: str) -> None:
    encoder = convolution(name).encoder
    view = clean(GRAPH)
    hidden = encoder.act(view.propagation @ view.project(encoder.weights[0]) + encoder.biases[0])
    assert_close(encoder(view)[1], hidden @ encoder.weights[1])


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
