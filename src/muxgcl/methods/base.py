"""What every method is: a module with a loss over a graph and an embedding of a graph."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from jaxtyping import Int
from torch import Tensor, nn

from muxgcl.augment import View, clean
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import ALL, Backend, Chooser, Sample, Selection
from muxgcl.methods.parts.of_graph import PerGraphCache, as_it_is
from muxgcl.nn.adam import Adam, Optimizer
from muxgcl.nn.gcn import GCN
from muxgcl.nn.norm_gcn import NormGCN
from muxgcl.nn.readout import Readout
from muxgcl.shapes import Nodes, Scalar, Scale

Counted = Literal["gcn", "perceptron", "filters", "autoencoder"]


@dataclass(frozen=True, slots=True)
class Context:
    """What a method may know beyond its settings: how to compute, and where to keep things."""

    backend: Backend = "auto"
    seed: int = 0
    cache: Path | None = None  # a folder for what is computed once, such as affinities
    epochs: int = 1  # the planned length, for schedules
    on_prepare: Callable[[int, int], None] | None = None  # told of steps done and to do
    sampling: Chooser = ALL  # whom a step contrasts with whom; by default all with all

    def draw(self, graph: Graph, rows: int | None = None) -> Selection | None:
        """The nodes that one step contrasts; None where it is all of them.

        With `rows`, so many other things than nodes are there to be drawn from.
        """
        return self.sampling.draw(rows or graph.num_nodes, graph.device)

    def sample(self, graph: Graph, rows: int | None = None) -> Sample | None:
        """What `draw` returns, for a method whose step only one worker can do."""
        found = self.draw(graph, rows)
        if not isinstance(found, Sample | None):
            raise UserError("this method cannot be divided among workers")
        return found


class Method(nn.Module, ABC):
    """One paper, one file. Training minimises the sum of the terms that `loss` returns."""

    name: ClassVar[str]
    paper: ClassVar[str]  # authors and year, then the address
    cost: ClassVar[str]  # "linear" or "quadratic" in the number of nodes, or "none"
    Config: ClassVar[type[Any]]
    inductive: ClassVar[bool] = True  # can embed a graph it was not trained on
    samples: ClassVar[bool] = False  # its contrast can be over a sample of the nodes
    divides: ClassVar[bool] = False  # and be divided among workers
    edge_kinds: ClassVar[bool] = False  # looks at directions and types of edges
    counted_as: ClassVar[Counted | None] = None  # by runs/work.py
    encodes_sample: ClassVar[bool] = False  # what a sample depends on alone, where that is less
    trainable: ClassVar[bool] = True  # has something to train; if not, its loss has no terms
    capturable: bool = True  # the step can do without host-side decisions
    static: bool = False  # and does, even where a look at the data would save work
    readout: Readout | None = None  # of an encoder with several scales; without one, its output
    milestones: tuple[int, ...] = ()  # epochs after which the step may become another one

    @classmethod
    def check_sample(cls, cfg: Any) -> None:
        """Raise where these settings have no sampled contrast, though the method has one."""

    def prepare(self, graph: Graph) -> None:
        """Compute what depends on the training graph alone, once before training."""

    @abstractmethod
    def loss(self, graph: Graph) -> Mapping[str, Scalar]:
        """Named terms of the objective on fresh views; their sum is minimised."""

    def embed(self, graph: Graph) -> Nodes:
        """The embedding of every node of the un-augmented graph."""
        view = self.plain_view(graph)
        if self.readout is not None:
            return self.readout.embed(cast(GCN, self.encoder), view, graph)
        return cast(GCN | NormGCN, self.encoder).embed(view)

    def embed_blocks(self, graph: Graph) -> Iterator[Scale]:
        """The embedding in blocks of rows, from the first node on, without gradients.

        All rows are one block where `embed` is overridden or the encoder is no GCN.
        """
        encoder = getattr(self, "encoder", None)
        if type(self).embed is not Method.embed or not isinstance(encoder, GCN):
            yield self.embed(graph)
        elif self.readout is not None:
            yield from self.readout.embed_blocks(encoder, self.plain_view(graph), graph)
        else:
            yield from encoder.embed_blocks(self.plain_view(graph))

    def plain_view(self, graph: Graph) -> View:
        """The graph without augmentations, its features as the method scales them."""
        scaled: Callable[[Graph], Graph] = getattr(self, "scaled", as_it_is)
        return clean(scaled(graph))

    def assignment(self, graph: Graph) -> Int[Tensor, " n"] | None:
        """The cluster of every node, from a method that has clusters of its own."""
        return None

    def after_step(self) -> None:
        """What a method does after each optimizer step, such as moving an average."""

    def forget(self) -> None:
        """Let go of the training graph and of what was computed from it for training alone."""
        for value in vars(self).values():
            if isinstance(value, PerGraphCache):
                value.forget()

    def reach(self, milestone: int) -> None:
        """What the host does at a milestone."""

    def optimizer(self, lr: float, weight_decay: float) -> Optimizer:
        """Adam, unless a paper says otherwise."""
        return Adam((p for p in self.parameters() if p.requires_grad), lr, weight_decay)
