r"""The development half: the labelled nodes that settings may be chosen on.

Every graph's labelled nodes fall into two halves, fixed once and for all. `tune` and our own
searches read labels of the *development half* alone; reported test scores come from the other half,
the *report half*. So no label that a score is counted on has a part in the choice. That holds for
searches since there are halves: docs/evaluation.md says which settings are older.

The halves follow from the node numbers and the classes, by integer arithmetic alone:

1. Node $i$ has the key that SplitMix64 (Steele, Lea and Flood 2014), started in state `SEED`,
   puts out as number $i + 1$: with all sums and products modulo $2^{64}$,
   $z = \mathrm{SEED} + (i + 1) \cdot \mathtt{9E3779B97F4A7C15}$,
   $z \leftarrow (z \oplus (z \gg 30)) \cdot \mathtt{BF58476D1CE4E5B9}$,
   $z \leftarrow (z \oplus (z \gg 27)) \cdot \mathtt{94D049BB133111EB}$,
   key $= z \oplus (z \gg 31)$.
2. The labelled nodes are listed class by class, by ascending key within a class; the class with the
   smallest key comes first. Every other node of the list, from the first on, is in the half.

So each class is divided evenly, to within one node, and so are all labelled nodes together; the
names of the classes do not matter. The nodes' order does: a graph whose nodes are numbered anew
has other halves, which `development_hash` tells apart.
"""

import hashlib

import numpy as np
from jaxtyping import Bool, Int, UInt64

from muxgcl.errors import UserError
from muxgcl.evaluate.arrays import Labels

SEED = 0
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def development_half(labels: Labels | int) -> Bool[np.ndarray, " n"]:
    """Which nodes are in the development half; an unlabelled node (-1) is in neither.

    Args:
        labels: one label a node, -1 for none; or the number of nodes, all of one class.

    Example:
        >>> development_half(np.array([0, 0, 1, 1, -1])).sum()
        np.int64(2)
    """
    y = labels_or_zeros(labels)
    nodes = np.flatnonzero(y >= 0)
    half = np.zeros(len(y), bool)
    if not len(nodes):
        return half
    keys = node_keys(nodes)
    _, classes = np.unique(y[nodes], return_inverse=True)
    smallest = np.full(classes.max() + 1, np.iinfo(np.uint64).max)
    np.minimum.at(smallest, classes, keys)
    order = np.lexsort((keys, smallest[classes]))
    half[nodes[order[::2]]] = True
    return half


def report_half(labels: Labels | int) -> Bool[np.ndarray, " n"]:
    """The labelled nodes outside the development half: those that test scores are counted on."""
    labelled: Bool[np.ndarray, " n"] = labels_or_zeros(labels) >= 0
    labelled[development_half(labels)] = False
    return labelled


def development_labels(labels: Labels) -> Labels:
    """The labels of the development half; -1 everywhere else."""
    y = np.asarray(labels)
    return np.where(development_half(y), y, -1)


def report_labels(labels: Labels) -> Labels:
    """The labels of the report half; -1 everywhere else."""
    y = np.asarray(labels)
    return np.where(report_half(y), y, -1)


def development_hash(labels: Labels | int) -> str:
    """16 hexadecimal digits that name the two halves: of the seed and of which node is where."""
    found = hashlib.sha256(f"muxgcl development half|{SEED}|".encode())
    for half in (development_half(labels), report_half(labels)):
        found.update(np.packbits(half).tobytes())
    return found.hexdigest()[:16]


def node_keys(nodes: Int[np.ndarray, " m"], seed: int = SEED) -> UInt64[np.ndarray, " m"]:
    """Output number `node + 1` of SplitMix64 started in state `seed`."""
    z = np.uint64(seed) + (nodes.astype(np.uint64) + np.uint64(1)) * np.uint64(_STEP)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return z ^ (z >> np.uint64(31))


def labels_or_zeros(labels: Labels | int) -> Labels:
    """Labels as an array; a bare number of nodes stands for that many of one class."""
    if np.ndim(labels) == 0:
        return np.zeros(int(labels), np.int64)
    y = np.asarray(labels)
    if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer):
        raise UserError(f"expected one integer label a node, got {y.dtype} of shape {y.shape}")
    return y
