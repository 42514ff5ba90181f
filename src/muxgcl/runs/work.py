r"""What one epoch consists of, counted: products, propagation, pairs, and tables that are kept.

For methods with a GCN, a projector and a contrast. With n rows (of two views), layers of widths
$f \to h \to \dots \to w$, scales s, and a projector $w \to p \to o$, an epoch multiplies and adds

$$2 n \big(2 f h + 3 h w + \dots\big) + 6 s n (w p + p o)$$

times (two products for the first layer, three for each other one: forward and two gradients),
propagates (edges x width) both ways and contrasts (anchors x keys) pairs at every scale. With a
sample the rows of each layer are those that the sample depends on (`nn/field.py`).
"""

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor

from muxgcl.augment import Corrupt, both
from muxgcl.graph import Graph
from muxgcl.nn.field import Field
from muxgcl.runs.plan import Plan
from muxgcl.seeding import seeded

COUNTED = ("mux-gcl", "grace", "gca", "sfa")  # methods that this counts
NUMBER = 4  # bytes


@dataclass(frozen=True, slots=True)
class Work:
    """What one epoch does."""

    flops: float = 0.0  # of dense products
    gathers: float = 0.0  # numbers that sparse products read
    touches: float = 0.0  # numbers that are read and written one by one, as activations do
    pairs: float = 0.0  # of anchors and keys
    kept: float = 0.0  # numbers in tables that the backward pass needs
    weights: float = 0.0  # numbers that are trained

    def __add__(self, other: "Work") -> "Work":
        names = self.__dataclass_fields__
        return Work(*(getattr(self, name) + getattr(other, name) for name in names))


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a method, whatever its settings are called."""

    widths: tuple[int, ...]  # features, hidden layers, embedding
    scales: tuple[int, ...]  # that are contrasted
    projection: tuple[int, int]
    affinity: int  # width of the affinity's tables; 0 without

    @classmethod
    def of(cls, plan: Plan, graph: Graph) -> "Shape":
        """From a plan's settings."""
        cfg = plan.settings
        weights = getattr(cfg, "scale_weights", [0] * cfg.layers + [1])
        out = getattr(cfg, "projection_out", None) or cfg.width
        weighted = getattr(cfg, "affinity", "none") != "none"
        return cls(
            (graph.num_features, *[2 * cfg.width] * (cfg.layers - 1), cfg.width),
            tuple(k for k, weight in enumerate(weights) if weight > 0),
            (cfg.projection, out),
            cfg.affinity_width if weighted else 0,
        )


def of_epoch(plan: Plan, graph: Graph) -> Work:
    """Everything that one epoch of this plan does."""
    shape = Shape.of(plan, graph)
    return _encoder(plan, graph, shape) + _head(plan, graph, shape)


def _encoder(plan: Plan, graph: Graph, shape: Shape) -> Work:
    layers, sampled = len(shape.widths) - 1, plan.sampling.draw(graph.num_nodes)
    in_part = sampled is not None and graph.device.type == "cpu" and plan.method != "sfa"
    if in_part:
        assert sampled is not None
        with seeded(0):  # one draw stands for all
            cfg = plan.settings
            rates = [Corrupt(d, m) for d, m in zip(cfg.drop_edges, cfg.mask_features, strict=True)]
            field = Field.of(both(graph, rates).propagation, sampled.rows(2), layers)
        rows = [len(found) for found in field.rows]
        entries = [len(hop.matrix.col) for hop in field.hops]
        wanted = rows[-1]
    else:
        rows = [2 * graph.num_nodes] * (layers + 1)
        entries = [2 * len(graph.adjacency.col)] * layers
        wanted = 2 * (graph.num_nodes if sampled is None else len(sampled.nodes))
    work = _first_layer(graph, shape.widths[1], rows, entries[0], in_part)
    # masks, weights and degrees of the edges of both views, whatever is sampled
    work += Work(touches=12 * 2 * len(graph.adjacency.col))
    for k, (a, b) in enumerate(pairwise(shape.widths[1:]), start=1):
        after = rows[k + 1] if in_part else rows[k]
        across = a if in_part else b  # a sample is propagated first and multiplied then
        work += Work(
            flops=6 * after * a * b,
            gathers=2 * entries[k] * across,
            touches=6 * after * b + (4 * after * a if in_part else 0),
            kept=after * b + (after * a if in_part else 0),
            weights=a * b,
        )
    for scale in shape.scales[:-1] if shape.scales else ():
        dense = isinstance(graph.features, Tensor)
        fresh = in_part and (dense or scale > 0)  # else the whole graph has multiplied once
        for a, b in pairwise(shape.widths[scale if fresh else scale + 1 :]):
            first = scale == 0 and a == shape.widths[0]
            work += Work(flops=(4 if first else 6) * wanted * a * b, kept=wanted * b)
    return work


def _first_layer(graph: Graph, h: int, rows: list[int], entries: int, in_part: bool) -> Work:
    f, tables = graph.num_features, Work(touches=6 * rows[1] * h, kept=2 * rows[1] * h)
    if not isinstance(graph.features, Tensor):
        filled = 2 * len(graph.features.matrix.col)
        return tables + Work(gathers=2 * (filled + entries) * h, weights=f * h)
    if in_part:  # (A X) W: few rows, and X is copied
        return tables + Work(
            flops=4 * rows[1] * f * h,
            gathers=entries * f,
            touches=3 * rows[0] * f,
            kept=rows[1] * f + rows[0] * f,
            weights=f * h,
        )
    return tables + Work(flops=4 * rows[0] * f * h, gathers=2 * entries * h, weights=f * h)


def _head(plan: Plan, graph: Graph, shape: Shape) -> Work:
    n, (p, o), w = graph.num_nodes, shape.projection, shape.widths[-1]
    anchors, keys = (min(count or n, n) for count in (plan.anchors, plan.keys))
    rows = 2 * max(anchors, keys) * len({*shape.scales, len(shape.widths) - 1})
    return Work(
        flops=6 * rows * (w * p + p * o),
        touches=rows * (8 * p + 14 * o + 2 * w),
        pairs=4 * anchors * keys * len(shape.scales),
        kept=rows * (w + p + 5 * o),
        weights=w * p + p * o,
    )


def tables(graph: Graph, shape: Shape) -> float:
    """Bytes of what is there all the time: both views' edges, and where patches lie."""
    edges = 2 * len(graph.adjacency.col)
    patches = len(shape.widths) * graph.num_nodes * shape.affinity * NUMBER
    return edges * (4 * 8 + 3 * NUMBER) + patches
