r"""MA-GCL: Gong, Yang and Shi 2023, <https://arxiv.org/abs/2212.07035>.

Augment the model, not only the graph: both views share the weights of a network, but each of its
layers propagates $c$ times, drawn anew for each layer, view and step,

$$U \mapsto F^c(U W), \quad F(Y) = \tfrac12 (Y + \hat A Y + b) \quad \text{for } c \ge 1, \qquad
U \mapsto \hat A U W + b \quad \text{for } c = 0,$$

with few steps in the first view and up to many in the second. The loss is InfoNCE with anchors in
the first view and negatives from the second alone, on the embeddings themselves (no projector):

$$\mathcal L = -\tfrac1n \sum_i
\log \frac{e^{u_i \cdot v_i / \tau}}{\sum_j e^{u_i \cdot v_j / \tau}}.$$

This is what the authors' code computes; their appendix takes negatives elsewhere. As there, edges
are dropped in one direction at a time, and $\hat A$ divides by the roots of what nodes send, not
receive. Departs from it: the ranges of c are settings (their code fixes 0 to 1 and 0 to 7, the
appendix lists others), and the projector that the code builds and never calls is left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor, nn

from muxgcl.augment import Corrupt, View, clean
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import contrast, taken
from muxgcl.methods.base import Context, Method
from muxgcl.methods.parts.of_graph import features_scaled
from muxgcl.nn.bias import add_bias
from muxgcl.nn.gcn import Activation, activation
from muxgcl.nn.projector import unit_rows
from muxgcl.shapes import Nodes, PerEdge, Scalar
from muxgcl.sparse import Csr, SparseMatrix

Counts = Int[Tensor, " layers"]  # of propagation steps


@dataclass(frozen=True, slots=True, kw_only=True)
class MaGclConfig:
    """Settings of MA-GCL."""

    layers: int = 2  # of the encoder
    width: int = 512  # of the embedding and between layers
    activation: Activation = "relu"  # of the encoder
    drop_edges: tuple[float, float] = (0.4, 0.4)  # share of edges dropped, in each view
    mask_features: tuple[float, float] = (0.5, 0.5)  # share of feature columns masked, in each view
    temperature: float = 0.4  # of the contrast; a lower one is sharper
    steps_one: tuple[int, int] = (0, 1)  # fewest and most propagation steps of a layer, first view
    steps_two: tuple[int, int] = (0, 7)  # fewest and most propagation steps of a layer, second view
    embed_steps: int = 2  # of every layer, for the embedding
    row_normalize: bool = False  # divide each row of features by its sum, as the authors do

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UserError(f"temperature must be positive, got {self.temperature}")
        for name in ("steps_one", "steps_two"):
            fewest, most = getattr(self, name)
            if not 0 <= fewest <= most:
                raise UserError(
                    f"{name} must be two numbers from 0 on, the second at least the first, "
                    f"got {fewest}, {most}"
                )
        if self.layers < 1 or self.width < 1 or self.embed_steps < 0:
            raise UserError(
                "layers and width must be at least 1 and embed_steps at least 0, "
                f"got {self.layers}, {self.width} and {self.embed_steps}"
            )


class MaGcl(Method):
    """Views differ in how far their layers look, not only in what was dropped."""

    name: ClassVar = "ma-gcl"
    paper: ClassVar = "Gong et al. 2023, https://arxiv.org/abs/2212.07035"
    cost: ClassVar = "quadratic"
    samples: ClassVar = True
    divides: ClassVar = True
    counted_as: ClassVar = "filters"
    Config: ClassVar = MaGclConfig

    def __init__(self, graph: Graph, cfg: MaGclConfig, context: Context) -> None:
        super().__init__()
        self.cfg, self.context = cfg, context
        self.scaled = features_scaled(cfg.row_normalize)
        rates = zip(cfg.drop_edges, cfg.mask_features, strict=True)
        self.views = [Corrupt(*p, degrees="sent") for p in rates]
        widths = [graph.num_features, *[cfg.width] * cfg.layers]
        self.encoder = Filters(widths, cfg.activation)

    def loss(self, graph: Graph) -> dict[str, Scalar]:
        """Inter-view InfoNCE from the first view to the second."""
        graph = self.scaled(graph)
        bounds = self.cfg.steps_one, self.cfg.steps_two
        sample = self.context.draw(graph)
        one, two = (
            unit_rows(taken(self._encode(view(graph), *between), sample))
            for view, between in zip(self.views, bounds, strict=True)
        )
        return {
            "contrast": contrast(
                one,
                two,
                temperature=self.cfg.temperature,
                backend=self.context.backend,
                sample=sample,
            )
        }

    def embed(self, graph: Graph) -> Nodes:
        """The un-augmented graph with the same number of steps in every layer."""
        view, count = clean(self.scaled(graph)), self.cfg.embed_steps
        counts = torch.full((self.cfg.layers,), count, device=graph.device)
        return self.encoder(view, counts, count)

    def _encode(self, view: View, fewest: int, most: int) -> Nodes:
        device = view.propagation.device
        counts = torch.randint(fewest, most + 1, (self.cfg.layers,), device=device)
        return self.encoder(view, counts, most if self.static else None)


class Filters(nn.Module):
    """Linear layers with a number of propagation steps each, chosen at every call."""

    __call__: Callable[..., Nodes]  # as `forward`; of a module torch only says Any

    def __init__(self, widths: Sequence[int], act: Activation) -> None:
        super().__init__()
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in pairwise(widths)
        )
        self.biases = nn.ParameterList(torch.zeros(b) for b in widths[1:])
        self.act = activation(act)

    def forward(self, view: View, counts: Counts, most: int | None = None) -> Nodes:
        """The last layer's output, without an activation after it.

        Args:
            view: what to propagate, and along what.
            counts: steps of each layer.
            most: do so many in every layer, those beyond its count without effect. By default the
                counts are looked at, and no step is done in vain.
        """
        nodes, loops = view.project(self.weights[0]), loops_of(view.propagation.matrix)
        for k, (bias, count) in enumerate(zip(self.biases, counts, strict=True), start=1):
            for step in range(max(int(count) if most is None else most, 1)):
                # all the way to a convolution where it is the only step, half of it, or stay
                way = 0.5 * (step < count) + (count == 0) * (step == 0)
                nodes = add_bias(toward(view.propagation, loops, way) @ nodes, way * bias)
            if k < len(self.weights):
                nodes = self.act(nodes) @ self.weights[k]
        return nodes


def toward(propagation: SparseMatrix, loops: PerEdge, way: Scalar) -> SparseMatrix:
    r"""$(1 - w) I + w \hat A$, on the pattern of $\hat A$: a step is then one product."""
    one, other = (
        replace(rows, value=torch.lerp(loops, rows.value, way))
        for rows in (propagation.matrix, propagation.transpose)
    )
    return SparseMatrix(one, other)


def loops_of(rows: Csr) -> PerEdge:
    """1 for each entry on the diagonal, 0 for the others."""
    return (rows.row == rows.col).to(rows.value.dtype)
