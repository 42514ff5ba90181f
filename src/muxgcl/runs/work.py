r"""What one epoch consists of, counted: products, propagation, pairs, and tables that are kept.

For methods with a GCN (`mux-hop` has a perceptron), a projector and a contrast. With n rows (of two
views), layers of widths $f \to h \to \dots \to w$, scales s, and a projector $w \to p \to o$, an
epoch multiplies and adds

$$2 n \big(2 f h + 3 h w + \dots\big) + 6 s n (w p + p o)$$

times (two products for the first layer, three for each other one: forward and two gradients),
propagates (edges x width) both ways and contrasts (anchors x keys) pairs at every scale. With a
sample the rows of each layer are those that the sample depends on (`nn/field.py`). A perceptron
sees all rows that its hops start from, and the projector's first product comes before the hops.
`ma-gcl`, whose layers are filters, propagates a random number of times in each: the mean is
counted. `gae` and `vgae` have two layers and a decoder of drawn pairs. A method says itself which
of the four it is (`Method.counted_as`).
"""

from dataclasses import dataclass, replace
from itertools import pairwise

from torch import Tensor

from muxgcl.affinity.skipgram import MOST_BATCHES, PIECE, SHARED_NEGATIVES
from muxgcl.augment import stacked_propagation
from muxgcl.graph import Graph
from muxgcl.kernels import Sample
from muxgcl.methods import METHODS
from muxgcl.nn.field import Field, block_rows, in_part
from muxgcl.nn.readout import Readout
from muxgcl.runs.environment import pick_device
from muxgcl.runs.plan import Plan
from muxgcl.seeding import seeded
from muxgcl.sparse import index_dtype

COUNTED = tuple(name for name, kind in METHODS.items() if kind.counted_as)
NUMBER = 4  # bytes
DROPOUT = 3  # what drawing a random number costs, in numbers read and written
EDGE = 12  # the same for an entry of a view's adjacency: its mask, its weight, its degrees
LOOSE_EDGE = 120  # where rows of it are taken out: it is compressed anew
LOOSE_ENTRY = 8  # the same for an entry of sparse features
PAIR = 28  # the same for a column of a pair that a VGAE tells, forward and backward
SAMPLED = 480  # the same for a column of a node's mean and spread; both were fitted on one core
BLOCK = 16  # the same for bias, PReLU and norm, forward and backward


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
    last: int  # how many hops the last scale has seen
    contrasts: int  # of two scales each

    @classmethod
    def of(cls, plan: Plan, graph: Graph) -> "Shape":
        """From a plan's settings."""
        cfg, hop = plan.settings, _hops_outside(plan)
        if METHODS[plan.method].counted_as == "autoencoder":
            return cls((graph.num_features, cfg.hidden, cfg.width), (), (0, 0), 0, 2, 0)
        last = cfg.hops if hop else cfg.layers
        hidden = cfg.width if METHODS[plan.method].counted_as == "filters" else 2 * cfg.width
        between = [cfg.hidden] * (cfg.depth - 1) if hop else [hidden] * (last - 1)
        weights = getattr(cfg, "scale_weights", [0] * last + [1])
        scales = tuple(k for k, weight in enumerate(weights) if weight > 0)
        out = getattr(cfg, "projection_out", None) or cfg.width
        weighted = getattr(cfg, "affinity", "none") != "none"
        return cls(
            (graph.num_features, *between, cfg.width),
            scales,
            (getattr(cfg, "projection", 0), out),
            cfg.affinity_width if weighted else 0,
            last,
            len(scales) ** (2 if hop and cfg.anchors == "all" else 1),
        )


