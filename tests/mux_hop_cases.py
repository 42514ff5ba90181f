"""A small mux-hop for tests: graph, method, and its perceptron one row at a time."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from muxgcl.augment import View
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import Context
from muxgcl.methods.mux_hop import MuxHop, MuxHopConfig
from muxgcl.seeding import seeded

SMALL: dict[str, Any] = {
    "hidden": 12,
    "width": 8,
    "projection": 7,
    "projection_out": 6,
    "affinity_width": 5,
    "affinity_epochs": 1,
}


def graph_of(nodes: int = 14, **changes: Any) -> Graph:
    return Graph.from_data(planted(**{"nodes": nodes, "isolated": 1} | changes))


def method_of(graph: Graph, epochs: int = 4, **settings: Any) -> MuxHop:
    with seeded(3):
        method = MuxHop(graph, MuxHopConfig(**SMALL | settings), Context(epochs=epochs))
    method.prepare(graph)
    return method


def double(graph: Graph) -> Graph:
    return replace(graph, features=graph.dense_features().double())


def dense(view: View) -> Tensor:
    size = view.propagation.shape[0]
    return view.propagation @ torch.eye(size, dtype=torch.float64)


def layer_norm(row: Tensor) -> Tensor:
    centred = row - row.mean()
    return centred / (centred.square().mean() + 1e-5).sqrt()


def perceptron(method: MuxHop, x: Tensor) -> Tensor:
    """What f makes of each row, one row at a time (the norms' own weights are 1 and 0)."""
    rows = []
    for row in x:
        for weight, bias, act in zip(
            method.encoder.weights, method.encoder.biases, method.encoder.acts, strict=True
        ):
            mixed = row @ weight + bias
            row = layer_norm(torch.where(mixed > 0, mixed, act.weight * mixed))
        rows.append(row)
    return torch.stack(rows)
