r"""Settings for a graph that nobody has tuned.

`mux-hop` has one set of settings for all graphs, fitted to the graph's size. Each candidate was
trained on all five benchmark graphs and judged on their development halves
(records/general-search.jsonl); the best on average is taken. How well that does on a graph that
nobody has seen is measured by choosing from four of them and testing on the fifth (`leave_out`).
A step that samples nodes, as most do on a CPU, has another norm and other anchors (`of_sample`).
Where features look like noise (`runs/agreement.py`), the scales before the last count for less.

`mux-gcl` and `grace` follow rules of size and degree, from an older search on validation nodes of
the benchmark graphs (records/search.jsonl).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from muxgcl.graph import Graph
from muxgcl.runs.agreement import agreement
from muxgcl.runs.settings import preset

SMALL, LARGE = 5_000, 50_000  # nodes
BY_RULES = ("mux-gcl", "grace")  # methods that follow the rules of `choose`
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


Tried = tuple[float, float, float, str]
BENCHMARKS = ("cora", "citeseer", "pubmed", "photo", "computers")
# share of entries dropped, of edges dropped, temperature, anchors: accuracy on each of them
TRIED: dict[Tried, tuple[float, ...]] = {
    (0.4, 0.4, 0.2, "last"): (84.42, 72.02, 88.55, 94.73, 91.20),
    (0.4, 0.4, 0.3, "all"): (84.72, 73.03, 88.48, 95.01, 91.62),
    (0.4, 0.7, 0.2, "all"): (84.51, 72.58, 88.68, 95.14, 91.52),
    (0.4, 0.7, 0.3, "last"): (84.34, 72.36, 88.27, 94.75, 91.17),
    (0.6, 0.4, 0.2, "all"): (84.50, 73.68, 88.56, 95.08, 91.56),
    (0.6, 0.4, 0.3, "last"): (84.76, 73.75, 88.52, 94.39, 90.80),
    (0.6, 0.7, 0.2, "last"): (84.81, 73.51, 88.54, 94.93, 91.01),
    (0.6, 0.7, 0.3, "all"): (84.54, 73.98, 88.35, 94.94, 91.39),
}
# settings with which a sample learns sooner, or a step costs less, whatever else is set
# (records/sampled-search.jsonl, records/fanout-search.jsonl)
SAMPLED: dict[str, Any] = {"zero_bias": True, "hidden": 1024, "fanout": 5}
# and what suits it, at the drop rates above (records/everyday-search.jsonl)
SAMPLED_AUTO = {"norm": "batch", "anchors": "last"}
BY_EARLIER_VERSIONS = ("drop_features", "dropout", "drop_edges", "temperature")
# a large graph has seen each of its nodes once or twice by the end: views that keep more of them
FOR_LARGE = (0.4, 0.7, 0.3)
# where rows of features are mostly noise (records/noise.jsonl), R_0 of `agreement` is below this
# share of R_L; and settings under which the scales before L count for less
NOISY = 0.02
FOR_NOISE: dict[str, Any] = {
    "norm": "batch",
    "anchors": "last",
    "readout_weights": (0.1, 0.3, 1.0),
    "readout_features": 1.0,
    "readout_raw": 0.05,
}
OF_FEATURES = ("readout_features", "readout_raw")  # weights of blocks that may be too large
NOISE = 0.1  # points by which two means may differ by chance
SMALLEST_WIDTH = 64
FEATURE_BYTES = 1 << 28  # of a table of features in the embedding, at most


def most_columns(nodes: int) -> int:
    """The width that a graph of so many nodes can use: no more columns than nodes, but 64."""
    return max(SMALLEST_WIDTH, 1 << (nodes.bit_length() - 1))


def general(leave_out: Collection[str] = ()) -> dict[str, Any]:
    """The settings with the best mean accuracy over the benchmark graphs, some left out.

    Of settings whose means differ by less than one training's noise, those that drop the most are
    taken: too little dropout costs a sparse graph two points, too much costs nobody half a point.
    """
    kept = [k for k, name in enumerate(BENCHMARKS) if name not in leave_out]
    mean = {one: sum(scores[k] for k in kept) / len(kept) for one, scores in TRIED.items()}
    close = [one for one in mean if mean[one] > max(mean.values()) - NOISE]
    *drops, anchors = max(close, key=lambda one: (one[0], mean[one]))
    return preset("mux-hop", "best", "default") | _dropping(*drops) | {"anchors": anchors}


def of_sample(method: str, preset: str) -> dict[str, Any]:
    """Settings that come with a sample that a run takes by itself; `auto` has more of them."""
    if method != "mux-hop":
        return {}
    return SAMPLED | SAMPLED_AUTO if preset == "auto" else dict(SAMPLED)


def brought(method: str, preset: str) -> list[str]:
    """Settings that came with the sample of a run, be it one that an earlier version began."""
    found = list(of_sample(method, preset))
    return [*found, *BY_EARLIER_VERSIONS] if found and preset == "auto" else found


def _dropping(rate: float, edges: float, temperature: float) -> dict[str, Any]:
    return {
        "drop_features": rate,
        "dropout": rate,
        "drop_edges": (edges, edges),
        "temperature": temperature,
    }


def hop_settings(graph: Graph) -> tuple[dict[str, Any], list[Choice]]:
    """Settings of `mux-hop` for this graph, and what to say about them."""
    sizes = (graph.num_nodes, graph.num_features, len(graph.adjacency.col))
    settings, choices = settings_for(*sizes)
    found = agreement(graph, settings["hops"])
    if found is None or found[1] <= 0 or (share := found[0] / found[1]) >= NOISY:
        return settings, choices
    share = max(share, 0.0)  # chance may put it a little below
    why = f"features look like noise: before hops their halves agree {share:.1%} as far as after"
    wanted = {k: v for k, v in FOR_NOISE.items() if k not in OF_FEATURES or settings[k] > 0}
    changed = {key: value for key, value in wanted.items() if settings[key] != value}
    kept = [choice for choice in choices if choice.key not in changed]
    return settings | changed, [*kept, *(Choice(k, v, why) for k, v in changed.items())]


def settings_for(
    nodes: int, features: int, entries: int, leave_out: Collection[str] = ()
) -> tuple[dict[str, Any], list[Choice]]:
    """The same for a graph of which only the sizes are known.

    Args:
        nodes: how many.
        features: how many.
        entries: of its adjacency, self-loops included.
        leave_out: benchmark graphs that may not have a say, to see how the rule does on a graph
            that it does not know.
    """
    settings = general(leave_out)
    why = "the best on average over five graphs"
    choices = [Choice("settings", "the same for every graph", why)]

    def change(key: str, value: Any, reason: str) -> None:
        if settings[key] != value:
            settings[key] = value
            choices.append(Choice(key, value, reason))

    size = "small" if nodes < SMALL else "large" if nodes > LARGE else "of middle size"
    why = f"the graph is {size} ({nodes:,} nodes)"
    change("epochs", 200 if nodes < SMALL else 400 if nodes <= LARGE else 300, why)
    change("lr", 5e-4 if nodes < SMALL else 1e-3, why)
    if nodes > LARGE:
        for key, value in (of_sample("mux-hop", "auto") | _dropping(*FOR_LARGE)).items():
            if key != "fanout":  # a GPU computes all rows, or needs none of it
                change(key, value, why)
        change("width", min(settings["width"], 512), why)
    most = most_columns(nodes)
    for key in ("hidden", "width", "projection", "projection_out"):
        change(key, min(settings[key], most), f"the graph has {nodes:,} nodes")
    if 4 * nodes * features > FEATURE_BYTES:
        for key in OF_FEATURES:
            change(key, 0.0, "a table of features in the embedding would be too large")
    if entries <= nodes:
        change("affinity", "none", "the graph has no edges")
    return settings, choices
