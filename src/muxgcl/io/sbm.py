r"""A large graph to prove things on: a degree-corrected stochastic block model with words.

Node i has a class $y_i$, drawn uniformly, and a weight $\theta_i$ from a Pareto distribution. An
edge starts at a node drawn by weight; it ends, with probability `homophily`, at a node of the same
class, else at any node, again drawn by weight (Karrer and Newman 2011,
<https://arxiv.org/abs/1008.3926>). A node has `words` words: each is, with probability `signal`,
one of its class's own words, else one of the vocabulary by Zipf's law. A word belongs to several
classes, so that no word names a class.

Everything is written block by block, and every block has a seed of its own: memory holds a few
numbers a node, and the files are the same for the same seed whatever the machine.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from muxgcl.errors import UserError
from muxgcl.io.array_folder import Stream, check_room, new_folder, write_facts
from muxgcl.io.safety import check_size
from muxgcl.shapes import Array

BLOCK = 1 << 18  # edges or nodes that are drawn at a time
OWN_WORDS = 40  # of each class
TAIL = 2.5  # exponent of the weights: the fraction above x falls as x ** -TAIL
HEAVIEST = 1000.0  # weight, relative to the least


@dataclass(frozen=True, slots=True, kw_only=True)
class Sbm:
    """The sizes and probabilities of the model.

    Args:
        nodes: how many nodes.
        classes: how many classes.
        features: words in the vocabulary.
        degree: neighbours of a node on average, up to repeated draws.
        homophily: share of edges drawn within a class; the others may end anywhere.
        words: of a node, up to repeated draws.
        signal: share of a node's words that come from its class.
        seed: the one source of chance.
    """

    nodes: int = 1_000_000
    classes: int = 40
    features: int = 1000
    degree: float = 20.0
    homophily: float = 0.25
    words: int = 16
    signal: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.classes <= self.nodes or self.features < 1 or self.words < 1:
            raise UserError(
                "a block model needs a class, a word and no more classes than nodes, got "
                f"classes={self.classes}, nodes={self.nodes}, features={self.features}, "
                f"words={self.words}"
            )
        if self.nodes >= 1 << 31 or self.seed < 0:
            raise UserError(
                f"nodes must be below 2^31 and seed not negative, got {self.nodes} and {self.seed}"
            )
        if not 0 < self.degree <= self.nodes:
            raise UserError(
                f"degree must be above 0 and at most the number of nodes, got {self.degree}"
            )
        if not (0 <= self.homophily <= 1 and 0 <= self.signal <= 1):
            raise UserError(
                "homophily and signal must be between 0 and 1, "
                f"got {self.homophily} and {self.signal}"
            )

    @property
    def edges(self) -> int:
        """How many edges are drawn."""
        return round(self.nodes * self.degree / 2)

    @property
    def memory(self) -> int:
        """Bytes that are held at a time, about."""
        drawn = 64 * min(self.nodes, BLOCK) * self.words
        own = 8 * self.classes * min(OWN_WORDS, self.features)
        return 40 * self.nodes + 24 * self.features + own + drawn

    @property
    def disk(self) -> int:
        """Bytes that the files take, at most."""
        return 8 * self.edges + (12 + 4 * self.words) * self.nodes

    def chance(self, kind: int, block: int = 0) -> np.random.Generator:
        """The random numbers of one block of one kind."""
        return np.random.default_rng([self.seed, kind, block])


def make_sbm(folder: Path, model: Sbm) -> None:
    """Write the graph into a new folder that `load` reads."""
    check_size("the model", model.memory)
    check_room(folder, model.disk)
    with new_folder(folder) as unfinished:
        labels = model.chance(0).integers(0, model.classes, model.nodes, dtype=np.int32)
        with Stream(unfinished / "labels.npy", np.int32) as out:
            out.write(labels)
        _write_edges(unfinished, model, labels)
        _write_words(unfinished, model, labels)
        facts = asdict(model) | {"kind": "sbm"}
        write_facts(unfinished, facts)


def _write_edges(folder: Path, model: Sbm, labels: Array) -> None:
    chance = model.chance(1)
    weight = np.minimum((1 - chance.random(model.nodes)) ** (-1 / TAIL), HEAVIEST)
    order = np.argsort(labels, kind="stable").astype(np.int32)  # nodes of a class side by side
    mass = np.cumsum(weight[order])
    sizes = np.bincount(labels, minlength=model.classes)
    end = mass[np.maximum(np.cumsum(sizes) - 1, 0)]
    begin = np.concatenate([[0.0], end[:-1]])
    with Stream(folder / "edges.npy", np.int32, 2) as out:
        for block, count in _blocks(model.edges):
            chance = model.chance(2, block)
            source = order[_find(mass, chance.random(count) * mass[-1])]
            stays = chance.random(count) < model.homophily
            low = np.where(stays, begin[labels[source]], 0.0)
            high = np.where(stays, end[labels[source]], mass[-1])
            target = order[_find(mass, low + chance.random(count) * (high - low))]
            apart = source != target
            out.write(np.stack([source[apart], target[apart]], axis=1))


def _write_words(folder: Path, model: Sbm, labels: Array) -> None:
    f = model.features
    own = model.chance(3).integers(0, f, (model.classes, min(OWN_WORDS, f)))  # words may be shared
    common = np.cumsum(1 / np.arange(1, f + 1))
    names = model.chance(4).permutation(f)  # a frequent word is not always the first column
    with (
        Stream(folder / "features_indptr.npy", np.int64) as indptr,
        Stream(folder / "features_indices.npy", np.int32) as indices,
    ):
        indptr.write(np.zeros(1, np.int64))
        total = 0
        for block, count in _blocks(model.nodes):
            chance, first = model.chance(5, block), block * BLOCK
            shape = (count, model.words)
            drawn = names[_find(common, chance.random(shape) * common[-1])]
            topics = own[
                labels[first : first + count, None], chance.integers(0, own.shape[1], shape)
            ]
            words = np.sort(np.where(chance.random(shape) < model.signal, topics, drawn), axis=1)
            new = np.ones(shape, bool)
            new[:, 1:] = words[:, 1:] != words[:, :-1]  # a word counts once
            ends = total + np.cumsum(new.sum(1))
            indptr.write(ends)
            indices.write(words[new])
            total = int(ends[-1])


def _find(mass: Array, where: Array) -> Array:
    """Which entry of a running sum each number falls into."""
    return np.minimum(np.searchsorted(mass, where, side="right"), len(mass) - 1)


def _blocks(count: int) -> Iterator[tuple[int, int]]:
    """Number and size of each block."""
    return ((k, min(BLOCK, count - start)) for k, start in enumerate(range(0, count, BLOCK)))
