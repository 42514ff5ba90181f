"""Directed edges and types of edges: parts in loops, propagations by formula, and reductions."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from cli_cases import TINY, ask
from torch import Tensor
from torch.testing import assert_close

import muxgcl
from muxgcl import METHODS, LoadOptions, MuxGCL, NodeEmbedder, RunOptions, UserError
from muxgcl.graph import Graph, Kinds
from muxgcl.io import planted
from muxgcl.io.load import load
from muxgcl.methods import Context, total
from muxgcl.methods.mux_hop import MuxHop, MuxHopConfig
from muxgcl.runs.folder import Run
from muxgcl.runs.held_out import without_links
from muxgcl.seeding import seeded

NODES = 9
SMALL = {"hidden": 8, "width": 6, "projection": 5, "projection_out": 4, "affinity": "none"}
STILL = {"drop_edges": (0.0, 0.0), "drop_features": 0.0, "dropout": 0.0}
FEATURES = np.random.default_rng(5).normal(size=(NODES, 4)).astype(np.float32)


def listing(seed: int = 0) -> pd.DataFrame:
    """Edges with weights, duplicates, loops and three types, some of them both ways."""
    chance = np.random.default_rng(seed)
    edges = pd.DataFrame(chance.integers(0, NODES, (40, 2)), columns=["source", "target"])
    edges["weight"] = chance.uniform(0.5, 2.0, 40).astype(np.float32)
    edges["kind"] = chance.choice(["buys", "knows", "sells"], 40)
    return edges


def typed(edges: pd.DataFrame, *, directed: bool) -> dict[str, np.ndarray]:
    """$A_t$ by a plain loop: entry (i, j) weighs the edge from j to i; the largest counts."""
    found = {kind: np.zeros((NODES, NODES)) for kind in sorted(edges["kind"])}
    for a, b, weight, kind in edges.itertuples(index=False):
        for i, j in ((b, a),) if directed else ((b, a), (a, b)):
            if i != j:
                found[kind][i, j] = max(found[kind][i, j], weight)
    return found


def normalised(matrix: np.ndarray) -> np.ndarray:
    """$D_{in}^{-1/2} (A + I) D_{out}^{-1/2}$."""
    full = matrix + np.eye(len(matrix))
    return full / np.sqrt(np.outer(full.sum(1), full.sum(0)))


def dense(graph: Graph) -> Tensor:
    return graph.adjacency.propagation() @ torch.eye(graph.num_nodes)


def method_of(graph: Graph, **settings: object) -> MuxHop:
    with seeded(3):
        method = MuxHop(graph, MuxHopConfig(**SMALL | settings), Context())
    method.prepare(graph)
    return method


@pytest.mark.parametrize("directed", [True, False])
def test_propagations_of_loaded_edges_are_those_of_the_formula(directed: bool) -> None:
    edges = listing()
    options = {"edge_type_column": "kind", "directed": directed}
    loaded = load((edges, FEATURES), **options)
    matrices = typed(edges, directed=directed)
    want = np.mean([normalised(matrix) for matrix in matrices.values()], axis=0)
    graph = Graph.from_data(loaded.tensors)
    assert graph.edge_kinds.names == ("buys", "knows", "sells")
    along, *against = graph.directions
    assert_close(dense(along).double(), torch.from_numpy(want), atol=1e-6, rtol=0)
    assert len(against) == directed
    for other in against:
        assert_close(dense(other).double(), torch.from_numpy(want.T.copy()), atol=1e-6, rtol=0)
    together = sum(np.maximum(matrix, matrix.T) for matrix in matrices.values())
    plain = dense(replace(graph, edge_kinds=None)).double()
    assert_close(plain, torch.from_numpy(normalised(together)), atol=1e-6, rtol=0)


def test_one_direction_without_types_is_the_formula_too() -> None:
    edges = listing(1).drop(columns="kind")
    graph = Graph.from_data(load((edges, FEATURES), directed=True).tensors)
    (matrix,) = typed(edges.assign(kind="a"), directed=True).values()
    along, against = map(dense, graph.directions)
    assert_close(along.double(), torch.from_numpy(normalised(matrix)), atol=1e-6, rtol=0)
    assert_close(against, along.T)
    assert not torch.allclose(along, along.T, atol=0.05)


def both_ways(edges: pd.DataFrame) -> pd.DataFrame:
    swapped = edges.rename(columns={"source": "target", "target": "source"})
    return pd.concat([edges, swapped[edges.columns]], ignore_index=True)


@pytest.mark.parametrize("convolutions", [0, 1])
@pytest.mark.parametrize("readout", ["all", "last"])
def test_a_directed_graph_whose_edges_go_both_ways_is_the_undirected_one(
    convolutions: int, readout: str
) -> None:
    edges = both_ways(listing(2).drop(columns="kind"))
    plain = Graph.from_data(load((edges, FEATURES)).tensors)
    graph = Graph.from_data(load((edges, FEATURES), directed=True).tensors)
    for one in graph.directions:
        assert_close(dense(one), dense(plain))
    settings = {**STILL, "convolutions": convolutions, "readout": readout, "readout_features": 0.5}
    one, two = method_of(plain, **settings), method_of(graph, **settings)
    assert_close(total(two.loss(graph)), total(one.loss(plain)))
    want, z = (m.embed(g).detach() for m, g in ((one, plain), (two, graph)))
    assert z.shape[1] > want.shape[1]
    assert_close(z @ z.T, want @ want.T, atol=1e-5, rtol=1e-5)


def test_one_type_of_edges_is_none() -> None:
    edges = listing(3).assign(kind="knows")
    plain = load((edges.drop(columns="kind"), FEATURES))
    one = load((edges, FEATURES), edge_type_column="kind")
    assert "edge_parts" not in one.tensors
    assert torch.equal(one.tensors.edge_weight, plain.tensors.edge_weight)
    graph = Graph.from_data(plain.tensors)
    alone = replace(graph, edge_kinds=Kinds(torch.ones(1, len(graph.adjacency.col)), False, ("a",)))
    method = method_of(graph)
    assert torch.equal(method.embed(alone), method.embed(graph))
    with seeded(0):
        want = total(method.loss(graph))
    with seeded(0):
        assert torch.equal(total(method.loss(alone)), want)


def test_turning_every_edge_round_swaps_the_two_directions() -> None:
    edges = listing(4).drop(columns="kind")
    turned = edges.rename(columns={"source": "target", "target": "source"})[edges.columns]
    first, second = (
        Graph.from_data(load((e, FEATURES), directed=True).tensors) for e in (edges, turned)
    )
    method = method_of(first, hops=1, scale_weights=(0.5, 0.5))
    z, w = method.embed(first), method.embed(second)
    width = SMALL["width"]
    assert z.shape[1] == 3 * width  # scale 0 once, scale 1 along and against
    zero, along, against = z.split(width, 1)
    assert_close(w, torch.cat([zero, against, along], 1))
    assert not torch.allclose(along, against, atol=0.01)


def test_the_loss_of_a_directed_graph_is_the_mean_of_its_directions() -> None:
    graph = Graph.from_data(load((listing(5), FEATURES), directed=True).tensors)
    method = method_of(graph, **STILL)
    parts = [total(method.loss(one)) for one in graph.directions]
    assert_close(total(method.loss(graph)), (parts[0] + parts[1]) / 2)
    assert abs((parts[0] - parts[1]).item()) > 1e-4


def test_hidden_links_leave_directions_and_types_as_they_are() -> None:
    edges = listing(6)
    loaded = load((edges, FEATURES), edge_type_column="kind", directed=True)
    graph, hidden = without_links(loaded, share=0.2)
    whole = Graph.from_data(loaded.tensors)
    kept = torch.from_numpy(hidden.kept)
    assert graph.edge_kinds.directed
    apart, all_apart = ~graph.adjacency.loop, ~whole.adjacency.loop
    assert torch.equal(
        graph.edge_kinds.parts[:, apart], whole.edge_kinds.parts[:, all_apart][:, kept]
    )


def test_networkx_and_files_give_the_same_kinds(tmp_path: Path) -> None:
    edges = listing(7).drop_duplicates(["source", "target"])
    edges.to_csv(tmp_path / "e.csv", index=False)
    edges.to_parquet(tmp_path / "e.parquet", index=False)
    network = nx.DiGraph()
    network.add_nodes_from(range(NODES))
    for row in edges.to_dict("records"):
        network.add_edge(row.pop("source"), row.pop("target"), **row)
    options = {"features": FEATURES, "edge_type_column": "kind", "directed": True}
    want = load(edges, **options).tensors
    for source in (tmp_path / "e.csv", tmp_path / "e.parquet", network):
        found = load(source, **options).tensors
        assert torch.equal(found.edge_index, want.edge_index)
        assert_close(found["edge_parts"], want["edge_parts"])
        assert found["edge_types"] == want["edge_types"]


def test_what_was_done_is_told() -> None:
    edges = pd.DataFrame(
        {"source": [0, 1, 2, 2, 0], "target": [1, 0, 0, 2, 1], "kind": ["b", "a", "a", "a", "a"]}
    )
    notes = load(edges, edge_type_column="kind", directed=True).notes
    assert "directed: 3 edges, 1 pair both ways" in notes
    assert "2 types of edges: 'a', 'b'" in notes
    assert not [note for note in notes if "undirected" in note or "duplicate" in note]


@pytest.mark.parametrize(
    ("source", "options", "told"),
    [
        (np.array([[0, 1, 1], [1, 2, 0]]), {"edge_type_column": "kind"}, "are a column of an edge"),
        (nx.path_graph(3), {"directed": True}, "is undirected: leave --directed out"),
        (nx.path_graph(3), {"edge_type_column": "kind"}, "not every edge has an attribute 'kind'"),
        (listing(), {"edge_type_column": "sort"}, "has no column 'sort'"),
        (listing(), {"edge_type_column": "weight"}, "'weight' cannot be the type of an edge too"),
        (
            pd.DataFrame({"a": range(70), "b": range(1, 71), "k": range(70)}),
            {"edge_type_column": "k"},
            "at most 64 types of edges, got 70",
        ),
    ],
)
def test_a_mistake_in_kinds_is_one_line(
    source: object, options: dict[str, object], told: str
) -> None:
    with pytest.raises(UserError, match=told):
        load(source, **options)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_other_method_says_that_it_knows_no_directions(method: str) -> None:
    loaded = load((listing(), FEATURES), directed=True)
    embedder = NodeEmbedder(method, preset="quick", epochs=1)
    if method == "mux-hop":
        assert METHODS[method].edge_kinds
        return
    with pytest.raises(UserError, match=f"^{method} supports neither directed .*; mux-hop does$"):
        embedder.fit(loaded)


def test_a_directed_run_is_kept_embedded_and_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = planted(nodes=60)
    pairs = data.edge_index.T.tolist()
    kinds = ["ab"[(a + b) % 2] for a, b in pairs]
    table = pd.DataFrame(pairs, columns=["source", "target"]).assign(kind=kinds)
    table = table[(table["source"] < table["target"]) | (table.index % 3 == 0)]
    table.to_csv(tmp_path / "e.csv", index=False)
    np.save(tmp_path / "x.npy", data.x.numpy())
    graph = [str(tmp_path / "e.csv"), "--features", str(tmp_path / "x.npy")]
    kept = ["--directed", "--edge-type", "kind"]
    out = str(tmp_path / "run")
    words = ["train", *graph, *kept, *TINY, "--device", "cpu", "--quiet", "--out", out]
    assert ask(capsys, *words, "--epochs", "2")[0] == 0
    facts = Run(Path(out)).config()["data"]
    assert (facts["directed"], facts["edge_types"]) == (True, ["a", "b"])
    before = Run(Path(out)).embeddings()[1]
    assert np.array_equal(muxgcl.embed(out, graph[0], load=files(graph)).table, before)
    one = MuxGCL.load(out)
    loaded = load(graph[0], features=graph[2], directed=True, edge_type_column="kind")
    assert np.array_equal(one.transform(loaded), before)
    assert ask(capsys, *words, "--epochs", "3", "--resume")[0] == 0
    status, _, err = ask(capsys, "train", *graph, *TINY, "--out", out, "--resume", "--quiet")
    assert (status, "another graph" in err) == (2, True)

    with pytest.raises(UserError, match="trained on directed edges, this graph has undirected"):
        one.transform(load(graph[0], features=graph[2], edge_type_column="kind"))
    with pytest.raises(UserError, match="types of edges a, b, this graph has one type"):
        one.transform(load(graph[0], features=graph[2], directed=True))


def files(graph: list[str]) -> LoadOptions:
    return LoadOptions(features=graph[2])


def test_a_sample_of_a_directed_graph_trains(tmp_path: Path) -> None:
    steps = list(pairwise(range(60)))
    loaded = load((steps + [(a, (7 * a + 3) % 60) for a in range(60)], planted(nodes=60).x),
                  directed=True)  # fmt: skip
    options = RunOptions(
        settings={**SMALL, "convolutions": 1}, preset="quick", epochs=3, anchors=20, negatives=20,
        score=False, device="cpu", out=tmp_path / "run",
    )  # fmt: skip
    result = muxgcl.run(loaded, options)
    assert np.isfinite(result.embedding).all()
