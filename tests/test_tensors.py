"""A graph's tensors without PyG: what PyG's own functions would give, and no PyG where none is."""

import subprocess
import sys

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import add_self_loops, coalesce, remove_self_loops, to_undirected

from muxgcl.errors import UserError
from muxgcl.graph import Adjacency, Graph
from muxgcl.tensors import Tensors, both_ways, is_pyg


def random_edges(nodes: int, edges: int) -> torch.Tensor:
    """With self-loops, edges in both directions and repeated ones."""
    drawn = torch.randint(nodes, (2, edges))
    return torch.cat([drawn, drawn[:, : edges // 3], drawn[:, : edges // 4].flip(0)], 1)


@pytest.mark.parametrize(("nodes", "edges"), [(1, 3), (5, 0), (7, 40), (200, 900)])
def test_both_directions_are_those_of_pyg(nodes: int, edges: int) -> None:
    given = random_edges(nodes, edges)
    want = to_undirected(remove_self_loops(given)[0], num_nodes=nodes)
    assert torch.equal(both_ways(given, nodes), want)


@pytest.mark.parametrize(("nodes", "edges"), [(1, 3), (5, 0), (7, 40), (200, 900)])
def test_an_adjacency_keeps_the_larger_weight_as_pyg_would(nodes: int, edges: int) -> None:
    given = random_edges(nodes, edges)
    weight = torch.rand(given.shape[1])
    found = Adjacency.from_edges(given, nodes, weight)
    index, value = remove_self_loops(given, weight)
    index, value = to_undirected(index, value, nodes, reduce="max")
    index, value = add_self_loops(index, value, 1.0, nodes)
    index, value = coalesce(index, value, nodes)
    assert torch.equal(torch.stack([found.row, found.col]), index)
    assert torch.equal(found.weight, value)


def test_tensors_become_a_pyg_graph_and_are_none() -> None:
    tensors = Tensors(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    tensors["y"] = torch.arange(3)
    assert not is_pyg(tensors)
    data = tensors.to_pyg()
    assert is_pyg(data)
    assert isinstance(data, Data)
    assert set(data.keys()) == set(tensors.keys()) == {"x", "edge_index", "y"}
    assert (tensors.num_nodes, tensors.num_edges, tensors.num_features) == (3, 2, 2)
    assert "y" in tensors
    assert "edge_weight" not in tensors
    assert repr(tensors) == "Tensors(x=[3, 2], edge_index=[2, 2], y=[3])"


def test_the_command_line_does_not_load_pyg() -> None:
    """It takes seconds."""
    code = (
        "import sys; import muxgcl.cli.commands; from muxgcl.io import open_dataset;"
        "open_dataset('cora'); sys.exit('torch_geometric' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1.0, -0.5], "not negative, got -0.5 for edge 1"),
        ([float("nan"), 1.0], "got nan for edge 0"),
        ([1.0, float("inf")], "got inf for edge 1"),
        ([1.0], r"each of the 2 edges, got shape \(1,\)"),
        ([[1.0], [1.0]], r"got shape \(2, 1\)"),
    ],
)
def test_weights_that_are_none_are_refused_at_the_door(weight: list[float], words: str) -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    data = Data(x=torch.ones(3, 2), edge_index=edges, edge_weight=torch.tensor(weight))
    with pytest.raises(UserError, match=words):
        Graph.from_data(data)
    data.edge_weight = torch.tensor([0, 2])
    assert Graph.from_data(data).adjacency.weight.tolist() == [1, 0, 0, 1, 2, 2, 1]
