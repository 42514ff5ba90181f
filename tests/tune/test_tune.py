"""Choosing settings: a search that can pause, and that never sees what it will be judged by."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from optuna.storages.journal import JournalFileBackend

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.io.load import Loaded, load
from muxgcl.methods import METHODS
from muxgcl.runs.loop import Epoch, NonFiniteLoss
from muxgcl.runs.plan import Plan, build
from muxgcl.runs.settings import TrainConfig, hints, split_settings
from muxgcl.tune import measure_of, tune
from muxgcl.tune.space import Range, point_of, settings_of, space_of, whole_space

SMALL = {"width": 8, "projection": 8, "projection_out": 8, "affinity": "none"}
FAST = {**SMALL, "epochs": 2}


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load(planted(nodes=60, seed=3))


@pytest.fixture(scope="module")
def graph(loaded: Loaded) -> Graph:
    return Graph.from_data(loaded.data)


@dataclass
class Hill:
    """A measure without training: highest at temperature 0.7; some trials fail or are stopped."""

    fails: tuple[int, ...] = ()
    stops: int | None = None
    plans: list[Plan] = field(default_factory=list)
    figures = ("height", "lr")
    words = "height"
    mark = "hill"

    def __call__(self, plan: Plan, **_: Any) -> dict[str, float]:
        self.plans.append(plan)
        number = len(self.plans)
        if number == self.stops:
            raise KeyboardInterrupt
        if number in self.fails:
            raise NonFiniteLoss(Epoch(3, {"loss": float("nan")}, 0.0))
        return {"height": -abs(plan.settings.temperature - 0.7), "lr": plan.train.lr}


def points(outcome: Any) -> list[Any]:
    return [trial.point for trial in outcome.tried]


# the study ------------------------------------------------------------------------------------


def test_a_study_adds_only_the_trials_that_are_missing(graph: Graph, tmp_path: Path) -> None:
    first, second, third = Hill(), Hill(), Hill()
    before = tune(graph, first, tmp_path / "s", trials=3)
    after = tune(graph, second, tmp_path / "s", trials=5)
    again = tune(graph, third, tmp_path / "s", trials=4)
    assert [len(hill.plans) for hill in (first, second, third)] == [3, 2, 0]
    assert points(after)[:3] == points(before)
    assert again.best == after.best


def test_a_search_with_pauses_is_the_search_without(graph: Graph, tmp_path: Path) -> None:
    whole = tune(graph, Hill(), tmp_path / "whole", trials=14)  # past the random first ten
    for trials in (2, 11, 14):
        parts = tune(graph, Hill(), tmp_path / "parts", trials=trials)
    assert points(parts) == points(whole)
    assert len({json.dumps(point) for point in points(whole)}) == 14


@pytest.mark.parametrize("stops", [1, 3])
def test_an_interrupted_trial_is_done_again(graph: Graph, tmp_path: Path, stops: int) -> None:
    whole = tune(graph, Hill(), tmp_path / "whole", trials=4)
    for hill in (Hill(stops=stops), Hill(stops=1)):  # twice in the same trial
        with pytest.raises(KeyboardInterrupt):
            tune(graph, hill, tmp_path / "s", trials=4)
    rest = Hill()
    found = tune(graph, rest, tmp_path / "s", trials=4)
    assert len(rest.plans) == 4 - (stops - 1)
    assert points(found) == points(whole)


def test_the_first_trial_is_the_choice_of_auto(graph: Graph, tmp_path: Path) -> None:
    hill = Hill()
    outcome = tune(graph, hill, tmp_path / "s", trials=1, fixed={"hops": "2"})
    auto = Plan.make("mux-hop", "auto", graph=graph)
    assert (hill.plans[0].train, hill.plans[0].settings) == (auto.train, auto.settings)
    assert outcome.auto is outcome.tried[0]


def test_a_failed_trial_is_recorded_and_the_search_goes_on(graph: Graph, tmp_path: Path) -> None:
    hill = Hill(fails=(1, 3))
    outcome = tune(graph, hill, tmp_path / "s", trials=4)
    assert [trial.failure is None for trial in outcome.tried] == [False, True, False, True]
    assert "not a finite number at epoch 3" in str(outcome.tried[0].failure)
    assert outcome.best.number in (2, 4)
    more = Hill()
    assert len(tune(graph, more, tmp_path / "s", trials=5).tried) == 5
    assert len(more.plans) == 1


def test_a_search_in_which_all_fail_says_why(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"all 2 trials failed.*finite"):
        tune(graph, Hill(fails=(1, 2)), tmp_path / "s", trials=2)


def test_a_real_loss_that_is_no_number_fails_its_trial(
    loaded: Loaded, graph: Graph, tmp_path: Path
) -> None:
    measure = measure_of(loaded, graph, splits=1)
    with pytest.raises(UserError, match=r"all 1 trials failed.*finite"):
        tune(graph, measure, tmp_path / "s", trials=1, fixed={**FAST, "epochs": 9, "lr": 1e30})


def test_the_best_trial_is_the_highest(graph: Graph, tmp_path: Path) -> None:
    outcome = tune(graph, Hill(), tmp_path / "s", trials=12)
    heights = [trial.figures["height"] for trial in outcome.tried]
    assert outcome.best.figures["height"] == max(heights)
    assert outcome.settings["temperature"] == outcome.best.point["temperature"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "grace"}, "another method"),
        ({"fixed": {"epochs": 7}}, "another set of fixed settings"),
        ({"measure": "other"}, "another choice of seeds and splits"),
        ({"graph": planted(nodes=50, seed=1)}, "another graph"),
    ],
)
def test_a_study_of_something_else_is_refused(
    graph: Graph, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    tune(graph, Hill(), tmp_path / "s", trials=1)
    before = (tmp_path / "s").read_bytes()
    hill = Hill()
    if "measure" in change:
        hill.mark = change.pop("measure")
    other = Graph.from_data(change.pop("graph")) if "graph" in change else graph
    with pytest.raises(UserError, match=words):
        tune(other, hill, tmp_path / "s", trials=2, **change)
    assert not hill.plans
    assert (tmp_path / "s").read_bytes() == before


@pytest.mark.parametrize("cut", [1, 30, 400])
def test_a_study_whose_last_line_was_cut_goes_on(graph: Graph, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "s"
    whole = tune(graph, Hill(), tmp_path / "whole", trials=4)
    tune(graph, Hill(), path, trials=2)
    os.truncate(path, path.stat().st_size - cut)
    assert points(tune(graph, Hill(), path, trials=4)) == points(whole)
    assert points(tune(graph, Hill(), path, trials=4)) == points(whole)


def test_a_file_that_is_no_study_is_left_alone(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "precious.csv"
    path.write_text("a,b\n1,2\nno newline at the end")
    with pytest.raises(UserError, match="not a study"):
        tune(graph, Hill(), path, trials=1)
    assert path.read_text() == "a,b\n1,2\nno newline at the end"


def test_a_damaged_study_is_one_clear_line(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "s"
    tune(graph, Hill(), path, trials=2)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:40] + b"\n" + b"".join(lines[2:]))
    with pytest.raises(UserError, match="damaged"):
        tune(graph, Hill(), path, trials=3)


@pytest.mark.parametrize("at", [1, 2, 5, 20])
def test_a_full_disk_is_one_clear_line_and_the_study_goes_on(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    whole = tune(graph, Hill(), tmp_path / "whole", trials=3)
    write, written = JournalFileBackend.append_logs, []

    def full(self: Any, logs: Any) -> None:
        written.append(logs)
        if len(written) >= at:
            raise OSError(28, "No space left on device")
        write(self, logs)

    monkeypatch.setattr(JournalFileBackend, "append_logs", full)
    with pytest.raises(UserError, match=r"cannot write .*No space left"):
        tune(graph, Hill(), tmp_path / "s", trials=3)
    monkeypatch.setattr(JournalFileBackend, "append_logs", write)
    assert points(tune(graph, Hill(), tmp_path / "s", trials=3)) == points(whole)


def test_a_second_process_is_refused(graph: Graph, tmp_path: Path) -> None:
    class Nested(Hill):
        def __call__(self, plan: Plan, **rest: Any) -> dict[str, float]:
            with pytest.raises(UserError, match="another process"):
                tune(graph, Hill(), tmp_path / "s", trials=1)
            return super().__call__(plan, **rest)

    assert len(tune(graph, Nested(), tmp_path / "s", trials=1).tried) == 1


# the space ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_searched_in_its_own_settings_around_auto(method: str, graph: Graph) -> None:
    kind = METHODS[method]
    auto = Plan.make(method, "auto", graph=graph)
    values = {f: getattr(auto.settings, f) for f in hints(kind.Config)}
    values |= {f: getattr(auto.train, f) for f in hints(TrainConfig)}
    wanted = {key for key in whole_space(kind) if key in hints(kind.Config)}
    wanted |= {"lr", "epochs"} if kind.trainable else set()
    if not wanted:
        with pytest.raises(UserError, match="no setting left to search"):
            space_of(kind, values, {})
        return
    space = space_of(kind, values, {})
    assert {name.partition(".")[0] for name in space} == wanted
    point = point_of(space, values)
    for name, value in point.items():
        ends = space[name]
        assert ends.low <= value <= ends.high if isinstance(ends, Range) else value in ends
    settings = settings_of(kind, point, {})
    assert settings == {key: values[key] for key in settings}
    split_settings(settings, TrainConfig, kind.Config)  # every key is one, every value fits


@pytest.mark.parametrize(
    ("given", "weights"),
    [({"hops": 3, "scale_weights": (0.25,) * 4}, {4}), ({"readout": "last"}, set())],
)
def test_weights_that_are_searched_fit_the_scales_there_are(
    given: dict[str, Any], weights: set[int], graph: Graph
) -> None:
    plan = Plan.make("mux-hop", "auto", overrides=given, graph=graph)
    values = {f: getattr(plan.settings, f) for f in hints(type(plan.settings))}
    values |= {f: getattr(plan.train, f) for f in hints(TrainConfig)}
    space = space_of(METHODS["mux-hop"], values, given)
    found = space.get("readout_weights", ())
    assert isinstance(found, tuple)
    assert {len(one) for one in found} == weights
    for choice in found or [values["readout_weights"]]:
        tried = settings_of(METHODS["mux-hop"], {"readout_weights": choice}, given)
        build(Plan.make("mux-hop", "auto", overrides=tried, graph=graph), graph)


def test_every_draw_makes_a_method_that_can_be_built(graph: Graph, tmp_path: Path) -> None:
    hill = Hill()
    tune(graph, hill, tmp_path / "s", trials=12)
    tried = [
        (p.settings.width, p.settings.projection, len(p.settings.drop_edges)) for p in hill.plans
    ]
    assert all(width == inside and views == 2 for width, inside, views in tried)
    assert len({p.settings.scale_weights for p in hill.plans}) > 1
    assert all(sum(p.settings.scale_weights) == pytest.approx(1) for p in hill.plans)


def test_fixed_settings_are_not_searched(graph: Graph, tmp_path: Path) -> None:
    hill = Hill()
    fixed = {"width": "64", "drop_edges": "0.1,0.2", "epochs": 7}
    outcome = tune(graph, hill, tmp_path / "s", trials=4, fixed=fixed)
    seen = {(p.settings.width, p.settings.drop_edges, p.train.epochs) for p in hill.plans}
    assert seen == {(64, (0.1, 0.2), 7)}
    assert not {"width", "drop_edges.0", "epochs"} & set(outcome.best.point)


def test_a_setting_that_is_none_is_named_before_a_study_is_begun(
    graph: Graph, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="unknown setting 'widht'; did you mean width"):
        tune(graph, Hill(), tmp_path / "s", trials=1, fixed={"widht": "3"})
    assert not (tmp_path / "s").exists()
