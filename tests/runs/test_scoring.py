"""From embeddings and labels to scores: what is refused, what is noted, what is judged where."""

from typing import Any

import numpy as np
import pytest
import torch

from muxgcl.errors import UserError
from muxgcl.evaluate import STRENGTHS, cluster
from muxgcl.evaluate.development import report_labels
from muxgcl.io import planted
from muxgcl.runs import scoring
from muxgcl.runs.scoring import (
    check_scoring,
    cluster_scores,
    labels_of,
    score,
    splits_of,
    summaries,
)
from muxgcl.tensors import Tensors

DATA = planted(nodes=60)
Z = DATA.x.numpy()


def labelled(y: Any) -> Tensors:
    return Tensors(x=torch.ones(len(y), 1), y=torch.tensor(y))


def test_labels_are_whole_numbers_one_a_node_or_none_at_all() -> None:
    found = labels_of(labelled([[0], [2], [-1]]))
    assert found is not None
    assert (found.dtype, found.tolist()) == (np.int64, [0, 2, -1])
    assert labels_of(labelled([-1, -1])) is None
    assert labels_of(labelled([-1, 0])) is not None
    assert labels_of(Tensors(x=torch.ones(2, 1))) is None


@pytest.mark.parametrize(
    ("splits", "message"),
    [(0, "splits must be at least 1, got 0"), (10_001, "splits must be at most 10,000 .* 10,001")],
)
def test_a_number_of_splits_has_bounds(splits: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_scoring(DATA, None, splits)


def test_bounds_of_splits_are_within_them() -> None:
    assert check_scoring(DATA, None, 1) == check_scoring(DATA, None, 10_000) == []


def test_scores_without_labels_are_refused_where_they_are_asked_for() -> None:
    bare = Tensors(x=torch.ones(3, 1))
    assert check_scoring(bare, None, 1) == check_scoring(bare, None, 1, controls=False) == []
    with pytest.raises(UserError, match="protocol public needs labels, and this graph has none"):
        check_scoring(bare, ("public", "holdout"), 1)
    with pytest.raises(UserError, match="a score of the controls needs labels"):
        check_scoring(bare, None, 1, controls=True)
    with pytest.raises(UserError, match="no labels, so there is nothing to classify"):
        splits_of(bare, "holdout", 1, 0)


def test_classes_that_cannot_be_learned_are_refused_and_many_are_noted() -> None:
    note = "101 classes: confusions are counted of the first 100"
    assert check_scoring(labelled([*range(101)] * 2), ("holdout",), 1)[0] == note
    assert check_scoring(labelled([*range(100)] * 2), ("holdout",), 1) == []
    with pytest.raises(UserError, match="101 classes among 201 labelled nodes cannot be learned"):
        check_scoring(labelled([*range(101), *range(100)]), ("holdout",), 1)
    check_scoring(labelled([*range(100)] * 1 + [-1]), ("holdout",), 1)  # few enough to count


def test_the_weights_of_a_probe_are_counted_for_the_classes_that_it_can_see(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(scoring, "check_size", lambda what, size: sizes.append(size))
    check_scoring(labelled([k % 3 for k in range(60)]), None, 1)
    check_scoring(labelled([*range(50)] * 4), None, 1)  # a tenth of the nodes is trained on
    assert sizes == [8 * len(STRENGTHS) * classes * 512 for classes in (3, 20)]


def test_what_is_not_said_is_scored_by_twenty_splits_from_seed_0_with_controls() -> None:
    how = scoring.Judging(DATA)
    assert (how.protocols, how.splits, how.split_seed) == (("holdout",), 20, 0)
    assert how.controls


@pytest.mark.parametrize("protocol", ["holdout", "paper"])
def test_the_parts_of_a_split_are_looked_at_before_training(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(scoring, "check_parts", seen.append)
    check_scoring(DATA, (protocol,), 7)
    ((first, *_),) = seen
    assert (first.uncounted is None) == (protocol == "paper")  # which tests everywhere


def test_a_sample_of_the_nodes_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    data = labelled([k % 3 for k in range(60_000)])
    (note,) = check_scoring(data, ("holdout",), 1)
    assert note.startswith(
        "protocol holdout looks at a sample of the nodes: train, val, test 4,000"
    )
    assert check_scoring(data, ("paper",), 1) == []
    monkeypatch.setattr(scoring, "subsampled", lambda split: split)
    assert check_scoring(data, ("holdout",), 1) == []


def test_a_protocol_has_its_own_splits() -> None:
    one, two = splits_of(DATA, "holdout", 2, 5)
    assert not np.array_equal(one.train, two.train)
    (again,) = splits_of(DATA, "holdout", 1, 5)
    assert np.array_equal(one.train, again.train)
    (other,) = splits_of(DATA, "holdout", 1, 6)
    assert not np.array_equal(one.train, other.train)
    (everywhere,) = splits_of(DATA, "holdout-all", 1, 5)
    assert everywhere.uncounted is None
    assert set(everywhere.test) > set(one.test)
    masks = {name: torch.zeros(60, dtype=torch.bool) for name in scoring.MASKS}
    for at, mask in enumerate(masks.values()):
        mask[20 * at : 20 * at + 20] = True
    (public,) = splits_of(Tensors(x=DATA.x, y=DATA.y, **masks), "public", 9, 5)
    assert (public.train.tolist(), public.test.tolist()) == ([*range(20)], [*range(40, 60)])
    with pytest.raises(UserError, match="protocol paper looks at epochs of training"):
        splits_of(DATA, "paper", 1, 0)
    with pytest.raises(UserError, match=r"protocol must be one of holdout, .*, got 'fast'"):
        splits_of(DATA, "fast", 1, 0)


def test_scores_are_those_of_the_protocols_and_of_k_means() -> None:
    found, confusion = score(Z, DATA, ("holdout", "paper"), splits=2, split_seed=3, clusterings=2)
    assert list(found) == ["holdout", "clustering"]
    assert found["holdout"]["accuracy"]["n"] == 2
    assert found["holdout"]["per_split"]["split_seed"] == 3
    assert len(found["holdout"]["per_split"]["accuracy"]) == 2
    assert found["clustering"]["nmi"]["n"] == 2
    assert confusion is not None
    first, _ = score(Z, DATA, ("holdout",), splits=1, split_seed=3, clusterings=0)
    assert list(first) == ["holdout"]
    each = first["holdout"]["per_split"]["accuracy"]
    assert each == found["holdout"]["per_split"]["accuracy"][:1]
    assert score(Z, Tensors(x=DATA.x), ("holdout",)) == ({}, None)


def test_the_confusion_is_that_of_the_first_protocol() -> None:
    _, both = score(Z, DATA, ("holdout-all", "holdout"), splits=1, clusterings=0)
    _, first = score(Z, DATA, ("holdout-all",), splits=1, clusterings=0)
    _, second = score(Z, DATA, ("holdout",), splits=1, clusterings=0)
    assert np.array_equal(both, first)
    assert not np.array_equal(both, second)


def test_rows_of_some_nodes_are_scored_as_they_are_in_the_whole_table() -> None:
    (split,) = splits_of(DATA, "holdout", 1, 0)
    parts = (split.train, split.val, split.test, split.uncounted)
    rows = np.unique(np.concatenate([part for part in parts if part is not None]))
    whole, _ = score(Z, DATA, splits=1, clusterings=0)
    some, _ = score(Z[rows], DATA, splits=1, clusterings=0, rows=rows)
    assert some == whole


def test_all_nodes_are_clustered_and_those_of_the_report_half_are_compared() -> None:
    y = DATA.y.numpy()
    found = cluster_scores(Z, y, repeats=2, seed=4)
    want = cluster(Z, report_labels(y), clusters=3, repeats=2, seed=4)
    assert found.to_dict() == want.to_dict()
    five = cluster_scores(Z, y, clusters=5, repeats=2, seed=4)
    assert five.to_dict() == cluster(Z, report_labels(y), clusters=5, repeats=2, seed=4).to_dict()
    alone = np.full(60, -1)
    alone[7] = 0
    assert cluster_scores(Z, alone, clusters=2, repeats=1).to_dict()["nmi"]["n"] == 1


def test_summaries_leave_out_single_splits_at_every_depth() -> None:
    scores = {
        "holdout": {"accuracy": {"mean": 1.0}, "per_split": {"accuracy": [1.0]}},
        "controls": {"raw": {"holdout": {"accuracy": {"mean": 2.0}, "per_split": {}}}},
        "seconds": 3.0,
    }
    assert summaries(scores) == {
        "holdout": {"accuracy": {"mean": 1.0}},
        "controls": {"raw": {"holdout": {"accuracy": {"mean": 2.0}}}},
        "seconds": 3.0,
    }
