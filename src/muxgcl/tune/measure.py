"""How good settings are, in one number, without a look at what the result will be judged by."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from muxgcl.errors import UserError
from muxgcl.evaluate import (
    Split,
    Structure,
    development_hash,
    development_splits,
    link_prediction,
    probe,
    structure,
)
from muxgcl.evaluate.arrays import Labels, Rows
from muxgcl.evaluate.controls import MAJORITY, majority
from muxgcl.evaluate.development import development_labels
from muxgcl.evaluate.probe import ProbeResult
from muxgcl.evaluate.unlabelled import CLUSTERS
from muxgcl.graph import Graph
from muxgcl.io.load import Loaded
from muxgcl.runs.control_scores import control_tables
from muxgcl.runs.fit import fit
from muxgcl.runs.held_out import SHARE, without_links
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan
from muxgcl.runs.scipy_tables import edges_of
from muxgcl.runs.scoring import MOST_SPLITS, labels_of

MOST_SEEDS = 10_000
FIRST_SEED = 100  # of training and of hidden edges: results are reported with others
OnBlock = Callable[[list[Epoch]], None]
Accuracies = list[list[float]]  # by seed and split, in percent


@runtime_checkable
class Measure(Protocol):
    """Trains and judges; the first of its figures is what settings are chosen by."""

    name: ClassVar[str]  # as `--by` has it
    figures: ClassVar[tuple[str, ...]]
    words: str  # what it looks at
    mark: str  # of all that its figures depend on, apart from the graph and the settings

    def __call__(
        self, plan: Plan, *, cache: Path | None = None, on_block: OnBlock | None = None
    ) -> dict[str, float]:
        """The figures of one plan, each the mean over all repeats."""


class ByLabels:
    """Accuracy of a linear probe in the development half, in percent; no other label is known here.

    `splits` are those of `development_splits`: C is chosen on val, the accuracy is that on test.
    """

    name: ClassVar[str] = "labels"
    figures: ClassVar[tuple[str, ...]] = ("development_accuracy",)

    def __init__(self, graph: Graph, y: Labels, splits: Sequence[Split], *, seeds: int = 1) -> None:
        self.graph, self.seeds = graph, seeds
        self.splits = list(splits)
        self.y, self.half = development_labels(y), development_hash(y)
        if any((self.y[np.r_[s.train, s.val, s.test]] < 0).any() for s in splits):
            raise UserError("expected splits inside the development half, got nodes outside")
        self.words = (
            f"accuracy in the development half: {(self.y >= 0).sum():,} of {(y >= 0).sum():,} "
            "labels are read, scores are reported on the others"
        )
        parts = [part for s in self.splits for part in (s.train, s.val, s.test)]
        self.mark = digest(seeds, self.y, *parts)

    def __call__(
        self, plan: Plan, *, cache: Path | None = None, on_block: OnBlock | None = None
    ) -> dict[str, float]:
        """The mean over all seeds and splits."""
        return self.mean(self.accuracies(plan, cache=cache, on_block=on_block))

    def mean(self, accuracies: Accuracies) -> dict[str, float]:
        """The figure that settings are chosen by."""
        return {self.figures[0]: float(np.mean([np.mean(row) for row in accuracies]))}

    def accuracies(
        self, plan: Plan, *, cache: Path | None = None, on_block: OnBlock | None = None
    ) -> Accuracies:
        """Train once a seed; the accuracy on every split."""
        return [
            _by_split(probe(_train(plan, self.graph, seed, cache, on_block), self.y, self.splits))
            for seed in range(FIRST_SEED, FIRST_SEED + self.seeds)
        ]

    def controls(self, plan: Plan) -> dict[str, list[float]]:
        """The accuracy on every split of what needs no training."""
        found = {
            name: _by_split(probe(table, self.y, self.splits))
            for name, table in control_tables(plan, self.graph).items()
        }
        return {**found, MAJORITY: _by_split(majority(self.y, self.splits))}


class ByLinks:
    """AUC and average precision of hidden edges against pairs without an edge; no labels."""

    name: ClassVar[str] = "links"
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


class ByStructure:
    """Stable clusters that most edges stay inside (`muxgcl.evaluate.unlabelled`); no labels."""

    name: ClassVar[str] = "structure"
    figures: ClassVar[tuple[str, ...]] = Structure.FIGURES

    def __init__(self, graph: Graph, *, seeds: int = 1) -> None:
        self.graph, self.seeds = graph, seeds
        self.words = "structure: how stable clusters are, and how many edges lie inside them"
        self.mark = digest("structure", seeds)
        if not self.suits(graph):
            raise UserError(
                f"structure needs edges and at least {2 * CLUSTERS} nodes, got "
                f"{edges_of(graph).shape[1] // 2} edges and {graph.num_nodes} nodes; "
                "--by links may do"
            )

    @staticmethod
    def suits(graph: Graph) -> bool:
        """Whether the graph has enough nodes for clusters, and edges."""
        return graph.num_nodes >= 2 * CLUSTERS and edges_of(graph).size > 0

    def __call__(
        self, plan: Plan, *, cache: Path | None = None, on_block: OnBlock | None = None
    ) -> dict[str, float]:
        """The mean over all seeds."""
        edges = edges_of(self.graph)
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + self.seeds):
            judged = structure(_train(plan, self.graph, seed, cache, on_block), edges)
            if judged is None:
                raise UserError("expected an embedding of two columns at least")
            found.append([judged.to_dict()[name] for name in self.figures])
        return dict(zip(self.figures, np.mean(found, axis=0).tolist(), strict=True))


def measure_of(
    loaded: Loaded,
    graph: Graph,
    by: str | None = None,
    *,
    seeds: int = 1,
    splits: int = 20,
    split_seed: int = 0,
) -> Measure:
    """By labels where there are any, else by structure, or links in a tiny graph."""
    if seeds < 1:
        raise UserError(f"seeds must be at least 1, got {seeds}")
    if not 1 <= splits <= MOST_SPLITS:
        raise UserError(f"expected from 1 to {MOST_SPLITS:,} splits, got {splits:,}")
    if seeds > MOST_SEEDS:
        raise UserError(f"seeds must be at most {MOST_SEEDS:,}, got {seeds:,}")
    y = labels_of(loaded.tensors)
    if by == "labels" and y is None:
        raise UserError(
            "this graph has no labels: --label-column or --labels names them, --by structure "
            "chooses settings without them"
        )
    if by == "structure" or (by is None and y is None and ByStructure.suits(graph)):
        return ByStructure(graph, seeds=seeds)
    if by == "links" or y is None:
        return ByLinks(loaded, seeds=seeds)
    return ByLabels(graph, y, development_splits(y, splits, split_seed), seeds=seeds)


def _train(
    plan: Plan, graph: Graph, seed: int, cache: Path | None, on_block: OnBlock | None
) -> Rows:
    return fit(replace(plan, seed=seed), graph, cache=cache, on_block=on_block).embed().numpy()


def _by_split(found: ProbeResult) -> list[float]:
    return [split.accuracy for split in found.splits]


def digest(*parts: Any) -> str:
    """A short hash of arrays and of what is written as text."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part.tobytes() if isinstance(part, np.ndarray) else str(part).encode())
        found.update(b"|")
    return found.hexdigest()[:16]
