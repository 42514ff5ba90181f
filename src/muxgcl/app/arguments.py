"""What a Python user may pass for a graph, a seed and a sample, in the one form that we use."""

from collections.abc import Callable
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.load import Encoding, Loaded, load
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan

OnEpoch: TypeAlias = Callable[[Epoch], object]
RandomState: TypeAlias = int | np.integer[Any] | np.random.RandomState | np.random.Generator | None


def as_graph(
    graph: Any, encoding: Encoding | None = None, *, scale: bool = True
) -> tuple[Loaded | None, Graph, Encoding | None]:
    """Whatever `load` takes or returns, and how its columns became features; a `Graph` stays."""
    if isinstance(graph, Graph):
        if encoding is not None and encoding.changes:
            raise UserError(
                "columns were scaled or encoded in fit: expected a graph that load takes, "
                "got a Graph, whose features are as they are"
            )
        return None, graph, None
    if isinstance(graph, Loaded):
        if encoding not in (None, graph.encoding):
            raise UserError(
                "the columns of this graph became other features than those trained on; "
                "load it with encoding=embedder.encoding_"
            )
        return graph, Graph.from_data(graph.tensors), graph.encoding
    loaded = load(graph, encoding=encoding, scale=scale)
    return loaded, Graph.from_data(loaded.tensors), loaded.encoding


def draw_seed(random_state: RandomState) -> int:
    """A seed from what scikit-learn's users pass."""
    if random_state is None:
        random_state = np.random.default_rng()  # seeded by the system
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    raise UserError(
        "random_state must be an integer, None, or a numpy RandomState or Generator, "
        f"got {type(random_state).__name__}"
    )


def sizes_of(sample: int | tuple[int, int] | None) -> tuple[int | None, int | None]:
    """Anchors and negatives of a step, None for all nodes, from an embedder's `sample`."""
    if sample is None or sample == 0:
        return None, None
    if isinstance(sample, Integral) and not isinstance(sample, bool):
        return int(sample), int(sample)
    if isinstance(sample, tuple) and len(sample) == 2:
        return sample
    raise UserError(f"sample must be a number of nodes or a pair of them, got {sample!r}")


def sample_of(plan: Plan) -> int | tuple[int, int]:
    """The `sample` that asks for what a plan has."""
    most = 2**31  # more nodes than a step can have: all of them
    anchors, keys = plan.anchors or most, plan.keys or most
    if not plan.sampling:
        return 0
    return anchors if anchors == keys else (anchors, keys)
