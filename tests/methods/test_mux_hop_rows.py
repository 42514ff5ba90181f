"""MUX-GCL over hops on some of the nodes: samples and blocks of rows give what all rows give."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from mux_hop_cases import graph_of, method_of
from torch import Tensor
from torch.testing import assert_close

from muxgcl.augment import dropped
from muxgcl.kernels import Sample
from muxgcl.methods import mux_hop, total
from muxgcl.nn import field
from muxgcl.seeding import seeded
from muxgcl.sparse import SparseMatrix


def test_batch_normalisation_in_training_uses_the_nodes_at_hand() -> None:
    graph = graph_of(nodes=40)
    method = method_of(graph, norm="batch", dropout=0)
    view = dropped(method.scaled(graph), (0.0, 0.0), 0.3)
    nodes = method.encoder(view)
    assert_close(nodes.mean(0), torch.zeros(8), rtol=0, atol=1e-5)
    before = method.encoder.norms[0].running_mean.clone()
    method.train().embed(graph)
    assert torch.equal(method.encoder.norms[0].running_mean, before)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("convolutions", [0, 1, 2])
@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.5, 0.25, 0.25), (0.4, 0.0, 0.6)])
def test_rows_of_a_sample_are_those_of_the_whole_graph(
    weights: tuple[float, ...], convolutions: int, sparse: bool
) -> None:
    """Loss and gradients, from what the rows depend on and from all nodes."""
    graph = graph_of(30)
    if not sparse:
        graph = replace(graph, features=graph.dense_features())
    elif isinstance(graph.features, Tensor):
        row, col = graph.features.nonzero().T
        value, shape = graph.features[row, col], tuple(graph.features.shape)
        graph = replace(graph, features=SparseMatrix.from_entries(row, col, value, shape))
    method = method_of(
        graph,
        hops=len(weights) - 1,
        scale_weights=weights,
        convolutions=convolutions,
        dropout=0.0,
        drop_features=0.0,
    )
    sample = Sample(torch.tensor([4, 29, 0, 17]), 3, 4, 30)
    graph = method.scaled(graph)
    view = dropped(graph, (0.4, 0.4), 0.0)
    ways = [
        method.projected(view, method.encoder(view), method.contrast.scales, sample),
        method._finished(
            method._of_rows(graph, view.propagation, sample.rows(2), method.contrast.scales)
        ),
    ]
    found = []
    for unit in ways:
        loss = total(method.contrast(unit, method.patches, sample))
        found.append([loss, *torch.autograd.grad(loss, list(method.parameters()))])
    assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)
    assert min(grad.abs().max() for grad in found[0][1:]) > 0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("dropout", "norm"), [(0.0, "layer"), (0.5, "layer"), (0.5, "batch")])
def test_blocks_of_rows_give_the_loss_and_the_gradient_of_all_rows_at_once(
    dropout: float, norm: str, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With chance inside f too: the backward pass computes the same blocks again."""
    graph = graph_of(40)
    if not sparse:
        graph = replace(graph, features=graph.dense_features())
    method = method_of(graph, dropout=dropout, drop_features=dropout, norm=norm)
    graph = method.scaled(graph)
    propagation = dropped(graph, (0.4, 0.4), 0.0).propagation
    rows, parameters = Sample(torch.arange(9), 9, 9, 40).rows(2), list(method.parameters())
    goal = torch.randn(3, 18, 6)  # of every scale's rows
    sizes: list[int] = []

    def found(block: int, *, keep: bool) -> list[Tensor]:
        def in_blocks(network: Any, rows: Tensor, size: int) -> Tensor:
            sizes.append(len(rows))
            if not keep:
                return field.in_blocks(network, rows, block)
            return torch.cat([network(some) for some in rows.tensor_split(-(-len(rows) // block))])

        monkeypatch.setattr(mux_hop, "in_blocks", in_blocks)
        with seeded(5):
            unit = method._finished(
                method._of_rows(graph, propagation, rows, method.contrast.scales)
            )
        loss = sum((unit[k] * goal[k]).sum() for k in unit)
        return [loss, *torch.autograd.grad(loss, parameters)]

    assert_close(found(7, keep=False), found(7, keep=True))  # again, or kept
    assert min(sizes) > 2 * 7
    if not dropout:
        assert_close(found(7, keep=False), found(1000, keep=False), rtol=1e-4, atol=1e-5)


def test_convolutions_are_not_cut_into_blocks() -> None:
    graph = graph_of()
    assert method_of(graph, norm="batch").encoder.takes_blocks
    assert not method_of(graph, convolutions=1).encoder.takes_blocks


def test_no_block_has_a_single_row_which_batch_normalisation_could_not_take() -> None:
    sizes: list[int] = []

    def network(rows: Tensor) -> Tensor:
        sizes.append(len(rows))
        return rows[:, None].float()

    rows = torch.arange(15)
    assert torch.equal(field.in_blocks(network, rows, 7), rows[:, None].float())
    assert sizes == [5, 5, 5]


@pytest.mark.parametrize("readout", ["last", "all"])
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_an_embedding_in_blocks_is_the_embedding(
    norm: str, readout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(40)
    method = method_of(graph, norm=norm, readout=readout, readout_features=0.5, ema=0.5)
    total(method.loss(graph)).backward()  # moves running statistics
    method.after_step()
    with torch.no_grad():
        whole = method.embed(graph)
        monkeypatch.setattr(field, "BLOCK", 7 * sum(method.encoder.widths))
        again = torch.cat([*method.readout.blocks(method._read(method.scaled(graph)), graph, 11)])
    assert_close(again, whole)
    assert field.block_rows(method.encoder.widths) == 7


def test_scales_of_some_nodes_are_those_of_all() -> None:
    graph = graph_of(40)
    method = method_of(graph, dropout=0.0, drop_features=0.0)
    nodes = torch.tensor([31, 2, 17])
    with seeded(4):
        whole = method.scales(graph)
    with seeded(4):
        some = method.scales(graph, nodes)
    rows = torch.cat([nodes, nodes + 40])
    assert_close(some, [table[rows] for table in whole])
