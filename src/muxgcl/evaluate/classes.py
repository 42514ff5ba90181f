r"""The class of every node: the probe of the scores, learned from all nodes that have a label.

Its strength $C$ is the one with the most right answers on labelled nodes that are held back, a
fifth at a time. The accuracy to expect is counted on the same nodes, each answered by the strength
that is best on the *other* fifths, and in the report half alone: settings are never chosen there.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit

from muxgcl.evaluate.arrays import Index, Labels, Table, checked_labels, checked_table, unit_rows
from muxgcl.evaluate.development import node_keys, report_half
from muxgcl.evaluate.logistic import fit_path, predict_path
from muxgcl.evaluate.probe import ROWS, STRENGTHS, TOGETHER, on_all_cores, workspace
from muxgcl.evaluate.splits import count_classes

FOLDS = 5
MOST = 20_000  # labelled nodes that are learned from
_KEYS = 2  # the seed of the order in which nodes are dealt out


@dataclass(frozen=True, slots=True, eq=False)
class Classified:
    """The most likely class of every node, and how likely it is."""

    predicted: Labels
    probability: Float[np.ndarray, " n"]
    strength: float  # the chosen C
    learned: int  # labelled nodes that it was learned from
    accuracy: float  # to expect, in percent
    judged: int  # nodes that it is counted on


def classify(z: Table, y: Labels) -> Classified:
    """Tell the class of every node of an embedding from the labels of some.

    A class's probability is that of its own logistic regression against the rest, divided by the
    sum over all classes.

    Args:
        z: embeddings or features [n, d], dense or scipy sparse.
        y: one label a node, -1 for none. Of more than 20,000 labelled nodes a fixed sample counts.

    Example:
        >>> z = np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8], [1.0, 0.3]])
        >>> classify(z, np.array([0, 0, 1, 1, -1])).predicted
        array([0, 0, 1, 1, 0])
    """
    z = checked_table(z)
    y = checked_labels(y, z.shape[0])
    count_classes(y)
    nodes = np.flatnonzero(y >= 0)
    nodes = np.sort(nodes[np.argsort(node_keys(nodes, _KEYS))[:MOST]])
    x, truth = unit_rows(z[nodes]), y[nodes]
    right, fold = _held_back(x, truth, nodes)
    strength = STRENGTHS[int(right.sum(0).argmax())]
    counted = report_half(y)[nodes]
    others = [right[fold != one].sum(0).argmax() for one in range(fold.max() + 1)]
    hits = right[np.arange(len(nodes)), np.array(others)[fold]][counted]

    (model,) = fit_path(x, truth, [strength])
    predicted, probability = np.empty(len(y), np.int64), np.empty(len(y))
    for start in range(0, len(y), ROWS):
        likely = expit(model.scores(unit_rows(z[start : start + ROWS])))
        predicted[start : start + ROWS] = model.classes[likely.argmax(1)]
        probability[start : start + ROWS] = likely.max(1) / likely.sum(1)
    accuracy = 100 * float(hits.mean())
    return Classified(predicted, probability, strength, len(nodes), accuracy, len(hits))


def _held_back(x: Table, y: Labels, nodes: Index) -> tuple[Bool[np.ndarray, "m c"], Index]:
    """For each labelled node its fold, and which strengths answer right when that is held back."""
    fold = np.empty(len(y), np.int64)
    by_class = np.lexsort((node_keys(nodes, _KEYS), y))
    fold[by_class] = np.arange(len(y)) % FOLDS
    right = np.empty((len(y), len(STRENGTHS)), bool)

    def hold(one: int) -> None:
        held = fold == one
        path = fit_path(x[~held], y[~held], STRENGTHS)
        right[held] = (predict_path(path, x[held]) == y[held]).T

    threads = max(1, TOGETHER // workspace(*x.shape))
    on_all_cores(hold, range(fold.max() + 1), most=threads)
    return right, fold
