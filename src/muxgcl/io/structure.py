"""Features of a graph that brings none, or beside its own: degree and position, from edges alone.

Degree: one of 16 bins, each twice as wide as the last. Position: every node is given 32 signs by a
hash of its id, and a node's position is the average of signs three steps around it, scaled to unit
length. Nodes that share neighbours lie close, as in FastRP (<https://arxiv.org/abs/1908.11512>).
Both depend on the node's surroundings and on ids alone: the same graph gives the same features
everywhere, and a node far from a change keeps its own.
"""

from hashlib import blake2b

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from torch import Tensor

from muxgcl.io.ids import Ids, as_text
from muxgcl.io.safety import check_size

BINS = 16
SIGNS = 32
STEPS = 3
NODE_BYTES = 900  # of memory while the features of a node are made


def structural_features(edge_index: NDArray[np.int64], ids: Ids) -> NDArray[np.float32]:
    """Degree bins beside positions, [nodes, BINS + SIGNS]."""
    nodes = len(ids)
    check_size("the features made from edges", NODE_BYTES * nodes)
    ones = np.ones(edge_index.shape[1])
    adjacency = csr_array((ones, tuple(edge_index)), shape=(nodes, nodes))
    degree = np.diff(adjacency.indptr)
    bin_of = np.minimum(np.log2(degree + 1).astype(int), BINS - 1)
    average = adjacency + eye_array(nodes, format="csr")
    position = _signs(ids)
    for _ in range(STEPS):
        position = (average @ position) / (degree[:, None] + 1)
    length = np.linalg.norm(position, axis=1, keepdims=True)
    position /= np.where(length > 0, length, 1)
    return np.hstack([np.eye(BINS)[bin_of], position]).astype(np.float32)


NAMES = [*(f"degree bin {at}" for at in range(BINS)), *(f"position {at}" for at in range(SIGNS))]


def with_structure(
    x: Tensor | None, edge_index: NDArray[np.int64], ids: Ids
) -> Float[Tensor, "n f"]:
    """These features, and beside them those made from edges; without any, the latter alone."""
    made = torch.from_numpy(structural_features(edge_index, ids))
    if x is None:
        return made
    if x.layout == torch.strided:
        return torch.cat([x, made], 1)
    return torch.cat([x, made.to_sparse_coo()], 1).coalesce()


def _signs(ids: Ids) -> NDArray[np.float64]:
    """-1 or 1, [nodes, SIGNS]; the same for the integer 7 and the text `7`."""
    texts = (one.encode(errors="surrogatepass") for one in as_text(ids))
    hashes = b"".join(blake2b(text, digest_size=SIGNS // 8).digest() for text in texts)
    bits = np.unpackbits(np.frombuffer(hashes, np.uint8)).reshape(-1, SIGNS)
    return bits.astype(np.float64) * 2 - 1
