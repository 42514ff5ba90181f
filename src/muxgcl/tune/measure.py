"""How good settings are, in one number, without a look at what the result will be judged by."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from muxgcl.errors import UserError
from muxgcl.evaluate import Split, link_prediction, probe, random_split
from muxgcl.evaluate.arrays import Labels, Rows
from muxgcl.graph import Graph
from muxgcl.io.load import Loaded
from muxgcl.runs.fit import fit
from muxgcl.runs.held_out import SHARE, without_links
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import MOST_SPLITS, labels_of

MOST_SEEDS = 10_000
FIRST_SEED = 100  # of training and of hidden edges: results are reported with others
OnBlock = Callable[[list[Epoch]], None]


@runtime_checkable
class Measure(Protocol):
    """Trains and judges; the first of its figures is what settings are chosen by."""

    figures: ClassVar[tuple[str, ...]]
    words: str  # what it looks at
    mark: str  # of all that its figures depend on, apart from the graph and the settings

    def __call__(
        self, plan: Plan, *, cache: Path | None = None, on_block: OnBlock | None = None
    ) -> dict[str, float]:
        """The figures of one plan, each the mean over all repeats."""


class ByLabels:
    """Accuracy of a linear probe on validation nodes, in percent; test nodes are not known here."""

    figures: ClassVar[tuple[str, ...]] = ("validation_accuracy",)

    def __init__(self, graph: Graph, y: Labels, splits: Sequence[Split], *, seeds: int = 1) -> None:
        self.graph, self.seeds = graph, seeds
        # a probe is judged where it was tuned, so that the test nodes can be left out altogether
        self.splits = [Split(split.train, split.val, split.val) for split in splits]
        seen = np.unique(np.concatenate([np.r_[split.train, split.val] for split in splits]))
        self.y = np.full_like(y, -1)
        self.y[seen] = y[seen]
        self.words = (
            f"accuracy on validation nodes; the probe sees {len(seen):,} of "
            f"{(y >= 0).sum():,} labels, the others are left for a test"
        )
        self.mark = digest(seeds, self.y, *(part for s in self.splits for part in (s.train, s.val)))

    def __call__(
        self, plan: Plan, *, cache: Path | None = None, on_block: OnBlock | None = None
    ) -> dict[str, float]:
        """Train once a seed and look at every split."""
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + self.seeds):
            z = _train(plan, self.graph, seed, cache, on_block)
            found.append(probe(z, self.y, self.splits).validation.mean)
        return {"validation_accuracy": float(np.mean(found))}


class ByLinks:
    """AUC and average precision of hidden edges against pairs without an edge; no labels."""

    figures: ClassVar[tuple[str, ...]] = ("auc", "ap")

    def __init__(self, loaded: Loaded, *, seeds: int = 1) -> None:
        wanted = range(FIRST_SEED, FIRST_SEED + seeds)
        self.questions = {seed: without_links(loaded, seed=seed) for seed in wanted}
        hidden = len(self.questions[FIRST_SEED][1].positives)
        self.words = f"AUC of {hidden:,} hidden edges against as many pairs without an edge"
        self.mark = digest(seeds, SHARE)

    def __call__(
        self, plan: Plan, *, cache: Path | None = None, on_block: OnBlock | None = None
    ) -> dict[str, float]:
        """Every seed hides other edges and trains on the rest."""
        found = []
        for seed, (graph, hidden) in self.questions.items():
            scores = link_prediction(_train(plan, graph, seed, cache, on_block), hidden)
            found.append([scores.auc, scores.ap])
        auc, ap = np.mean(found, axis=0).tolist()
        return {"auc": auc, "ap": ap}


def tuning_splits(y: Labels, count: int = 20, seed: int = 0) -> list[Split]:
    """The first `holdout` split of a seed, and other divisions of its train and val between them.

    All of them share one set of test nodes, four fifths of the labelled: whatever is chosen here,
    those labels had no part in it.
    """
    if not 1 <= count <= MOST_SPLITS:
        raise UserError(f"expected from 1 to {MOST_SPLITS:,} splits, got {count:,}")
    first = random_split(y, (seed, 0))
    pool, size = np.concatenate([first.train, first.val]), len(first.train)
    orders = [np.random.default_rng((seed, n)).permutation(pool) for n in range(1, count)]
    return [first, *(Split(order[:size], order[size:], first.test) for order in orders)]


def measure_of(
    loaded: Loaded,
    graph: Graph,
    by: str | None = None,
    *,
    seeds: int = 1,
    splits: int = 20,
    split_seed: int = 0,
) -> Measure:
    """By labels where there are any, else by links, unless one is asked for."""
    if seeds < 1:
        raise UserError(f"seeds must be at least 1, got {seeds}")
    if seeds > MOST_SEEDS:
        raise UserError(f"seeds must be at most {MOST_SEEDS:,}, got {seeds:,}")
    y = labels_of(loaded.tensors)
    if by == "labels" and y is None:
        raise UserError("this graph has no labels; without them settings are chosen by links")
    if by == "links" or y is None:
        return ByLinks(loaded, seeds=seeds)
    return ByLabels(graph, y, tuning_splits(y, splits, split_seed), seeds=seeds)


def _train(
    plan: Plan, graph: Graph, seed: int, cache: Path | None, on_block: OnBlock | None
) -> Rows:
    return fit(replace(plan, seed=seed), graph, cache=cache, on_block=on_block).embed().numpy()


def digest(*parts: Any) -> str:
    """A short hash of arrays and of what is written as text."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part.tobytes() if isinstance(part, np.ndarray) else str(part).encode())
        found.update(b"|")
    return found.hexdigest()[:16]
