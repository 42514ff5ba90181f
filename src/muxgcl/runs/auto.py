r"""Settings for a graph that nobody has tuned.

`mux-hop`, `mux-gcl` and `grace` have one set of settings each for all graphs, fitted to the graph's
size. Each candidate was trained on all five benchmark graphs and judged on their development halves
(records/general-search.jsonl, records/layers-search.jsonl); of those within a tenth of a point of
the best average, the one that drops the most is taken. How well that does for `mux-hop` on a graph
that nobody has seen is measured by choosing from four of them and testing on the fifth
(`leave_out`). The rest is about `mux-hop`: a step that samples nodes, as most do on a
CPU, has another norm and other anchors (`of_sample`); where features look like noise
(`runs/agreement.py`), or are few while neighbours are alike, the scales before the last count for
less, and where edges look drawn at random (`runs/edge_signal.py`), all scales do.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from muxgcl.graph import Graph
from muxgcl.runs.agreement import FEWEST, agreement, few_values
from muxgcl.runs.edge_signal import BY_CHANCE, edge_signal, neighbours_alike
from muxgcl.runs.settings import preset

SMALL, LARGE = 5_000, 50_000  # nodes


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting and why it was picked."""

    key: str
    value: Any
    reason: str

    def __str__(self) -> str:
        equals = " " if self.key == "preset" else " = "
        return f"{self.key}{equals}{self.value}: {self.reason}"


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
# the same for methods with the network inside the propagation: shares of edges and of feature
# columns that the two views drop, temperature
Rates = tuple[float, float]
TRIED_IN_LAYERS: dict[str, dict[tuple[Rates, Rates, float], tuple[float, ...]]] = {
    "mux-gcl": {
        ((0.3, 0.5), (0.1, 0.1), 0.3): (83.69, 71.63, 88.04, 93.61, 89.84),
        ((0.3, 0.5), (0.1, 0.1), 0.5): (84.11, 71.96, 87.97, 93.34, 89.80),
        ((0.4, 0.5), (0.3, 0.4), 0.3): (84.68, 72.91, 87.93, 93.22, 89.43),
        ((0.4, 0.5), (0.3, 0.4), 0.5): (84.88, 72.92, 87.81, 93.12, 89.00),
        ((0.6, 0.7), (0.5, 0.5), 0.3): (84.91, 73.24, 87.77, 92.97, 89.30),
        ((0.6, 0.7), (0.5, 0.5), 0.5): (84.63, 73.31, 87.77, 93.02, 89.05),
    },
    "grace": {
        ((0.3, 0.5), (0.1, 0.1), 0.3): (82.45, 69.36, 85.82, 92.08, 88.93),
        ((0.3, 0.5), (0.1, 0.1), 0.5): (83.48, 70.28, 85.53, 91.71, 88.75),
        ((0.4, 0.5), (0.3, 0.4), 0.3): (83.94, 71.30, 85.16, 91.58, 87.40),
        ((0.4, 0.5), (0.3, 0.4), 0.5): (84.46, 71.71, 84.92, 91.30, 87.17),
        ((0.6, 0.7), (0.5, 0.5), 0.3): (84.01, 72.10, 84.91, 90.92, 85.71),
        ((0.6, 0.7), (0.5, 0.5), 0.5): (84.32, 72.47, 84.41, 91.18, 85.90),
    },
}
IN_LAYERS = tuple(TRIED_IN_LAYERS)  # methods whose projection is as wide as their embedding
GENERAL = ("mux-hop", *IN_LAYERS)  # methods that have settings for every graph
# settings with which a sample learns sooner, or a step costs less, whatever else is set
# (records/sampled-search.jsonl, records/fanout-search.jsonl)
SAMPLED: dict[str, Any] = {"zero_bias": True, "hidden": 1024, "fanout": 5}
# preset `auto` changes these too, at the drop rates above (records/everyday-search.jsonl)
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
# where a node has few values and neighbours are alike, their mean tells more than the node
# (records/few-values.jsonl)
FOR_FEW_VALUES: dict[str, Any] = {
    "readout_weights": (0.1, 0.3, 1.0),
    "readout_features": 1.0,
    "readout_raw": 0.05,
}
# where edges look drawn at random, hops tell nothing (records/any-graph.jsonl)
FOR_SILENCE: dict[str, Any] = {
    "readout_weights": (1.0, 0.1, 0.1),
    "readout_features": 0.05,
    "readout_raw": 1.0,
}
OF_FEATURES = ("readout_features", "readout_raw")  # weights of blocks that may be too large
NOISE = 0.1  # points by which two means may differ by chance
SMALLEST_WIDTH = 64
FEATURE_BYTES = 1 << 28  # of a table of features in the embedding, at most


def most_columns(nodes: int) -> int:
    """The width that a graph of so many nodes can use: no more columns than nodes, but 64."""
    return max(SMALLEST_WIDTH, 1 << (nodes.bit_length() - 1))


def general(method: str = "mux-hop", leave_out: Collection[str] = ()) -> dict[str, Any]:
    """The settings with the best mean accuracy over the benchmark graphs, some left out.

    Of settings whose means differ by less than one training's noise, those that drop the most are
    taken: with `mux-hop`, too little dropout costs a sparse graph two points, too much costs none
    of the five half a point.
    """
    start = preset(method, "best", "default")
    if method in IN_LAYERS:
        edges, columns, temperature = _best(TRIED_IN_LAYERS[method], leave_out)
        rates = {"drop_edges": edges, "mask_features": columns}
        return start | rates | {"temperature": temperature, "projection_out": 128}
    *drops, anchors = _best(TRIED, leave_out)
    return start | _dropping(*drops) | {"anchors": anchors}


