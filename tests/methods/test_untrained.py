"""What needs no training: raw features, propagation, an untrained encoder."""

import torch
from scipy.sparse import issparse
from torch.testing import assert_close

from muxgcl.augment import clean
from muxgcl.graph import Graph
from muxgcl.io import load_dataset
from muxgcl.io.planted import planted
from muxgcl.methods import Context
from muxgcl.methods.random_gcn import RandomGcn, RandomGcnConfig
from muxgcl.methods.raw import Raw, RawConfig
from muxgcl.methods.sgc import Sgc, SgcConfig
from muxgcl.nn.gcn import GCN
from muxgcl.runs.control_scores import control_tables
from muxgcl.runs.plan import Plan

DATA = planted(nodes=40, isolated=2)
GRAPH = Graph.from_data(DATA)


def test_raw_features_come_back_as_they_were() -> None:
    assert torch.equal(Raw(GRAPH, RawConfig(), Context()).embed(GRAPH), DATA.x)
    cora = load_dataset("cora")  # sparse in training
    graph = Graph.from_data(cora)
    assert torch.equal(Raw(graph, RawConfig(), Context()).embed(graph), cora.x)


def test_propagation_is_that_of_the_control() -> None:
    controls = control_tables(Plan.make("raw"), GRAPH)
    wanted = {
        "raw": SgcConfig(steps=0),
        "A X": SgcConfig(steps=1),
        "A^2 X": SgcConfig(),
        "X|AX|A^2X": SgcConfig(side_by_side=True),
    }
    for name, cfg in wanted.items():
        got = Sgc(GRAPH, cfg, Context()).embed(GRAPH)
        want = controls[name]
        assert_close(got, torch.from_numpy(want.toarray() if issparse(want) else want))


def test_the_untrained_encoder_is_that_of_grace_before_training() -> None:
    torch.manual_seed(5)
    method = RandomGcn(GRAPH, RandomGcnConfig(width=16), Context())
    torch.manual_seed(5)
    assert torch.equal(method.embed(GRAPH), GCN(GRAPH.num_features, 16).embed(clean(GRAPH)))
