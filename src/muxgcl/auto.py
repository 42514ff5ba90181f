"""Settings for a graph that nobody has tuned: picked from its size, density and features."""

from dataclasses import dataclass
from typing import Any

from muxgcl.graph import Graph

SMALL, LARGE = 5_000, 50_000  # nodes
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
    epochs = 250 if nodes < SMALL else 800 if nodes <= LARGE else 200
    return [
        Choice("width", width, why_size),
        Choice("projection", width, "as wide as the embedding"),
        Choice("projection_out", 128, "a narrow contrast is cheap and costs no accuracy"),
        Choice("epochs", epochs, why_size),
        Choice("lr", 5e-4 if nodes < SMALL else 1e-3, why_size),
        Choice("weight_decay", 1e-5, "as published"),
        Choice("temperature", 0.3 if dense else 0.5, why_degree),
        Choice("drop_edges", (0.3, 0.5) if dense else (0.2, 0.4), why_degree),
        Choice("mask_features", (0.1, 0.1) if dense else (0.3, 0.4), why_degree),
        Choice("scale_weights", (0.2, 0.2, 0.6), "the last scale leads, as in the paper's words"),
        Choice("affinity", "deepwalk" if degree > 0 else "none", why_degree),
    ]
