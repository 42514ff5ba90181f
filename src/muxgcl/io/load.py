"""Graphs from anywhere: files of several formats, a folder, or objects in memory → one `Loaded`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.io.array_folder import is_array_folder, read_array_folder
from muxgcl.io.assemble import Loaded, assemble
from muxgcl.io.encode import Encoding
from muxgcl.io.ids import positions
from muxgcl.io.nodes import NodeTable, only
from muxgcl.io.objects import is_edges
from muxgcl.io.ogb import is_ogb_folder, read_ogb_folder
from muxgcl.io.roles import EdgeColumns, NodeColumns
from muxgcl.io.safety import how_many
from muxgcl.io.sources import in_folder, read_graph, read_nodes, same_table, unused_tables
from muxgcl.tensors import is_pyg

__all__ = ["Encoding", "Loaded", "load"]

MASKS = ("train_mask", "val_mask", "test_mask")


def load(
    source: Any,
    *,
    features: Any = None,
    labels: Any = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    edge_type_column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    header: bool | None = None,
    directed: bool = False,
    include: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    structure: bool | None = None,
    scale: bool = True,
    encoding: Encoding | None = None,
) -> Loaded:
    """Load a graph.

    Nodes come in the order of the table of features (or of `nodes.*`), else in that of a graph that
    lists its nodes (NetworkX, GraphML, GEXF, GML, PyG, a matrix), else sorted by id. Integer ids
    and the same ids as text give the same graph.

    Args:
        source: an edge list (`.csv`, `.tsv`, `.parquet`, `.arrow`), a folder with `edges.*` and
            maybe `nodes.*`, a folder of arrays as `make_sbm` writes it, a folder of the Open Graph
            Benchmark (ogbn-arxiv, -products, -papers100M), a GNN-benchmark `.npz`, GraphML, GEXF,
            GML; or a PyG `Data`, a NetworkX graph, an adjacency matrix (scipy's, or a square
            array), a pandas frame of edges, an edge index [2, edges] or one edge a row [edges, 2],
            a list of (source, target) or (source, target, weight); or a pair of one of these and
            its features. Text may be packed by gzip (`.csv.gz`).
        features: a table joined by id (`.csv`, `.parquet`, a frame), or a matrix whose rows are the
            nodes 0, 1, ... (`.npy`, `.npz`, an array, a tensor, a scipy matrix).
        labels: the same for labels, an array with one for each node; may be the very file of
            features.
        source_column: where an edge begins; default: a usual name, else the first column.
        target_column: where it ends; default: a usual name, else the second column.
        weight_column: its weight; default: a column called `weight`, if there is one.
        edge_type_column: its type, for `mux-hop`; default: all edges are of one type.
        id_column: the ids in tables of nodes; default: one called `id` or `node`, else the first.
        label_column: the labels; default: a column called `label`, `class` or `y`, if there is one.
        header: whether text files begin with a line of names; default: looked for.
        directed: keep the directions of edges, for `mux-hop`; by default edges go both ways.
        include: the columns that may become features, by name or pattern (`"word_*"`); all others
            are left out.
        exclude: columns that do not become features.
        structure: True to add features made from the edges (degree and position) to the columns;
            without columns they are made anyway.
        scale: False to keep all numbers as they are.
        encoding: that of an earlier graph, so that the same columns become the same features.

    Example:
        >>> import torch
        >>> triangle = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> loaded = load((triangle, torch.eye(3)))
        >>> loaded.data
        Data(x=[3, 3], edge_index=[2, 6])
        >>> loaded.notes
        ['made undirected: 3 -> 6 entries', '3 columns of 0 and 1 kept as they are']
    """
    if isinstance(source, tuple | list) and not is_edges(source):
        if len(source) != 2 or features is not None:
            raise UserError(
                "expected a graph, a pair (graph, features) or a list of edges such as "
                f"[(0, 1), (1, 2)], got {how_many(len(source), 'part')}"
            )
        source, features = source
    if encoding is not None and not encoding.structure and structure:
        raise UserError("features made from edges were asked for, but the encoding has none")
    if label_column in _names(exclude) and labels is None:  # trained without it
        label_column = None
    apart = labels is not None and not same_table(features, labels)
    edge_columns = EdgeColumns(source_column, target_column, weight_column, edge_type_column)
    columns = NodeColumns(
        id_column,
        label_column,
        label_elsewhere=apart,
        include=_names(include),
        exclude=_names(exclude),
        texts=frozenset() if encoding is None else frozenset(encoding.categories),
    )
    folder = Path(source) if isinstance(source, str | Path) and Path(source).is_dir() else None
    own: NodeTable | None
    masks: dict[str, Tensor] = {}
    unused: list[str] = []
    if folder is not None and is_array_folder(folder):
        edges, own = read_array_folder(folder)
    elif folder is not None and is_ogb_folder(folder):
        edges, own, masks = read_ogb_folder(folder)
    else:
        if folder is not None:
            source, beside = in_folder(folder)
            features = beside if features is None else features
            unused = [] if features is not None else unused_tables(folder, labels)
        edge_columns = replace(edge_columns, may_be_empty=features is not None)
        edges, own = read_graph(source, edge_columns, columns, header)
    if edge_type_column is not None and edges.kind is None:
        raise UserError(
            f"{edges.name}: types of edges are a column of an edge list, or an attribute of the "
            "edges of a NetworkX graph, GraphML, GEXF or GML"
        )
    nodes = own if features is None else read_nodes(features, "the features", columns, header)
    nodes = nodes if nodes is None else only(nodes, columns)
    if not len(edges.source) and (nodes is None or not (nodes.numbers.shape[1] or nodes.text)):
        raise UserError("the graph has no edges, and no features of its nodes are given")
    if edges.header and nodes is not None and (positions([*edges.header], nodes.ids) >= 0).all():
        edges, _ = read_graph(source, edge_columns, columns, False)  # two nodes are no header
    named = None
    if apart:
        only_labels = NodeColumns(id_column, label_column, features=False)
        named = read_nodes(labels, "the labels", only_labels, header)
    elif (nodes is None or nodes.labels is None) and (label_column or labels is not None):
        raise UserError(
            "labels were asked for, but no table of nodes has a column of labels "
            "(--label-column names it)"
        )
    loaded = assemble(
        edges,
        nodes,
        named,
        encoding=encoding,
        scale=scale,
        directed=directed,
        structure=bool(structure),
    )
    loaded.notes.extend(unused)
    if is_pyg(source):
        masks = {mask: source[mask] for mask in MASKS if mask in source}
    if own is not None and np.array_equal(loaded.ids, own.ids):
        loaded.tensors.update(masks)
    return loaded


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())
