"""The ways to turn labels and embeddings into one figure.

| protocol      | split                            | choice of C           | reported           |
|---------------|----------------------------------|-----------------------|--------------------|
| `holdout`     | 20 random 10/10/40 splits        | validation tenth      | test               |
| `holdout-all` | the same, 10/10/80               | validation tenth      | test               |
| `public`      | the dataset's own                | its validation nodes  | test               |
| `paper`       | 3 fresh 10/10/80 splits an epoch | 5 folds of the train  | best epoch on test |

Test nodes of `holdout` are all of the report half (`muxgcl.evaluate.development`), where neither
`muxgcl tune` nor our own searches read labels; records/search.jsonl is older than that rule and
read labels of both halves. Test nodes of the others may be of the development half, on which
settings are chosen.
`paper` is what the released MUX-GCL script does. The best of many test scores is not an estimate of
anything a user will see, so its result says `optimistic` wherever it goes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from muxgcl.errors import UserError
from muxgcl.evaluate.arrays import Index, Labels, Table, checked_labels, unit_rows
from muxgcl.evaluate.logistic import fit_path
from muxgcl.evaluate.probe import STRENGTHS, ProbeResult, on_all_cores, probe
from muxgcl.evaluate.splits import Split, holdout_splits, random_split
from muxgcl.evaluate.statistics import Summary, summarise

FRESH_SPLITS = 3  # an epoch, of protocol `paper`


def holdout(
    z: Table,
    y: Labels,
    *,
    count: int = 20,
    seed: int = 0,
    everywhere: bool = False,
    device: str | None = None,
) -> ProbeResult:
    """Random splits, the same for every embedding of a graph, judged in the report half.

    With `everywhere` (protocol `holdout-all`) test nodes of the development half count as well.
    """
    return probe(z, y, holdout_splits(y, count, seed, everywhere=everywhere), device=device)


@dataclass(frozen=True, slots=True)
class PaperResult:
    """Scores of every observed epoch, and what is left when the epoch is not chosen on test."""

    epochs: dict[int, tuple[float, ...]]  # epoch -> test accuracies of its fresh splits, in percent

    @property
    def best_epoch(self) -> int:
        """The epoch with the best mean on *test* nodes."""
        return max(self.epochs, key=lambda epoch: float(np.mean(self.epochs[epoch])))

    @property
    def accuracy(self) -> Summary:
        """Of the best epoch on test: optimistic."""
        return summarise(self.epochs[self.best_epoch])

    @property
    def unselected(self) -> Summary:
        """Over all observed epochs and splits: the same figure without the choice."""
        return summarise([score for scores in self.epochs.values() for score in scores])

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `optimistic` travels with the figure."""
        return {
            "accuracy": self.accuracy.to_dict(),
            "optimistic": True,
            "best_epoch": self.best_epoch,
            "unselected": self.unselected.to_dict(),
        }


class PaperProtocol:
    """The released script's protocol, fed epoch by epoch from the training loop.

    Facts of the script that are kept: liblinear's penalised intercept; folds in the order the nodes
    were drawn, not stratified; in the folds an answer is right when exactly its one class is
    accepted; the final answer is the most likely class; the validation tenth is never used.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, 200)
        >>> protocol = PaperProtocol(y, seed=0)
        >>> for epoch in (299, 300):
        ...     scores = protocol.observe(epoch, rng.normal(size=(200, 4)) + 3 * y[:, None])
        >>> sorted(protocol.result().epochs)
        [299, 300]
    """

    def __init__(self, y: Labels, seed: int = 0) -> None:
        self.y, self.seed = checked_labels(y, len(y)), seed
        self.epochs: dict[int, tuple[float, ...]] = {}

    def observe(self, epoch: int, z: Table) -> tuple[float, ...]:
        """Score the embeddings of one epoch on fresh splits; returns test accuracies in percent."""
        z = unit_rows(z)
        y = checked_labels(self.y, z.shape[0])
        splits = [random_split(y, (self.seed, epoch, repeat)) for repeat in range(FRESH_SPLITS)]
        folds = [fold for split in splits for fold in _folds(split.train)]
        exact = on_all_cores(lambda fold: _exact_matches(z, y, *fold), folds)
        by_split = np.reshape(exact, (FRESH_SPLITS, -1, len(STRENGTHS)))  # [split, fold, C]
        chosen = [STRENGTHS[best] for best in by_split.mean(1).argmax(1)]

        def score(choice: tuple[Split, float]) -> float:
            split, strength = choice
            (model,) = fit_path(z[split.train], y[split.train], [strength], penalise_intercept=True)
            return 100 * float((model.predict(z[split.test]) == y[split.test]).mean())

        self.epochs[epoch] = tuple(on_all_cores(score, zip(splits, chosen, strict=True)))
        return self.epochs[epoch]

    def result(self) -> PaperResult:
        """What the epochs observed so far amount to."""
        if not self.epochs:
            raise UserError("expected at least one observed epoch before the result, got none")
        return PaperResult(dict(self.epochs))


def _folds(train: Index) -> list[tuple[Index, Index]]:
    """Nodes to fit on and nodes held back, five times."""
    if len(train) < 5:
        raise UserError(f"protocol paper needs at least 5 training nodes, got {len(train)}")
    return [(train[~np.isin(train, held)], held) for held in np.array_split(train, 5)]


def _exact_matches(z: Table, y: Labels, fit: Index, held: Index) -> list[float]:
    """For each strength the share of held-back nodes that their class, and no other, accepts."""
    shares = []
    for model in fit_path(z[fit], y[fit], STRENGTHS, penalise_intercept=True):
        own = y[held, None] == model.classes  # all False where the class was not in the fold
        exact = ((model.scores(z[held]) > 0) == own).all(1) & own.any(1)
        shares.append(float(exact.mean()))
    return shares
