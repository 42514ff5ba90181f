"""A graph as training sees it: features, and the pattern of A + I with room for edge weights.

Labels are not part of it: no method can read what is not there.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from muxgcl.errors import UserError
from muxgcl.kernels.pieces import Pieces
from muxgcl.shapes import EdgeIndex, PerEdge
from muxgcl.sparse import Csr, SparseMatrix, index_dtype, row_pointer
from muxgcl.tensors import AnyData, symmetric

Features = Float[Tensor, "n f"] | SparseMatrix
Degrees = Literal["received", "sent", "each"]  # which degree an edge is divided by
LOOK = 2**22  # features that are looked at together
SPARSE_BELOW = 0.1  # share of non-zero features under which the sparse product wins


@dataclass(frozen=True, slots=True, eq=False)
class Adjacency:
    """The fixed pattern of A + I in CSR (row i receives from `col`), symmetric by construction."""

    rowptr: Int[Tensor, " _"]  # n + 1 of them
    row: Int[Tensor, " e"]
    col: Int[Tensor, " e"]
    weight: Float[Tensor, " e"]
    reverse: Int[Tensor, " e"]  # position of the entry (col, row): what the transpose reads
    loop: Bool[Tensor, " e"]
    pieces: Pieces
    parts: Float[Tensor, "t e"] | None = None  # shares of an entry's weight, one row a propagation
    directed: bool = False  # the parts are those of one direction

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.rowptr) - 1

    @property
    def edge_index(self) -> EdgeIndex:
        """The edges without self-loops, source above target, in 64 bits, as PyG writes them."""
        keep = ~self.loop
        return torch.stack([self.col[keep], self.row[keep]]).long()

    def propagation(
        self, weight: PerEdge | None = None, degrees: Degrees = "received"
    ) -> SparseMatrix:
        r"""$D^{-1/2} (A + I) D^{-1/2}$ with these edge weights; a dropped edge leaves the degree.

        Dropping may leave an edge in one direction alone, and then it matters whose degree D is:
        what a node receives ("received", as in PyG), what it sends ("sent"), or what the target
        receives and the source sends ("each", as in DGL).

        With `parts` it is the mean over their propagations, each with degrees of its own: for
        T types of edges $\frac1T \sum_t D_t^{-1/2} (A_t + I) D_t^{-1/2}$.
        """
        weight = self.weight if weight is None else weight
        if self.parts is None:
            return self.matrix(self._normalised(weight, degrees))
        degrees = "each" if self.directed else degrees
        value = torch.zeros_like(weight)
        for part in self.parts:
            value = value + self._normalised(weight * part, degrees)
        return self.matrix(value / len(self.parts))

    def _normalised(self, weight: PerEdge, degrees: Degrees) -> PerEdge:
        if degrees == "received":
            target = source = self._inverse_root_degree(weight)
        else:
            target = source = self._inverse_root_degree(weight.index_select(0, self.reverse))
            if degrees == "each":
                target = self._inverse_root_degree(weight)
        return target.index_select(0, self.row) * weight * source.index_select(0, self.col)

    def _inverse_root_degree(self, weight: PerEdge) -> Float[Tensor, " n"]:
        ones = weight.new_ones(self.nodes, 1)
        degree = self.csr(weight).multiply(ones).squeeze(1)
        return degree.clamp(min=torch.finfo(degree.dtype).tiny).rsqrt()

    def matrix(self, value: PerEdge) -> SparseMatrix:
        """This pattern with these values."""
        rows, mirrored = self.csr(value), value.index_select(0, self.reverse)
        return SparseMatrix(rows, replace(rows, value=mirrored), order=self.reverse)

    def csr(self, value: PerEdge) -> Csr:
        """The rows of this pattern with these values, without the transpose."""
        return Csr(self.rowptr, self.col, value, self.nodes, self.pieces)

    def repeated(self, copies: int) -> Self:
        """So many copies of the graph as one graph: node i of copy v is node `v * nodes + i`."""
        entries = len(self.col)
        kind = index_dtype(copies * entries, copies * self.nodes)

        def shift(index: Tensor, by: int) -> Tensor:
            return torch.cat([index.to(kind) + copy * by for copy in range(copies)])

        rowptr = torch.cat([shift(self.rowptr[:-1], entries), self.rowptr[-1:].to(kind) * copies])
        return type(self)(
            rowptr=rowptr,
            row=shift(self.row, self.nodes),
            col=shift(self.col, self.nodes),
            weight=self.weight.repeat(copies),
            reverse=shift(self.reverse, entries),
            loop=self.loop.repeat(copies),
            pieces=Pieces.of(rowptr),
            parts=None if self.parts is None else self.parts.repeat(1, copies),
            directed=self.directed,
        )

    @classmethod
    def from_edges(
        cls, edge_index: EdgeIndex, nodes: int, edge_weight: PerEdge | None = None
    ) -> Self:
        """Make undirected, drop duplicates and self-loops, then give every node one loop."""
        entry, weight = symmetric(edge_index, nodes, edge_weight, loops=True)
        kind = index_dtype(len(entry), nodes)
        row, col = (entry // nodes).to(kind), (entry % nodes).to(kind)
        rowptr = row_pointer(row, nodes).to(kind)
        # entries are sorted by (row, col): sorting by (col, row) lists each entry's mirror image
        return cls(
            rowptr=rowptr,
            row=row,
            col=col,
            weight=weight,
            reverse=col.argsort(stable=True).to(kind),
            loop=row == col,
            pieces=Pieces.of(rowptr),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """Directions and types of edges: of an entry (i, j), what i receives from j by each type."""

    parts: Float[Tensor, "t e"]  # shares of the entry's weight; of a self-loop all
    directed: bool
    names: tuple[str, ...]  # of the types; none where all edges are of one

    @classmethod
    def of(cls, data: AnyData, adjacency: Adjacency) -> Self | None:
        """What a loaded graph says of its edges, if anything."""
        if "edge_parts" not in data:
            return None
        given, kept = data["edge_parts"], ~adjacency.loop
        if given.shape[1:] != (int(kept.sum()),):
            raise UserError(
                f"edge_parts must have {int(kept.sum())} columns, one for each entry of the "
                f"undirected graph, got shape {tuple(given.shape)}"
            )
        parts = given.new_ones(len(given), len(kept))
        parts[:, kept] = given  # both are sorted by row and column
        named = "edge_types" in data
        return cls(parts, bool(data["directed"]), tuple(data["edge_types"]) if named else ())

    def to(self, device: torch.device | str) -> Self:
        """The same on another device."""
        return replace(self, parts=self.parts.to(device))


@dataclass(frozen=True, eq=False)
class Graph:
    """Features and adjacency on one device."""

    features: Features
    adjacency: Adjacency  # undirected, all types of edges together
    edge_kinds: Kinds | None = None  # directions and types, for a method that looks at them

    @cached_property
    def directions(self) -> tuple["Graph", ...]:
        """The graph as its edges run, and against them; one graph where there is no direction.

        Each propagates over the types of edges apart.
        """
        if self.edge_kinds is None:
            return (self,)
        parts, directed = self.edge_kinds.parts, self.edge_kinds.directed
        ways = (parts, parts.index_select(1, self.adjacency.reverse)) if directed else (parts,)
        each = (replace(self.adjacency, parts=way, directed=directed) for way in ways)
        return tuple(replace(self, adjacency=one, edge_kinds=None) for one in each)

    @cached_property
    def twice(self) -> Adjacency:
        """The adjacency of two copies side by side: two views go through one product."""
        return self.adjacency.repeated(2)

    @cached_property
    def aligned_features(self) -> Features:
        """On a GPU, dense features padded with zero columns: its products want whole quadruples."""
        features = self.features
        if isinstance(features, SparseMatrix) or not features.is_cuda or features.shape[1] % 4 == 0:
            return features
        return pad(features, (0, -features.shape[1] % 8))

    @cached_property
    def features_twice(self) -> Features:
        """The features of two copies, one below the other."""
        features = self.aligned_features
        return torch.cat([features] * 2) if isinstance(features, Tensor) else features.repeated(2)

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return self.adjacency.nodes

    @property
    def num_features(self) -> int:
        """How many columns the features have."""
        return self.features.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.adjacency.weight.device

    def dense_features(self) -> Float[Tensor, "n f"]:
        """The features as one dense table."""
        if isinstance(self.features, Tensor):
            return self.features
        rows = self.features.matrix
        return rows.multiply(torch.eye(rows.columns, device=self.device))

    def to(self, device: torch.device | str) -> Self:
        """The same graph on another device."""
        values = {name: getattr(self.adjacency, name) for name in Adjacency.__dataclass_fields__}
        moved = {n: v.to(device) if hasattr(v, "to") else v for n, v in values.items()}
        return replace(
            self,
            features=self.features.to(device),
            adjacency=Adjacency(**moved),
            edge_kinds=None if self.edge_kinds is None else self.edge_kinds.to(device),
        )

    @classmethod
    def from_data(cls, data: AnyData) -> Self:
        """Check a graph, PyG's or ours, and prepare it for training."""
        x, edge_index = data.x, data.edge_index
        if x is None or edge_index is None:
            raise UserError("a graph needs node features `x` and an `edge_index`")
        nodes = x.shape[0]
        if nodes == 0:
            raise UserError("the graph has no nodes")
        if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < nodes:
            wrong = edge_index[(edge_index < 0) | (edge_index >= nodes)][0]
            raise UserError(
                f"an edge names node {int(wrong)}, but nodes are numbered 0 to {nodes - 1}"
            )
        weight = data.edge_weight if "edge_weight" in data else None
        if weight is not None:
            check_weights(weight, edge_index.shape[1])
            weight = weight.float()
        adjacency = Adjacency.from_edges(edge_index.long(), nodes, weight)
        return cls(features_of(x), adjacency, Kinds.of(data, adjacency))


