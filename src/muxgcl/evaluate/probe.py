"""The linear probe: how much of the labels a logistic regression can read off an embedding.

L2-regularised logistic regression, one class against the rest, on rows of length one. The strength
is chosen on the validation nodes; test labels are read once, for the score of that one choice.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Int
from joblib import Parallel, cpu_count, delayed
from scipy import sparse
from threadpoolctl import threadpool_limits

from muxgcl.evaluate.arrays import (
    Index,
    Labels,
    Table,
    checked_labels,
    checked_table,
    unit_rows,
)
from muxgcl.evaluate.logistic import Linear, fit_path, predict_path
from muxgcl.evaluate.splits import Split, check_parts
from muxgcl.evaluate.statistics import Summary, summarise

# The grid of the GRACE family. Accuracy is flat within a factor of two, and the path makes each
# further value cheap, so nothing is gained by a coarser one.
STRENGTHS: tuple[float, ...] = tuple(2.0**power for power in range(-10, 10))

COUNTED = 100  # classes, the first ones, of which confusions are counted: a table of k x k a split
ROWS, SCORES = 2048, 1 << 22  # of a block: rows, and scores of them
TOGETHER = 2 << 30  # bytes that all splits in progress may take
ON_DEVICE = 8 << 30  # bytes of a table in double, up to which a GPU scores it
SMALL = 200_000  # numbers in a split's table, below which more threads wait for Python than work

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SplitScore:
    """What one split gave, in percent; `strength` is the chosen C."""

    accuracy: float
    macro_f1: float
    validation: float  # accuracy on the validation nodes, of the choice that was best there
    strength: float
    everywhere: float  # accuracy on test and on the uncounted nodes of the split
    confusion: Int[np.ndarray, "k k"]  # true class by predicted class, counts of test nodes


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """All splits, in the order they came."""

    classes: Labels  # names the rows and columns of the confusion matrix
    splits: tuple[SplitScore, ...]

    @property
    def accuracies(self) -> list[float]:
        """Accuracy (micro-averaged F1) on each split's test nodes, in percent."""
        return [split.accuracy for split in self.splits]

    @property
    def accuracy(self) -> Summary:
        """Accuracy over the splits, in percent."""
        return summarise(self.accuracies)

    @property
    def validation(self) -> Summary:
        """Accuracy on validation nodes over the splits, in percent: for choosing settings."""
        return summarise([split.validation for split in self.splits])

    @property
    def macro_f1(self) -> Summary:
        """Unweighted mean over classes of F1, over the splits, in percent."""
        return summarise([split.macro_f1 for split in self.splits])

    @property
    def confusion(self) -> Int[np.ndarray, "k k"]:
        """True class by predicted class: test nodes, summed over the splits."""
        return np.sum([split.confusion for split in self.splits], axis=0)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """For JSON: the summaries."""
        return {"accuracy": self.accuracy.to_dict(), "macro_f1": self.macro_f1.to_dict()}

    def to_record(self) -> dict[str, Any]:
        """For JSON: every split by itself."""
        return {
            "accuracy": self.accuracies,
            "macro_f1": [split.macro_f1 for split in self.splits],
            "everywhere": [split.everywhere for split in self.splits],
            "strength": [split.strength for split in self.splits],
        }


def probe(
    z: Table,
    y: Labels,
    splits: Sequence[Split],
    *,
    strengths: Sequence[float] = STRENGTHS,
    device: str | None = None,
) -> ProbeResult:
    """Score an embedding on each split: fit on train, choose C on val, look at test once.

    Args:
        z: embeddings or features [n, d], dense or scipy sparse.
        y: one label a node, -1 for none.
        splits: from `holdout_splits` or `public_splits`.
        strengths: the values of C to choose from, ascending; the smallest wins a tie.
        device: a GPU to work on, if the table fits there; the answers are the same.
    """
    from sklearn.metrics import confusion_matrix, f1_score  # takes seconds to load

    z = checked_table(z)
    y = checked_labels(y, z.shape[0])
    classes = np.unique(y[y >= 0])
    check_parts(splits)
    counted = classes[:COUNTED]

    def confusion(truth: Labels, answer: Labels) -> Int[np.ndarray, "k k"]:
        both = np.isin(truth, counted) & np.isin(answer, counted)
        if not both.any():
            return np.zeros((len(counted),) * 2, np.int64)
        return confusion_matrix(truth[both], answer[both], labels=counted)

    def judged(split: Split, told: Labels, validation: float, strength: float) -> SplitScore:
        truth, answer = y[split.test], told[: len(split.test)]
        return SplitScore(
            accuracy=100 * float((truth == answer).mean()),
            everywhere=100 * float((y[_looked_at(split)] == told).mean()),
            macro_f1=100 * float(f1_score(truth, answer, average="macro", zero_division=0)),
            validation=validation,
            strength=strength,
            confusion=confusion(truth, answer),
        )

    def score(split: Split) -> SplitScore:
        path = fit_path(unit_rows(z[split.train]), y[split.train], strengths)
        hits = (_answers(path, z, split.val) == y[split.val]).sum(1)
        best = int(np.argmax(hits))
        (told,) = _answers(path[best : best + 1], z, _looked_at(split))
        return judged(split, told, 100 * int(hits[best]) / len(split.val), strengths[best])

    if device is not None and 8 * z.shape[0] * z.shape[1] < ON_DEVICE:
        import torch

        from muxgcl.evaluate.device_probe import answers

        rows = torch.as_tensor(z.toarray() if sparse.issparse(z) else z, device=device)
        parts = [replace(split, test=_looked_at(split), uncounted=None) for split in splits]
        solved = zip(splits, answers(rows, y, parts, strengths), strict=True)
        found = [judged(split, a.predicted, a.validation, a.strength) for split, a in solved]
        return ProbeResult(counted, tuple(found))
    most = max((len(split.train) for split in splits), default=0)
    small = most * min(most, z.shape[1]) < SMALL
    width = min(most, z.shape[1]) if sparse.issparse(z) else z.shape[1]
    threads = 2 if small else max(1, TOGETHER // workspace(most, width))
    return ProbeResult(counted, tuple(on_all_cores(score, splits, most=threads)))


def _looked_at(split: Split) -> Index:
    """The nodes of test, and after them the uncounted ones."""
    return split.test if split.uncounted is None else np.concatenate([split.test, split.uncounted])


def workspace(train: int, width: int) -> int:
    """Bytes that a split takes: its training rows, rotated ones, and the basis of these."""
    least = min(train, width)
    return 8 * (train * width + 2 * train * least + least**2)


def _answers(path: Sequence[Linear], z: Table, nodes: Index) -> Int[np.ndarray, "c m"]:
    """What models predict of nodes; a block of rows at a time has length one, in double."""
    step = max(1, min(ROWS, SCORES // (len(path) * len(path[0].classes))))
    starts = range(0, max(1, len(nodes)), step)
    blocks = [predict_path(path, unit_rows(z[nodes[start : start + step]])) for start in starts]
    return np.concatenate(blocks, axis=1)


def on_all_cores(
    work: Callable[[Any], T], items: Iterable[Any], most: int | None = None
) -> list[T]:
    """Map in threads, one core each, `most` at a time: one solve is too small to share."""
    threads = min(cpu_count(), most or cpu_count())
    with threadpool_limits(limits=1, user_api="blas"):
        return list(
            Parallel(n_jobs=threads, prefer="threads")(delayed(work)(item) for item in items)
        )
