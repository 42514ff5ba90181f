"""Differentiable sums over the edges of a graph, without a table of (edges x width).

An edge's value is the product of its two ends' rows; the gradient of that is a product with a
sparse matrix whose entries are the values' gradients.
"""

from typing import Any

import torch
from torch import Tensor

from muxgcl.graph import Adjacency
from muxgcl.kernels import PerAnchor, Sample
from muxgcl.shapes import Nodes, PerEdge, PerNode

BLOCK_BYTES = 32 << 20  # of gathered rows held at once


def edge_dot(left: Nodes, right: Nodes, adjacency: Adjacency) -> PerEdge:
    """The product of both ends' rows on every edge."""
    found: Tensor = _EdgeDot.apply(left, right, adjacency)
    return found


def row_sum(values: PerEdge, adjacency: Adjacency) -> PerNode:
    """The sum over every node's edges."""
    found: Tensor = _RowSum.apply(values, adjacency)
    return found


def met_sum(values: PerEdge, adjacency: Adjacency, sample: Sample | None) -> PerAnchor:
    """The part of a sampled all-pairs sum that comes from the anchors' neighbours.

    It counts neighbours that are keys, each as often as the estimate does. Without a sample it is
    the sum over every node's edges.
    """
    if sample is None:
        return row_sum(values, adjacency)
    met = row_sum(values * sample.is_key(adjacency.col), adjacency)
    return met[sample.anchor_nodes] * sample.lift.to(met.dtype)


class _EdgeDot(torch.autograd.Function):
    """Row i of `left` times row j of `right` for every entry (i, j) of A + I."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, adjacency: Adjacency) -> Tensor:
        ctx.save_for_backward(left, right)
        ctx.adjacency = adjacency
        if left.is_cuda:
            from muxgcl.kernels.edge_dot import edge_dot as fused  # Triton loads only where it runs

            return fused(left, right, adjacency.row, adjacency.col)
        block = max(1, BLOCK_BYTES // (left.shape[1] * left.element_size()))
        ends = zip(adjacency.row.split(block), adjacency.col.split(block), strict=True)
        return torch.cat(
            [(left.index_select(0, r) * right.index_select(0, c)).sum(1) for r, c in ends]
        )

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        left, right = ctx.saved_tensors
        matrix = ctx.adjacency.matrix(grads[0])
        return matrix.matrix.multiply(right), matrix.transpose.multiply(left), None


class _RowSum(torch.autograd.Function):
    """For every node the sum over its entries of A + I."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, adjacency: Adjacency) -> Tensor:
        ctx.row = adjacency.row
        return adjacency.csr(values).multiply(values.new_ones(adjacency.nodes, 1)).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0].index_select(0, ctx.row), None