def check_weights(weight: Tensor, edges: int) -> None:
    """Refuse edge weights that are not one number for each edge, finite and not negative."""
    if weight.shape != (edges,):
        raise UserError(
            f"expected one weight for each of the {edges} edges, got shape {tuple(weight.shape)}"
        )
    wrong = ~(torch.isfinite(weight) & (weight >= 0))
    if wrong.any():
        edge = int(wrong.nonzero()[0])
        raise UserError(
            f"edge weights must be finite and not negative, got {float(weight[edge])} "
            f"for edge {edge}"
        )


def features_of(x: Tensor) -> Features:
    """Finite features, dense or sparse by what is cheaper to multiply."""
    sparse = x.layout != torch.strided
    entries = x.to_sparse_coo().coalesce() if sparse else None
    values = x if entries is None else entries.values()
    filled, size = 0, max(1, LOOK // max(1, x.shape[1]))
    for start in range(0, len(values), size):  # a mapped table is never copied whole
        block = values[start : start + size]
        if not torch.isfinite(block).all():
            where = "?" if sparse else start + int((~torch.isfinite(block)).any(1).nonzero()[0])
            raise UserError(
                f"features must be finite numbers, but node {where} has NaN or infinity"
            )
        filled += int(block.count_nonzero())
    if entries is None:
        if filled > SPARSE_BELOW * x.numel():
            return x.float()
        entries = x.to_sparse_coo().coalesce()
    row, col = entries.indices()
    return SparseMatrix.from_entries(row, col, entries.values().float(), (x.shape[0], x.shape[1]))


def fingerprint(tensors: Mapping[str, Tensor], settings: Mapping[str, Any]) -> str:
    """A hash of tensors (with dtype and shape) and plain settings."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        array = tensor.detach().cpu().contiguous().numpy()
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()[:24]


def tensors_of(graph: Graph) -> dict[str, Tensor]:
    """All that a graph consists of; patterns in 64 bits, however they are kept."""
    adjacency = graph.adjacency
    pattern = {"rowptr": adjacency.rowptr.long(), "col": adjacency.col.long()}
    found = pattern | {"weight": adjacency.weight}
    if graph.edge_kinds is not None:
        found["directed" if graph.edge_kinds.directed else "types"] = graph.edge_kinds.parts
    if isinstance(graph.features, Tensor):
        return found | {"features": graph.features}
    rows = graph.features.matrix
    return found | {
        "features rowptr": rows.rowptr.long(),
        "features col": rows.col.long(),
        "features value": rows.value,
        "features columns": torch.tensor(rows.columns),
    }


def graph_fingerprint(graph: Graph) -> str:
    """A hash of a graph: its edges, weights and features."""
    return fingerprint(tensors_of(graph), {})
