"""Histograms of a trained method: which pairs they count."""

import pytest
import torch

from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.methods.mux_hop import MuxHop
from muxgcl.runs.diagnostics import BINS, PAIRS, diagnose, views_of
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan

SMALL = {"hidden": 8, "width": 8, "projection": 8, "projection_out": 8, "epochs": 1}


@pytest.mark.parametrize("affinity", ["deepwalk", "none"])
def test_mux_hop_has_histograms_of_every_pair_of_scales(affinity: str) -> None:
    settings = {**SMALL, "affinity": affinity, "affinity_epochs": 1, "affinity_width": 8}
    plan = Plan.make("mux-hop", "quick", overrides=settings, device="cpu")
    found = diagnose(fit(plan, Graph.from_data(planted(nodes=40))))
    assert set(found["similarities"]) == {f"u{m}-v{n}" for m in range(3) for n in range(3)}
    for pair in found["similarities"].values():
        assert len(pair["edges"]) == BINS + 1
        assert (sum(pair["positive"]), sum(pair["negative"])) == (40, PAIRS)
    weights = found.get("affinity_weights", {})
    assert set(weights) == (set() if affinity == "none" else {f"scale {k}" for k in range(3)})
    assert all(sum(one["counts"]) == PAIRS for one in weights.values())


def test_the_scales_of_undamaged_views_are_those_that_are_read_out() -> None:
    undamaged = {"drop_edges": (0.0, 0.0), "drop_features": 0.0, "dropout": 0.0}
    settings = {**SMALL, **undamaged, "affinity": "none", "readout_features": 0.0}
    plan = Plan.make("mux-hop", "quick", overrides=settings, device="cpu")
    graph = Graph.from_data(planted(nodes=40))
    method = fit(plan, graph).method
    assert isinstance(method, MuxHop)
    with torch.no_grad():
        want = method.embed(graph).split(8, 1)
        for view in views_of(method, graph):
            for k, scale in view.items():
                unit = scale / scale.norm(dim=1, keepdim=True)
                torch.testing.assert_close(unit, want[k])
