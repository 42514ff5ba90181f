"""Classes of all nodes, against scikit-learn on the same table."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from muxgcl.errors import UserError
from muxgcl.evaluate import STRENGTHS, classes, classify, report_half
from muxgcl.evaluate.arrays import unit_rows


def partly_labelled(
    k: int, n: int = 300, every: int = 2, noise: float = 1.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An embedding, the class of every node, and the labels of every second one."""
    rng = np.random.default_rng(k)
    truth = rng.integers(0, k, n)
    z = 2 * rng.normal(size=(k, 12))[truth] + noise * rng.normal(size=(n, 12))
    return z.astype(np.float32), truth, np.where(np.arange(n) % every == 0, truth, -1)


def scikit(z: np.ndarray, y: np.ndarray, strength: float) -> np.ndarray:
    """Probabilities by one regression a class, on rows of length one."""
    one = LogisticRegression(C=strength, tol=1e-12, max_iter=10_000)
    known = y >= 0
    return OneVsRestClassifier(one).fit(unit_rows(z[known]), y[known]).predict_proba(unit_rows(z))


@pytest.mark.parametrize("k", [2, 3, 6])
def test_classes_and_probabilities_are_scikit_learns(k: int) -> None:
    z, _, y = partly_labelled(k)
    found = classify(z, y)
    want = scikit(z, y, found.strength)
    np.testing.assert_allclose(found.probability, want.max(1), atol=1e-3)
    sure = np.sort(want, axis=1)[:, -1] - np.sort(want, axis=1)[:, -2] > 1e-3  # no ties
    assert (found.predicted == want.argmax(1))[sure].all()
    assert sure.mean() > 0.9


def test_the_strength_is_the_best_one_on_nodes_that_are_held_back() -> None:
    z, _, y = partly_labelled(3, every=3)
    nodes = np.flatnonzero(y >= 0)
    found = classify(z, y)
    right, fold = classes._held_back(unit_rows(z[nodes]), y[nodes], nodes)
    assert np.bincount(fold).tolist() == [20] * 5
    assert STRENGTHS.index(found.strength) == right.sum(0).argmax()
    held, at = fold == 2, 9
    kept = np.full(len(y), -1)
    kept[nodes[~held]] = y[nodes[~held]]
    want = scikit(z, kept, STRENGTHS[at])[nodes[held]].argmax(1) == y[nodes[held]]
    assert (right[held, at] == want).mean() > 0.95


def test_the_accuracy_to_expect_is_that_of_the_other_nodes() -> None:
    z, truth, y = partly_labelled(4, n=4000, noise=4)
    found = classify(z, y)
    real = 100 * (found.predicted == truth)[y < 0].mean()
    assert 40 < real < 90
    assert found.accuracy == pytest.approx(real, abs=4)
    assert (found.learned, found.judged) == (2000, int(report_half(y).sum()))


def test_labels_that_say_nothing_promise_nothing() -> None:
    """Chosen of twenty strengths by the very nodes it is counted on, it would be above chance."""
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    told = [classify(rng.normal(size=(2000, 5)), rng.permutation(y)).accuracy for _ in range(8)]
    assert abs(np.mean(told) - 50) < 2


def test_of_many_labelled_nodes_a_fixed_sample_is_learned_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z, _, y = partly_labelled(3)
    monkeypatch.setattr(classes, "MOST", 40)
    one, two = classify(z, y), classify(z, y)
    assert one.learned == 40
    assert (one.predicted == two.predicted).all()


@pytest.mark.parametrize("labels", [[0, 1, -1, -1], [0, 1, 1, -1], [0, 1, 2, 3]])
def test_a_label_or_two_are_enough(labels: list[int]) -> None:
    found = classify(np.eye(4, 3), np.array(labels))
    assert set(found.predicted) <= {*labels} - {-1}
    assert ((found.probability > 0) & (found.probability <= 1)).all()


def test_one_class_is_refused() -> None:
    with pytest.raises(UserError, match="expected at least two classes"):
        classify(np.eye(4), np.array([0, 0, 0, -1]))
