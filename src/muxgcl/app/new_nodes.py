"""New nodes of a run's graph: only they and their links are read, nothing is trained again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from muxgcl.app.options import LoadOptions
from muxgcl.errors import UserError
from muxgcl.io.edge_types import edge_kinds
from muxgcl.io.edges import EdgeList, Weights, place_among, undirected
from muxgcl.io.encode import AS_IS, Encoding, encode
from muxgcl.io.frames import is_frame
from muxgcl.io.ids import Ids, as_array, as_text, from_array, join, positions
from muxgcl.io.load import Loaded
from muxgcl.io.nodes import NodeTable
from muxgcl.io.roles import EdgeColumns, NodeColumns
from muxgcl.io.safety import how_many, quoted
from muxgcl.io.sources import read_graph, read_nodes
from muxgcl.io.structure import NAMES, with_structure
from muxgcl.runs.held_out import made_from_edges, without_structure
from muxgcl.shapes import Array
from muxgcl.tensors import Tensors


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A graph with its new nodes behind the old ones."""

    tensors: Tensors
    ids: Array  # of the new nodes
    notes: list[str]


def grown(loaded: Loaded, new_nodes: Any, new_edges: Any, options: LoadOptions) -> Grown:
    """Add nodes, and edges that have one of them at an end.

    Args:
        loaded: the graph of the run.
        new_nodes: a table with an id and the columns that the graph's nodes have.
        new_edges: an edge list; a node without an edge is fine.
        options: names of columns.
    """
    if options.features is not None:
        raise UserError("the features of new nodes are columns of the table of new nodes")
    exclude = options.exclude or ()
    columns = NodeColumns(
        options.id_column,
        options.label_column,
        exclude=(exclude,) if isinstance(exclude, str) else tuple(exclude),
        texts=frozenset(loaded.encoding.categories),
    )
    table = read_nodes(new_nodes, "the table of new nodes", columns, options.header)
    old = from_array(loaded.ids)
    table = replace(table, ids=_new_ids(table, old))
    ids = join([old, table.ids])
    edges: EdgeList | None = None
    notes = [*table.notes]
    if new_edges is not None:
        ends = EdgeColumns(
            options.source_column,
            options.target_column,
            options.weight_column,
            options.edge_type_column if "edge_types" in loaded.tensors else None,
        )
        edges, _ = read_graph(new_edges, ends, NodeColumns(), options.header)
        notes += edges.notes
    found = _joined(loaded, edges, ids)
    edge_index = found.edge_index.numpy()
    if made_from_edges(loaded):
        found.x = with_structure(None, edge_index, ids)
    else:
        rows, gaps = _features(loaded, table)
        notes += gaps
        if loaded.encoding.structure:
            found.x = with_structure(_below(without_structure(loaded), rows), edge_index, ids)
        else:
            found.x = _below(loaded.tensors.x, rows)
    degree = np.bincount(edge_index[0], minlength=len(ids))[len(old) :]
    if alone := int((degree == 0).sum()):
        notes.append(f"{how_many(alone, 'new node has', 'new nodes have')} no edges")
    return Grown(found, as_array(table.ids), notes)


def _new_ids(table: NodeTable, old: Ids) -> Ids:
    """The ids of new nodes, none of which the graph has; rows of a matrix are counted on."""
    if table.numbered:
        if isinstance(old, list):
            raise UserError(f"{table.name} has no ids: expected a table with a column of them")
        return np.arange(len(table.ids)) + (int(old.max()) + 1 if len(old) else 0)
    if len(known := np.flatnonzero(positions(table.ids, old) >= 0)):
        row = int(known[0])
        raise UserError(
            f"{table.name}, {table.place(row)}: node {quoted(as_text(table.ids)[row])} is in the "
            "graph of the run already"
        )
    return table.ids


def columns_of_run(tables: Mapping[str, Any], options: LoadOptions, new_edges: Any) -> LoadOptions:
    """Columns of new tables are called as those of the run, where no others are named."""
    before = tables.get("source", {})
    names = ["id_column"]
    if isinstance(new_edges, str | Path) or is_frame(new_edges):
        names += ["source_column", "target_column", "weight_column", "edge_type_column"]
    return replace(options, **{name: getattr(options, name) or before.get(name) for name in names})


