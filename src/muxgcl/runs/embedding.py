"""From a trained method to its embedding: finite everywhere, with a warning where it collapsed."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.methods import Method

ALIKE = 1e-6  # of the largest entry: rows that differ by less are the same


class NonFiniteEmbedding(UserError):
    """The embedding holds NaN or infinity; nothing is returned and no file is written."""


def embed(method: Method, graph: Graph) -> Tensor:
    """The embedding of every node of a graph, on the CPU; all of it finite numbers."""
    return gathered(embed_blocks(method, graph), graph.num_nodes)


def embed_blocks(method: Method, graph: Graph) -> Iterator[Tensor]:
    """The embedding in blocks of rows, from the first node on: one is in memory at a time.

    However it ends, the method is left in the mode (training or evaluation) that it was in.
    """
    training = method.training
    method.eval()
    try:
        with torch.no_grad():
            blocks = iter(method.embed_blocks(graph))
        while True:
            with torch.no_grad():  # not around the `yield`: it would hold in the caller, too
                block = next(blocks, None)
            if block is None:
                break
            _check_finite(block, method, graph)
            yield block.float().cpu()
    finally:
        method.train(training)


def _check_finite(block: Tensor, method: Method, graph: Graph) -> None:
    if wrong := int((~torch.isfinite(block)).any(1).sum()):
        advice = "a smaller lr, or smaller features," if method.trainable else "smaller features"
        raise NonFiniteEmbedding(
            f"the embedding is NaN or infinity at {wrong:,} of {graph.num_nodes:,} nodes; "
            f"{advice} usually helps"
        )


def gathered(blocks: Iterable[Tensor], rows: int) -> Tensor:
    """Blocks of rows as one table, without a second copy of it."""
    table, start = torch.empty(0, 0), 0
    for block in blocks:
        if len(block) == rows:  # is the whole table
            table = block
        else:
            table = torch.empty(rows, block.shape[1]) if start == 0 else table
            table[start : start + len(block)] = block
        start += len(block)
    return table


def picked_rows(blocks: Iterable[Tensor], rows: Int[np.ndarray, " m"]) -> Iterator[Tensor]:
    """The rows with these numbers, in ascending order, out of a table that comes in blocks."""
    start = 0
    for block in blocks:
        first, last = np.searchsorted(rows, (start, start + len(block)))
        yield block[torch.from_numpy(rows[first:last] - start)]
        start += len(block)


def collapse_warning(table: Tensor) -> str | None:
    """A warning where the embedding of every node is the same; None where nodes differ."""
    if len(table) < 2:
        return None
    least, most, first = table.amin(0), table.amax(0), table[0]  # no second table
    spread = float(torch.maximum(most - first, first - least).max())
    size = float(torch.maximum(most, -least).max())
    if spread > ALIKE * size:
        return None
    what = "is zero" if size == 0 else "is the same"
    return f"the embedding of every node {what}: it tells nothing of the graph (it has collapsed)"
