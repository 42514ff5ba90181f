"""The protocols: honest ones look once, `paper` does what the released script does."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import OneHotEncoder, normalize

from muxgcl.errors import UserError
from muxgcl.evaluate import (
    STRENGTHS,
    PaperProtocol,
    PaperResult,
    holdout,
    holdout_splits,
    probe,
    public_splits,
    random_split,
)


def embedding(
    n: int = 400, d: int = 12, k: int = 3, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return 0.8 * rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), y


def released_script(z: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    """One-hot labels, liblinear, five folds, argmax of the probabilities, in plain scikit-learn."""
    z, hot = normalize(z), OneHotEncoder().fit_transform(y[:, None]).toarray().astype(int)
    model = OneVsRestClassifier(LogisticRegression(solver="liblinear", tol=1e-8, max_iter=10_000))
    search = GridSearchCV(model, {"estimator__C": STRENGTHS}, cv=5).fit(z[train], hot[train])
    return 100 * float((search.predict_proba(z[test]).argmax(1) == y[test]).mean())


def test_holdout_probes_the_shared_splits() -> None:
    z, y = embedding()
    want = probe(z, y, holdout_splits(y, 3, 5))
    assert holdout(z, y, count=3, seed=5).to_record() == want.to_record()
    assert len(holdout(z, y).splits) == 20


def test_public_probes_one_split_that_is_the_masks() -> None:
    z, y = embedding()
    part = np.arange(len(y)) % 5
    splits = public_splits(y, part == 0, part == 1, part > 1)
    assert probe(z, y, splits).accuracy.n == 1
    assert np.array_equal(splits[0].test, np.flatnonzero(part > 1))


def test_paper_scores_are_those_of_the_released_script() -> None:
    z, y = embedding()
    protocol = PaperProtocol(y, seed=4)
    got = protocol.observe(17, z)
    splits = [random_split(y, (4, 17, repeat)) for repeat in range(3)]
    assert got == pytest.approx([released_script(z, y, s.train, s.test) for s in splits])


def test_paper_takes_fresh_splits_each_epoch_and_reports_the_best_on_test() -> None:
    z, y = embedding()
    protocol = PaperProtocol(y)
    scores = {epoch: protocol.observe(epoch, z) for epoch in (1, 2, 3)}
    assert len(set(scores.values())) == 3
    result = protocol.result()
    means = {epoch: np.mean(values) for epoch, values in scores.items()}
    assert result.accuracy.mean == pytest.approx(max(means.values()))
    assert means[result.best_epoch] == max(means.values())
    assert result.unselected.mean == pytest.approx(np.mean(list(means.values())))
    assert result.accuracy.mean > result.unselected.mean


def test_paper_depends_on_the_epoch_and_not_on_when_it_is_observed() -> None:
    z, y = embedding()
    one, two = PaperProtocol(y), PaperProtocol(y)
    one.observe(1, z)
    assert one.observe(2, z) == two.observe(2, z)


def test_paper_is_marked_optimistic_in_json() -> None:
    result = PaperResult({298: (80.0, 82.0, 84.0), 299: (81.0, 81.0, 81.0)})
    assert json.loads(json.dumps(result.to_dict())) == {
        "accuracy": {"mean": 82.0, "std": 2.0, "n": 3},
        "optimistic": True,
        "best_epoch": 298,
        "unselected": {
            "mean": 81.5,
            "std": pytest.approx(np.std([80, 82, 84, 81, 81, 81], ddof=1)),
            "n": 6,
        },
    }


def test_paper_with_nothing_observed_or_too_few_nodes_is_refused() -> None:
    with pytest.raises(UserError, match="at least one observed epoch"):
        PaperProtocol(np.zeros(50, np.int64)).result()
    with pytest.raises(UserError, match="at least 5 training nodes, got 2"):
        PaperProtocol(np.arange(20) % 2).observe(0, np.ones((20, 2)))
