r"""Mutual information between nodes and a summary of the graph, by telling real from shuffled.

$$\mathcal L = -\frac1{2N} \sum_i \big[\log D(h_i, c) + \log(1 - D(\tilde h_i, c))\big], \qquad
D(h, c) = \mathrm{sigmoid}(h^\top M c + b), \qquad c = \mathrm{sigmoid}\Big(\frac1N\sum_i h_i\Big)$$

Paper: Veličković et al. 2019, <https://arxiv.org/abs/1809.10341>, equation 1.
"""

import torch
from torch import nn
from torch.nn.functional import softplus

from muxgcl.shapes import Nodes, PerNode, Scalar


class Discriminator(nn.Module):
    """Scores a node against a summary: the logit of D."""

    def __init__(self, width: int) -> None:
        super().__init__()
        # the bound is the one of a bilinear layer with one output, not that of a square matrix
        self.matrix = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, width, width))[0])
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, nodes: Nodes, of: Nodes) -> PerNode:
        """Logits of `nodes` against the summary of the table `of`."""
        return nodes @ (self.matrix @ of.mean(0).sigmoid()) + self.bias


def infomax(real: PerNode, shuffled: PerNode) -> Scalar:
    """Mean cross entropy of both kinds of logits."""
    return (softplus(-real).mean() + softplus(shuffled).mean()) / 2
