"""Settings for a graph that nobody has tuned: picked from its size and density.

The rules follow what did best on validation nodes of the benchmark graphs (records/search.jsonl).
"""

from dataclasses import dataclass
from typing import Any

from muxgcl.graph import Graph

SMALL, LARGE = 5_000, 50_000  # nodes
METHODS = ("mux-gcl", "grace")  # whose settings these are; any other keeps its own
DENSE_DEGREE = 15  # neighbours a node, from which a graph counts as dense


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting and why it was picked."""

    key: str
    value: Any
    reason: str


def choose(graph: Graph) -> list[Choice]:
    """Width, length, temperature, drop rates and affinity, each with its reason."""
    nodes = graph.num_nodes
    degree = (len(graph.adjacency.col) - nodes) / nodes
    size = "small" if nodes < SMALL else "large" if nodes > LARGE else "of middle size"
    dense = degree > DENSE_DEGREE
    kind = "dense" if dense else "sparse"
    why_size = f"the graph is {size} ({nodes:,} nodes)"
    why_degree = f"the graph is {kind} ({degree:.1f} neighbours a node)"
    width = 512 if nodes < SMALL else 256 if nodes <= LARGE else 128
    epochs = 150 if nodes < SMALL else 800 if nodes <= LARGE else 200
    if dense:
        temperature, drops, masks, scales = 0.3, (0.3, 0.5), (0.1, 0.1), (0.8, 0.1, 0.1)
    elif nodes < SMALL:
        temperature, drops, masks, scales = 0.5, (0.5, 0.6), (0.5, 0.5), (0.5, 0.25, 0.25)
    else:
        temperature, drops, masks, scales = 0.2, (0.5, 0.5), (0.2, 0.2), (0.2, 0.2, 0.6)
    why_both = f"{why_size} and {kind} ({degree:.1f} neighbours a node)"
    return [
        Choice("width", width, why_size),
        Choice("projection", width, "as wide as the embedding"),
        Choice("projection_out", 128, "a narrow contrast is cheap"),
        Choice("epochs", epochs, why_size),
        Choice("lr", 5e-4 if nodes < SMALL else 1e-3, why_size),
        Choice("weight_decay", 1e-5, "as published"),
        Choice("temperature", temperature, why_both),
        Choice("drop_edges", drops, why_both),
        Choice("mask_features", masks, why_both),
        Choice("scale_weights", scales, why_both),
        Choice("affinity", "deepwalk" if degree > 0 else "none", why_degree),
    ]
