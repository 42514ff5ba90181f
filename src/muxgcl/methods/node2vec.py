"""Node2Vec: Grover and Leskovec 2016, <https://arxiv.org/abs/1607.00653>.

DeepWalk with second-order walks: having come from t, a step back to t weighs 1 / p, one to another
neighbour of t weighs 1, and one further away 1 / q (`affinity/walks.py`). With p = q = 1 it is
DeepWalk.

Departs from the authors' code: skip-gram as in `methods/deepwalk.py`; biased steps are drawn by
rejection, which is exact and needs no tables.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from muxgcl.affinity import walks
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.methods.deepwalk import Deepwalk, DeepwalkConfig
from muxgcl.shapes import NodeIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Node2vecConfig(DeepwalkConfig):
    """Settings of Node2Vec."""

    p: float = 4.0  # return; above 1 a walk seldom turns back
    q: float = 0.25  # in-out; below 1 a walk moves away

    def __post_init__(self) -> None:
        DeepwalkConfig.__post_init__(self)
        if not 0 < self.p < float("inf") or not 0 < self.q < float("inf"):
            raise UserError(f"p and q must be positive numbers, got {self.p} and {self.q}")


class Node2vec(Deepwalk):
    """DeepWalk with walks that turn back or move away more often."""

    name: ClassVar = "node2vec"
    paper: ClassVar = "Grover and Leskovec 2016, https://arxiv.org/abs/1607.00653"
    Config: ClassVar = Node2vecConfig

    cfg: Node2vecConfig

    def prepare(self, graph: Graph) -> None:
        """See also whether steps can be drawn without asking how many were rejected."""
        super().prepare(graph)
        self.capturable = self.walk_graph(graph).at_once(self.cfg.p, self.cfg.q) is not None

    def walk(self, graph: Graph, begin: NodeIndex) -> Tensor:
        """Second-order walks."""
        cfg, walk_graph = self.cfg, self.walk_graph(graph)
        return walks(walk_graph, begin, cfg.walk_length, cfg.p, cfg.q, static=self.static)
