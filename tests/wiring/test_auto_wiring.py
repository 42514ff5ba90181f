"""What `auto` picks, as a table, on graphs at each side of every threshold."""

from typing import Any

import pytest
import torch

from muxgcl.graph import Adjacency, Graph
from muxgcl.methods.grace import GraceConfig
from muxgcl.methods.mux_gcl import MuxGclConfig
from muxgcl.runs.auto import Profile, choose, settings_like
from muxgcl.runs.plan import Plan
from muxgcl.runs.settings import TrainConfig, preset, split_settings


def ring(nodes: int, degree: int) -> Graph:
    """Every node has exactly so many neighbours, the nearest ones on a ring."""
    here = torch.arange(nodes)
    steps = [*range(1, degree // 2 + 1), *([nodes // 2] if degree % 2 else [])]
    edges = [torch.stack([here, (here + step) % nodes]) for step in steps]
    index = torch.cat(edges, 1) if edges else torch.empty(2, 0, dtype=torch.long)
    return Graph(torch.ones(nodes, 1), Adjacency.from_edges(index, nodes))


SIZES = {  # width, projection, epochs, lr
    4_998: (512, 512, 150, 5e-4),
    5_000: (256, 256, 800, 1e-3),
    50_000: (256, 256, 800, 1e-3),
    50_002: (128, 128, 200, 1e-3),
}
DENSE = (0.3, (0.3, 0.5), (0.1, 0.1), (0.8, 0.1, 0.1))
SMALL_SPARSE = (0.5, (0.5, 0.6), (0.5, 0.5), (0.5, 0.25, 0.25))
SPARSE = (0.2, (0.5, 0.5), (0.2, 0.2), (0.2, 0.2, 0.6))
KINDS = {  # temperature, drop_edges, mask_features, scale_weights
    (4_998, 4): SMALL_SPARSE,
    (4_998, 15): SMALL_SPARSE,
    (4_998, 16): DENSE,
    (5_000, 0): SPARSE,
    (5_000, 15): SPARSE,
    (5_000, 16): DENSE,
    (50_000, 4): SPARSE,
    (50_002, 4): SPARSE,
    (50_002, 16): DENSE,
}


def picked(nodes: int, degree: int) -> dict[str, Any]:
    width, projection, epochs, lr = SIZES[nodes]
    temperature, drops, masks, scales = KINDS[nodes, degree]
    return {
        "width": width,
        "projection": projection,
        "projection_out": 128,
        "epochs": epochs,
        "lr": lr,
        "weight_decay": 1e-5,
        "temperature": temperature,
        "drop_edges": drops,
        "mask_features": masks,
        "scale_weights": scales,
        "affinity": "deepwalk" if degree else "none",
    }


@pytest.mark.parametrize(("nodes", "degree"), KINDS)
def test_auto_picks_by_size_and_density(nodes: int, degree: int) -> None:
    graph = ring(nodes, degree)
    assert {c.key: c.value for c in choose(graph)} == picked(nodes, degree)
    for method, kind in (("mux-gcl", MuxGclConfig), ("grace", GraceConfig)):
        plan = Plan.make(method, "auto", graph=graph)
        known = {k: v for k, v in picked(nodes, degree).items() if k in kind.__dataclass_fields__}
        assert plan.settings == kind(**known)
        assert plan.train == TrainConfig(
            epochs=picked(nodes, degree)["epochs"], lr=SIZES[nodes][3], weight_decay=1e-5
        )


@pytest.mark.parametrize(("nodes", "width"), [(20, 64), (60, 64), (130, 128), (600, 512)])
def test_a_tiny_graph_gets_few_columns(nodes: int, width: int) -> None:
    for method in ("mux-hop", "mux-gcl", "grace"):
        settings = Plan.make(method, "auto", graph=ring(nodes, 4)).settings
        sizes = ("hidden", "width", "projection", "projection_out")
        found = [getattr(settings, name) for name in sizes if hasattr(settings, name)]
        assert max(found) <= width
        assert settings.width == width


def test_every_choice_names_what_it_saw() -> None:
    reasons = {c.key: c.reason for c in choose(ring(5_000, 16))}
    assert reasons["width"] == "the graph is of middle size (5,000 nodes)"
    assert reasons["affinity"] == "the graph is dense (16.0 neighbours a node)"
    assert "of middle size" in reasons["temperature"]
    assert "dense (16.0" in reasons["temperature"]


@pytest.mark.parametrize("method", ["dgi", "bgrl", "gca"])
def test_auto_leaves_other_methods_their_published_defaults(method: str) -> None:
    plan = Plan.make(method, "auto", graph=ring(20, 4))
    want = preset(method, "paper", "default")
    assert [plan.train, plan.settings] == split_settings(want, TrainConfig, type(plan.settings))


@pytest.mark.parametrize(
    ("nodes", "norm", "zero_bias"), [(50_000, "layer", False), (50_001, "batch", True)]
)
def test_a_large_graph_learns_from_samples_of_centred_rows(
    nodes: int, norm: str, zero_bias: bool
) -> None:
    settings, choices = settings_like(Profile(nodes, 20.0, 0.014), 100)
    assert (settings["norm"], settings["zero_bias"]) == (norm, zero_bias)
    assert ("zero_bias" in [choice.key for choice in choices]) == zero_bias
