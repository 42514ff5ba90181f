"""Edges, nodes and labels → one graph, and a line for every rule that was applied."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from muxgcl.errors import UserError
from muxgcl.io.edge_types import edge_kinds
from muxgcl.io.edges import EdgeList, place_among, undirected
from muxgcl.io.encode import Encoding, encode, learn_encoding
from muxgcl.io.ids import Ids, as_array, as_text, in_order, join, positions, why_text
from muxgcl.io.leaks import identifiers, label_leaks
from muxgcl.io.nodes import (
    NodeTable,
    about_classes,
    about_order,
    classes,
    joined_labels,
    no_numbers,
)
from muxgcl.io.safety import check_unicode, how_many, listed, quoted
from muxgcl.io.structure import BINS, NAMES, all_alike, with_structure
from muxgcl.io.table import WIDE, to_dense
from muxgcl.tensors import Tensors

if TYPE_CHECKING:
    from torch_geometric.data import Data

SHOWN = 100  # characters of a text in a report


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A graph ready for training, and what was done to make it so.

    Args:
        tensors: `x` float32 (dense, or sparse COO where dense would be large and mostly zeros),
            `edge_index` in both directions, sorted, without self-loops; where there are any,
            `edge_weight` float32 and `y` int64 with -1 for a missing label; with directions or
            several types of edges, `directed`, `edge_types` and `edge_parts` (`io/edge_types.py`).
        ids: the nodes' ids in order, int64 or unicode.
        label_names: the name of each class in `y`, if there are labels.
        columns: the columns of the table of nodes as they were read, for a report: float32 with NaN
            for a missing number, or unicode, blank where missing and cut to 100 characters.
        notes: one line for every rule applied.
        encoding: how columns became features; `load(..., encoding=...)` treats new nodes alike.
    """

    tensors: Tensors
    ids: NDArray[Any]
    label_names: list[str] | None
    columns: dict[str, NDArray[Any]]
    notes: list[str]
    encoding: Encoding = field(default_factory=Encoding)

    @property
    def feature_names(self) -> list[str]:
        """Of the columns of `x`: `age`, `city=Oslo`, or what was made from edges."""
        return self.encoding.names(self.tensors.num_features)

    @property
    def data(self) -> "Data":
        """The tensors as PyG holds them."""
        return self.tensors.to_pyg()


def assemble(
    edges: EdgeList,
    nodes: NodeTable | None,
    labels: NodeTable | None,
    *,
    encoding: Encoding | None,
    scale: bool,
    directed: bool = False,
    structure: bool = False,
) -> Loaded:
    """Nodes in the order of their table, or sorted by id where there is none."""
    if nodes is None:
        nodes = _nodes_of(edges, labels)
    _check_texts(nodes)
    ends = place_among(edges, nodes.ids, nodes.name)
    edge_index, weight, changes = undirected(*ends, edges.weight, len(nodes.ids))
    kinds = edge_kinds(edges, ends, edge_index, len(nodes.ids), directed=directed)
    if kinds is not None:
        changes, weight = (
            [n for n in changes if not kinds.contradicts(n)] + kinds.notes,
            kinds.weight,
        )
    notes = [*edges.notes, *nodes.notes, *_about_ids(nodes.ids), *changes]
    if alone := int((np.bincount(edge_index[0], minlength=len(nodes.ids)) == 0).sum()):
        notes.append(f"{how_many(alone, 'node has', 'nodes have')} no edges")

    data = Tensors(edge_index=torch.from_numpy(edge_index))
    if weight is not None:
        data.edge_weight = torch.from_numpy(weight)
    if kinds is not None:
        data.update({"edge_parts": torch.from_numpy(kinds.parts), "directed": directed})
        data.update({"edge_types": kinds.names} if kinds.names else {})
    learned = encoding is None
    if encoding is None:
        encoding, rules = learn_encoding(nodes, scale=scale)
        notes += rules
        if structure and (encoding.numbers or encoding.categories):
            encoding = replace(encoding, structure=True)
    made = f"made from the edges ({BINS} of degree, {len(NAMES) - BINS} of position)"
    if encoding.numbers or encoding.categories:
        data.x, gaps = encode(nodes, encoding)
        notes += gaps
        if learned and not encoding.structure and all_alike(data.x):
            encoding = replace(encoding, structure=True)
            notes.append("all nodes have the same features, which tell nothing")
        if encoding.structure:
            data.x = with_structure(data.x, edge_index, nodes.ids)
            notes.append(f"{made}, beside the columns")
    else:
        data.x = with_structure(None, edge_index, nodes.ids)
        notes.append(f"no features: {made}")

    names = None
    given = _joined_labels(nodes, labels)
    if given is not None:
        y, names = classes(given)
        check_unicode(names, "a label")
        data.y = torch.from_numpy(y)
        if missing := int((y < 0).sum()):
            notes.append(f"label of {how_many(missing, 'node')} missing")
        notes += [] if labels is None else [*labels.notes, *about_order(labels, nodes.ids)]
        notes += about_classes(nodes if labels is None else labels, y, names)
        notes += label_leaks(nodes, y, names)
    notes += identifiers(nodes)
    return Loaded(data, as_array(nodes.ids), names, _columns(nodes), notes, encoding)


