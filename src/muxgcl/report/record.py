"""Everything a report shows about one run, as plain data: numbers, names and arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from muxgcl.errors import UserError
from muxgcl.evaluate.arrays import Edges, Labels, Rows
from muxgcl.shapes import Array

Column = Array  # one value a node: numbers or text
Histogram = Mapping[str, Any]  # counts between `edges`: one more edge than counts


@dataclass(frozen=True, kw_only=True, eq=False)  # eq=False: a record is itself, arrays and all
class RunRecord:
    """One run. What is left out is left out of the report, with the reason stated there.

    Attributes:
        title: heading of the page.
        dataset: name of the graph.
        method: name of the method.
        folder: name of the run folder.
        fingerprint: of the graph: its hash.
        settings: names and values, or tables of them.
        versions: package and version.
        data_summary: counts of nodes, edges, features and classes.
        data_notes: what was done to the data, one sentence each.
        command: what to type to have this run again.
        metrics: one mapping an epoch, with `epoch`, `loss`, `terms` and `ms`.
        ids: name of each node.
        embedding: one row a node.
        labels: class of each node, -1 where it is not known.
        label_names: name of each class.
        columns: further values of each node, to colour the map by.
        edge_index: the graph's edges, to mark neighbours and count degrees.
        scores: by protocol, then by measure, `mean`, `std` and `n`; `controls` holds the same
            for what needs no training.
        similarities: for a pair of scales such as `u2-v0`, counts `positive` and `negative`
            between bin `edges`, and the `auc` that tells them apart.
        affinity_weights: for each scale, `counts` between bin `edges`.
        confusion: nodes of each class (row) that were taken for each class (column).
        seconds: time of training.
        epoch_ms: time of a typical epoch.
        peak_mib: peak memory of training.
    """

    title: str
    dataset: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    data_summary: Mapping[str, int] = field(default_factory=dict)
    data_notes: Sequence[str] = ()
    folder: str = ""
    fingerprint: str = ""
    command: str | None = None
    metrics: Sequence[Mapping[str, Any]] = ()
    ids: Column | None = None
    embedding: Rows | None = None
    labels: Labels | None = None
    label_names: Sequence[str] = ()
    columns: Mapping[str, Column] = field(default_factory=dict)
    edge_index: Edges | None = None
    scores: Mapping[str, Any] = field(default_factory=dict)
    similarities: Mapping[str, Histogram] = field(default_factory=dict)
    affinity_weights: Mapping[str, Histogram] = field(default_factory=dict)
    confusion: Sequence[Sequence[int]] = ()
    seconds: float | None = None
    epoch_ms: float | None = None
    peak_mib: float | None = None

    def __post_init__(self) -> None:
        if self.embedding is None:
            return
        shape = np.shape(self.embedding)
        if len(shape) != 2 or not shape[0] or not shape[1]:
            raise UserError(f"the embedding must be a table [nodes, width], got shape {shape}")
        if not np.isfinite(self.embedding).all():
            raise UserError("the embedding must be finite, got NaN or infinity")
        columns = {"ids": self.ids, "labels": self.labels, **self.columns}
        for name, values in columns.items():
            if values is not None and len(values) != shape[0]:
                raise UserError(f"expected {shape[0]} {name}, one a node, got {len(values)}")
        edges = self.edge_index
        if edges is not None and (edges.ndim != 2 or edges.shape[0] != 2):
            raise UserError(f"expected edge_index of shape [2, edges], got {edges.shape}")
        if edges is not None and edges.size and not 0 <= edges.min() <= edges.max() < shape[0]:
            raise UserError(f"expected edges between nodes 0 and {shape[0] - 1}, got one outside")

    @property
    def named_classes(self) -> list[str]:
        """A name for each class: the given one, or its number."""
        known = 0 if self.labels is None else int(np.max(self.labels, initial=-1)) + 1
        count = max(known, len(self.confusion), len(self.label_names))
        given = [str(name) for name in self.label_names]
        return given + [f"class {k}" for k in range(len(given), count)]