def _joined(loaded: Loaded, edges: EdgeList | None, ids: Ids) -> Tensors:
    """All edges by the same rules as those of a graph that is loaded whole."""
    data, before = loaded.tensors, len(loaded.ids)
    listed = _listed(data)
    if edges is not None:
        ends = place_among(edges, ids, "the graph of the run, nor among the new nodes")
        if len(inside := np.flatnonzero((ends[0] < before) & (ends[1] < before))):
            row = int(inside[0])
            raise UserError(
                f"{edges.name}, {edges.place(row)}: expected a link of a new node, got one between "
                "two nodes of the graph"
            )
        parts = (listed, replace(edges, source=ends[0], target=ends[1]))
        weight = kind = None
        if any(part.weight is not None for part in parts):
            weight = np.concatenate([_weight(part) for part in parts])
        if listed.kind is not None:
            if edges.kind is None:
                raise UserError(
                    f"{edges.name}: the run's edges have types: name the column of types "
                    "(--edge-type)"
                )
            kind = join([listed.kind, edges.kind])
        listed = replace(
            listed,
            source=join([part.source for part in parts]),
            target=join([part.target for part in parts]),
            weight=weight,
            kind=kind,
        )
    places = np.asarray(listed.source), np.asarray(listed.target)
    edge_index, weight, _ = undirected(*places, listed.weight, len(ids))
    found = Tensors(edge_index=torch.from_numpy(edge_index))
    if "edge_parts" in data:
        directed = bool(data["directed"])
        kinds = edge_kinds(listed, places, edge_index, len(ids), directed=directed)
        assert kinds is not None  # there were some before
        weight = kinds.weight
        found.update({"edge_parts": torch.from_numpy(kinds.parts), "directed": directed})
        found.update({"edge_types": kinds.names} if kinds.names else {})
    if weight is not None:
        found.edge_weight = torch.from_numpy(weight)
    return found


def _listed(data: Tensors) -> EdgeList:
    """The edges of a graph by the places of their ends, with their directions and types."""
    target, source = data.edge_index.numpy()
    weight = data.edge_weight.numpy() if "edge_weight" in data else None
    name, kind = "the graph of the run", None
    if "edge_parts" in data:  # of each entry what the target receives, by type
        shares = data["edge_parts"].numpy()
        row, entry = np.nonzero(shares)
        given = shares[row, entry]
        weight = given if weight is None else given * weight[entry]
        target, source = target[entry], source[entry]
        if "edge_types" in data:
            kind = [data["edge_types"][number] for number in row]
    return EdgeList(name=name, source=source, target=target, weight=weight, kind=kind)


def _weight(edges: EdgeList) -> Weights:
    return np.ones(len(edges.source), np.float32) if edges.weight is None else edges.weight


def _features(loaded: Loaded, table: NodeTable) -> tuple[Tensor, list[str]]:
    """Columns as the graph's own became features; columns without a name go by their place."""
    encoding = loaded.encoding
    made = len(NAMES) if encoding.structure else 0
    places = [str(place) for place in range(loaded.tensors.x.shape[1] - made)]
    if not (encoding.numbers or encoding.categories):  # a benchmark graph
        encoding = Encoding(dict.fromkeys(places, AS_IS))
    if [*encoding.numbers] == places and not table.text:
        if len(table.number_names) != len(places):
            raise UserError(
                f"{table.name}: expected {len(places):,} columns of features, "
                f"got {len(table.number_names):,}"
            )
        table = replace(table, number_names=places)
    return encode(table, encoding)


def _below(old: Tensor, new: Tensor) -> Tensor:
    """New rows below old ones, stored as these are."""
    if old.layout == torch.strided:
        return torch.cat([old, new.to_dense() if new.layout != torch.strided else new])
    return torch.cat([old, new if new.layout == old.layout else new.to_sparse()]).coalesce()
