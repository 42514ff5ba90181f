"""Which nodes a probe learns from, is tuned on, and is judged by.

A split depends on the seed, on which nodes carry a label and, so that the training nodes lack no
class where that can be helped, on the labels; never on an embedding. Every method sees the same
ones, so every difference between two methods is paired.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool

from muxgcl.errors import UserError
from muxgcl.evaluate.arrays import Index, Labels
from muxgcl.evaluate.development import (
    development_labels,
    labels_or_zeros,
    node_keys,
    report_half,
)

Mask = Bool[np.ndarray, " n"] | Bool[np.ndarray, "n _"]
_REDRAWS = 1000
MOST = (4_000, 4_000, 20_000)  # nodes of train, val and test that a probe looks at
FEWEST = 6  # labelled nodes: with one of train and one of val a node of the report half is left


@dataclass(frozen=True, slots=True)
class Split:
    """Three disjoint sets of labelled nodes, and those that no score is counted on."""

    train: Index
    val: Index
    test: Index
    uncounted: Index | None = None


def check_parts(splits: Sequence[Split]) -> None:
    """Refuse a split with nothing to learn from, to choose by or to look at."""
    if any(not len(part) for split in splits for part in (split.train, split.val, split.test)):
        raise UserError(
            "expected labelled nodes in train, val and test of each split, one is empty"
        )


def random_split(
    labels: Labels | int, seed: int | Sequence[int], *, train: float = 0.1, val: float = 0.1
) -> Split:
    """Draw a split of the labelled nodes; what train and val leave over is test.

    A draw that leaves a class out of train is drawn again, up to a thousand times. Where none turns
    up that has them all (many rare classes, say), the first is kept, and at once where there are
    fewer training nodes than classes. A single class is an error.

    Args:
        labels: one label a node, -1 for none; or the number of nodes, all of them labelled.
        seed: one number or several; the same seed gives the same split.
        train: share of the labelled nodes to learn from (at least one node).
        val: share to choose settings on (at least one node).
    """
    unknown = np.ndim(labels) == 0  # how many nodes, but not their classes
    y = np.zeros(labels, np.int64) if unknown else np.asarray(labels)
    nodes = np.flatnonzero(y >= 0)
    sizes = [max(1, round(share * len(nodes))) for share in (train, val)]
    if len(nodes) < 3:
        raise UserError(
            f"{_labelled(len(nodes))} too few to score: train, val and test need one each"
        )
    if min(train, val) < 0 or sum(sizes) >= len(nodes):
        raise UserError(
            f"expected labelled nodes for train ({train:g}), val ({val:g}) and test, "
            f"got {len(nodes)} labelled nodes"
        )
    classes = 1 if unknown else count_classes(y)
    rng = np.random.default_rng(seed)
    first = rng.permutation(nodes)
    order, redraws = first, _REDRAWS if sizes[0] >= classes else 0
    while len(np.unique(y[order[: sizes[0]]])) < classes:
        if not redraws:
            order = first
            break
        order, redraws = rng.permutation(nodes), redraws - 1
    return Split(*np.split(order, np.cumsum(sizes)))


def subsampled(split: Split, most: tuple[int, int, int] = MOST) -> Split:
    """A split of a large graph with at most so many nodes of train, val and test.

    They are those with the smallest random keys (`node_keys`): the same ones each time, and several
    splits look at few nodes in all. Nothing is left out of a smaller split.
    """

    def some(part: Index, size: int) -> Index:
        return part if len(part) <= size else part[np.argsort(node_keys(part, seed=1))[:size]]

    train, val, test = most
    uncounted = None if split.uncounted is None else some(split.uncounted, test)
    return Split(some(split.train, train), some(split.val, val), some(split.test, test), uncounted)


def nodes_in(splits: Iterable[Split]) -> Index:
    """The nodes that any of these splits looks at, in ascending order."""
    parts = (
        part for s in splits for part in (s.train, s.val, s.test, s.uncounted) if part is not None
    )
    return np.unique(np.concatenate(list(parts)))


def reindexed(split: Split, rows: Index) -> Split:
    """The split of a table that has these rows alone, in ascending order, and all that it names."""
    train, val, test = (
        np.searchsorted(rows, part) for part in (split.train, split.val, split.test)
    )
    uncounted = None if split.uncounted is None else np.searchsorted(rows, split.uncounted)
    return Split(train, val, test, uncounted)


def _labelled(count: int) -> str:
    return f"{count} labelled node{' is' if count == 1 else 's are'}"


def holdout_splits(
    labels: Labels | int, count: int = 20, seed: int = 0, *, everywhere: bool = False
) -> list[Split]:
    """The first `count` splits of a seed, judged in the report half; more begin with the same.

    Train and val are a random tenth each of all labelled nodes. Test is what they leave over of the
    report half (about 40 % of the labelled nodes): nodes on which nothing was chosen. What they
    leave over of the development half is set aside. With `everywhere` that is part of test, too.
    """
    if count < 1:
        raise UserError(f"expected at least one split, got {count}")
    splits = [random_split(labels, (seed, number)) for number in range(count)]
    if everywhere:
        return splits
    if (labelled := int((labels_or_zeros(labels) >= 0).sum())) < FEWEST:
        raise UserError(
            f"{_labelled(labelled)} too few to score: "
            f"expected at least {FEWEST}, so that a test node is left in the half that scores are "
            "reported on"
        )
    report = report_half(labels)
    return [Split(s.train, s.val, s.test[report[s.test]], s.test[~report[s.test]]) for s in splits]


def development_splits(labels: Labels, count: int = 20, seed: int = 0) -> list[Split]:
    """Splits for choosing settings: all three parts lie in the development half.

    Train and val are a fifth of the half each, so a tenth of the labelled nodes as in
    `holdout_splits`; what is left of the half (30 % of the labelled nodes) is test. A search reads
    its test accuracy: C is chosen on val, so this is no part of any choice but the search's own.
    """
    if count < 1:
        raise UserError(f"expected at least one split, got {count}")
    y = development_labels(labels)
    if len(np.unique(y[y >= 0])) < 2:
        raise UserError(
            "expected at least two classes in the half of the labelled nodes that settings are "
            f"chosen on, got {len(np.unique(y[y >= 0]))}: label more nodes"
        )
    return [random_split(y, (seed, number), train=0.2, val=0.2) for number in range(count)]


def count_classes(labels: Labels) -> int:
    """How many classes the labelled nodes are of; with fewer than two there is no question."""
    y = np.asarray(labels)
    if (classes := len(np.unique(y[y >= 0]))) < 2:
        raise UserError(f"expected at least two classes to tell apart, got {classes}")
    return classes


def public_splits(
    labels: Labels, train_mask: Mask | None, val_mask: Mask | None, test_mask: Mask | None
) -> list[Split]:
    """The splits that a dataset brings along, without its unlabelled nodes.

    Most bring one mask a part; with a column a split (WikiCS) there is one `Split` for each, and a
    mask of one column serves them all.
    """
    if train_mask is None or val_mask is None or test_mask is None:
        raise UserError(
            "expected train, val and test masks for a public split; this graph has none (Cora's "
            "come with Planetoid's own files, under --data-root)"
        )
    count_classes(labels)
    labelled = np.asarray(labels)[:, None] >= 0
    masks = [np.asarray(m).reshape(len(labelled), -1) for m in (train_mask, val_mask, test_mask)]
    if any((one & two).any() for one, two in combinations(masks, 2)):
        raise UserError("train, val and test masks must not share nodes, but these do")
    columns = np.broadcast_arrays(*(mask & labelled for mask in masks))  # each [n, splits]
    return [
        Split(*map(np.flatnonzero, parts)) for parts in zip(*(c.T for c in columns), strict=True)
    ]
