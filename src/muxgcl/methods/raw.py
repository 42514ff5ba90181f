"""Raw features: what the classifier makes of them alone. A control; nothing is trained."""

from dataclasses import dataclass
from typing import ClassVar

from muxgcl.graph import Graph
from muxgcl.methods.base import Context, Method
from muxgcl.shapes import Nodes, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class RawConfig:
    """Raw features have no settings; every protocol scales rows to length one."""


class Raw(Method):
    """The features themselves."""

    name: ClassVar = "raw"
    paper: ClassVar = "a control"
    cost: ClassVar = "none"
    trainable: ClassVar = False
    Config: ClassVar = RawConfig

    def __init__(self, graph: Graph, cfg: RawConfig, context: Context) -> None:
        super().__init__()

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Nothing to minimise."""
        return {}

    def embed(self, graph: Graph) -> Nodes:
        """The features as one dense table."""
        return graph.dense_features()
