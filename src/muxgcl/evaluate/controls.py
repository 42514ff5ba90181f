r"""What needs no training: a method that does not beat these has learned nothing.

| name         | what it is                                                       |
|--------------|------------------------------------------------------------------|
| `raw`        | the features $X$                                                 |
| `A X`        | averaged over one hop                                            |
| `A^2 X`      | averaged over two hops, as in SGC (Wu et al. 2019, eq. 8)        |
| `X|AX|A^2X`  | these three side by side, each with rows of length one           |
| `majority`   | the most frequent class of the training nodes, for every node    |

$A$ is the propagation matrix $D^{-1/2} (A + I) D^{-1/2}$ of the encoders. Tables go to the probe,
which scales rows to length one; no other scaling is done. Sparse features stay sparse.
"""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from muxgcl.evaluate.arrays import Labels, Table, checked_labels, unit_rows
from muxgcl.evaluate.probe import ProbeResult, SplitScore
from muxgcl.evaluate.splits import Split

RAW, ONE_HOP, TWO_HOPS, SIDE_BY_SIDE = "raw", "A X", "A^2 X", "X|AX|A^2X"
MAJORITY = "majority"
UNTRAINED = "untrained"  # the method's own encoder with its first weights
NAMES = {RAW: "raw features", UNTRAINED: "untrained encoder", MAJORITY: "majority class"}


def control_name(key: str) -> str:
    """A control as a person calls it."""
    return NAMES.get(key, key)


def raw_features(x: Table) -> Table:
    """The features themselves, as a sparse matrix where most entries are zero."""
    if sparse.issparse(x):
        return sparse.csr_array(x)
    x = np.asarray(x)
    return sparse.csr_array(x) if np.count_nonzero(x) < x.size / 4 else x


def feature_controls(x: Table, propagation: Table) -> dict[str, Table]:
    """The features, propagated ones, and all of them side by side.

    Args:
        x: features [n, f], dense or scipy sparse.
        propagation: $D^{-1/2} (A + I) D^{-1/2}$ as a scipy sparse matrix [n, n].
    """
    x = raw_features(x)
    once = raw_features(propagation @ x)
    twice = raw_features(propagation @ once)
    return {
        RAW: x,
        ONE_HOP: once,
        TWO_HOPS: twice,
        SIDE_BY_SIDE: side_by_side([x, once, twice]),
    }


def side_by_side(tables: Sequence[Table]) -> Table:
    """Tables as one, each with rows of length one; sparse where all of them are."""
    rows = [unit_rows(table).astype(np.float32) for table in tables]
    if all(map(sparse.issparse, rows)):
        return sparse.csr_array(sparse.hstack(rows))
    return np.hstack([r.toarray() if sparse.issparse(r) else r for r in rows])


def majority(y: Labels, splits: Sequence[Split]) -> ProbeResult:
    """The training nodes' most frequent class (the smallest of several) for every test node."""
    from sklearn.metrics import confusion_matrix, f1_score  # takes seconds to load

    y = checked_labels(y, len(y))
    classes = np.unique(y[y >= 0])

    def score(split: Split) -> SplitScore:
        found, counts = np.unique(y[split.train], return_counts=True)
        answer = found[counts.argmax()]
        truth, answers = y[split.test], np.full(len(split.test), answer)
        aside = split.test[:0] if split.aside is None else split.aside
        return SplitScore(
            accuracy=100 * float((truth == answer).mean()),
            everywhere=100 * float((y[np.r_[split.test, aside]] == answer).mean()),
            macro_f1=100 * float(f1_score(truth, answers, average="macro", zero_division=0)),
            validation=100 * float((y[split.val] == answer).mean()),
            strength=0.0,
            confusion=confusion_matrix(truth, answers, labels=classes),
        )

    return ProbeResult(classes, tuple(map(score, splits)))
