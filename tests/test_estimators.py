"""scikit-learn's manners, on graphs."""

import gc
import pickle
import re
import weakref
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch_geometric.data import Data

from muxgcl import METHODS, MuxGCL, NodeEmbedder
from muxgcl.errors import UserError
from muxgcl.evaluate.statistics import Difference
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.io.load import load
from muxgcl.io.structure import NAMES

TINY = {"width": 8, "projection": 8, "projection_out": 8}
LAST = {"hidden": 8, "readout": "last", "readout_weights": (), "readout_features": 0.0}


@pytest.fixture(scope="module")
def graph() -> Data:
    return planted(nodes=50, seed=2)


def embedder(**rest: object) -> MuxGCL:
    params = {**TINY, **LAST, "affinity_epochs": 1}
    return MuxGCL(**{"preset": "quick", "epochs": 2, "params": params, **rest})


def test_parameters_are_stored_as_given_and_a_clone_has_the_same() -> None:
    one = embedder(random_state=7, lr=0.1)
    assert one.get_params()["random_state"] == 7
    two = clone(one)
    assert two is not one
    assert two.get_params() == one.get_params()
    assert two.set_params(epochs=5).epochs == 5
    assert one.get_params()["method"] == "mux-hop"
    assert MuxGCL("mux-gcl").get_params()["method"] == "mux-gcl"
    assert NodeEmbedder("grace").get_params()["method"] == "grace"


def test_fit_returns_the_embedder_and_learned_names_end_in_an_underscore(graph: Data) -> None:
    one = embedder()
    before = set(vars(one))
    assert one.fit(graph) is one
    learned = set(vars(one)) - before
    assert learned
    assert all(name.endswith("_") for name in learned)


def test_transform_of_the_training_graph_is_fit_transform(graph: Data) -> None:
    one = embedder()
    assert np.array_equal(one.fit_transform(graph), one.transform(graph))


def test_one_random_state_one_embedding(graph: Data) -> None:
    same, again, other = (embedder(random_state=s).fit_transform(graph) for s in (0, 0, 1))
    assert np.array_equal(same, again)
    assert not np.array_equal(same, other)


def test_a_random_state_is_whatever_scikit_learn_takes(graph: Data) -> None:
    want = embedder(random_state=7).fit_transform(graph)
    assert np.array_equal(embedder(random_state=np.int64(7)).fit_transform(graph), want)
    for kind in (np.random.RandomState, np.random.default_rng):
        one, two = (embedder(random_state=kind(3)).fit(graph) for _ in range(2))
        assert one.seed_ == two.seed_
        assert np.array_equal(one.embedding_, two.embedding_)
        assert np.array_equal(embedder(random_state=one.seed_).fit_transform(graph), one.embedding_)
        assert one.fit(graph).seed_ != two.seed_  # the next draw
    fresh = embedder(random_state=None)
    assert fresh.fit(graph).seed_ != fresh.fit(graph).seed_


def test_a_random_state_is_drawn_from_in_fit_alone(graph: Data) -> None:
    state = np.random.RandomState(3)
    one = embedder(random_state=state)
    assert one.random_state is state
    copy = clone(one)
    assert copy.fit(graph).seed_ == np.random.RandomState(3).randint(2**31)
    assert one.fit(graph).seed_ == copy.seed_


@pytest.mark.parametrize("wrong", ["0", 1.5, [1], np.ones(2)])
def test_a_random_state_of_another_type_is_refused(graph: Data, wrong: object) -> None:
    kind = type(wrong).__name__
    with pytest.raises(UserError, match=f"^random_state must be an integer, None, .* got {kind}$"):
        embedder(random_state=wrong).fit(graph)


