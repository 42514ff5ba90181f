"""scikit-learn's manners, on graphs."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch_geometric.data import Data

from muxgcl import METHODS, MuxGCL, NodeEmbedder
from muxgcl.datasets import planted
from muxgcl.errors import UserError
from muxgcl.graph import Graph

TINY = {"width": 8, "projection": 8, "projection_out": 8}


@pytest.fixture(scope="module")
def graph() -> Data:
    return planted(nodes=50, seed=2)


def embedder(**rest: object) -> MuxGCL:
    params = {**TINY, "affinity_epochs": 1}
    return MuxGCL(**{"preset": "quick", "epochs": 2, "params": params, **rest})


def test_parameters_are_stored_as_given_and_a_clone_has_the_same() -> None:
    one = embedder(random_state=7, lr=0.1)
    assert one.get_params()["random_state"] == 7
    two = clone(one)
    assert two is not one
    assert two.get_params() == one.get_params()
    assert two.set_params(epochs=5).epochs == 5
    assert "method" not in one.get_params()
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
    half = one.transform(Data(x=x[:20], edge_index=torch.tensor([[0], [1]])))
    alone = np.flatnonzero(~np.isin(np.arange(20), graph.edge_index.numpy()))
    assert np.allclose(half[alone], one.embedding_[alone], atol=1e-5)


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
    with pytest.raises(UserError, match="lacks the columns"):
        one.transform(other)
    with pytest.raises(UserError, match="this graph has 3"):
        one.transform(Graph.from_data(other))


def test_an_unfitted_embedder_says_so(graph: Data) -> None:
    with pytest.raises(NotFittedError):
        embedder().transform(graph)


def test_unknown_names_are_errors_at_fit(graph: Data) -> None:
    with pytest.raises(UserError, match="did you mean grace"):
        NodeEmbedder("gracee").fit(graph)
    with pytest.raises(UserError, match="did you mean width"):
        MuxGCL(params={"widht": 3}).fit(graph)
    assert "grace" in METHODS