def of_epoch(plan: Plan, graph: Graph) -> Work:
    """Everything that one epoch of this plan does."""
    shape = Shape.of(plan, graph)
    if METHODS[plan.method].counted_as == "filters":
        return _filters(plan, graph, shape)
    if METHODS[plan.method].counted_as == "autoencoder":
        cfg, variational = plan.settings, plan.method == "vgae"
        return of_autoencoder(graph, cfg.width, hidden=cfg.hidden, variational=variational)
    encoder = _perceptron if _hops_outside(plan) else _gcn
    work = encoder(plan, graph, shape) + _head(plan, graph, shape)
    both_ways = graph.edge_kinds is not None and graph.edge_kinds.directed
    return work + replace(work, weights=0.0) if both_ways else work


def _gcn(plan: Plan, graph: Graph, shape: Shape) -> Work:
    layers, sampled = len(shape.widths) - 1, plan.sampling.draw(graph.num_nodes)
    in_part = _in_part(plan, graph, sampled)
    rows, entries = _sizes(plan, graph, layers, sampled)
    wanted = 2 * (graph.num_nodes if sampled is None else len(sampled.nodes))
    work = _first_layer(graph, shape.widths[1], rows, entries[0], in_part)
    work += _views(graph, in_part=in_part)
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


def _views(graph: Graph, *, in_part: bool) -> Work:
    """The edges of both views, all of them whatever is sampled."""
    return Work(touches=(LOOSE_EDGE if in_part else EDGE) * 2 * len(graph.adjacency.col))


def _in_part(plan: Plan, graph: Graph, sampled: Sample | None) -> bool:
    """Whether only what a sample depends on is encoded."""
    device, kind = pick_device(plan.device), METHODS[plan.method]
    if sampled is None or not kind.encodes_sample:
        return False
    if _hops_outside(plan):
        whole = plan.settings.feature_dropout == "columns"  # the columns of all nodes
        return not whole and in_part(device, 2 * graph.num_nodes, Shape.of(plan, graph).widths[1:])
    return device.type == "cpu"


def _hops_outside(plan: Plan) -> bool:
    """Whether the network is a perceptron, over whose output hops are taken."""
    return METHODS[plan.method].counted_as == "perceptron"


def _sizes(
    plan: Plan, graph: Graph, layers: int, sampled: Sample | None
) -> tuple[list[int], list[int]]:
    """Rows of both views at every layer, from the lowest on, and entries of every hop."""
    if sampled is None or not _in_part(plan, graph, sampled):
        return [2 * graph.num_nodes] * (layers + 1), [2 * len(graph.adjacency.col)] * layers
    with seeded(0):  # one draw stands for all
        views = stacked_propagation(graph, plan.settings.drop_edges)
        fanout = getattr(plan.settings, "fanout", 0)
        field = Field.of(views, sampled.rows(2), layers, fanout)
    return [len(rows) for rows in field.rows], [len(hop.matrix.col) for hop in field.hops]


def _perceptron(plan: Plan, graph: Graph, shape: Shape) -> Work:
    cfg, (p, _) = plan.settings, shape.projection
    sampled = plan.sampling.draw(graph.num_nodes)
    rows, entries = _sizes(plan, graph, cfg.convolutions + shape.last, sampled)
    f, copies = shape.widths[0], 2 if cfg.ema else 1
    share, again = _blocks(plan, graph, shape, sampled, rows[0])
    work = _views(graph, in_part=_in_part(plan, graph, sampled))
    for k, (a, b) in enumerate(pairwise(shape.widths)):
        before, here = (rows[min(k + more, cfg.convolutions)] for more in (0, 1))
        if k > 0:
            work += Work(
                flops=(6 + 2 * again) * before * a * b,
                touches=DROPOUT * (1 + again) * before * a,
                kept=share * 2 * before * a,
            )
        elif isinstance(graph.features, Tensor):
            work += Work(
                flops=(4 + 2 * again) * before * f * b,
                touches=DROPOUT * (1 + again) * before * f,
                kept=share * 2 * before * f,
            )
        else:
            filled = before * len(graph.features.matrix.col) / graph.num_nodes
            work += Work(
                gathers=(2 + again) * filled * b,
                touches=(DROPOUT + 8) * (1 + again) * filled,
                kept=share * 6 * filled,
            )
        if k < cfg.convolutions:
            work += Work(gathers=2 * entries[k] * b)
        work += Work(
            touches=BLOCK * (1 + again / 2) * here * b,
            kept=share * 3 * here * b,
            weights=copies * a * b,
        )
    spread = sum(entries[cfg.convolutions :])
    start = rows[cfg.convolutions]  # the projector's first product, then the hops
    return work + Work(
        flops=(6 + 2 * again) * start * shape.widths[-1] * p,
        gathers=2 * spread * p,
        kept=2 * start * p,
    )


