r"""How much nodes matter, and views that spare what matters: the augmentation of GCA.

An edge matters as much as its target v, a feature column f as much as the nodes that have it:

$$s_e = \log \varphi(v), \qquad s_f = \log \sum_v 1[x_{vf} \ne 0]\, \varphi(v), \qquad
p_e = \min\Big(p\, \frac{\max s - s_e}{\max s - \bar s},\; 0.7\Big)$$

and $p_f$ likewise. Columns that no node with centrality has are left out of maximum and mean (on
Cora the logarithm of the one empty column would otherwise turn every weight into NaN), and where
all scores are equal the drop is uniform.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from muxgcl.augment import Corrupt, View, stacked
from muxgcl.graph import Graph
from muxgcl.shapes import PerEdge, PerFeature, PerNode

Centrality = Literal["degree", "pagerank", "eigenvector"]
HIGHEST = 0.7  # no edge or column is dropped more often than this
PAGERANK_STEPS = {"edges": 200, "columns": 10}  # as in the authors' code
EIGENVECTOR_STEPS = 2000
EIGENVECTOR_FLOOR = 1e-8  # outside the largest component the eigenvector is 0


@dataclass(frozen=True, slots=True, eq=False)
class DropWeights:
    """Factors of the drop rate with mean 1: of each entry of the adjacency, and of each column."""

    edges: PerEdge
    columns: PerFeature


def adaptive_views(graph: Graph, weights: DropWeights, rates: Sequence[Corrupt]) -> View:
    """Two fresh views, stacked, in which what matters is dropped less often than `rates` say."""
    return stacked(
        graph,
        [(r.drop_edges * weights.edges).clamp(max=HIGHEST) for r in rates],
        [(r.mask_features * weights.columns).clamp(max=HIGHEST) for r in rates],
    )


def drop_weights(graph: Graph, kind: Centrality) -> DropWeights:
    """The factors for a centrality; computed on the CPU in double precision."""
    here, graph = graph.device, graph.to("cpu")
    target = graph.adjacency.row
    of_edges, of_columns = (centrality(graph, kind, use) for use in ("edges", "columns"))
    edges = spread(of_edges[target].log(), used=~graph.adjacency.loop)
    mass = column_mass(graph, of_columns)
    columns = spread(mass.log(), used=mass > 0)
    return DropWeights(edges.float().to(here), columns.float().to(here))


def spread(score: Tensor, used: Tensor) -> Tensor:
    """How far each score is below the largest, in units of the mean distance; 1 where unused."""
    weight = torch.ones_like(score)
    chosen = score[used]
    if len(chosen) and chosen.max() - chosen.mean() > 1e-9 * (1 + chosen.abs().max()):
        weight[used] = (chosen.max() - chosen) / (chosen.max() - chosen.mean())
    return weight


def centrality(graph: Graph, kind: Centrality, use: str) -> PerNode:
    """One number a node; PageRank takes fewer steps for columns than for edges."""
    adjacency = graph.adjacency
    weight = adjacency.weight.double() * ~adjacency.loop
    edges = adjacency.matrix(weight).matrix
    ones = torch.ones(graph.num_nodes, 1, dtype=torch.float64)
    degree = edges.multiply(ones)
    if kind == "degree":
        return degree.squeeze(1)
    x = ones
    if kind == "pagerank":
        for _ in range(PAGERANK_STEPS[use]):
            x = 0.15 * x + 0.85 * edges.multiply(x / degree.clamp(min=1e-12))
        return x.squeeze(1)
    for _ in range(EIGENVECTOR_STEPS):  # of A + I: the same vector, without sign flips
        step = x + edges.multiply(x)
        step = step / step.norm()
        if torch.allclose(step, x, rtol=1e-9, atol=1e-15):
            break
        x = step
    return x.squeeze(1) + EIGENVECTOR_FLOOR


def column_mass(graph: Graph, phi: PerNode) -> PerFeature:
    """The centrality of all nodes that have a feature, summed.

    As the authors do for bags of words: where every node has every feature, all weigh alike.
    """
    features = graph.features
    if isinstance(features, Tensor):
        return (features != 0).double().T @ phi
    columns = features.transpose
    share = phi[columns.col] * (columns.value != 0)
    return phi.new_zeros(columns.rows).index_add_(0, columns.row, share)
