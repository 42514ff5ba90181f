"""NetworkX graphs, and formats that it reads: GraphML, GEXF, GML, and JSON of nodes and links."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from muxgcl.errors import UserError
from muxgcl.io.cells import read_texts
from muxgcl.io.edges import EdgeList, Weights
from muxgcl.io.ids import Ids, ids_of
from muxgcl.io.nodes import NodeTable
from muxgcl.io.roles import LABELS, EdgeColumns, NodeColumns, find
from muxgcl.io.safety import XML_GROWTH, check_file, parsing, quoted
from muxgcl.io.table import Block, Dense, Place, counted, is_number, settle, stripped

SUFFIXES = (".graphml", ".gexf", ".gml", ".json")
LONGEST_TEXT = 100_000  # characters of an attribute
_DRAWING = ("viz", "start", "end", "pid")  # what GEXF says about drawing and time
Network = tuple[EdgeList, NodeTable]


def is_network(source: object) -> bool:
    """Whether this is a NetworkX graph, without importing NetworkX."""
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(source, networkx.Graph)


def read_xml(path: Path, edges: EdgeColumns, nodes: NodeColumns) -> Network:
    """Read GraphML or GEXF. In GEXF, `label` is what to call a node, not its class."""
    check_file(path, XML_GROWTH)
    _check_xml(path)
    import networkx

    gexf = path.suffix.lower() == ".gexf"
    with parsing(path, "GEXF" if gexf else "GraphML"):
        graph = networkx.read_gexf(path) if gexf else networkx.read_graphml(path)
    shown = ("label",) if gexf and nodes.label != "label" else ()
    ignored = _DRAWING if gexf else ()
    return read_network(graph, edges, nodes, name=str(path), shown=shown, ignored=ignored)


def read_gml(path: Path, edges: EdgeColumns, nodes: NodeColumns) -> Network:
    """Read GML. Nodes are called by their `label`, or by their `id` where one lacks a label."""
    check_file(path, XML_GROWTH)
    import networkx

    with parsing(path, "GML"):
        graph = networkx.read_gml(path, label="id")
        names = [attributes.pop("label", None) for _, attributes in graph.nodes(data=True)]
        if None not in names:
            if len(set(names)) < len(names):
                raise UserError(f"{path}: two nodes have the same label")
            graph = networkx.relabel_nodes(graph, dict(zip(graph, names, strict=True)))
    return read_network(graph, edges, nodes, name=str(path), ignored=("graphics",))


def read_json(path: Path, edges: EdgeColumns, nodes: NodeColumns) -> Network:
    """Read a graph as NetworkX (`node_link_data`) and d3 write it."""
    check_file(path, XML_GROWTH)
    with parsing(path, "JSON"):
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    return read_node_link(content, edges, nodes, name=str(path))


def read_node_link(
    content: Any, edges: EdgeColumns, nodes: NodeColumns, name: str = "the dict"
) -> Network:
    """A dict of `nodes`, each with its `id`, and `links` (or `edges`) from `source` to `target`."""
    import networkx

    found = content if isinstance(content, Mapping) else {}
    listed = found.get("nodes")
    links = found["links"] if "links" in found else found.get("edges")
    if not isinstance(listed, list) or not isinstance(links, list):
        raise UserError(
            f'{name} holds no graph: expected {{"nodes": [{{"id": ...}}, ...], '
            '"links": [{"source": ..., "target": ...}, ...]}'
        )
    graph = networkx.MultiDiGraph() if found.get("directed", True) else networkx.MultiGraph()
    for place, node in enumerate(listed):
        own = dict(_with(node, ("id",), f"{name}, node {place}"))
        graph.add_nodes_from([(own.pop("id"), own)])
    for place, link in enumerate(links):
        own = dict(_with(link, ("source", "target"), f"{name}, link {place}"))
        ends = own.pop("source"), own.pop("target")
        for end in ends:
            if end not in graph:
                raise UserError(
                    f"{name}, link {place}: an edge names node {quoted(str(end))}, which is not "
                    "among the nodes"
                )
        graph.add_edges_from([(*ends, own)])
    return read_network(graph, edges, nodes, name=name)


def _with(record: Any, names: Sequence[str], name: str) -> Mapping[str, Any]:
    """A record that has these fields, each a text or a number."""
    for wanted in names:
        value = record.get(wanted) if isinstance(record, Mapping) else None
        if not isinstance(value, str | int | float):
            raise UserError(f"{name}: expected a field {quoted(wanted)} with a text or a number")
    found: Mapping[str, Any] = record
    return found


def _check_xml(path: Path) -> None:
    """Refuse a DTD, whose entities may unfold to any size, and single texts of absurd length.

    The file is handed over at once: in pieces, an attribute of some megabytes is read from its
    start again for each piece.
    """

    def refuse(*_: object) -> None:
        raise UserError(f"{path} declares a document type (DTD); expected plain XML")

    def start(_: str, attributes: dict[str, str]) -> None:
        for name, value in attributes.items():
            if max(len(name), len(value)) > LONGEST_TEXT:
                raise UserError(
                    f"{path}: an attribute of {len(value):,} characters; "
                    f"at most {LONGEST_TEXT:,} are read"
                )

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    with parsing(path, "XML"):
        parser.Parse(path.read_bytes(), True)


def read_network(
    graph: Any,
    edges: EdgeColumns,
    nodes: NodeColumns,
    *,
    name: str = "the graph",
    shown: Sequence[str] = (),
    ignored: Sequence[str] = (),
) -> Network:
    """Edges with their weights, and nodes with their attributes, in the graph's order."""
    if edges.source is not None or edges.target is not None:
        raise UserError(f"{name}: a source or target column is for edge lists only")
    if not len(graph):
        raise UserError(f"{name} has no nodes")
    ids = ids_of(list(graph))
    known: dict[Any, str] = dict(zip(graph, map(str, ids), strict=True))
    entries = list(graph.edges(data=edges.weight or "weight"))
    if edges.weight is not None and entries and all(weight is None for *_, weight in entries):
        raise UserError(f"{name}: no edge has an attribute {quoted(edges.weight)}")
    listing = EdgeList(
        name=name,
        source=ids_of([known[source] for source, *_ in entries]),
        target=ids_of([known[target] for _, target, _ in entries]),
        weight=_weights([weight for *_, weight in entries], name),
        kind=_kinds(graph, edges, name),
        mirrored=not graph.is_directed(),
    )
    return listing, _nodes(graph, ids, nodes, name, shown, ignored)


