"""Features of a graph that brings none, or beside its own: degree and position, from edges alone.

Degree: one of 16 bins, each twice as wide as the last. Position: every node is given signs by a
hash of its id, and a node's position is the average of signs some steps around it, less the average
over its connected component, scaled to unit length: 96 signs for each of 4, 16 and 48 steps. Nodes
that share neighbours, or a part of the graph, lie close, as in FastRP
(<https://arxiv.org/abs/1908.11512>). A node without edges, or in a component so small that its
averages are all alike, has the position zero.
Both depend on edges and on ids alone: the same graph gives the same features everywhere, up to the
last digits.
"""

from collections.abc import Callable
from hashlib import blake2b

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from muxgcl.io.ids import Ids, as_text
from muxgcl.io.safety import check_size

BINS = 16
SIGNS = 96  # of a node, at each of
STEPS = (4, 16, 48)
Mean = Callable[[NDArray[np.float32]], NDArray[np.float32]]
ROUNDING = 1e-6  # of the largest entry: what is left below it when averages are taken away
NODE_BYTES = 4500  # of memory while the features of a node are made
SPARSE_NODE_BYTES = 22_000  # the same where they join sparse columns


def structural_features(edge_index: NDArray[np.int64], ids: Ids) -> NDArray[np.float32]:
    """Degree bins beside positions, [nodes, BINS + SIGNS * len(STEPS)]."""
    nodes = len(ids)
    check_size("the features made from edges", NODE_BYTES * nodes)
    ones = np.ones(edge_index.shape[1], np.float32)
    adjacency = csr_array((ones, tuple(edge_index)), shape=(nodes, nodes))
    degree = np.diff(adjacency.indptr)
    bin_of = np.minimum(np.log2(degree + 1).astype(int), BINS - 1)
    around = adjacency + eye_array(nodes, format="csr", dtype=np.float32)
    size = (degree + 1).astype(np.float32)
    mean = _mean_of_components(around, size)
    bits = _bits(ids)
    parts = [np.eye(BINS, dtype=np.float32)[bin_of]]
    for k, steps in enumerate(STEPS):
        signs = bits[:, k * SIGNS : (k + 1) * SIGNS].astype(np.float32) * 2 - 1
        parts.append(_position(around, size[:, None], mean, signs, steps))
    return np.hstack(parts)


def _mean_of_components(around: csr_array, size: NDArray[np.float32]) -> Mean:
    """What gives every node the average over its component, where nodes count by their degree."""
    count, component = connected_components(around, directed=False)
    nodes = np.arange(len(size))
    sums = csr_array((size, (component, nodes)), shape=(count, len(size)))
    total = np.bincount(component, size, minlength=count).astype(np.float32)[:, None]
    return lambda table: ((sums @ table) / total)[component]


def _position(
    around: csr_array,
    size: NDArray[np.float32],
    mean: Mean,
    position: NDArray[np.float32],
    steps: int,
) -> NDArray[np.float32]:
    """Averages over so many steps, the mean taken away each time: it would be all that is left."""
    for _ in range(steps):
        position = (around @ position) / size
        largest = np.abs(position).max(initial=0)
        position -= mean(position)
        position[np.abs(position) <= ROUNDING * largest] = 0
        position /= np.abs(position).max(initial=0) or 1
    length = np.linalg.norm(position, axis=1, keepdims=True)
    position /= np.where(length > 0, length, 1)
    return position


NAMES = [
    *(f"degree bin {at}" for at in range(BINS)),
    *(f"position {at} ({steps} steps)" for steps in STEPS for at in range(SIGNS)),
]


def with_structure(
    x: Tensor | None, edge_index: NDArray[np.int64], ids: Ids
) -> Float[Tensor, "n f"]:
    """These features, and beside them those made from edges; without any, the latter alone."""
    if x is not None and x.layout != torch.strided:
        check_size("features and those made from edges", SPARSE_NODE_BYTES * len(ids))
    made = torch.from_numpy(structural_features(edge_index, ids))
    if x is None:
        return made
    if x.layout == torch.strided:
        return torch.cat([x, made], 1)
    return torch.cat([x, made.to_sparse_coo()], 1).coalesce()


def all_alike(x: Tensor) -> bool:
    """Whether every node has the same features."""
    if x.layout == torch.strided:
        return bool((x == x[0]).all())
    x = x.coalesce()  # by rows, and within a row by columns
    each = len(x.values()) // len(x)
    if each * len(x) != len(x.values()):
        return False
    column, value = (table.view(len(x), each) for table in (x.indices()[1], x.values()))
    return bool((column == column[0]).all() and (value == value[0]).all())


def _bits(ids: Ids) -> NDArray[np.uint8]:
    """Zeros and ones, as many as a node has signs; the same for the integer 7 and the text `7`."""
    count = SIGNS * len(STEPS)
    texts = (one.encode(errors="surrogatepass") for one in as_text(ids))
    hashes = b"".join(blake2b(text, digest_size=count // 8).digest() for text in texts)
    return np.unpackbits(np.frombuffer(hashes, np.uint8)).reshape(-1, count)
