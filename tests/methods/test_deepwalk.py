"""DeepWalk and Node2Vec as methods; walks and skip-gram have tests of their own."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch_geometric.data import Data

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import Context
from muxgcl.methods.deepwalk import Deepwalk, DeepwalkConfig, key_of
from muxgcl.methods.node2vec import Node2vec, Node2vecConfig
from muxgcl.runs.loop import Trainer
from muxgcl.runs.settings import TrainConfig
from muxgcl.seeding import seeded

GRAPH = Graph.from_data(planted(nodes=40, isolated=3))
SMALL = {"width": 16, "walks": 64, "walk_length": 8, "walk_context": 4}


def trained(kind: type[Deepwalk], cfg: DeepwalkConfig, graph: Graph, epochs: int = 5) -> Deepwalk:
    with seeded(0):
        method = kind(graph, cfg, Context(epochs=epochs))
        list(Trainer(method, graph, TrainConfig(epochs=epochs, lr=0.05, weight_decay=0)).blocks())
    return method


def test_node2vec_without_bias_is_deepwalk() -> None:
    one = trained(Deepwalk, DeepwalkConfig(**SMALL), GRAPH)
    two = trained(Node2vec, Node2vecConfig(**SMALL, p=1.0, q=1.0), GRAPH)
    assert torch.equal(one.embed(GRAPH), two.embed(GRAPH))


def test_a_walk_that_hates_to_turn_back_seldom_does() -> None:
    def share_of_returns(p: float) -> float:
        method = Node2vec(GRAPH, Node2vecConfig(**SMALL, p=p, q=1.0), Context())
        begin = method.starts(GRAPH).repeat(100)
        path: Tensor = method.walk(GRAPH, begin)
        return float((path[:, 2:] == path[:, :-2]).float().mean())

    assert share_of_returns(50.0) < share_of_returns(1.0) / 3
    assert share_of_returns(0.02) > share_of_returns(1.0) * 2


def test_nodes_of_one_clique_lie_together() -> None:
    inside = torch.combinations(torch.arange(6)).T
    graph = Graph.from_data(
        Data(x=torch.ones(12, 1), edge_index=torch.cat([inside, inside + 6], 1))
    )
    z = normalize(
        trained(Deepwalk, DeepwalkConfig(**SMALL), graph, epochs=60).embed(graph).detach()
    )
    cosine = z @ z.T
    assert cosine[:6, :6].min() > cosine[:6, 6:].max()


def test_a_node_whose_edges_weigh_nothing_has_a_row_of_zeros() -> None:
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    weight = torch.tensor([1.0, 1.0, 0.0])
    graph = Graph.from_data(Data(x=torch.ones(4, 1), edge_index=edges, edge_weight=weight))
    z = trained(Deepwalk, DeepwalkConfig(**SMALL), graph).embed(graph)
    assert (z != 0).any(1).tolist() == [True, True, True, False]


def test_a_node_without_neighbours_has_a_row_of_zeros() -> None:
    z = trained(Deepwalk, DeepwalkConfig(**SMALL), GRAPH).embed(GRAPH)
    assert (z[-3:] == 0).all()
    assert (z[:-3].norm(dim=1) > 0).all()


def test_a_graph_with_as_many_nodes_but_other_edges_is_refused() -> None:
    method = Deepwalk(GRAPH, DeepwalkConfig(**SMALL), Context())
    with pytest.raises(UserError, match=r"deepwalk .* training graph"):
        method.embed(Graph.from_data(planted(nodes=40, isolated=3, seed=1)))
    method.embed(Graph.from_data(planted(nodes=40, isolated=3)))  # the same graph, loaded again


@pytest.mark.parametrize("nodes", [40, 50])
def test_weights_of_another_graph_are_refused(nodes: int) -> None:
    other = Graph.from_data(planted(nodes=nodes, isolated=3, seed=1))
    saved = Deepwalk(GRAPH, DeepwalkConfig(**SMALL), Context()).state_dict()
    with pytest.raises(UserError, match=f"each of the 40 nodes .*of {nodes} nodes"):
        Deepwalk(other, DeepwalkConfig(**SMALL), Context()).load_state_dict(saved)


def test_the_key_of_a_graph_tells_one_edge_and_not_the_order_of_edges() -> None:
    edges = planted(nodes=40).edge_index
    x = torch.ones(40, 1)

    def key(edge_index: Tensor) -> list[int]:
        return key_of(Graph.from_data(Data(x=x, edge_index=edge_index))).tolist()

    assert key(edges.flip(1)) == key(edges)
    first = edges[:, :1]
    same = (edges == first).all(0) | (edges == first.flip(0)).all(0)
    other = next(v for v in range(40) if not (edges == torch.tensor([[0], [v]])).all(0).any() and v)
    moved = torch.cat([edges[:, ~same], torch.tensor([[0], [other]])], 1)  # as many edges
    assert key(moved)[:2] == key(edges)[:2]
    assert key(moved) != key(edges)


@pytest.mark.parametrize("wrong", [{"width": 0}, {"walks": 0}, {"walk_context": 1}, {"p": 0.0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UserError, match="must be"):
        Node2vecConfig(**wrong)