def _kinds(graph: Any, edges: EdgeColumns, name: str) -> Ids | None:
    """The attribute that is the type of an edge; every edge must have it."""
    if edges.kind is None:
        return None
    given = [kind for *_, kind in graph.edges(data=edges.kind)]
    if None in given:
        raise UserError(f"{name}: not every edge has an attribute {quoted(edges.kind)}")
    return ids_of(given)


def _weights(given: list[Any], name: str) -> Weights | None:
    """An edge without a weight counts 1, as NetworkX has it."""
    if all(weight is None for weight in given):
        return None
    place = counted("edge")
    cells = ["1" if weight is None else str(weight) for weight in given]
    weights = settle(cells, "weight", name, place)
    if isinstance(weights, list):
        row = next(row for row, cell in enumerate(cells) if not is_number(cell))
        raise UserError(
            f"{name}, {place(row)}: the weight of an edge must be a number of at least 0, "
            f"got {quoted(cells[row])}"
        )
    return weights


def _nodes(
    graph: Any,
    ids: Ids,
    columns: NodeColumns,
    name: str,
    shown: Sequence[str],
    ignored: Sequence[str],
) -> NodeTable:
    def place(row: int) -> str:
        return f"node {quoted(str(ids[row]))}"

    records = [attributes for _, attributes in graph.nodes(data=True)]
    keys = [key for key in merged_order(map(list, records)) if key not in ignored]
    cells = {str(key): [record.get(key) for record in records] for key in keys}
    label = columns.label if columns.label is None else find(columns.label, name, list(cells))
    if label is None:
        unlike = (*shown, *columns.exclude)
        label = next((key for key in cells if key.lower() in LABELS and key not in unlike), None)
    values: dict[str, Dense | list[str]] = {}
    for key in columns.wanted(name, [key for key in cells if key != label and key not in shown]):
        values |= (
            {key: stripped(_texts(cells[key]))}
            if key in columns.texts
            else _column(cells[key], key, name, place)
        )
    block = Block.of(len(records), {}, values)
    rows, read = read_texts(block, list(values), name, place, columns.texts)
    return NodeTable(
        name=name,
        ids=ids,
        numbers=rows.numbers,
        number_names=rows.number_names,
        text=rows.text,
        shown={key: _texts(cells[key]) for key in shown if key in cells},
        labels=None if label is None else ids_of(cells[label]),
        label_name=label,
        place=place,
        notes=(
            *(() if label is None else (f"{quoted(label)} is the label, not a feature",)),
            *read,
        ),
    )


def merged_order(records: Iterable[list[Any]]) -> list[Any]:
    """Every attribute once, in an order that agrees with that of each node where they agree.

    A node that lacks an attribute has no say about it: what another node has before `b` comes
    before `b`, even if the first node begins with `b`.
    """
    merged: list[Any] = []
    seen: set[tuple[Any, ...]] = set()
    for record in records:
        if tuple(record) in seen:
            continue
        seen.add(tuple(record))
        at = len(merged)
        for key in reversed(record):
            if key in merged:
                at = merged.index(key)
            else:
                merged.insert(at, key)
    return merged


def _column(cells: list[Any], key: str, name: str, place: Place) -> dict[str, Dense | list[str]]:
    """One attribute; a list of numbers on every node becomes the columns `key.0`, `key.1`, ..."""
    if any(isinstance(cell, list | tuple | np.ndarray) for cell in cells):
        lengths = {
            len(cell) if isinstance(cell, list | tuple | np.ndarray) else 0 for cell in cells
        }
        if len(lengths) > 1:
            raise UserError(f"{name}: the lists {quoted(key)} have the lengths {sorted(lengths)}")
        return {
            f"{key}.{at}": settle([str(cell[at]) for cell in cells], f"{key}.{at}", name, place)
            for at in range(lengths.pop())
        }
    return {key: settle(_texts(cells), key, name, place)}


def _texts(cells: list[Any]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in cells]
