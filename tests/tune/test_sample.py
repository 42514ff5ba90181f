"""Trials are trained as a run would be: with the sample that the study was begun with."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.runs.plan import Plan
from muxgcl.tune import tune

GRAPH = Graph.from_data(planted(nodes=60, seed=3))
SAMPLE = (20, 16)


@dataclass
class Hill:
    """A measure without training: highest at temperature 0.7."""

    plans: list[Plan] = field(default_factory=list)
    figures = ("height",)
    words = mark = "hill"

    def __call__(self, plan: Plan, **_: Any) -> dict[str, float]:
        self.plans.append(plan)
        return {"height": -abs(plan.settings.temperature - 0.7)}


@dataclass
class Decides:
    """Samples as a CPU does: it changes a setting that is searched, and one that is not."""

    sizes: tuple[int, int] = SAMPLE
    calls: list[tuple[Plan, bool]] = field(default_factory=list)

    def __call__(self, plan: Plan, decided: bool) -> Plan:
        self.calls.append((plan, decided))
        if decided:
            return plan
        settings = replace(plan.settings, hidden=12, anchors="all")
        return replace(plan, settings=settings, anchors=self.sizes[0], keys=self.sizes[1])


def sizes(hill: Hill) -> set[tuple[int | None, int | None]]:
    return {(plan.anchors, plan.keys) for plan in hill.plans}


def test_all_trials_have_the_sample_that_is_decided_once(tmp_path: Path) -> None:
    hill, decides = Hill(), Decides()
    found = tune(GRAPH, hill, tmp_path / "s", trials=8, afford=decides)
    assert [decided for _, decided in decides.calls] == [False]
    assert sizes(hill) == {SAMPLE}
    assert found.sample.to_list() == list(SAMPLE)
    assert {plan.settings.hidden for plan in hill.plans} == {12}
    assert hill.plans[0].settings.anchors == "all"
    assert {plan.settings.anchors for plan in hill.plans} == {"all", "last"}  # it is searched
    assert found.settings["hidden"] == 12


def test_a_study_goes_on_with_the_sample_that_it_was_begun_with(tmp_path: Path) -> None:
    tune(GRAPH, Hill(), tmp_path / "s", trials=2, afford=Decides())
    again, other = Hill(), Decides((30, 30))
    tune(GRAPH, again, tmp_path / "s", trials=4, afford=other)
    ((plan, decided),) = other.calls
    assert decided
    assert (plan.anchors, plan.keys, plan.settings.hidden) == (*SAMPLE, 12)
    assert len(again.plans) == 2
    assert sizes(again) == {SAMPLE}


def rewrite(path: Path, change: Callable[[dict[str, str]], Any]) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "facts" in line.get("user_attr", {}):
            change(line["user_attr"]["facts"])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_study_from_before_there_were_samples_goes_on_exact(tmp_path: Path) -> None:
    tune(GRAPH, Hill(), tmp_path / "s", trials=1)
    rewrite(tmp_path / "s", lambda facts: facts.pop("sample"))
    again, decides = Hill(), Decides()
    found = tune(GRAPH, again, tmp_path / "s", trials=3, afford=decides)
    assert [decided for _, decided in decides.calls] == [True]
    assert sizes(again) == {(None, None)}
    assert found.sample.is_exact
    rewrite(tmp_path / "s", lambda facts: facts.pop("sample", None))
    assert len(tune(GRAPH, Hill(), tmp_path / "s", trials=3, exact=True).tried) == 3


@pytest.mark.parametrize("asked", [{"exact": True}, {"anchors": 9}, {"anchors": 20}])
def test_another_sample_than_that_of_the_study_is_refused(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    tune(GRAPH, Hill(), tmp_path / "s", trials=1, anchors=20, negatives=16)
    hill = Hill()
    with pytest.raises(UserError, match="begun with another sample"):
        tune(GRAPH, hill, tmp_path / "s", trials=2, **asked)
    assert not hill.plans


def test_a_study_of_another_method_is_refused_before_anything_is_estimated(tmp_path: Path) -> None:
    tune(GRAPH, Hill(), tmp_path / "s", trials=1, afford=Decides())
    decides = Decides()
    with pytest.raises(UserError, match="begun with another method"):
        tune(GRAPH, Hill(), tmp_path / "s", method="grace", trials=2, afford=decides)
    assert not decides.calls


@pytest.mark.parametrize(
    ("asked", "wanted"), [({"anchors": 9}, (9, None)), ({"exact": True}, (None, None))]
)
def test_a_sample_that_is_asked_for_is_not_decided(
    tmp_path: Path, asked: dict[str, Any], wanted: tuple[int | None, int | None]
) -> None:
    hill, decides = Hill(), Decides()
    tune(GRAPH, hill, tmp_path / "s", trials=2, afford=decides, **asked)
    assert [decided for _, decided in decides.calls] == [True]
    assert sizes(hill) == {wanted}


def test_exact_and_a_sample_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="ask for one"):
        tune(GRAPH, Hill(), tmp_path / "s", exact=True, negatives=8)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("20", "sample must be a table"),
        ("[" * 10_000, "sample is not JSON"),
        ('{"anchors": 0, "negatives": 2, "settings": {}}', "at least 1, got 0"),
        ('{"anchors": 2, "negatives": 2, "settings": {"widht": 3}}', "unknown setting"),
    ],
)
def test_a_damaged_sample_is_one_clear_line(tmp_path: Path, words: str, message: str) -> None:
    tune(GRAPH, Hill(), tmp_path / "s", trials=1)
    rewrite(tmp_path / "s", lambda facts: facts.update(sample=words))
    with pytest.raises(UserError, match=message):
        tune(GRAPH, Hill(), tmp_path / "s", trials=2)


def test_of_two_workers_that_decide_at_once_the_second_takes_the_firsts_sample(
    tmp_path: Path,
) -> None:
    shared: dict[str, Any] = {"storage": str(tmp_path / "journal")}
    slow, first = Hill(), Hill()

    def overtaken(plan: Plan, decided: bool) -> Plan:
        assert not decided
        tune(GRAPH, first, "search", trials=2, afford=Decides(), **shared)
        return Decides((30, 30))(plan, decided)

    found = tune(GRAPH, slow, "search", trials=4, afford=overtaken, **shared)
    assert (len(first.plans), len(slow.plans)) == (2, 2)
    assert sizes(first) | sizes(slow) == {SAMPLE}
    assert found.sample.to_list() == list(SAMPLE)
