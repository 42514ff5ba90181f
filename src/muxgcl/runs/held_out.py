"""Held-out links: hide some edges, train on the rest, and see whether the embedding finds them.

An embedding that was trained with an edge knows it, so its score on that edge says nothing. Here
nothing of a hidden edge is left: not for training, not for affinities, not in features that were
made from edges.
"""

from collections.abc import Callable
from typing import Any

import torch

from muxgcl.errors import UserError
from muxgcl.evaluate import HiddenEdges, hide_edges, link_prediction, summarise
from muxgcl.graph import Graph
from muxgcl.io.load import Loaded
from muxgcl.io.structure import NAMES, with_structure
from muxgcl.runs.committee import fit_members
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan
from muxgcl.tensors import Tensors

SHARE = 0.1  # of the edges to hide
MOST_REPEATS = 1000


def without_links(
    loaded: Loaded, *, share: float = SHARE, seed: int = 0
) -> tuple[Graph, HiddenEdges]:
    """The graph without the hidden edges, and the question to ask about them."""
    data = loaded.tensors
    hidden = hide_edges(data.edge_index.numpy(), len(loaded.ids), share=share, seed=seed)
    kept = torch.from_numpy(hidden.kept)
    left = Tensors(x=data.x, edge_index=data.edge_index[:, kept])
    if "edge_weight" in data:
        left.edge_weight = data.edge_weight[kept]
    if "edge_parts" in data:
        left.update({"edge_parts": data["edge_parts"][:, kept], "directed": data["directed"]})
    if loaded.encoding.structure or made_from_edges(loaded):
        columns = without_structure(loaded) if loaded.encoding.structure else None
        left.x = with_structure(columns, left.edge_index.numpy(), loaded.ids)
    return Graph.from_data(left), hidden


def made_from_edges(loaded: Loaded) -> bool:
    """Whether the features are those that a graph without features is given."""
    x = loaded.tensors.x
    right_shape = x.layout == torch.strided and x.shape[1] == len(NAMES)
    return right_shape and torch.equal(
        x, with_structure(None, loaded.tensors.edge_index.numpy(), loaded.ids)
    )


def without_structure(loaded: Loaded) -> torch.Tensor:
    """The features that columns became, where some made from edges stand beside them."""
    x = loaded.tensors.x
    if x.layout == torch.strided:
        return x[:, : -len(NAMES)]
    return torch.narrow_copy(x, 1, 0, x.shape[1] - len(NAMES)).coalesce()


def held_out_links(
    plan: Plan,
    loaded: Loaded,
    *,
    repeats: int = 3,
    seed: int = 0,
    on_block: Callable[[list[Epoch]], None] | None = None,
) -> dict[str, Any]:
    """Train anew without the hidden edges and rank them against pairs without an edge.

    Args:
        plan: what to train and how.
        loaded: the whole graph.
        repeats: how often to hide other edges and train again.
        seed: of the first hiding; the next ones count up.
        on_block: called with each block of epochs.
    """
    if repeats < 1:
        raise UserError(f"repeats must be at least 1, got {repeats}")
    if repeats > MOST_REPEATS:
        raise UserError(f"repeats must be at most {MOST_REPEATS:,}, got {repeats:,}")
    found = []
    for number in range(seed, seed + repeats):
        graph, hidden = without_links(loaded, seed=number)
        _, z, _ = fit_members(plan, graph, on_block=on_block)
        found.append(link_prediction(z.numpy(), hidden))
    return {
        "auc": summarise([scores.auc for scores in found]).to_dict(),
        "ap": summarise([scores.ap for scores in found]).to_dict(),
        "hidden": found[0].n,
        "retrained": True,  # without the hidden edges: these are not the run's own embeddings
    }