def test_verbose_tells_epoch_and_loss_on_standard_error(
    graph: Data, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = embedder(epochs=25).fit_transform(graph)
    assert capsys.readouterr() == ("", "")
    told = embedder(epochs=25, verbose=True).fit(graph)
    out, lines = capsys.readouterr()
    assert out == ""
    assert re.findall(r"^epoch (\d+)/25: loss -?\d+\.\d{4}$", lines, re.M) == [
        *map(str, range(3, 25, 3)),
        "25",
    ]
    assert lines.endswith(f"loss {told.loss_:.4f}\n")
    assert np.array_equal(told.embedding_, quiet)
    NodeEmbedder("grace", params=TINY, epochs=2, verbose=True).fit(graph)
    assert capsys.readouterr().err.count("\n") == 2


def test_labels_are_never_read(graph: Data) -> None:
    unlabelled = Data(x=graph.x, edge_index=graph.edge_index)
    want = embedder().fit_transform(graph)
    assert np.array_equal(embedder().fit_transform(unlabelled), want)


def test_a_pair_of_edges_and_binary_features_is_the_same_graph(graph: Data) -> None:
    want = embedder().fit_transform(graph)
    pair = graph.edge_index, graph.x
    assert np.array_equal(embedder().fit_transform(pair), want)


def test_scales_are_learned_in_fit_and_kept_for_transform(graph: Data) -> None:
    x = torch.randn(graph.num_nodes, 5) * torch.tensor([1.0, 10, 100, 1000, 1e4])
    data = Data(x=x, edge_index=graph.edge_index)
    one = embedder().fit(data)
    assert np.array_equal(embedder().fit_transform((graph.edge_index, x)), one.embedding_)
    assert np.array_equal(one.transform((graph.edge_index, x)), one.embedding_)
    moved = one.transform(Data(x=10 * x + 3, edge_index=graph.edge_index))
    assert np.abs(moved - one.embedding_).max() > 0.1  # other numbers, not scaled away
    edge = torch.tensor([[0], [1]])
    few, all_nodes = (one.transform(Data(x=part, edge_index=edge)) for part in (x[:20], x))
    assert np.allclose(few, all_nodes[:20], atol=1e-5)  # whatever the others' mean and spread


def test_what_load_returned_is_taken_as_it_is(graph: Data) -> None:
    frame = pd.DataFrame({"id": range(50), "age": np.arange(50.0) ** 2, "kind": list("ab") * 25})
    loaded = load((graph.edge_index, frame))
    one = embedder().fit(loaded)
    assert one.encoding_ == loaded.encoding
    assert np.array_equal(one.embedding_, embedder().fit_transform((graph.edge_index, frame)))
    assert np.array_equal(one.transform(loaded), one.embedding_)
    assert np.array_equal(one.transform((graph.edge_index, frame)), one.embedding_)
    half = load((torch.tensor([[0], [1]]), frame[:20]))
    with pytest.raises(UserError, match=r"load it with encoding=embedder\.encoding_"):
        one.transform(half)
    half = load((torch.tensor([[0], [1]]), frame[:20]), encoding=one.encoding_)
    assert one.transform(half).shape == (20, 8)


def test_a_graph_without_features_gets_those_that_load_makes(graph: Data) -> None:
    edges = Data(edge_index=graph.edge_index)
    one = embedder().fit(edges)
    assert one.n_features_in_ == len(NAMES)
    assert np.array_equal(one.embedding_, embedder().fit_transform(load(edges)))
    assert np.array_equal(one.transform(edges), one.embedding_)


def test_a_prepared_graph_and_its_data_are_not_mixed_up(graph: Data) -> None:
    data = Data(x=10 * torch.randn(graph.num_nodes, 5), edge_index=graph.edge_index)
    one = embedder().fit(Graph.from_data(data))  # nothing was scaled, so nothing is
    assert np.allclose(one.transform(data), one.embedding_, atol=1e-5)
    with pytest.raises(UserError, match="scaled or encoded in fit"):
        embedder().fit(data).transform(Graph.from_data(data))


def test_weights_of_edges_are_checked(graph: Data) -> None:
    weight = torch.ones(graph.edge_index.shape[1])
    weight[3] = torch.nan
    data = Data(x=graph.x, edge_index=graph.edge_index, edge_weight=weight)
    with pytest.raises(UserError, match="weight"):
        embedder().fit(data)


def test_an_unseen_graph_with_the_same_features_can_be_embedded(graph: Data) -> None:
    one = embedder().fit(graph)
    assert one.transform(planted(nodes=30, seed=9)).shape == (30, 8)
    other = Data(x=torch.ones(4, 3), edge_index=torch.tensor([[0], [1]]))
    width = graph.x.shape[1]
    for wrong in (other, Data(x=torch.ones(4, width + 2), edge_index=other.edge_index)):
        with pytest.raises(UserError, match=f"features; the model was trained on {width}"):
            one.transform(wrong)
    with pytest.raises(UserError, match="this graph has 3"):
        one.transform(Graph.from_data(other))


@pytest.mark.parametrize("method", METHODS)
def test_a_pickle_has_the_weights_and_not_the_training_graph(method: str) -> None:
    data = planted(nodes=200, features=300, degree=20)
    one = NodeEmbedder(method, preset="quick", epochs=1, params=smallest(method)).fit(data)
    table = one.transform(data)
    stored = pickle.dumps(one)
    tensors = [*one.model_.parameters(), *one.model_.buffers()]
    weights = sum(t.numel() * t.element_size() for t in tensors) + one.embedding_.nbytes
    assert len(stored) < weights + 25_000  # the graph alone has more
    assert b"muxgcl.graph" not in stored
    assert np.array_equal(pickle.loads(stored).transform(data), table)


def smallest(method: str) -> dict[str, object]:
    known = {"width": 8, "projection": 8, "projection_out": 8, "affinity_epochs": 1}
    return {k: v for k, v in known.items() if k in METHODS[method].Config.__dataclass_fields__}


def test_a_fitted_embedder_lets_the_training_graph_go(graph: Data) -> None:
    prepared = Graph.from_data(graph)
    gone = weakref.ref(prepared)
    one = NodeEmbedder("sugrl", preset="quick", epochs=1)
    one.fit(prepared)
    one.transform(prepared)
    del prepared
    gc.collect()
    assert gone() is None


def network() -> nx.Graph:
    """Two triangles and a bridge; neither nodes nor attributes are sorted."""
    graph = nx.Graph()
    graph.add_nodes_from(["f", "a"], age=4.0)
    for at, node in enumerate("ebdc"):
        graph.add_node(node, wage=float(at), age=float(at))
    graph.add_edges_from(["fe", "ed", "df", "ab", "bc", "ca", "fa"])
    return graph


def small(**settings: object) -> MuxGCL:
    return MuxGCL(epochs=2, output_width=4, **settings)


def test_rows_follow_the_nodes_of_a_network_with_and_without_attributes() -> None:
    full, bare = network(), nx.Graph(network().edges)
    assert list(full) != sorted(full)
    for graph in (full, bare):
        embedder = small()
        rows = embedder.fit_transform(graph)
        assert embedder.ids_.tolist() == list(graph)
        reordered = nx.Graph()
        reordered.add_nodes_from((node, graph.nodes[node]) for node in sorted(graph))
        reordered.add_edges_from(graph.edges)
        order = [sorted(graph).index(node) for node in graph]
        np.testing.assert_allclose(embedder.transform(reordered)[order], rows, atol=1e-5)


def test_features_have_names_and_so_have_the_columns_of_the_embedding() -> None:
    embedder = small().fit(network())
    assert embedder.feature_names_in_.tolist() == ["wage", "age"]
    assert len(embedder.feature_names_in_) == embedder.n_features_in_
    assert embedder.get_feature_names_out().tolist() == [f"muxgcl{at}" for at in range(4)]


def test_a_frame_has_the_ids_of_its_nodes() -> None:
    plain = small().fit(network())
    embedder = small().set_output(transform="pandas")
    frame = embedder.fit_transform(network())
    assert frame.index.tolist() == list(network())
    assert frame.index.name == "id"
    assert frame.columns.tolist() == embedder.get_feature_names_out().tolist()
    np.testing.assert_array_equal(frame.to_numpy(), plain.embedding_)
    alone = network()
    alone.remove_node("f")
    assert embedder.transform(alone).index.tolist() == list(alone)
    edges = pd.DataFrame([("a", "b"), ("b", "c")], columns=["source", "target"])
    bare = small().set_output(transform="pandas").fit_transform(edges)
    assert bare.index.tolist() == ["a", "b", "c"]  # and not the index of the frame of edges
    assert clone(embedder).fit_transform(network()).index.tolist() == list(network())
    assert isinstance(embedder.set_output(transform="default").transform(network()), np.ndarray)


def test_scikit_learns_own_switch_counts_where_the_embedder_has_none() -> None:
    with config_context(transform_output="pandas"):
        assert small().fit_transform(network()).index.tolist() == list(network())
        arrays = small().set_output(transform="default").fit_transform(network())
        assert isinstance(arrays, np.ndarray)
    with pytest.raises(UserError, match="transform must be 'default' or 'pandas', got 'polars'"):
        small().set_output(transform="polars")


def test_an_unfitted_embedder_says_so(graph: Data) -> None:
    with pytest.raises(NotFittedError):
        embedder().transform(graph)


def test_unknown_names_are_errors_at_fit(graph: Data) -> None:
    with pytest.raises(UserError, match="did you mean grace"):
        NodeEmbedder("gracee").fit(graph)
    with pytest.raises(UserError, match="did you mean width"):
        MuxGCL(params={"widht": 3}).fit(graph)
    assert "grace" in METHODS


def test_the_example_of_a_paired_difference_runs_as_it_stands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = Path(__file__).parents[1] / "docs" / "evaluation.md"
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    names: dict[str, object] = {}
    exec(compile(code, page.name, "exec"), names)
    assert isinstance(names["difference"], Difference)
    assert capsys.readouterr().out == f"{names['difference']} {names['difference'].is_clear}\n"
