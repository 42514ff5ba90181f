r"""HomoGCL: Li, Wang, Xiong and Lai 2023, <https://arxiv.org/abs/2306.09614>.

Neighbours are likely of one class, so they are positives, each as far as both belong to the same
soft cluster. With z the embedding of the un-augmented graph and c the centres of k-means on it,
$p_i = \mathrm{softmax}_c(-\lVert z_i - c\rVert^2 / \sigma)$, the saliency of an edge is
$s_{ij} = \cos(p_i, p_j)$, and with $N_1(i)$, $N_2(i)$ the neighbours left in each view

$$\mathrm{pos}_i = e^{u_i \cdot v_i/\tau} + \sum_{j \in N_1(i)} s_{ij}\, e^{u_i \cdot u_j/\tau},
\qquad \mathrm{neg}_i = \sum_{j \ne i,\, j \notin N_1(i)} e^{u_i \cdot u_j/\tau}
 + \sum_{j \notin N_2(i)} e^{u_i \cdot v_j/\tau},$$

$$\mathcal L = -\frac1{2n} \sum_i \Big[\log \frac{\mathrm{pos}_i}{\mathrm{pos}_i + \mathrm{neg}_i}
+ \text{the same from view 2}\Big] + \alpha\, \mathrm{MSE}_{(i,j) \in E}(p_i, p_j).$$

As in the authors' code the second negative sum keeps $j = i$, so the positive is in the denominator
twice; gradients pass through p and s, only the centres are constant; E includes self-loops.
Also as there: edges are dropped in one direction at a time, $N(i)$ are the nodes that i still
sends to, and an edge is divided by the roots of what its source sends and its target receives.
Departs from it: negatives are one all-pairs sum less the sums over edges, and saliency exists on
edges alone; k-means runs on all nodes here (theirs, faiss, samples 256 a cluster), an empty cluster
moves to a farthest node.

With a sampled contrast only the all-pairs sum is sampled. All nodes are encoded and clustered, an
anchor has all of its positives, and of its neighbours those are taken off that are keys.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from muxgcl.augment import Corrupt, both, clean
from muxgcl.errors import UserError
from muxgcl.graph import Adjacency, Graph
from muxgcl.kernels import Sample, negative_sum, taken
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.edge_sums import edge_dot, met_sum, row_sum
from muxgcl.methods.parts.of_graph import features_scaled
from muxgcl.nn.gcn import GCN, Activation
from muxgcl.nn.projector import Projector, unit_rows
from muxgcl.nn.readout import Readout, ReadoutConfig
from muxgcl.shapes import Nodes, PerEdge, Scalar

Centres = Float[Tensor, "k d"]
Belonging = Float[Tensor, "n k"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HomoGclConfig(ReadoutConfig):
    """Settings of HomoGCL; both views are drawn at the same rates."""

    layers: int = 2  # of the encoder
    width: int = 256  # of the embedding; between layers it is twice that
    projection: int = 0  # width inside the projector; 0 contrasts the embeddings themselves
    activation: Activation = "relu"  # between layers, not after the last
    drop_edges: float = 0.4  # share of edges dropped, in each view
    mask_features: float = 0.1  # share of feature columns masked, in each view
    temperature: float = 0.5  # of the contrast; a lower one is sharper
    clusters: int = 10  # of k-means, that say which neighbours are positives
    cluster_steps: int = 20  # of k-means, in every epoch
    cluster_temperature: float = 0.001  # sigma: how soft clusters are, in squared distance
    mean_neighbors: bool = False  # average the neighbours' part of the positives instead of its sum
    alpha: float = 1.0  # weight of the agreement of neighbours' clusters
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do

    def __post_init__(self) -> None:
        if self.temperature <= 0 or self.cluster_temperature <= 0:
            raise UserError(
                "temperature and cluster_temperature must be positive, "
                f"got {self.temperature} and {self.cluster_temperature}"
            )
        if self.clusters < 1 or self.alpha < 0 or self.projection < 0:
            raise UserError(
                "clusters must be at least 1, alpha and projection not negative, "
                f"got {self.clusters}, {self.alpha} and {self.projection}"
            )


class HomoGcl(Method):
    """Count neighbours as positives, each by how surely it shares a cluster."""

    name: ClassVar = "homogcl"
    paper: ClassVar = "Li et al. 2023, https://arxiv.org/abs/2306.09614"
    cost: ClassVar = "quadratic"
    samples: ClassVar = True
    Config: ClassVar = HomoGclConfig

    def __init__(self, graph: Graph, cfg: HomoGclConfig, context: Context) -> None:
        super().__init__()
        self.cfg, self.context = cfg, context
        self.scaled = features_scaled(cfg.row_normalize)
        self.rates = Corrupt(cfg.drop_edges, cfg.mask_features, degrees="each")
        self.encoder = GCN(
            graph.num_features,
            cfg.width,
            layers=cfg.layers,
            act=cfg.activation,
            final_activation=False,
        )
        self.readout = Readout.of(cfg, last=cfg.layers)
        self.projector = Projector(cfg.width, cfg.projection) if cfg.projection else unit_rows

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """The contrast with salient neighbours, and how much neighbours' clusters differ."""
        graph, cfg = self.scaled(graph), self.cfg
        views = both(graph, [self.rates, self.rates])
        one, two = self.projector(self.encoder.embed(views)).chunk(2)
        kept = (views.propagation.matrix.value != 0) & ~graph.twice.loop  # edges of each view
        kept = kept.index_select(0, graph.twice.reverse)  # entry (i, j): whether i sends to j
        nodes = self.encoder.embed(clean(graph))
        centres = kmeans(nodes.detach(), cfg.clusters, cfg.cluster_steps)
        belonging = soft_clusters(nodes, centres, cfg.cluster_temperature)
        sample = self.context.sample(graph)
        contrast = self.contrast(graph.adjacency, one, two, kept.to(one.dtype), belonging, sample)
        return {
            "contrast": contrast,
            "clusters": cfg.alpha * disagreement(graph.adjacency, belonging),
        }

    def contrast(
        self,
        adjacency: Adjacency,
        one: Nodes,
        two: Nodes,
        kept: PerEdge,
        belonging: Belonging,
        sample: Sample | None = None,
    ) -> Scalar:
        """Mean over both views of -log(pos / (pos + neg)); `kept`: which edges each view has.

        With a sample, the mean is over its anchors, and negatives are estimated from its keys.
        """
        t, edges = self.cfg.temperature, kept.chunk(2)
        stacked = taken(torch.cat([one, two]), sample)
        others = negative_sum(
            stacked,
            stacked,
            temperature=t,
            nodes=len(stacked) // 2,
            backend=self.context.backend,
            sample=sample,
        ).chunk(2)
        own = (((one * two).sum(1) - 1) / t).exp()
        direction = unit_rows(belonging)
        saliency = edge_dot(direction, direction, adjacency)
        losses = []
        for v, (here, there) in enumerate(((one, two), (two, one))):
            intra = edges[v] * ((edge_dot(here, here, adjacency) - 1) / t).exp()
            inter = edges[1 - v] * ((edge_dot(here, there, adjacency) - 1) / t).exp()
            salient = row_sum(saliency * intra, adjacency)
            if self.cfg.mean_neighbors:
                salient = salient / (row_sum(edges[v], adjacency) + 0.01)
            positive = (own + salient).clamp(min=torch.finfo(own.dtype).tiny)
            # a difference of sums: rounding must not turn "no negatives" into a negative number
            far = (others[v] - met_sum(intra + inter, adjacency, sample)).clamp(min=0)
            positive, twice = (
                column if sample is None else column[sample.anchor_nodes]
                for column in (positive, own)
            )
            losses.append(((positive + far + twice).log() - positive.log()).mean())
        return (losses[0] + losses[1]) / 2


