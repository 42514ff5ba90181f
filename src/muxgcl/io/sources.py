"""Which reader takes which source: files by their suffix, objects by their type."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array, issparse

from muxgcl.errors import UserError
from muxgcl.io import arrow_file, delimited, networks, parquet
from muxgcl.io.edges import EdgeList, edge_list
from muxgcl.io.frames import is_adjacency, is_frame, is_series, labels_frame, read_frame
from muxgcl.io.graph_npz import read_graph_npz
from muxgcl.io.ids import as_text, ids_of
from muxgcl.io.matrices import nodes_in_order, read_matrix_file
from muxgcl.io.nodes import NodeTable, no_numbers, node_table
from muxgcl.io.objects import is_edges, read_adjacency, read_array, read_data, read_edges
from muxgcl.io.registry import DATASETS
from muxgcl.io.roles import EdgeColumns, NodeColumns
from muxgcl.io.safety import check_file, listed, parsing
from muxgcl.io.text_files import SUFFIXES, without_gz
from muxgcl.tensors import is_pyg

COLUMNAR = {
    **dict.fromkeys(parquet.SUFFIXES, parquet.read_parquet),
    **dict.fromkeys(arrow_file.SUFFIXES, arrow_file.read_arrow),
}
TABLES = (*SUFFIXES, *COLUMNAR)
_AS_SERIES = "pandas.Series(d) or pandas.DataFrame.from_dict(d, orient='index') makes a table of it"
NODES = (*TABLES, ".npy", ".npz")
Read = tuple[EdgeList, NodeTable | None]  # edges, and nodes where the source brings them


def read_graph(source: Any, edges: EdgeColumns, nodes: NodeColumns, header: bool | None) -> Read:
    """A graph from a file, or from an object in memory."""
    if isinstance(source, str | Path):
        return _graph_file(Path(source), edges, nodes, header)
    if is_pyg(source):
        return read_data(source)
    if networks.is_network(source):
        return networks.read_network(source, edges, nodes)
    if isinstance(source, dict) and "nodes" in source:
        return networks.read_node_link(source, edges, nodes)
    if is_frame(source):
        if is_adjacency(source):
            return _adjacency_frame(source)
        return edge_list(read_frame(source, edges, "the frame of edges"), edges), None
    if issparse(source):
        return read_adjacency(source)
    if isinstance(source, torch.Tensor | np.ndarray):
        return read_array(source)
    if is_edges(source):
        return read_edges(source), None
    raise UserError(
        f"cannot load a graph from {type(source).__name__}; expected a path, PyG Data, a NetworkX "
        "graph, an adjacency matrix, a pandas frame, an edge index or a list of tuples"
    )


def _adjacency_frame(frame: Any) -> tuple[EdgeList, NodeTable]:
    """A matrix whose rows and columns have the names of nodes."""
    edges, nodes = read_adjacency(coo_array(frame.to_numpy()), "the adjacency matrix")
    ids = ids_of(frame.index.tolist())
    names = np.array(as_text(ids), dtype=object)
    source, target = (ids_of(names[np.asarray(end)]) for end in (edges.source, edges.target))
    return replace(edges, source=source, target=target), replace(nodes, ids=ids, numbered=False)


def _kind(path: Path) -> str:
    """The ending that says how a file is read."""
    return without_gz(path).suffix.lower()


def _graph_file(path: Path, edges: EdgeColumns, nodes: NodeColumns, header: bool | None) -> Read:
    if str(path) in DATASETS and not path.exists():
        hint = f"load_dataset({str(path)!r}) loads the dataset"
        raise UserError(f"{path}: no such file or folder; {hint}")
    check_file(path)
    kind = _kind(path)
    if kind not in GRAPHS:
        known = ", ".join(GRAPHS)
        raise UserError(f"{path}: expected a graph as {known} or a folder, got {kind!r}")
    return GRAPHS[kind](path, edges, nodes, header)


def _text(path: Path, edges: EdgeColumns, _: NodeColumns, header: bool | None) -> Read:
    return edge_list(delimited.read_delimited(path, edges, header=header), edges), None


def _columnar(path: Path, edges: EdgeColumns, *_: object) -> Read:
    return edge_list(COLUMNAR[path.suffix.lower()](path, edges), edges), None


def _npz(path: Path, *_: object) -> Read:
    return read_graph_npz(path)


def _network(path: Path, edges: EdgeColumns, nodes: NodeColumns, *_: object) -> Read:
    read = {".json": networks.read_json, ".gml": networks.read_gml}
    return read.get(path.suffix.lower(), networks.read_xml)(path, edges, nodes)


# who reads a graph from a file of which suffix
GRAPHS: dict[str, Callable[[Path, EdgeColumns, NodeColumns, bool | None], Read]] = {
    **dict.fromkeys(SUFFIXES, _text),
    **dict.fromkeys(COLUMNAR, _columnar),
    ".npz": _npz,
    **dict.fromkeys(networks.SUFFIXES, _network),
}


def read_nodes(source: Any, name: str, columns: NodeColumns, header: bool | None) -> NodeTable:
    """A table of features or of labels."""
    if not isinstance(source, str | Path):
        return _node_object(source, name, columns)
    path = check_file(Path(source))
    kind = _kind(path)
    if kind in (".npy", ".npz"):
        return read_matrix_file(path, columns)
    if kind in COLUMNAR:
        table = COLUMNAR[kind](path, columns)
    elif kind in SUFFIXES:
        table = delimited.read_delimited(path, columns, header=header)
    else:
        raise UserError(f"{path}: expected a table as {', '.join(NODES)}, got {kind!r}")
    return node_table(table, columns)


def _node_object(source: Any, name: str, columns: NodeColumns) -> NodeTable:
    if is_frame(source):
        return node_table(read_frame(source, columns, name), columns)
    if is_series(source) and (frame := labels_frame(source)) is not None:
        return _node_object(frame, name, replace(columns, id="id", label="label"))
    if isinstance(source, dict):
        raise UserError(f"{name}: expected a path, a table or an array, got a dict; {_AS_SERIES}")
    if not columns.features:
        return nodes_in_order(name, no_numbers(len(source)), labels=source)
    if issparse(source) or isinstance(source, torch.Tensor | np.ndarray):
        return nodes_in_order(name, source)
    raise UserError(
        f"cannot read features from {type(source).__name__}; expected a path, a pandas frame, an "
        "array, a tensor or a scipy matrix"
    )


def same_table(features: Any, labels: Any) -> bool:
    """Whether labels are in the very table of features."""
    if isinstance(features, str | Path) and isinstance(labels, str | Path):
        return Path(features).resolve() == Path(labels).resolve()
    return features is labels


def in_folder(folder: Path) -> tuple[Path, Path | None]:
    """The one `edges.*` in a folder, and its `nodes.*` if it has one."""
    found = {}
    for stem, kinds in (("edges", TABLES), ("nodes", NODES)):
        with parsing(folder, "a folder"):
            files = sorted(
                path
                for path in folder.iterdir()
                if without_gz(path).stem == stem and _kind(path) in kinds
            )
        if len(files) > 1:
            raise UserError(f"{folder} holds {listed([file.name for file in files])}; keep one")
        found[stem] = files[0] if files else None
    if found["edges"] is None:
        names = ", ".join(f"edges{kind}" for kind in TABLES)
        raise UserError(f"{folder} holds no edges: expected a file {names}")
    return found["edges"], found["nodes"]


def unused_tables(folder: Path, labels: Any) -> list[str]:
    """A line for every table beside the edges in a folder that no name says is one of nodes."""
    kinds = (".csv", ".tsv", ".npy", ".npz", *COLUMNAR)
    return [
        f"{path.name} is not used (a table of nodes is called nodes.*; --features names another)"
        for path in sorted(folder.iterdir())
        if _kind(path) in kinds
        and without_gz(path).stem != "edges"
        and not same_table(path, labels)
    ]
