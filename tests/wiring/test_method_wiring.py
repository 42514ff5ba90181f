"""What `mux-gcl` and `mux-hop` hand on: settings, context, patches and readout, one by one."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import normalize
from torch.testing import assert_close

from muxgcl.affinity import AffinityConfig
from muxgcl.augment import clean
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.kernels import Sampling
from muxgcl.methods import METHODS, Context
from muxgcl.methods.mux_gcl import MuxGcl, MuxGclConfig
from muxgcl.methods.mux_hop import MuxHop, MuxHopConfig
from muxgcl.nn.perceptron import spread

QUICK: dict[str, Any] = {"affinity_width": 6, "affinity_epochs": 1, "walks_per_node": 1}
SIZES: dict[str, Any] = {"width": 6, "projection": 5, "projection_out": 4}
KINDS = {"mux-gcl": (MuxGcl, MuxGclConfig), "mux-hop": (MuxHop, MuxHopConfig)}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.from_data(planted(nodes=24, features=12))


def made(name: str, graph: Graph, context: Context | None = None, **settings: Any) -> Any:
    kind, config = KINDS[name]
    small = {**SIZES, **QUICK, **({"hidden": 7} if name == "mux-hop" else {})}
    torch.manual_seed(1)
    return kind(graph, config(**{**small, **settings}), context or Context())


AFFINITY = {
    "affinity": "deepwalk",
    "pooling": "mean",
    "affinity_width": 128,
    "affinity_epochs": None,
    "affinity_lr": None,
    "walk_length": 20,
    "walk_context": 10,
    "walks_per_node": 10,
    "walk_p": 1.0,
    "walk_q": 1.0,
    "walk_negatives": 1.0,
}


def test_a_default_changes_on_purpose_alone() -> None:
    """Records and presets leave out what is default: another default is another experiment."""
    assert asdict(AffinityConfig()) == AFFINITY
    assert asdict(MuxGclConfig()) == {
        **AFFINITY,
        "layers": 2,
        "width": 128,
        "projection": 128,
        "projection_out": None,
        "activation": "relu",
        "drop_edges": (0.2, 0.4),
        "mask_features": (0.3, 0.4),
        "fanout": 0,
        "temperature": 0.4,
        "scale_weights": (0.2, 0.2, 0.6),
        "direction": "paper",
        "likelihood": "half",
        "readout": "last",
        "readout_weights": (),
        "readout_features": 0.0,
        "readout_raw": 0.0,
    }
    assert asdict(MuxHopConfig()) == {
        **AFFINITY,
        "hops": 2,
        "depth": 2,
        "convolutions": 0,
        "hidden": 2048,
        "width": 1024,
        "norm": "layer",
        "zero_bias": False,
        "row_normalize": True,
        "drop_features": 0.4,
        "feature_dropout": "entries",
        "dropout": 0.4,
        "drop_edges": (0.4, 0.4),
        "fanout": 0,
        "projection": 256,
        "projection_out": 128,
        "temperature": 0.3,
        "scale_weights": (0.5, 0.25, 0.25),
        "anchors": "last",
        "likelihood": "half",
        "ema": 0.0,
        "readout": "all",
        "readout_weights": (),
        "readout_features": 0.0,
        "readout_raw": 0.0,
    }


def test_methods_whose_contrast_can_be_sampled() -> None:
    sampled = {name for name, kind in METHODS.items() if kind.samples}
    assert sampled >= {"mux-gcl", "mux-hop", "grace", "gca"}
    assert all(METHODS[name].cost == "quadratic" for name in sampled)


@pytest.mark.parametrize("name", KINDS)
def test_the_contrast_has_the_settings_of_the_method(name: str, graph: Graph) -> None:
    weights = (0.1, 0.3, 0.6)
    settings = {"temperature": 0.7, "scale_weights": weights, "likelihood": "clamp"}
    settings |= {"direction": "released"} if name == "mux-gcl" else {"anchors": "all"}
    contrast = made(name, graph, Context(backend="reference"), **settings).contrast
    assert contrast.terms == dict(enumerate(weights))
    assert (contrast.temperature, contrast.backend) == (0.7, "reference")
    assert tuple(contrast.line) == (1.0, -1.0, 1.0)
    assert contrast.direction == settings.get("direction", "paper")
    assert contrast.anchors == (dict(enumerate(weights)) if name == "mux-hop" else {2: 1.0})


@pytest.mark.parametrize("name", KINDS)
def test_the_projector_has_the_widths_that_are_asked_for(name: str, graph: Graph) -> None:
    projector = made(name, graph).projector
    assert (projector.first.in_features, projector.first.out_features) == (6, 5)
    assert (projector.second.in_features, projector.second.out_features) == (5, 4)


def test_the_projection_of_mux_gcl_is_as_wide_as_its_embedding_by_default(graph: Graph) -> None:
    assert made("mux-gcl", graph, projection_out=None).projector.second.out_features == 6


@pytest.mark.parametrize(
    ("name", "settings", "scales"),
    [
        ("mux-gcl", {}, [2]),
        ("mux-gcl", {"readout": "all"}, [0, 1, 2]),
        ("mux-gcl", {"readout": "all", "readout_weights": (0.5, 0.0, 2.0)}, [0, 2]),
        ("mux-hop", {}, [0, 1, 2]),
        ("mux-hop", {"readout": "last"}, [2]),
        ("mux-hop", {"readout_weights": (3.0, 1.0, 0.0)}, [0, 1]),
    ],
)
@pytest.mark.parametrize(("features", "raw"), [(0.0, 0.0), (0.25, 0.0), (0.25, 0.5)])
def test_the_embedding_is_the_readout_of_the_clean_graphs_scales(
    name: str,
    settings: dict[str, Any],
    scales: list[int],
    features: float,
    raw: float,
    graph: Graph,
) -> None:
    method = made(name, graph, readout_features=features, readout_raw=raw, **settings)
    if name == "mux-hop":
        view = clean(method.scaled(graph))
        every = spread(view.propagation, method.encoder.embed(view), 2)
    else:
        every = list(method.encoder(clean(graph), {0, 1, 2}).values())
    given = settings.get("readout_weights") or (1.0, 1.0, 1.0)
    blocks = [given[k] * normalize(every[k]) for k in scales]
    if features:
        carried = clean(graph).propagation @ (clean(graph).propagation @ graph.dense_features())
        blocks.append(features * normalize(carried))
    if raw:
        blocks.append(raw * normalize(graph.dense_features()))
    alone = scales == [2] and not features
    want = every[2] if alone else torch.cat(blocks, 1)
    assert_close(method.embed(graph), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_patches_come_from_the_contexts_seed_cache_and_are_told_of(
    name: str, graph: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Any] = []

    def patches(*given: Any, **how: Any) -> list[torch.Tensor]:
        asked.append((given, how))
        return [torch.eye(24)] * 3

    def told(done: int, total: int) -> None: ...

    monkeypatch.setattr("muxgcl.methods.parts.patch_tables.patches", patches)
    context = Context(seed=5, cache=tmp_path, on_prepare=told)
    method = made(name, graph, context)
    method.prepare(graph)
    given, how = asked[0]
    assert given[0] is graph
    assert given[1:] == (method.cfg, 2)
    assert how == {"seed": 5, "cache": tmp_path, "on_step": told}
    assert all(table.dtype == torch.float32 for table in method.patches)
    fused = made(name, graph, replace(context, backend="fused"))
    fused.prepare(graph)
    assert all(table.dtype == torch.float16 for table in fused.patches)
    other = made(name, graph, context, affinity="none")
    other.prepare(graph)
    assert (len(asked), other.patches) == (2, None)


@pytest.mark.parametrize("name", KINDS)
def test_a_method_that_forgets_lets_go_of_patches_and_graph(name: str, graph: Graph) -> None:
    method = made(name, graph)
    method.prepare(graph)
    before = method.embed(graph)
    assert method.patches is not None
    if name == "mux-hop":
        assert method.scaled._last is not None
    method.forget()
    assert method.patches is None
    if name == "mux-hop":
        assert method.scaled._last is None
    assert_close(method.embed(graph), before)


def test_one_scale_weight_a_scale_is_asked_for(graph: Graph) -> None:
    with pytest.raises(UserError, match=r"each of the 4 scales \(layers \+ 1\), got \[0.5, 0.5\]"):
        made("mux-gcl", graph, layers=3, scale_weights=(0.5, 0.5))
    with pytest.raises(UserError, match=r"each of the 4 scales \(hops \+ 1\), got \[0.5, 0.5\]"):
        MuxHopConfig(hops=3, scale_weights=(0.5, 0.5))
    MuxHopConfig(hops=1, scale_weights=(0.5, 0.5), drop_features=0.0, ema=0.0)
    for changes, words in (
        ({"hops": 0, "scale_weights": (1.0,)}, "hops must be at least 1, got 0"),
        ({"drop_features": 1.0}, "drop_features must be at least 0 and below 1, got 1.0"),
        ({"ema": -0.1}, "ema must be at least 0 and below 1, got -0.1"),
        ({"drop_edges": (0.5, 1.5)}, "1.5"),
        ({"affinity": "other"}, "affinity must be one of"),
    ):
        with pytest.raises(UserError, match=words):
            MuxHopConfig(**changes)


def test_the_perceptron_of_mux_hop_has_the_settings_of_the_method(graph: Graph) -> None:
    settings = {"depth": 3, "convolutions": 1, "dropout": 0.25, "norm": "batch", "hidden": 9}
    encoder = made("mux-hop", graph, **settings).encoder
    shapes = [tuple(p.shape) for name, p in encoder.named_parameters() if p.ndim == 2]
    assert shapes == [(12, 9), (9, 9), (9, 6)] or shapes == [(9, 12), (9, 9), (6, 9)]
    assert encoder.convolutions == 1
    assert encoder.dropout == 0.25


def test_weights_of_mux_hop_decay_beside_the_gradient(graph: Graph) -> None:
    method = made("mux-hop", graph, ema=0.5)
    optimizer = method.optimizer(0.1, 0.5)
    held = {id(p) for p in method.parameters() if p.requires_grad}
    assert {id(p) for p in method.average.parameters()}.isdisjoint(held)
    kept = [p for p in method.parameters() if p.requires_grad]
    before = [p.detach().clone() for p in kept]
    for p in kept:
        p.grad = torch.zeros_like(p)
    optimizer.step()
    for p, was in zip(kept, before, strict=True):
        assert_close(p.detach(), was * (1 - 0.1 * 0.5))  # Adam itself would move nothing


def test_the_average_of_the_weights_is_plain_at_first_and_then_exponential(graph: Graph) -> None:
    method = made("mux-hop", graph, ema=0.75, norm="batch")
    seen, want = [], None
    for step in range(1, 8):
        for p in method.encoder.parameters():
            torch.nn.init.constant_(p, float(step * step))
        for buffer in method.encoder.buffers():
            buffer.fill_(step)
        method.after_step()
        seen.append(float(step * step))
        share = max(0.25, 1 / step)
        want = seen[0] if want is None else want + share * (seen[-1] - want)
        for p in method.average.parameters():
            assert_close(p, torch.full_like(p, want))
        for buffer in method.average.buffers():
            assert (buffer == step).all()
    assert int(method.steps) == 7
    assert method.network is method.average
    assert made("mux-hop", graph).average is None


def test_on_a_cpu_a_sample_is_computed_from_its_own_surroundings_alone(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_rows(*given: Any) -> Any:
        raise AssertionError("every row was projected")

    sampled = made("mux-hop", graph, Context(sampling=Sampling(4, 6)), affinity="none")
    whole = made("mux-hop", graph, affinity="none")
    monkeypatch.setattr(MuxHop, "projected", all_rows)
    assert set(sampled.loss(graph)) == {"scale 0", "scale 1", "scale 2"}
    with pytest.raises(AssertionError, match="every row"):
        whole.loss(graph)


def test_without_an_average_no_steps_are_counted(graph: Graph) -> None:
    method = made("mux-hop", graph)
    method.after_step()
    assert int(method.steps) == 0
    assert method.network is method.encoder


def test_scales_are_those_of_two_views_one_below_the_other(graph: Graph) -> None:
    nothing = {"drop_edges": (0.0, 0.0), "drop_features": 0.0, "dropout": 0.0}
    method = made("mux-hop", graph, **nothing)
    view = clean(method.scaled(graph))
    want = spread(view.propagation, method.encoder.embed(view), 2)
    for found, one in zip(method.scales(graph), want, strict=True):
        assert_close(found, torch.cat([one, one]))


def test_whether_rows_are_computed_in_part_follows_from_both_views_and_the_widths(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    module = "muxgcl.methods.mux_hop.in_part"
    monkeypatch.setattr(module, lambda *given: (asked.append(given), True)[1])
    method = made("mux-hop", graph)
    assert method.capturable  # a CPU captures nothing: that is left to the device
    assert method._in_part(graph)
    assert asked[-1] == (graph.device, 2 * 24, method.encoder.widths)
