r"""What needs no training: a method that does not beat these has learned nothing.

| name         | what it is                                                       |
|--------------|------------------------------------------------------------------|
| `raw`        | the features $X$                                                 |
| `A X`        | averaged over one hop                                            |
| `A^2 X`      | averaged over two hops, as in SGC (Wu et al. 2019, eq. 8)        |
| `X|AX|A^2X`  | these three side by side, each with rows of length one           |
| `majority`   | the most frequent class of the training nodes, for every node    |

$A$ is the propagation matrix $D^{-1/2} (A + I) D^{-1/2}$ of the encoders. Tables go to the probe,
which scales rows to length one; no other scaling is done. Sparse features stay sparse; propagated
ones do while most of their entries are zero.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import sparse

from muxgcl.evaluate.arrays import Index, Labels, Table, checked_labels, unit_rows
from muxgcl.evaluate.probe import ProbeResult, SplitScore
from muxgcl.evaluate.splits import Split

RAW, ONE_HOP, TWO_HOPS, SIDE_BY_SIDE = "raw", "A X", "A^2 X", "X|AX|A^2X"
MAJORITY = "majority"
SAMPLE = 1000  # rows that show how full a product is
COLUMNS = 64  # of a product that are made at once
ROWS = 4096  # that are scaled at once
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
    """The features, propagated ones, and all of them side by side, by name.

    Args:
        x: features [n, f], dense or scipy sparse.
        propagation: $D^{-1/2} (A + I) D^{-1/2}$ as a scipy sparse matrix [n, n].
    """
    return dict(each_feature_control(x, propagation))


def each_feature_control(
    x: Table, propagation: Table, rows: Index | None = None
) -> Iterator[tuple[str, Table]]:
    """What `feature_controls` has, each table made when it is asked for.

    Args:
        x: features [n, f], dense or scipy sparse.
        propagation: $D^{-1/2} (A + I) D^{-1/2}$ as a scipy sparse matrix [n, n].
        rows: the nodes whose rows are wanted; all by default.
    """

    def wanted(table: Table) -> Table:
        return table if rows is None else table[rows]

    x = raw_features(x)
    raw = wanted(x)
    yield RAW, raw
    x = propagated(propagation, x)
    once = wanted(x)
    yield ONE_HOP, once
    twice = propagated(wanted(propagation), x)
    del x
    yield TWO_HOPS, twice
    together = side_by_side([raw, once, twice])
    del raw, once, twice
    yield SIDE_BY_SIDE, together


def propagated(propagation: Table, x: Table) -> Table:
    """The product; dense where more than half of it is not zero: that is smaller, and faster."""
    if not sparse.issparse(x):
        return raw_features(propagation @ x)
    first = propagation[:SAMPLE] @ x
    if 2 * first.nnz <= np.prod(first.shape):
        return sparse.csr_array(propagation @ x)
    table = np.empty((propagation.shape[0], x.shape[1]), x.dtype)
    for start in range(0, x.shape[1], COLUMNS):
        some = slice(start, start + COLUMNS)
        table[:, some] = propagation @ x[:, some].toarray()
    return table


def side_by_side(tables: Sequence[Table]) -> Table:
    """Tables as one, each with rows of length one; sparse where all of them are."""
    if all(map(sparse.issparse, tables)):
        rows = [unit_rows(table).astype(np.float32) for table in tables]
        return sparse.csr_array(sparse.hstack(rows))
    ends = np.cumsum([table.shape[1] for table in tables])
    whole = np.empty((tables[0].shape[0], ends[-1]), np.float32)
    for table, part in zip(tables, np.split(whole, ends[:-1], axis=1), strict=True):
        for start in range(0, len(whole), ROWS):
            block = unit_rows(table[start : start + ROWS])
            part[start : start + ROWS] = block.toarray() if sparse.issparse(block) else block
    return whole


def majority(y: Labels, splits: Sequence[Split]) -> ProbeResult:
    """The training nodes' most frequent class (the smallest of several) for every test node."""
    from sklearn.metrics import confusion_matrix, f1_score  # takes seconds to load

    y = checked_labels(y, len(y))
    classes = np.unique(y[y >= 0])

    def score(split: Split) -> SplitScore:
        found, counts = np.unique(y[split.train], return_counts=True)
        answer = found[counts.argmax()]
        truth, answers = y[split.test], np.full(len(split.test), answer)
        uncounted = split.test[:0] if split.uncounted is None else split.uncounted
        return SplitScore(
            accuracy=100 * float((truth == answer).mean()),
            everywhere=100 * float((y[np.r_[split.test, uncounted]] == answer).mean()),
            macro_f1=100 * float(f1_score(truth, answers, average="macro", zero_division=0)),
            validation=100 * float((y[split.val] == answer).mean()),
            strength=0.0,
            confusion=confusion_matrix(truth, answers, labels=classes),
        )

    return ProbeResult(classes, tuple(map(score, splits)))
