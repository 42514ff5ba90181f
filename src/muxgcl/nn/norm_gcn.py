"""A graph convolutional network with batch normalisation, for the methods without negatives."""

from collections.abc import Sequence

import torch
from torch import nn

from muxgcl.augment import View
from muxgcl.errors import UserError
from muxgcl.nn.bias import add_bias
from muxgcl.nn.prelu import PReLU
from muxgcl.shapes import Nodes


class NormGCN(nn.Module):
    """Blocks of convolution, batch normalisation and PReLU (one slope a block).

    Called, it normalises by the statistics of the nodes at hand and moves the running ones; `embed`
    uses the running ones. Which of the two happens never depends on `train()` or `eval()`.

    Args:
        in_features: how many features a node has.
        widths: of each layer's output; the last is the embedding's.
        bare_last: whether the last layer is a convolution alone.
        momentum: share of the newest statistics in the running ones.
    """

    def __init__(
        self, in_features: int, widths: Sequence[int], *, bare_last: bool, momentum: float
    ) -> None:
        super().__init__()
        if not widths or min(widths) < 1:
            raise UserError(f"widths must be at least 1, got {list(widths)}")
        if not 0 < momentum <= 1:
            raise UserError(f"batch_norm_momentum must be above 0 and at most 1, got {momentum}")
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(a, b))
            for a, b in zip([in_features, *widths], widths, strict=False)
        )
        self.biases = nn.ParameterList(torch.zeros(b) for b in widths)
        normed = widths[:-1] if bare_last else widths
        self.norms = nn.ModuleList(nn.BatchNorm1d(b, momentum=momentum) for b in normed)
        self.acts = nn.ModuleList(PReLU() for _ in normed)

    def forward(self, view: View) -> Nodes:
        """Nodes of a view in training."""
        return self._encode(view, fresh=True)

    def embed(self, view: View) -> Nodes:
        """Nodes of a view after training."""
        return self._encode(view, fresh=False)

    def _encode(self, view: View, *, fresh: bool) -> Nodes:
        nodes = view.project(self.weights[0])
        for k, bias in enumerate(self.biases, start=1):
            nodes = add_bias(view.propagation @ nodes, bias)
            if k <= len(self.norms):
                nodes = self.acts[k - 1](self.norms[k - 1].train(fresh)(nodes))
            if k < len(self.weights):
                nodes = nodes @ self.weights[k]
        return nodes
