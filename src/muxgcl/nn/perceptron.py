r"""A perceptron that sees each node alone, and the hops over which its output is spread.

A block is dropout, a linear map, PReLU (one slope) and a norm:
$h \leftarrow \mathrm{norm}(\mathrm{PReLU}(\mathrm{dropout}(h) W + b))$. The dropout of the
features is the view's (`augment.dropped`).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, get_args

import torch
from torch import nn

from muxgcl.augment import View
from muxgcl.errors import UserError
from muxgcl.kernels.dropout import dropout
from muxgcl.kernels.rounded import product
from muxgcl.nn.bias import add_bias
from muxgcl.nn.field import block_rows, rows_of
from muxgcl.nn.prelu import PReLU
from muxgcl.shapes import Candidates, Nodes, Scale
from muxgcl.sparse import SparseMatrix

Norm = Literal["layer", "batch", "none"]


class Perceptron(nn.Module):
    r"""Blocks of a perceptron: rows of features in, rows of `width` numbers out.

    Called, it drops entries between its blocks, and batch normalisation uses the nodes at hand;
    `embed` leaves nothing to chance and uses running statistics. Which of the two happens never
    depends on `train()` or `eval()`.

    Args:
        in_features: how many features a node has.
        width: of the output.
        hidden: width between the blocks.
        depth: how many blocks; at least 1.
        dropout: share of the entries that are dropped between blocks.
        norm: what ends a block: "layer" (LayerNorm), "batch" (BatchNorm) or "none".
        zero_bias: biases begin at zero. Drawn ones outweigh the features of a node where a row
            sums to one: after LayerNorm any two nodes then begin with a cosine of about 0.9.
        convolutions: how many of the first blocks also average over a node's neighbours,
            $\hat A\,\mathrm{dropout}(h) W$: with 0, f sees each node alone.
    """

    def __init__(
        self,
        in_features: int,
        width: int,
        *,
        hidden: int,
        depth: int = 2,
        dropout: float = 0.0,
        norm: Norm = "layer",
        zero_bias: bool = False,
        convolutions: int = 0,
    ) -> None:
        super().__init__()
        if not 0 <= convolutions <= depth:
            raise UserError(f"convolutions must be from 0 to depth ({depth}), got {convolutions}")
        if min(width, hidden, depth) < 1:
            raise UserError(
                f"width, hidden and depth must be at least 1, got {width}, {hidden} and {depth}"
            )
        if not 0 <= dropout < 1:
            raise UserError(f"dropout must be at least 0 and below 1, got {dropout}")
        if norm not in get_args(Norm):
            raise UserError(f"norm must be one of {', '.join(get_args(Norm))}, got {norm!r}")
        widths = [in_features, *[hidden] * (depth - 1), width]
        self.dropout, self.convolutions = dropout, convolutions
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for a, b in pairwise(widths):  # drawn as torch's Linear does
            bound = max(a, 1) ** -0.5
            self.weights.append(torch.empty(a, b).uniform_(-bound, bound))
            drawn = torch.empty(b).uniform_(-bound, bound)
            self.biases.append(torch.zeros(b) if zero_bias else drawn)  # weights stay the same
        self.acts = nn.ModuleList(PReLU() for _ in widths[1:])
        kinds = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d, "none": nn.Identity}
        self.norms = nn.ModuleList(kinds[norm](b) for b in widths[1:])

    @property
    def widths(self) -> list[int]:
        """Of each block's output."""
        return [weight.shape[1] for weight in self.weights]

    @property
    def takes_blocks(self) -> bool:
        """Whether its rows may come in blocks; batch normalisation then goes by the block."""
        return not self.convolutions

    def forward(self, view: View, hops: Sequence[SparseMatrix] | None = None) -> Nodes:
        """Nodes of a view in training; `hops` may lead to other rows at each convolution."""
        hops = [view.propagation] * self.convolutions if hops is None else hops
        return self._encode(view.project(self.weights[0]), hops, fresh=True)

    def embed(self, view: View) -> Nodes:
        """Nodes of a view after training."""
        hops, rows = [view.propagation] * self.convolutions, view.features.shape[0]
        size = rows if hops else block_rows(self.widths)
        if rows <= size:
            return self._encode(view.project(self.weights[0]), hops, fresh=False)
        found: Nodes = self.biases[-1].new_empty(rows, self.widths[-1])
        for some in torch.arange(rows, device=found.device).split(size):
            part = replace(view, features=rows_of(view.features, some))
            found[some] = self._encode(part.project(self.weights[0]), [], fresh=False)
        return found

    def _encode(self, mixed: Scale, hops: Sequence[SparseMatrix], *, fresh: bool) -> Candidates:
        """All blocks, from the first one's product on; the first ones average over neighbours."""

        def block(k: int, mixed: Scale) -> Candidates:
            return self._finish(k, hops[k] @ mixed if k < len(hops) else mixed, fresh=fresh)

        nodes = block(0, mixed)
        for k, weight in enumerate(self.weights[1:], start=1):
            given = dropout(nodes, self.dropout) if fresh and self.dropout else nodes
            nodes = block(k, product(given, weight))
        return nodes

    def _finish(self, k: int, mixed: Nodes, *, fresh: bool) -> Nodes:
        """What follows block k's product."""
        norm = self.norms[k]
        if mixed.is_cuda and isinstance(norm, nn.LayerNorm):
            from muxgcl.kernels.prelu_norm import prelu_norm  # Triton loads only where it runs

            slope = self.acts[k].get_parameter("weight")
            return prelu_norm(mixed, self.biases[k], slope, norm.weight, norm.bias, norm.eps)
        found: Nodes = norm.train(fresh)(self.acts[k](add_bias(mixed, self.biases[k])))
        return found


def spread(propagation: SparseMatrix, nodes: Nodes, hops: int) -> list[Nodes]:
    r"""The table over 0 to `hops` hops: entry k is $\hat A^k$ times it."""
    found = [nodes]
    for _ in range(hops):
        found.append(propagation @ found[-1])
    return found