def kmeans(nodes: Nodes, clusters: int, steps: int) -> Centres:
    """Lloyd's algorithm from random nodes; an empty cluster moves to one of the farthest nodes."""
    points = nodes.double()
    clusters = min(clusters, len(points))
    start = torch.rand(len(points), device=points.device).argsort()[:clusters]
    centres, names = points[start], torch.arange(clusters, device=points.device)
    length = points.square().sum(1, keepdim=True)
    for _ in range(steps):
        distance = length - 2 * points @ centres.T + centres.square().sum(1)
        nearest, label = distance.min(1)
        member = (label[:, None] == names).to(points.dtype)  # [n, k]
        count = member.sum(0)[:, None]
        far = points[nearest.topk(clusters).indices]
        centres = torch.where(count > 0, member.T @ points / count.clamp(min=1), far)
    return centres


def soft_clusters(nodes: Nodes, centres: Centres, temperature: float) -> Belonging:
    """How far each node belongs to each cluster; rows sum to 1."""
    # ||z||^2 cancels in the softmax. In float64: so small a temperature shows float32's rounding
    closeness = 2 * nodes.double() @ centres.T - centres.square().sum(1)
    return (closeness / temperature).softmax(1).to(nodes.dtype)


def disagreement(adjacency: Adjacency, belonging: Belonging) -> Scalar:
    """Mean over edges (loops included) and clusters of the squared difference of the two ends."""
    ones = adjacency.matrix(torch.ones_like(adjacency.weight))
    degree = adjacency.rowptr.diff()[:, None]
    total = 2 * (belonging * (degree * belonging - ones @ belonging)).sum()  # 2 tr(P' L P)
    return total / (len(adjacency.col) * belonging.shape[1])
