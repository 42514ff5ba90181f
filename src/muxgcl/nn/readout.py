r"""What becomes the embedding of a trained encoder with several scales.

- `last`: the table of scale L, as the papers have it.
- `all`: $[\,\rho_0 \bar U^{(0)}, \dots, \rho_L \bar U^{(L)}\,]$, the scales side by side, each with
  unit rows ($\bar U$) and its weight $\rho_k$. A scale of weight 0 has no columns.

With `features` > 0 there is one more block, unit rows of the propagated features $\hat A^L X$ times
that weight, and with `raw` > 0 another, unit rows of the features $X$ as they are. The propagated
features are a dense table of nodes x features, so its size is bounded.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal, Protocol, Self, get_args

import torch
from torch import Tensor

from muxgcl.augment import View
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.nn.gcn import GCN
from muxgcl.nn.projector import unit_rows
from muxgcl.shapes import Nodes, Scale
from muxgcl.sparse import Csr

Kind = Literal["last", "all"]
FEATURE_BYTES = 4 << 30  # of propagated features, at most
ROWS = 8192  # of the embedding that are put together at a time
COLUMNS = 256  # of the features that are propagated at a time


class Settings(Protocol):
    """The settings of a method that choose its readout."""

    @property
    def readout(self) -> Kind:
        """How the scales become the embedding."""

    @property
    def readout_weights(self) -> tuple[float, ...]:
        """For `all`, one a scale; none: all weigh 1."""

    @property
    def readout_features(self) -> float:
        """Weight of propagated features as one more block."""

    @property
    def readout_raw(self) -> float:
        """Weight of the features as they are as one more block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadoutConfig:
    """These settings, for methods whose encoder is a `GCN`; by default its output, as it is."""

    readout: Kind = "last"  # how the scales become the embedding
    readout_weights: tuple[float, ...] = ()  # for `all`, one a scale; none: all weigh 1
    readout_features: float = 0.0  # weight of propagated features as one more block
    readout_raw: float = 0.0  # weight of the features as they are as one more block


@dataclass(frozen=True, slots=True)
class SparseRows:
    """A sparse table whose rows are dense as they are asked for."""

    matrix: Csr

    def __len__(self) -> int:
        return self.matrix.rows

    def __getitem__(self, part: slice) -> Nodes:
        start, stop, _ = part.indices(len(self))
        some = self.matrix.part(start, stop)
        row = torch.arange(some.rows, device=some.col.device).repeat_interleave(some.rowptr.diff())
        table = some.value.new_zeros(some.rows, some.columns)
        return table.index_put_((row, some.col.long()), some.value, accumulate=True)


