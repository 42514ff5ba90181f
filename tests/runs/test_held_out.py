"""Held-out links: nothing of a hidden edge is left."""

import numpy as np
import pandas
import pytest
import torch

from muxgcl.errors import UserError
from muxgcl.evaluate import link_prediction
from muxgcl.io import planted
from muxgcl.io.load import Loaded, load
from muxgcl.io.structure import structural_features
from muxgcl.runs.fit import fit
from muxgcl.runs.held_out import held_out_links, made_from_edges, without_links
from muxgcl.runs.plan import Plan


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load(planted(nodes=60, seed=3))


def test_features_made_from_edges_are_made_again_without_the_hidden(loaded: Loaded) -> None:
    edges = loaded.data.edge_index
    named = [f"n{i}" for i in range(loaded.data.num_nodes)]
    text = pandas.DataFrame({"a": np.array(named)[edges[0]], "b": np.array(named)[edges[1]]})
    bare = load(text)
    assert made_from_edges(bare)
    assert not made_from_edges(loaded)
    left, hidden = without_links(bare)
    want = structural_features(hidden.edge_index, bare.ids)
    assert torch.equal(left.dense_features(), torch.from_numpy(want))
    assert not torch.equal(left.dense_features(), bare.data.x)
    kept, _ = without_links(loaded)
    assert torch.equal(kept.dense_features(), loaded.data.x)


def test_features_from_edges_beside_columns_are_made_again_without_the_hidden() -> None:
    data = planted(nodes=60, seed=3)
    plain, both = load(data), load(data, structure=True)
    left, hidden = without_links(both)
    want = structural_features(hidden.edge_index, both.ids)
    assert torch.equal(left.dense_features(), torch.cat([plain.data.x, torch.from_numpy(want)], 1))


def test_weights_stay_with_their_edges(loaded: Loaded) -> None:
    data = loaded.data.clone()
    data.edge_weight = 1 + data.edge_index.sum(0).float()
    left, hidden = without_links(load(data))
    adjacency = left.adjacency
    inner = ~adjacency.loop
    assert torch.equal(adjacency.weight[inner], 1 + (adjacency.row + adjacency.col)[inner].float())
    assert inner.sum() == hidden.edge_index.shape[1]


def test_every_repeat_trains_anew_without_its_own_hidden_edges(loaded: Loaded) -> None:
    small = {"width": 8, "projection": 8, "epochs": 2}
    plan = Plan.make("grace", "quick", overrides=small)
    trained: list[int] = []
    found = held_out_links(
        plan, loaded, repeats=2, on_block=lambda block: trained.append(block[-1].number)
    )
    assert trained == [1, 2, 1, 2]
    assert found["auc"]["n"] == found["ap"]["n"] == 2
    left, hidden = without_links(loaded, seed=1)
    second = link_prediction(fit(plan, left).embed().numpy(), hidden)
    first = held_out_links(plan, loaded, repeats=1)
    assert found["auc"]["mean"] == pytest.approx((first["auc"]["mean"] + second.auc) / 2)
    with pytest.raises(UserError, match="at least 1"):
        held_out_links(plan, loaded, repeats=0)
    with pytest.raises(UserError, match="repeats must be at most 1,000, got 1,000,000,000"):
        held_out_links(plan, loaded, repeats=10**9)
