r"""Settings for a graph that nobody has tuned.

`mux-hop` takes the settings of the benchmark graph that is nearest in size, degree and density of
features, fitted to the graph's size. The settings of the benchmark graphs were chosen on their
development halves (records/hop-search.jsonl); how well the rule does on a graph that it has not
seen is measured by leaving each of them out in turn (`leave_out`).

`mux-gcl` and `grace` follow rules of size and degree, from an older search on validation nodes of
the benchmark graphs (records/search.jsonl).
"""

from collections.abc import Collection
from dataclasses import dataclass
from math import dist, log10
from typing import Any

from torch import Tensor

from muxgcl.graph import Graph
from muxgcl.runs.settings import preset

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
    width = min(width, most_columns(nodes))
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
        Choice("projection_out", min(128, width), "a narrow contrast is cheap"),
        Choice("epochs", epochs, why_size),
        Choice("lr", 5e-4 if nodes < SMALL else 1e-3, why_size),
        Choice("weight_decay", 1e-5, "as published"),
        Choice("temperature", temperature, why_both),
        Choice("drop_edges", drops, why_both),
        Choice("mask_features", masks, why_both),
        Choice("scale_weights", scales, why_both),
        Choice("affinity", "deepwalk" if degree > 0 else "none", why_degree),
    ]


@dataclass(frozen=True, slots=True)
class Profile:
    """What tells one graph from another here."""

    nodes: int
    degree: float  # neighbours a node
    density: float  # share of the features that are not zero

    @classmethod
    def of(cls, graph: Graph) -> "Profile":
        """Of a graph."""
        nodes, features = graph.num_nodes, graph.features
        if isinstance(features, Tensor):
            filled = int(features.count_nonzero())
        else:
            filled = len(features.matrix.value)
        degree = (len(graph.adjacency.col) - nodes) / nodes
        return cls(nodes, degree, filled / max(1, nodes * graph.num_features))

    @property
    def place(self) -> tuple[float, float, float]:
        """Where it lies: powers of ten."""
        return log10(self.nodes), log10(max(self.degree, 0.1)), log10(max(self.density, 1e-4))

    def __str__(self) -> str:
        return (
            f"{self.nodes:,} nodes, {self.degree:.1f} neighbours a node, "
            f"{100 * self.density:.2g} % of the features not zero"
        )


BENCHMARKS = {
    "cora": Profile(2708, 3.90, 0.0127),
    "citeseer": Profile(3327, 2.74, 0.0085),
    "pubmed": Profile(19717, 4.50, 0.1002),
    "photo": Profile(7650, 31.13, 0.3474),
    "computers": Profile(13752, 35.76, 0.3484),
}
SMALLEST_WIDTH = 64
FEATURE_BYTES = 1 << 30  # of propagated features in the embedding, at most


def most_columns(nodes: int) -> int:
    """The width that a graph of so many nodes can use: no more columns than nodes, but 64."""
    return max(SMALLEST_WIDTH, 1 << (nodes.bit_length() - 1))


def nearest(profile: Profile, leave_out: Collection[str] = ()) -> str:
    """The benchmark graph that is most like this one."""
    places = {name: p.place for name, p in BENCHMARKS.items() if name not in leave_out}
    return min(places, key=lambda name: dist(places[name], profile.place))


def hop_settings(
    graph: Graph, leave_out: Collection[str] = ()
) -> tuple[dict[str, Any], list[Choice]]:
    """Settings of `mux-hop` for this graph, and what to say about them.

    Args:
        graph: the graph.
        leave_out: benchmark graphs whose settings may not be used, to see how the rule does on a
            graph that it does not know.
    """
    return settings_like(Profile.of(graph), graph.num_features, leave_out)


def settings_like(
    profile: Profile, features: int, leave_out: Collection[str] = ()
) -> tuple[dict[str, Any], list[Choice]]:
    """The same for a graph of which only the profile and the number of features are known."""
    like = nearest(profile, leave_out)
    settings = preset("mux-hop", "best", like)
    choices = [Choice("settings", f"those of {like}", f"the nearest graph to this one ({profile})")]

    def change(key: str, value: Any, reason: str) -> None:
        if settings[key] != value:
            settings[key] = value
            choices.append(Choice(key, value, reason))

    change("convolutions", 0, "a node without edges must have an embedding too")
    most = most_columns(profile.nodes)
    for key in ("hidden", "width", "projection", "projection_out"):
        change(key, min(settings[key], most), f"the graph has {profile.nodes:,} nodes")
    if profile.nodes > LARGE:
        why = f"the graph is large ({profile.nodes:,} nodes)"
        change("anchors", "last", why)
        for key, value in (("norm", "batch"), ("zero_bias", True)):  # a sample learns sooner
            change(key, value, why)
        change("hidden", min(settings["hidden"], 1024), why)
        change("width", min(settings["width"], 512), why)
        change("epochs", min(settings["epochs"], 300), why)
    if 4 * profile.nodes * features > FEATURE_BYTES:
        for key in ("readout_features", "readout_raw"):
            change(key, 0.0, "a table of features in the embedding would be too large")
    if profile.degree == 0:
        change("affinity", "none", "the graph has no edges")
    return settings, choices
