"""Whether training paid: paired differences and the sentence that follows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from muxgcl.evaluate import paired_difference, verdict
from muxgcl.evaluate.statistics import Summary, summarise
from muxgcl.evaluate.verdict import (
    _advice,
    _Compared,
    _figures,
    _judge,
    _outcome,
    split_accuracies,
)


def part(values: list[float], seed: int = 0) -> dict[str, Any]:
    return {"per_split": {"accuracy": values, "split_seed": seed}}


def scores(own: list[float], seed: int = 0, **controls: list[float]) -> dict[str, Any]:
    rivals = {name.replace("_", " "): {"holdout": part(v)} for name, v in controls.items()}
    return {"holdout": part(own, seed), "controls": rivals}


def test_the_best_control_is_the_yardstick_and_differences_are_paired() -> None:
    found = verdict("mux", scores([81.0, 72, 94], raw=[80.0, 70, 90], A_X=[10.0, 10, 10]))
    assert found is not None
    assert (found.control, found.protocol, found.ahead, found.paid) == ("raw", "holdout", 3, True)
    assert found.difference.mean == pytest.approx((1 + 2 + 4) / 3)
    assert found.difference.std == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert found.interval is None
    assert found.sentence == (
        "training paid: mux is 2.33 points of accuracy above the best control, raw features "
        "(paired difference +2.33 ± 1.53 over 3 splits of one run; ahead in 3 of 3)"
    )


def test_where_training_did_not_pay_the_control_is_advised() -> None:
    found = verdict("mux", scores([70.0, 71], A_X=[80.0, 82]))
    assert found is not None
    assert found.paid is False
    assert found.sentence.startswith("training did not pay: mux is 10.50 points of accuracy below")
    assert "use A X (--method sgc --set steps=1), or try another method" in found.sentence


def test_of_a_method_without_training_no_training_is_judged() -> None:
    same = verdict("sgc", scores([70.0, 71], raw=[71.0, 70]))
    below = verdict("raw", scores([70.0, 71], **{"A^2_X": [80.0, 82]}))
    above = verdict("random-gcn", scores([70.0, 71], raw=[60.0, 62]))
    assert same is not None
    assert below is not None
    assert above is not None
    assert same.sentence.startswith(
        "sgc, which is not trained, and the best control, raw features, are"
    )
    assert "use" not in same.sentence
    assert below.sentence.startswith("raw, which is not trained, is 10.50 points of accuracy below")
    assert "use A^2 X (--method sgc)" in below.sentence
    assert "random-gcn, which is not trained, is 9.50 points of accuracy above" in above.sentence


def test_a_difference_within_the_spread_of_the_splits_is_not_called() -> None:
    found = verdict("mux", scores([80.0, 82], raw=[81.0, 80]))
    assert found is not None
    assert found.paid is None
    assert "no clear difference" in found.sentence
    assert "use raw features (--method raw), which is cheaper" in found.sentence


@pytest.mark.parametrize("own", [100.0, 50.0])
def test_where_no_split_differs_from_another_there_is_no_verdict_and_no_advice(own: float) -> None:
    rivals = {"raw": [100.0, 100.0, 100.0], "majority": [0.0, 0.0, 0.0]}
    found = verdict("mux", scores([own] * 3, **rivals))
    assert found is not None
    assert found.paid is None
    assert found.sentence.startswith("no verdict: mux has the same accuracy on every split")
    assert found.sentence.endswith("in 0 of 3)")
    one = verdict("mux", scores([own], raw=[60.0]))  # one split has no spread, but may be large
    assert one is not None
    assert one.paid is (own > 60)
    uneven = verdict("mux", scores([90.0] * 3, raw=[80.0, 80.0, 81.0]))
    assert uneven is not None
    assert uneven.paid is True


@pytest.mark.parametrize(
    "without",
    [
        {},
        {"holdout": part([80.0])},
        scores([80.0], seed=1, raw=[70.0]),  # other splits
        {"clustering": {"nmi": {"mean": 1.0}}, "controls": {"raw": {}}},
    ],
)
def test_what_cannot_be_paired_has_no_verdict(without: dict[str, Any]) -> None:
    assert verdict("mux", without) is None


def test_controls_on_fewer_splits_are_paired_with_the_first_ones() -> None:
    found = verdict("mux", scores([80.0, 84, 10], raw=[79.0, 81]))
    assert found is not None
    assert (found.difference.mean, found.difference.n) == (2.0, 2)


def test_five_seeds_have_an_interval_and_four_have_none() -> None:
    rng = np.random.default_rng(0)
    rival = rng.normal(80, 2, 10)
    runs = [scores((rival + 3 + rng.normal(size=10)).tolist(), raw=rival.tolist()) for _ in "12345"]
    found = verdict("mux", runs)
    assert found is not None
    own = np.array([run["holdout"]["per_split"]["accuracy"] for run in runs])
    want = paired_difference(own, np.tile(rival, (5, 1)))
    assert found.interval == (want.low, want.high)
    assert found.paid is True
    assert f"[{want.low:+.2f}, {want.high:+.2f}] over 5 seeds and 10 splits" in found.sentence
    fewer = verdict("mux", runs[:4])
    assert fewer is not None
    assert fewer.interval is None
    assert "too few seeds for an interval" in fewer.sentence


def test_scores_without_splits_or_of_other_splits_are_not_paired() -> None:
    assert split_accuracies(part([1.0], 4)) == ((4, None), [1.0])
    for nothing in (None, 3, {}, {"per_split": 5}, {"per_split": {"accuracy": []}}):
        assert split_accuracies(nothing) is None
    own = {"holdout": part([80.0, 82.0], 0)}
    other = {"controls": {"raw": {"holdout": part([70.0, 70.0], 1)}}}
    assert verdict("m", own | other) is None
    assert verdict("m", own) is None
    public = {"public": part([90.0, 91.0])}
    mixed = {"controls": {"raw": {"public": part([70.0, 71.0]), "holdout": part([7.0], 1)}}}
    found = verdict("m", own | public | mixed)
    assert found is not None
    assert (found.protocol, found.control, found.difference.mean) == ("public", "raw", 20.0)


@pytest.mark.parametrize(
    ("own", "paid", "ahead"),
    [
        ([72.0, 74.0], True, 2),  # 3 ± 1.41
        ([70.0, 72.0], None, 1),  # 1 ± 1.41
        ([70.0, 70.0], None, 0),  # nothing at all
        ([69.0, 71.0], None, 1),
        ([68.0, 66.0], False, 0),
    ],
)
def test_training_paid_where_the_spread_lies_above_zero(
    own: list[float], paid: bool | None, ahead: int
) -> None:
    found = _judge("m", "holdout", {"raw": ([own], [[70.0, 70.0]])})
    assert (found.paid, found.ahead, found.seeds, found.interval) == (paid, ahead, 1, None)
    assert found.difference == summarise([value - 70 for value in own])


def test_five_seeds_are_judged_by_their_interval() -> None:
    rng = np.random.default_rng(0)
    own = (71 + rng.normal(size=(5, 6))).tolist()
    rival = [[70.0] * 6] * 5
    found = _judge("m", "holdout", {"raw": (own, rival)})
    want = paired_difference(own, rival)
    assert found.interval == (want.low, want.high)
    assert found.paid == (True if want.low > 0 else None)
    assert _judge("m", "holdout", {"raw": (own[:4], rival[:4])}).interval is None
    narrow = [row[:4] for row in own]  # too few splits for an interval
    fewer = _judge("m", "holdout", {"raw": (narrow, [[70.0] * 4] * 5)})
    assert fewer.interval is None
    assert "over 5 seeds and 4 splits, too few splits for an interval" in fewer.sentence


def test_a_verdict_is_said_in_words() -> None:
    found = _Compared(Summary(-1.234, 0.5, 6), ahead=2, seeds=1, interval=None, paid=None)
    paid, lost = (replace(found, paid=paid) for paid in (True, False))
    assert _outcome("m", "raw", paid).startswith("training paid: m is 1.23 points")
    assert "below the best control, raw features" in _outcome("m", "raw", lost)
    assert "no clear difference" in _outcome("m", "raw", found)
    assert _figures(found) == (
        "paired difference -1.23 ± 0.50 over 6 splits of one run; ahead in 2 of 6"
    )
    few = _figures(replace(found, seeds=2))
    assert "over 2 seeds and 3 splits, too few seeds for an interval" in few
    assert "over 1 split of" in _figures(replace(found, difference=Summary(1.0, 0.0, 1)))
    several = replace(found, seeds=6, interval=(-2.0, 1.0))
    assert "[-2.00, +1.00] over 6 seeds and 1 split;" in _figures(several)
    assert _advice("raw", True) == ""
    assert _advice("raw", None).startswith(
        ": use raw features (--method raw), which is cheaper, or"
    )
    assert _advice(None, False) == ": try another method, more seeds or `muxgcl tune`"


def test_advice_names_the_best_control_that_has_a_command() -> None:
    near = verdict("mux", scores([70.0, 71], untrained=[80.0, 82], raw=[72.0, 71], A_X=[9.0, 9]))
    far = verdict("mux", scores([70.0, 71], untrained=[80.0, 82], raw=[62.0, 61]))
    assert near is not None
    assert far is not None
    assert near.control == far.control == "untrained"
    assert "): use raw features (--method raw), or try another method" in near.sentence
    assert "): try another method, more seeds" in far.sentence


def test_nothing_worse_than_the_method_is_advised() -> None:
    below = verdict("mux", scores([80.0, 82], untrained=[80.5, 81], **{"A^2_X": [79.5, 81.9]}))
    level = verdict("mux", scores([80.0, 82], untrained=[81.0, 81.5], **{"A^2_X": [80.4, 82]}))
    assert below is not None
    assert level is not None
    assert below.paid is None
    assert below.sentence.startswith("training added nothing clear to the untrained network")
    assert below.sentence.endswith("): try another method, more seeds or `muxgcl tune`")
    assert "use A^2 X (--method sgc), which is cheaper" in level.sentence


@pytest.mark.parametrize("own", [[50.0, 48.0], [40.0, 41.0]])
def test_where_guessing_is_best_no_embedding_is_advised(own: list[float]) -> None:
    said = "no embedding here tells these classes apart: nothing beats guessing the most frequent"
    for method in ("mux", "sgc"):
        found = verdict(method, scores(own, majority=[49.0, 50.0], raw=[49.0, 49.0]))
        assert found is not None
        assert (found.control, found.paid) == ("majority", None if own[0] == 50 else False)
        assert found.sentence.startswith(said)
        assert found.sentence.endswith(" of 2)")
    above = verdict("mux", scores([60.0, 61.0], majority=[49.0, 50.0]))
    assert above is not None
    assert above.sentence.startswith("training paid")


def test_a_search_does_not_advise_a_search() -> None:
    rivals = {"raw": {"development": part([80.0, 82.0])}}
    found = verdict("mux", {"development": part([70.0, 71.0]), "controls": rivals})
    assert found is not None
    assert found.sentence.endswith(
        "use raw features (--method raw), or try another method or more seeds"
    )


@pytest.mark.parametrize(
    ("method", "settings", "itself"),
    [
        ("raw", {}, "raw"),
        ("sgc", {}, "A^2 X"),
        ("sgc", {"steps": 0}, "raw"),
        ("sgc", {"steps": 1, "side_by_side": False}, "A X"),
        ("sgc", {"steps": 2, "side_by_side": True}, "X|AX|A^2X"),
        ("sgc", {"steps": 3}, None),
        ("sgc", {"steps": 1, "side_by_side": True}, None),
        ("mux-hop", {"steps": 2}, None),
    ],
)
def test_a_method_is_not_compared_with_itself(
    method: str, settings: dict[str, Any], itself: str | None
) -> None:
    names = ("raw", "A X", "A^2 X", "X|AX|A^2X")
    parts = {name: {"holdout": part([70.0 + (name == itself), 71.0])} for name in names}
    found = verdict(method, {"holdout": part([70.0, 72]), "controls": parts}, settings)
    assert found is not None
    assert found.control != itself
    alone = {"holdout": part([70.0, 72]), "controls": {itself: {"holdout": part([70.0, 72])}}}
    if itself is not None:
        assert verdict(method, alone, settings) is None