class Readout:
    """Scales of an encoder to one table.

    Args:
        kind: one of `Kind`.
        weights: one number a scale, for "all"; none at all means that every scale weighs 1.
        features: weight of the propagated features; 0 leaves them out.
        last: L, the number of the last scale.
        raw: weight of the features as they are; 0 leaves them out.
    """

    def __init__(
        self,
        kind: Kind,
        weights: tuple[float, ...],
        features: float,
        last: int,
        raw: float = 0.0,
    ) -> None:
        if kind not in get_args(Kind):
            raise UserError(f"readout must be one of {', '.join(get_args(Kind))}, got {kind!r}")
        if weights and kind == "last":
            raise UserError(f"readout_weights are for readout all, but readout is {kind}")
        if weights and len(weights) != last + 1:
            raise UserError(
                f"readout_weights needs one number for each of the {last + 1} scales, "
                f"got {list(weights)}"
            )
        if min(features, raw) < 0 or (weights and (min(weights) < 0 or max(weights) == 0)):
            raise UserError(
                "readout_weights, readout_features and readout_raw must not be negative, and one "
                f"scale must count, got {list(weights)}, {features} and {raw}"
            )
        self.last, self.features, self.raw = last, features, raw
        given = weights or [1.0] * (last + 1)
        self.weights = {last: 1.0} if kind == "last" else {k: w for k, w in enumerate(given) if w}
        self.alone = kind == "last" and not features and not raw

    @classmethod
    def of(cls, cfg: Settings, last: int) -> Self:
        """As a method's settings have it."""
        weights = cfg.readout_weights
        return cls(cfg.readout, weights, cfg.readout_features, last, cfg.readout_raw)

    @property
    def scales(self) -> set[int]:
        """The scales that are read."""
        return set(self.weights)

    def embed(self, encoder: GCN, view: View, graph: Graph) -> Scale:
        """The embedding of a graph, which `view` shows to the encoder without augmentations."""
        return self(encoder(view, self.scales), graph)

    def embed_blocks(self, encoder: GCN, view: View, graph: Graph) -> Iterator[Scale]:
        """What `embed` returns, a block of rows at a time."""
        if self.alone:
            return encoder.embed_blocks(view)
        return self.blocks(encoder(view, self.scales), graph)

    def __call__(self, scales: Mapping[int, Nodes], graph: Graph) -> Scale:
        """The embedding; `graph` is what the scales were made from."""
        if self.alone:
            return scales[self.last]
        return next(self.blocks(scales, graph, graph.num_nodes))

    def blocks(
        self, scales: Mapping[int, Nodes], graph: Graph, rows: int = ROWS
    ) -> Iterator[Scale]:
        """The embedding, so many rows at a time: the scales side by side need not all be there."""
        return self.directions([(scales, graph)], rows=rows)

    def directions(
        self,
        each: Sequence[tuple[Mapping[int, Nodes], Graph]],
        same: Collection[int] = (),
        rows: int = ROWS,
    ) -> Iterator[Scale]:
        r"""Blocks of the embedding of a graph with several directions, scale by scale.

        A scale of D directions has D blocks, each divided by $\sqrt D$: inner products are means.

        Args:
            each: scales, and the graph that they were made from, in each direction.
            same: scales that all directions share, which have one block.
            rows: how many rows at a time.
        """
        tables: list[tuple[float, Nodes | SparseRows]] = []
        for k, weight in self.weights.items():
            tables += _shared([scales[k] for scales, _ in each], weight, k in same)
        for weight, hops in ((self.features, self.last), (self.raw, 0)):
            if weight:
                graphs = [graph for _, graph in each[: 1 if hops == 0 else None]]
                found = [features_table(graph, hops) for graph in graphs]
                tables += _shared(found, weight)
        for start in range(0, len(tables[0][1]), rows):
            parts = [(weight, table[start : start + rows]) for weight, table in tables]
            if self.alone and len(parts) == 1:
                yield parts[0][1]
                continue
            yield torch.cat([w * (t if self.alone else unit_rows(t)) for w, t in parts], 1)


def _shared(
    tables: Sequence[Nodes | SparseRows], weight: float, same: bool = False
) -> list[tuple[float, Nodes | SparseRows]]:
    """One table of each direction with its share of the weight."""
    tables = tables[:1] if same else tables
    return [(weight / sqrt(len(tables)), table) for table in tables]


def features_table(graph: Graph, hops: int) -> Nodes | SparseRows:
    """`propagated_features`; sparse ones that are read as they are stay sparse."""
    if hops or isinstance(graph.features, Tensor):
        return propagated_features(graph, hops)
    return SparseRows(graph.features.matrix)


def propagated_features(graph: Graph, hops: int) -> Nodes:
    r"""$\hat A^k X$ as a dense table."""
    size = 4 * graph.num_nodes * graph.num_features
    if size > FEATURE_BYTES:
        raise UserError(
            f"features in the readout need a table of {graph.num_nodes:,} x {graph.num_features:,} "
            f"numbers, {size / 2**30:.1f} GiB; at most {FEATURE_BYTES >> 30} GiB are allowed"
        )
    if isinstance(graph.features, Tensor) and not hops:
        return graph.features
    propagation, f = graph.adjacency.propagation(), graph.num_features
    like = graph.features if isinstance(graph.features, Tensor) else graph.adjacency.weight
    found = like.new_empty(graph.num_nodes, f)
    for columns in torch.arange(f, device=graph.device).split(COLUMNS):  # memory for one table
        if isinstance(graph.features, Tensor):
            part = graph.features[:, columns]
        else:
            picked = torch.zeros(f, len(columns), device=graph.device)
            picked[columns, torch.arange(len(columns), device=graph.device)] = 1
            part = graph.features.matrix.multiply(picked)
        for _ in range(hops):
            part = propagation.matrix.multiply(part)
        found[:, columns] = part
    return found
