"""The nodes as the page's map needs them: places, colours, vectors and edges in few bytes."""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from muxgcl.evaluate.arrays import Edges, Index, Labels, Rows, single_unit_rows
from muxgcl.report.clusters import Narrow, clustered, narrowed
from muxgcl.report.palette import CATEGORIES, RAMP
from muxgcl.report.project import Map, maps
from muxgcl.report.record import Column, RunRecord

MOST_NODES = 30_000  # that a browser moves smoothly; of a larger graph a sample is shown
MOST_EDGES = 500_000
COLUMN_BYTES = 4_000_000  # room for the columns to colour by
VECTOR_WIDTH = 128  # numbers of a node that the page compares; one byte each
CLUSTERS = 8  # where there are no classes to go by
NONE = 0xFFFF  # the code of a value that is missing


@dataclass(frozen=True, slots=True)
class Shown:
    """The nodes on the map, by their place in the graph, with what is worked out for them.

    `rows` has their embeddings at length one; wide ones are narrower there, see `narrowed`.
    """

    index: Index
    rows: Narrow
    maps: list[Map]
    clusters: Labels


@lru_cache(maxsize=2)  # the page and the static figures of one run share the maps
def shown(record: RunRecord, most: int = MOST_NODES) -> Shown:
    """Lay the run's nodes out and cluster them; a sample where they are more than `most`."""
    assert record.embedding is not None
    n = len(record.embedding)
    index = np.sort(np.random.default_rng(0).permutation(n)[:most])
    whole = record.embedding[index]
    rows = narrowed(single_unit_rows(whole), VECTOR_WIDTH)
    return Shown(index, rows, maps(whole), clustered(whole, rows, cluster_count(record)))


def cluster_count(record: RunRecord) -> int:
    """As many as classes, where there are classes."""
    known = set() if record.labels is None else set(np.unique(record.labels).tolist()) - {-1}
    return len(known) or CLUSTERS


def groups(record: RunRecord, nodes: Shown) -> tuple[Labels, list[str]]:
    """What to colour by unless told otherwise: the label, -1 for none, or else the cluster."""
    if record.labels is None:
        return nodes.clusters, [f"cluster {k + 1}" for k in range(int(nodes.clusters.max()) + 1)]
    return record.labels[nodes.index], record.named_classes


def payload(record: RunRecord) -> dict[str, Any]:
    """What the page's script reads, as JSON; arrays are base64 of little-endian numbers."""
    nodes = shown(record)
    assert record.embedding is not None
    columns, left_out = _within_budget(_columns(record, nodes))
    return {
        "ids": node_names(record, nodes),
        "total": len(record.embedding),
        "maps": [packed_map(found) for found in nodes.maps],
        "columns": columns,
        "leftOut": left_out,
        "vectors": _vectors(record.embedding[nodes.index], nodes.rows),
        "edges": None if record.edge_index is None else _edges(record.edge_index, nodes.index),
        "palette": CATEGORIES,
        "ramp": RAMP,
    }


def packed_map(found: Map) -> dict[str, str]:
    """A map for the page's script, two bytes a coordinate."""
    places = _pack(np.round(found.places * 65_535), "<u2")
    return {"name": found.name, "note": found.note, "places": places}


def node_names(record: RunRecord, nodes: Shown) -> list[str]:
    """The id of each shown node, or its number where it has none."""
    ids = nodes.index if record.ids is None else np.asarray(record.ids)[nodes.index]
    return [str(name) for name in ids.tolist()]


# columns ---------------------------------------------------------------------------------------


