r"""DeepWalk: Perozzi, Al-Rfou and Skiena 2014, <https://arxiv.org/abs/1403.6652>.

One row a node, features unused: nodes that random walks meet close to each other get similar rows,
by skip-gram with negative sampling (`affinity/skipgram.py`).

Departs from the paper: negative sampling instead of a hierarchical softmax; one table instead of
two; a step, which is what training calls an epoch, takes a batch of walks from random nodes; the
learning rate falls along a cosine. A node without neighbours has a row of zeros.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from muxgcl.affinity import SkipGram, WalkGraph, walks
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.of_graph import PerGraphCache
from muxgcl.methods.parts.schedule import WarmUpCosine
from muxgcl.nn.adam import Adam
from muxgcl.shapes import NodeIndex, Nodes, Scalar
from muxgcl.sparse import entry_number

SHARED_NEGATIVES = 64  # nodes that the walks of one step are pushed away from
MIXER = 0x9E3779B97F4A7C15 - (1 << 64)  # an odd number that spreads keys over 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepwalkConfig:
    """Settings of DeepWalk."""

    width: int = 128  # of the embedding
    walk_length: int = 20  # nodes, the first included
    walk_context: int = 10  # nodes of a walk closer than this are a pair
    walks: int = 1024  # in one step
    negatives: float = 1.0  # how much a pair's negatives weigh

    def __post_init__(self) -> None:
        if self.width < 1 or self.walks < 1:
            raise UserError(
                f"width and walks must be at least 1, got {self.width} and {self.walks}"
            )
        if not 2 <= self.walk_context <= self.walk_length:
            raise UserError(
                "walk_context must be at least 2 and at most walk_length "
                f"({self.walk_length}), got {self.walk_context}"
            )


class Deepwalk(Method):
    """Nodes that walks meet close together lie close together."""

    name: ClassVar = "deepwalk"
    paper: ClassVar = "Perozzi et al. 2014, https://arxiv.org/abs/1403.6652"
    cost: ClassVar = "linear"
    inductive: ClassVar = False
    Config: ClassVar = DeepwalkConfig

    graph_key: Tensor

    def __init__(self, graph: Graph, cfg: DeepwalkConfig, context: Context) -> None:
        super().__init__()
        self.cfg = cfg
        self.walk_graph = PerGraphCache(walk_graph_of)
        self.starts = PerGraphCache(self._starts)
        self.model = SkipGram(
            graph.num_nodes, cfg.width, context=cfg.walk_context, negatives=cfg.negatives
        )
        self.schedule = WarmUpCosine(context.epochs, warm_up=0.0)
        self.register_buffer("graph_key", key_of(graph))
        self.register_load_state_dict_pre_hook(self._check_loaded)

    def _starts(self, graph: Graph) -> NodeIndex:
        """Where walks begin: at nodes with neighbours, or anywhere where there are none."""
        linked = self.walk_graph(graph).linked
        return linked if len(linked) else torch.arange(graph.num_nodes, device=graph.device)

    def prepare(self, graph: Graph) -> None:
        """Sort out who has neighbours, once."""
        self.starts(graph)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Skip-gram on a fresh batch of walks."""
        starts = self.starts(graph)
        drawn = torch.randint(
            len(starts), (self.cfg.walks + SHARED_NEGATIVES,), device=graph.device
        )
        begin, others = starts[drawn].split([self.cfg.walks, SHARED_NEGATIVES])
        return {"skip-gram": self.model.loss(self.walk(graph, begin), others)}

    def walk(self, graph: Graph, begin: NodeIndex) -> Tensor:
        """Uniform walks."""
        return walks(self.walk_graph(graph), begin, self.cfg.walk_length)

    def embed(self, graph: Graph) -> Nodes:
        """The table; of the training graph alone."""
        self._check(self.graph_key, key_of(graph))
        return self.model.table * (self.walk_graph(graph).degree > 0)[:, None]

    def _check_loaded(self, _: Any, state: Mapping[str, Tensor], *rest: Any) -> None:
        self._check(state["graph_key"], self.graph_key)

    def _check(self, trained: Tensor, asked: Tensor) -> None:
        if trained.tolist() != asked.tolist():
            raise UserError(
                f"{self.name} learns one row for each of the {int(trained[0])} nodes of its "
                f"training graph and cannot embed another one (of {int(asked[0])} nodes)"
            )

    def optimizer(self, lr: float, weight_decay: float) -> Adam:
        """AdamW with cosine decay."""
        return self.schedule.optimizer(self.parameters(), lr, weight_decay)

    @torch.no_grad()
    def after_step(self) -> None:
        """Go on in the schedule."""
        self.schedule.advance()


def walk_graph_of(graph: Graph) -> WalkGraph:
    """The graph as a walker needs it."""
    return WalkGraph.of(graph.adjacency)


def key_of(graph: Graph) -> Tensor:
    """Three numbers that another graph does not share: nodes, entries, a sum over the edges."""
    adjacency = graph.adjacency
    entry = entry_number(adjacency.row, adjacency.col, adjacency.nodes)
    mixed = (entry + 1) * MIXER  # wraps around
    mixed = (mixed ^ (mixed >> 29)) * MIXER
    counts = torch.tensor([adjacency.nodes, len(mixed)], device=graph.device)
    return torch.cat([counts, mixed.sum().reshape(1)])