def _best(tried: Mapping[Any, tuple[float, ...]], leave_out: Collection[str]) -> Any:
    kept = [k for k, name in enumerate(BENCHMARKS) if name not in leave_out]
    mean = {one: sum(scores[k] for k in kept) / len(kept) for one, scores in tried.items()}
    close = [one for one in mean if mean[one] > max(mean.values()) - NOISE]
    return max(close, key=lambda one: (one[0], mean[one]))


def of_sample(method: str, preset: str) -> dict[str, Any]:
    """Settings that change where a run samples nodes by itself; with `auto` a few more."""
    if method != "mux-hop":
        return {}
    return SAMPLED | SAMPLED_AUTO if preset == "auto" else dict(SAMPLED)


def brought(method: str, preset: str) -> list[str]:
    """Names of the settings that sampling changes, or that it changed in earlier versions."""
    found = list(of_sample(method, preset))
    return [*found, *BY_EARLIER_VERSIONS] if found and preset == "auto" else found


def _dropping(rate: float, edges: float, temperature: float) -> dict[str, Any]:
    return {
        "drop_features": rate,
        "dropout": rate,
        "drop_edges": (edges, edges),
        "temperature": temperature,
    }


def settings_of(method: str, graph: Graph) -> tuple[dict[str, Any], list[Choice]]:
    """Settings of a method for this graph, and what to say about them."""
    sizes = (graph.num_nodes, graph.num_features, len(graph.adjacency.col))
    settings, choices = settings_for(*sizes, method=method)
    if method in IN_LAYERS:
        return settings, choices
    if (found := _looks(graph, settings["hops"])) is None:
        return settings, choices
    looks, why = found
    wanted = {k: v for k, v in looks.items() if k not in OF_FEATURES or settings[k] > 0}
    changed = {key: value for key, value in wanted.items() if settings[key] != value}
    kept = [choice for choice in choices if choice.key not in changed]
    return settings | changed, [*kept, *(Choice(k, v, why) for k, v in changed.items())]


def _looks(graph: Graph, hops: int) -> tuple[dict[str, Any], str] | None:
    """What to change for features and edges that look unlike those of the benchmark graphs."""
    signal = edge_signal(graph)
    if signal is not None and signal.silent:
        why = "edges look drawn at random: they go neither with features nor with each other"
        return FOR_SILENCE, why
    found = agreement(graph, hops)
    if found is None:
        why = f"a node has fewer than {FEWEST} values, and neighbours are alike in them"
        alike = few_values(graph) and neighbours_alike(graph) > BY_CHANCE
        return (FOR_FEW_VALUES, why) if alike else None
    if found[1] <= 0 or (share := found[0] / found[1]) >= NOISY:
        return None
    share = max(share, 0.0)  # chance may put it a little below
    why = f"features look like noise: before hops their halves agree {share:.1%} as far as after"
    return FOR_NOISE, why


def settings_for(
    nodes: int,
    features: int,
    entries: int,
    *,
    method: str = "mux-hop",
    leave_out: Collection[str] = (),
) -> tuple[dict[str, Any], list[Choice]]:
    """Settings of a method for a graph of which only the sizes are known, and what to say of them.

    Args:
        nodes: how many.
        features: how many.
        entries: of its adjacency, self-loops included.
        method: one of `GENERAL`.
        leave_out: benchmark graphs that may not have a say, to see how the rule does on a graph
            that it does not know.
    """
    settings = general(method, leave_out)
    choices = [Choice("preset", "auto", "settings that did best on average over five graphs")]

    def change(key: str, value: Any, reason: str) -> None:
        if settings.get(key, value) != value:
            settings[key] = value
            choices.append(Choice(key, value, reason))

    size = "small" if nodes < SMALL else "large" if nodes > LARGE else "of middle size"
    why = f"the graph is {size} ({nodes:,} nodes)"
    change("epochs", 200 if nodes < SMALL else 400 if nodes <= LARGE else 300, why)
    change("lr", 5e-4 if nodes < SMALL else 1e-3, why)
    if method in IN_LAYERS:
        width = 512 if nodes < SMALL else 256 if nodes <= LARGE else 128
        change("width", width, why)
        change("projection", width, "as wide as the embedding")
    elif nodes > LARGE:
        for key, value in (of_sample("mux-hop", "auto") | _dropping(*FOR_LARGE)).items():
            if key != "fanout":  # a GPU computes all rows, or needs none of it
                change(key, value, why)
        change("width", min(settings["width"], 512), why)
    most = most_columns(nodes)
    for key in ("hidden", "width", "projection", "projection_out"):
        if key in settings:
            change(key, min(settings[key], most), f"the graph has {nodes:,} nodes")
    if 4 * nodes * features > FEATURE_BYTES:
        for key in OF_FEATURES:
            change(key, 0.0, "a table of features in the embedding would be too large")
    if entries <= nodes:
        change("affinity", "none", "the graph has no edges")
    return settings, choices