def _blocks(
    plan: Plan, graph: Graph, shape: Shape, sampled: Sample | None, rows: int
) -> tuple[float, int]:
    """What share of f's tables is there at a time, and how often each is computed again."""
    cfg = plan.settings
    if cfg.convolutions or not _in_part(plan, graph, sampled):
        return 1.0, 0
    share = block_rows(shape.widths[1:]) / max(1, rows)
    return (share, 1) if share < 1 else (1.0, 0)


def _filters(plan: Plan, graph: Graph, shape: Shape) -> Work:
    """MA-GCL: all nodes are encoded, view by view, and nothing is projected."""
    cfg, n, entries = plan.settings, graph.num_nodes, len(graph.adjacency.col)
    rows, w = 2 * n, shape.widths[-1]
    spans = [range(low, high + 1) for low, high in (cfg.steps_one, cfg.steps_two)]
    steps = sum(sum(max(1, c) for c in span) / len(span) for span in spans)  # of a layer
    # each step weighs the edges anew, both ways
    layer = Work(
        gathers=2 * steps * entries * w,
        touches=steps * (4 * n * w + 6 * entries),
        kept=steps * 2 * entries + 2 * rows * w,
    )
    work = _views(graph, in_part=False) + Work(weights=shape.widths[0] * w)
    if isinstance(graph.features, Tensor):
        work += Work(flops=4 * rows * shape.widths[0] * w)
    else:
        work += Work(gathers=4 * len(graph.features.matrix.col) * w)
    for k in range(shape.last):
        between = Work(flops=6 * rows * w * w, touches=6 * rows * w, weights=w * w)
        work += layer + between if k else layer
    anchors, keys = (min(count or n, n) for count in (plan.anchors, plan.keys))
    met = 2 * max(anchors, keys)
    return work + Work(touches=14 * met * w, pairs=anchors * keys, kept=5 * met * w)


def _first_layer(graph: Graph, h: int, rows: list[int], entries: int, in_part: bool) -> Work:
    f, tables = graph.num_features, Work(touches=6 * rows[1] * h, kept=2 * rows[1] * h)
    if not isinstance(graph.features, Tensor):
        filled = rows[0] * len(graph.features.matrix.col) / graph.num_nodes  # in these rows
        taken = Work(touches=LOOSE_ENTRY * filled, kept=4 * filled) if in_part else Work()
        return tables + taken + Work(gathers=2 * (filled + entries) * h, weights=f * h)
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
    read = {*shape.scales} if shape.contrasts > len(shape.scales) else {*shape.scales, shape.last}
    rows = 2 * max(anchors, keys) * len(read)
    mixed = 0 if _hops_outside(plan) else w  # has multiplied already
    return Work(
        flops=6 * rows * (mixed * p + p * o),
        touches=rows * (8 * p + 14 * o + 2 * mixed),
        pairs=4 * anchors * keys * shape.contrasts,
        kept=rows * (mixed + p + 5 * o),
        weights=w * p + p * o,
    )


