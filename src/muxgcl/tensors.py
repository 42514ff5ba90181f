"""A graph's tensors by name, as PyG's `Data` holds them; PyG itself is loaded when asked for.

Loading PyG takes seconds, and most commands have no use for it.
"""

import sys
from collections.abc import KeysView, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import torch
from jaxtyping import Float, Int
from torch import Tensor

from muxgcl.shapes import EdgeIndex, PerEdge

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Tensors:
    """`x`, `edge_index` and, where there are any, `y`, `edge_weight`, masks and a name."""

    x: Tensor
    y: Tensor
    edge_index: EdgeIndex
    edge_weight: Tensor

    def __init__(self, **tensors: Any) -> None:
        self.update(tensors)

    def update(self, tensors: Mapping[str, Any]) -> None:
        """Take these in, by name."""
        self.__dict__.update(tensors)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self.__dict__.keys()

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __repr__(self) -> str:
        sizes = (f"{k}={list(v.shape)}" for k, v in self.__dict__.items() if isinstance(v, Tensor))
        return f"Tensors({', '.join(sizes)})"

    @property
    def num_nodes(self) -> int:
        """Rows of the features."""
        return self.x.shape[0]

    @property
    def num_edges(self) -> int:
        """Columns of the edge index."""
        return self.edge_index.shape[1]

    @property
    def num_features(self) -> int:
        """Columns of the features."""
        return self.x.shape[1]

    def to_pyg(self) -> "Data":
        """The same tensors as PyG holds them."""
        from torch_geometric.data import Data

        return Data(**self.__dict__)


AnyData: TypeAlias = "Tensors | Data"


def is_pyg(graph: Any) -> "TypeGuard[Data]":
    """Whether this is PyG's `Data`; where PyG was never loaded, nothing is."""
    loaded = sys.modules.get("torch_geometric.data")
    return loaded is not None and isinstance(graph, loaded.Data)


def both_ways(edge_index: EdgeIndex, nodes: int) -> Int[Tensor, "2 s"]:
    """Both directions of every edge, once, sorted, without self-loops."""
    entry, _ = symmetric(edge_index, nodes)
    return torch.stack([entry // nodes, entry % nodes])


def symmetric(
    edge_index: EdgeIndex, nodes: int, weight: PerEdge | None = None, *, loops: bool = False
) -> tuple[Int[Tensor, " s"], Float[Tensor, " s"]]:
    """Both directions of every edge, once, and their weights.

    An entry is `row * nodes + col`, ascending.

    Args:
        edge_index: directed or not, repeated or not; self-loops are dropped.
        nodes: how many nodes there are.
        weight: of each edge, 1 by default; of repeated edges the largest counts.
        loops: give every node one self-loop of weight 1.
    """
    apart = edge_index[0] != edge_index[1]
    row, col = edge_index[:, apart]
    loop = torch.arange(nodes if loops else 0, device=row.device) * (nodes + 1)
    entry = torch.cat([row * nodes + col, col * nodes + row, loop])
    del row, col  # with many edges this is where memory peaks
    if weight is None:
        entry = entry.unique()
        return entry, torch.ones(len(entry), device=entry.device)
    entry, place = entry.unique(return_inverse=True)
    value = weight[apart].float()
    value = value.new_zeros(len(entry)).scatter_reduce(
        0, place, torch.cat([value, value, value.new_ones(len(loop))]), "amax", include_self=False
    )
    return entry, value