def _nodes_of(edges: EdgeList, labels: NodeTable | None) -> NodeTable:
    """Every id that edges or labels name; labels for quite other nodes are a mistake."""
    ids, notes = in_order(join([edges.source, edges.target])), []
    if labels is not None:
        if labels.numbered:
            _check_numbered(labels, ids, edges.name)
        alone = np.flatnonzero(positions(labels.ids, ids) < 0)
        if len(alone) == len(labels.ids):
            raise UserError(f"none of the ids in {labels.name} is in {edges.name}")
        if len(alone):
            names = listed([str(labels.ids[row]) for row in alone])
            many = how_many(len(alone), "node is", "nodes are")
            notes.append(f"{many} named by the labels alone: {names}")
        ids = in_order(join([ids, labels.ids]))
    return NodeTable(
        name=edges.name,
        ids=ids,
        numbers=no_numbers(len(ids)),
        number_names=[],
        notes=tuple(notes),
    )


def _check_numbered(labels: NodeTable, ids: Ids, edges: str) -> None:
    """An array of labels says how many nodes there are; edges must name no others."""
    if len(beyond := np.flatnonzero(positions(ids, labels.ids) < 0)):
        raise UserError(
            f"{labels.name}: expected a label for each node, got {len(labels.ids):,} (for the "
            f"nodes 0, 1, ...), but {edges} names node {quoted(as_text(ids)[beyond[0]])}"
        )


def _joined_labels(nodes: NodeTable, labels: NodeTable | None) -> Ids | None:
    if labels is None or labels.labels is None:
        return nodes.labels
    return joined_labels(labels, nodes.ids, nodes.name)


def _check_texts(nodes: NodeTable) -> None:
    """Refuse text that no file can hold, before anything is made from it."""
    if isinstance(nodes.ids, list):
        check_unicode(nodes.ids, f"{nodes.name}: the id of a node")
    check_unicode([*nodes.number_names, *nodes.text, *nodes.shown], f"{nodes.name}: a column")
    for name, cells in (nodes.text | nodes.shown).items():
        check_unicode(cells, f"{nodes.name}: column {quoted(name)}")


def _about_ids(ids: Ids) -> list[str]:
    reason = why_text(ids) if isinstance(ids, list) else None
    return [] if reason is None else [f"ids are read as text: {reason}"]


def _columns(nodes: NodeTable) -> dict[str, NDArray[Any]]:
    """Every column of a narrow table; of a wide one, its text, each cell cut to what is shown."""
    texts = nodes.text | nodes.shown
    columns: dict[str, NDArray[Any]] = {
        name: np.array([cell[:SHOWN] for cell in cells], dtype=str) for name, cells in texts.items()
    }
    if len(nodes.number_names) <= WIDE:
        numbers = to_dense(nodes.numbers)
        columns |= dict(zip(nodes.number_names, numbers.T.copy(), strict=True))
    return columns