def of_autoencoder(
    graph: Graph, width: int, *, hidden: int | None = None, variational: bool = True
) -> Work:
    """An epoch of a VGAE: two layers on the whole graph, as it is; edges, and as many other pairs.

    A pair reads two rows of `width` numbers, and their gradients are gathered. No table has a row
    or a column for all pairs of nodes.
    """
    n, entries, h = graph.num_nodes, len(graph.adjacency.col), hidden or 2 * width
    w = 2 * width if variational else width  # mean and spread
    pairs = entries - n  # every edge once, and as many without; each node has a loop
    second = Work(flops=6 * n * h * w, gathers=2 * entries * w, touches=6 * n * w, weights=h * w)
    told = Work(
        gathers=2 * pairs * width,
        touches=PAIR * pairs * width,
        kept=2 * pairs * width,
    )
    if variational:
        told += Work(touches=SAMPLED * n * width, kept=5 * n * width)
    first = _first_layer(graph, h, [n, n], entries, in_part=False)
    return replace(first, kept=n * h) + second + told  # ReLU needs what it gave alone


def tables(graph: Graph, shape: Shape) -> float:
    """Bytes of what is there all the time: edges, of both views too, and where patches lie."""
    n, entries = graph.num_nodes, len(graph.adjacency.col)
    once, twice = (index_dtype(k * entries, k * n).itemsize for k in (1, 2))
    # row, column, reverse, weight and loop of the graph and of two copies, which share no memory;
    # weights of the views, along and against
    edges = entries * (3 * once + 6 * twice + 3 * (NUMBER + 1) + 4 * NUMBER)
    patches = (shape.last + 1) * n * shape.affinity * NUMBER
    return edges + n * (once + 2 * twice) + patches


def walking(plan: Plan, graph: Graph, shape: Shape) -> float:
    """Bytes of training on walks, before the first epoch: a table with its gradient and moments."""
    if not shape.affinity or plan.settings.affinity == "vgae":
        return 0.0
    cfg, width = plan.settings, shape.affinity
    batch = -(-graph.num_nodes // MOST_BATCHES)
    if pick_device(plan.device).type == "cpu":
        batch = min(batch, PIECE)
    length = cfg.walk_length
    walked = 2 * 8 * graph.num_nodes * length + 3 * 8 * len(graph.adjacency.col)
    at_once = batch * length * (6 * width + 4 * length + SHARED_NEGATIVES)
    return float(NUMBER * (5 * graph.num_nodes * width + at_once) + walked)


def autoencoding(graph: Graph, width: int, peak: float) -> float:
    """Bytes of training the VGAE that affinities come from, before the first epoch.

    `peak` is how much more there is at once than what is kept for the backward pass.
    """
    work = of_autoencoder(graph, width)
    numbers = peak * work.kept + 5 * work.weights
    # the edges as numbers in 64 bits, sorted, and the pairs that are drawn
    return float(NUMBER * numbers + 8 * 6 * len(graph.adjacency.col))


def embedding(plan: Plan, graph: Graph, shape: Shape) -> float:
    """Bytes of embedding all nodes, when training is done: scales, and what is read out."""
    f, w, cfg = shape.widths[0], shape.widths[-1], plan.settings
    own = 2 * max(shape.widths[1:]) + shape.last * w
    if _hops_outside(plan):
        own = 2 * (shape.last + 1) * w
    features, raw = (getattr(cfg, f"readout_{name}", 0.0) for name in ("features", "raw"))
    beside = 2 * bool(features) + bool(raw)  # the latter needs no new table
    return NUMBER * graph.num_nodes * (own + beside * f)


def embedding_width(plan: Plan, graph: Graph) -> int:
    """Columns that are read out, of all members; a direction of edges has its own."""
    shape = Shape.of(plan, graph)
    if not hasattr(plan.settings, "readout"):
        return plan.members * shape.widths[-1]
    read = Readout.of(plan.settings, last=shape.last)
    ways = 2 if graph.edge_kinds is not None and graph.edge_kinds.directed else 1
    same = {0} if _hops_outside(plan) and not plan.settings.convolutions else set()
    tables = sum(1 if k in same else ways for k in read.scales)
    beside = ways * bool(read.features) + bool(read.raw)
    return plan.members * (tables * shape.widths[-1] + beside * graph.num_features)