def _columns(record: RunRecord, nodes: Shown) -> Iterator[dict[str, Any]]:
    """Label, cluster and degree first, then the run's own columns."""
    if record.labels is not None:
        yield categories("label", *groups(record, nodes))
    count = int(nodes.clusters.max()) + 1
    names = [f"cluster {k + 1}" for k in range(count)]
    yield categories(f"k-means cluster (k = {count})", nodes.clusters, names)
    if record.edge_index is not None:
        degree = np.bincount(record.edge_index[0], minlength=int(nodes.index.max()) + 1)
        yield _numbers("degree", degree[nodes.index])
    for name, values in record.columns.items():
        values = np.asarray(values)[nodes.index]
        few = values.dtype.kind in "iu" and len(np.unique(values)) <= len(CATEGORIES)
        if values.dtype.kind in "iuf" and not few:
            yield _numbers(name, values)
        else:
            yield categories(name, *_codes(values.tolist()))


def _codes(values: list[Any]) -> tuple[Labels, list[str]]:
    """Each value's place among the distinct ones, numbers by size, then text; -1 where missing."""
    present = {v for v in values if v is not None and v != "" and v == v}  # NaN is not itself
    kinds = sorted(present, key=lambda v: (0, v, "") if isinstance(v, int | float) else (1, 0, v))
    place = {kind: k for k, kind in enumerate(kinds)}
    return np.array([place.get(value, -1) for value in values]), [str(kind) for kind in kinds]


def categories(name: str, codes: Labels, names: list[str]) -> dict[str, Any]:
    """A column of kinds. Where colours do not go round, the commonest kinds get them."""
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    order = np.arange(len(names))
    if len(names) > len(CATEGORIES):
        order = np.argsort(-counts, kind="stable")
    rank = np.full(len(names) + 1, NONE)  # the last: what -1 becomes
    rank[order] = np.arange(len(names))
    return {
        "name": name,
        "names": [names[k][:120] for k in order],
        "counts": counts[order].tolist(),
        "codes": _pack(rank[codes], "<u2"),
    }


def _numbers(name: str, values: Column) -> dict[str, Any]:
    """Numbers, and the range that the colours cover: extremes would leave all others alike."""
    values = values.astype(np.float32)
    known = values[np.isfinite(values)]
    low, high = np.percentile(known, [2, 98]) if known.size else (0.0, 1.0)
    return {"name": name, "values": _pack(values, "<f4"), "low": float(low), "high": float(high)}


def _within_budget(columns: Iterator[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The columns that fit, and the names of those that do not."""
    kept: list[dict[str, Any]] = []
    left_out: list[str] = []
    room = COLUMN_BYTES
    for column in columns:
        size = sum(map(len, map(str, column.values())))
        if size <= room:
            room -= size
            kept.append(column)
        else:
            left_out.append(column["name"])
    return kept, left_out


# vectors and edges -----------------------------------------------------------------------------


def _vectors(embedding: Rows, rows: Narrow) -> dict[str, Any]:
    """The narrow rows, one byte a number: their products are nearly the embedding's cosines.

    `error` is the largest, over the products of a few nodes with all.
    """
    unit = single_unit_rows(embedding)
    step = max(float(np.abs(rows).max()), 1e-12) / 127
    small = np.round(rows / step)
    few = np.random.default_rng(0).permutation(len(rows))[:50]
    error = float(np.abs(step**2 * small[few] @ small.T - unit[few] @ unit.T).max())
    return {"rows": _pack(small, "<i1"), "width": rows.shape[1], "step": step, "error": error}


def _edges(edge_index: Edges, index: Index) -> str | None:
    """Each edge between two shown nodes once, or None where they are too many to send."""
    place = np.full(int(max(edge_index.max(initial=0), index.max())) + 1, -1)
    place[index] = np.arange(len(index))
    low, high = np.sort(place[edge_index], axis=0)
    inside = (low >= 0) & (low < high)
    one_each = np.unique(low[inside] * len(index) + high[inside])
    ends = np.stack(np.divmod(one_each, len(index)), 1)
    return _pack(ends, "<u2") if len(ends) <= MOST_EDGES else None


def _pack(values: Any, kind: str) -> str:
    return b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()
