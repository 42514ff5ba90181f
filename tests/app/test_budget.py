"""What a run will take, told before; samples that are asked for, chosen, kept and gone on with."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cli_cases import ask

import muxgcl
from muxgcl import RunOptions, UserError
from muxgcl.app import Budget, dry_run
from muxgcl.app.budget import budget
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.runs import cost
from muxgcl.runs.environment import limit_threads
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan
from muxgcl.runs.rates import Rates
from muxgcl.runs.scoring import Judging
from muxgcl.runs.settings import TrainConfig

DATA = planted(nodes=300)
GRAPH = Graph.from_data(DATA)
SMALL = {"width": 8, "projection": 8, "projection_out": 8, "affinity_epochs": 1}
HOP = RunOptions(
    method="mux-hop",
    preset="best",
    settings=SMALL | {"hidden": 12, "ema": 0.9, "dropout": 0.3},
    epochs=6,
    device="cpu",
    splits=2,
    controls=False,
    report=False,
)
SLOW_PAIRS = Rates(1e12, 1e12, 1e12, 1e4, 1e9, 0.0)


def plan(method: str = "mux-hop", **changes: Any) -> Plan:
    settings = SMALL | {"epochs": 60}
    if method == "mux-hop":
        settings |= {"hidden": 12, "zero_bias": False}
    else:
        del settings["affinity_epochs"]
    return Plan.make(method, "best", overrides=settings, device="cpu", **changes)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that finds pairs hard, with samples small enough for a small graph."""
    monkeypatch.setattr("muxgcl.app.budget.calibrate", lambda plan, graph: SLOW_PAIRS)
    monkeypatch.setattr("muxgcl.app.budget.measured", lambda rates, plan, graph: rates)
    monkeypatch.setattr(cost, "SIZES", (100, 50, 20))
    monkeypatch.setattr(cost, "ROUGH_SECONDS", 0.0)


@pytest.mark.usefixtures("slow")
def test_a_training_beyond_patience_samples_and_says_so() -> None:
    found = budget(plan(), GRAPH)
    assert found.plan.anchors == found.plan.keys
    assert found.plan.anchors in (100, 50, 20)
    why, how, told = found.notes
    assert why.startswith(f"each step contrasts {found.plan.anchors} nodes: the exact contrast")
    assert how == "settings that suit a sample: zero_bias = true, fanout = 5"
    assert told == str(found.cost)
    assert asdict(found.plan.settings) == asdict(plan().settings) | {
        "zero_bias": True,
        "fanout": 5,  # the hidden layer is narrow already
    }


@pytest.mark.usefixtures("slow")
def test_a_sample_changes_no_setting_that_was_asked_for() -> None:
    wide = Plan.make("mux-hop", "best", overrides={"epochs": 60}, device="cpu")
    changed = budget(wide, GRAPH).plan.settings
    assert (changed.hidden, changed.zero_bias, changed.fanout) == (1024, True, 5)
    kept = budget(wide, GRAPH, given=["hidden", "fanout"]).plan.settings
    assert (kept.hidden, kept.zero_bias, kept.fanout) == (wide.settings.hidden, True, 0)
    found = budget(wide, GRAPH, given=["hidden", "fanout", "zero_bias"])
    assert found.plan.settings == wide.settings
    assert len(found.notes) == 2
    grace = budget(plan("grace"), GRAPH)
    assert grace.plan.anchors is not None
    assert grace.plan.settings == plan("grace").settings


@pytest.mark.usefixtures("slow")
def test_a_sample_of_preset_auto_has_another_norm_and_other_anchors() -> None:
    auto = Plan.make("mux-hop", "auto", overrides={"epochs": 60}, graph=GRAPH, device="cpu")
    changed = asdict(auto.settings) | {
        "fanout": 5,
        "norm": "batch",
        "anchors": "last",
    }
    found = budget(auto, GRAPH)
    assert asdict(found.plan.settings) == changed
    assert asdict(auto.settings) != changed
    kept = budget(auto, GRAPH, given=["norm"]).plan.settings
    assert (kept.norm, kept.anchors) == (auto.settings.norm, "last")


@pytest.mark.usefixtures("slow")
def test_settings_of_a_sample_do_not_make_the_contrast_exact_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bool] = []
    choose = cost.choose_sampling

    def chosen(plan: Plan, graph: Graph, rates: Rates, **how: bool) -> cost.Chosen:
        asked.append(how.get("exact", True))
        return choose(plan, graph, rates, **how)

    monkeypatch.setattr(cost, "choose_sampling", chosen)
    assert budget(plan(), GRAPH).plan.anchors is not None
    assert asked == [True, False]


@pytest.mark.usefixtures("slow")
def test_a_sample_is_chosen_again_by_the_time_that_its_steps_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = budget(plan(), GRAPH)
    tried: list[int | None] = []

    def thrice(rates: Rates, plan: Plan, graph: Graph) -> Rates:
        tried.append(plan.anchors)
        return rates.slower(3)

    monkeypatch.setattr("muxgcl.app.budget.measured", thrice)
    found = budget(plan(), GRAPH)
    assert tried == [before.plan.anchors] == [50]
    assert found.plan.anchors == 20
    wanted = cost.estimate(found.plan, GRAPH, SLOW_PAIRS.slower(3))
    assert found.cost is not None
    assert found.cost.seconds == pytest.approx(wanted.seconds, rel=0.01)  # a draw of its own
    assert len(found.notes) == len(before.notes)


@pytest.mark.usefixtures("slow")
def test_the_time_of_a_sample_that_was_asked_for_is_that_of_its_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = plan(anchors=50, keys=50)
    before = budget(asked, GRAPH)
    monkeypatch.setattr("muxgcl.app.budget.measured", lambda rates, plan, graph: rates.slower(2))
    found = budget(asked, GRAPH)
    assert found.plan == asked
    assert before.cost is not None
    assert found.cost is not None
    training = before.cost.seconds - before.cost.prepare
    assert found.cost.seconds == pytest.approx(before.cost.prepare + 2 * training)


@pytest.mark.parametrize(
    ("method", "preset", "brief"),
    [("mux-hop", "auto", True), ("mux-hop", "best", True), ("mux-gcl", "auto", False)],
)
def test_mux_hop_alone_is_brief(
    method: str, preset: str, brief: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    choose = cost.choose_sampling

    def chosen(plan: Plan, graph: Graph, rates: Rates, **how: bool) -> cost.Chosen:
        asked.append(how["brief"])
        return choose(plan, graph, rates, **how)

    monkeypatch.setattr(cost, "choose_sampling", chosen)
    monkeypatch.setattr("muxgcl.app.budget.calibrate", lambda plan, graph: SLOW_PAIRS)
    budget(Plan.make(method, preset, graph=GRAPH, device="cpu"), GRAPH, always=True)
    assert set(asked) == {brief}


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("asked", [{}, {"anchors": 20, "keys": 20}])
@pytest.mark.parametrize("exact", [False, True])
def test_what_does_not_fit_is_refused_whoever_chose_the_sample(
    asked: dict[str, int], exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int | None] = []
    monkeypatch.setattr(
        "muxgcl.app.budget.measured", lambda rates, plan, graph: tried.append(plan.anchors) or rates
    )
    monkeypatch.setattr(cost, "available", lambda plan, workers=1: 1e6)
    with pytest.raises(UserError, match="a smaller width needs less"):
        budget(plan(**asked), GRAPH, exact=exact)
    assert not tried  # steps that do not fit are not tried, either


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("asked", [{}, {"anchors": 20, "keys": 20}])
def test_scores_that_do_not_fit_are_refused(
    asked: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        cost, "scoring", lambda plan, graph, asked, slow=None: (1.0, 1e15 if asked.controls else 1)
    )
    with pytest.raises(UserError, match=r"scores need .* --no-controls needs less"):
        budget(plan(**asked), GRAPH, scores=Judging(DATA))
    found = budget(plan(**asked), GRAPH, scores=Judging(DATA, controls=False))
    assert found.cost.scores == 1.0


@pytest.mark.usefixtures("slow")
def test_what_is_asked_for_is_not_changed() -> None:
    exact = budget(plan(), GRAPH, exact=True)
    assert exact.plan == plan()
    asked = budget(plan(anchors=33, keys=44), GRAPH)
    assert (asked.plan.anchors, asked.plan.keys) == (33, 44)
    assert exact.cost.seconds > asked.cost.seconds


def test_an_estimate_for_json_is_rounded_to_what_it_can_tell() -> None:
    found = cost.Cost(12.3456, 1.23456 * cost.GIB, 0.0, "CPU", 2.3456)
    told = Budget(plan(anchors=9, keys=8), found).to_dict()
    assert (told["seconds"], told["scoring_seconds"], told["gib"]) == (12.3, 2.3, 1.23)
    assert (told["method"], told["dataset"], told["epochs"]) == ("mux-hop", "graph", 60)
    assert (told["anchors"], told["negatives"]) == (9, 8)
    none = Budget(plan()).to_dict()
    assert none["seconds"] is none["scoring_seconds"] is none["gib"] is None


def of_file(tmp_path: Path, words: str, **changes: Any) -> Plan:
    (tmp_path / "tuned.toml").write_text(words)
    given = {"device": "cpu", "overrides": SMALL | {"epochs": 60}} | changes
    return Plan.make("mux-hop", str(tmp_path / "tuned.toml"), **given)


@pytest.mark.usefixtures("slow")
def test_a_sample_changes_no_setting_that_a_file_names(tmp_path: Path) -> None:
    settings = budget(of_file(tmp_path, "hidden = 2048\nfanout = 0\n"), GRAPH).plan.settings
    assert (settings.hidden, settings.fanout, settings.zero_bias) == (2048, 0, True)


@pytest.mark.usefixtures("slow")
def test_the_sample_of_a_file_is_taken_unless_another_is_asked_for(tmp_path: Path) -> None:
    words = "sample = [30, 40]\nfanout = 0\n"
    found = budget(of_file(tmp_path, words), GRAPH)
    assert (found.plan.anchors, found.plan.keys, found.plan.settings.fanout) == (30, 40, 0)
    assert found.notes[0].startswith("each step contrasts 30 nodes, as ")
    asked = budget(of_file(tmp_path, words, anchors=9), GRAPH).plan
    assert (asked.anchors, asked.keys) == (9, None)
    assert not budget(of_file(tmp_path, words), GRAPH, exact=True).plan.sampling
    every = of_file(tmp_path, "sample = [0, 0]\n")
    assert budget(every, GRAPH).plan == every  # where a sample would be taken


def test_a_short_training_has_the_sample_of_its_file_too(tmp_path: Path) -> None:
    short = of_file(tmp_path, "sample = [30, 0]\n", overrides=SMALL | {"epochs": 2})
    found = budget(short, Graph.from_data(planted(nodes=40)))
    assert (found.plan.anchors, found.plan.keys, found.cost) == (30, None, None)


@pytest.mark.parametrize("sample", ["30", "[30]", "[-1, 3]", '["a", "b"]'])
def test_a_sample_of_a_file_that_is_none_is_named(tmp_path: Path, sample: str) -> None:
    with pytest.raises(UserError, match=r"tuned\.toml: sample"):
        budget(of_file(tmp_path, f"sample = {sample}\n"), GRAPH)


def test_a_short_training_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muxgcl.app.budget.calibrate", None)
    short = replace(plan("grace"), train=TrainConfig(epochs=2))
    assert budget(short, Graph.from_data(planted(nodes=40))) == Budget(short)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
        ({"projection": -3}, "projection must not be negative, got -3"),
        ({"projection_out": 20_000_000}, "projection_out must be a whole number of at most"),
    ],
)
def test_a_wrong_plan_is_refused_before_anything_is_measured(
    settings: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muxgcl.app.budget.calibrate", None)
    monkeypatch.setattr(cost, "ROUGH_SECONDS", 0.0)
    wrong = Plan.make("grace", "best", overrides=settings, device="cpu")
    with pytest.raises(UserError, match=message):
        budget(wrong, GRAPH)


def test_a_method_that_nobody_counted_has_no_estimate() -> None:
    dgi = Plan.make("dgi", "quick", device="cpu")
    assert budget(dgi, GRAPH, always=True) == Budget(dgi)


def test_a_dry_run_tells_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "cora", "--method", "grace", "--epochs", "3", "--device", "cpu", "--dry-run"]
    status, out, _ = ask(capsys, *words, "--out", "here", "--quiet")
    assert status == 0
    assert out.startswith("about ")
    assert out.strip().endswith("GiB on this CPU")
    status, out, _ = ask(capsys, *words, "--quiet", "--json", "--anchors", "64")
    found = json.loads(out)
    assert (found["method"], found["anchors"], found["negatives"]) == ("grace", 64, None)
    assert found["seconds"] > 0
    assert not list(tmp_path.iterdir())
    words[3] = "dgi"
    status, out, _ = ask(capsys, *words, "--quiet")
    assert (status, out.strip()) == (0, "there is no estimate for dgi")


def test_a_dry_run_tells_how_files_are_read(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", str(files / "edges.csv"), "--features", str(files / "nodes.csv")]
    words += ["--label-column", "topic", "--preset", "quick", "--dry-run"]
    status, out, told = ask(capsys, *words)
    assert status == 0
    assert out.startswith("about ")
    assert out.count("\n") == 1
    lines = (files / "edges.csv").read_text().splitlines()[1:]
    edges = len({frozenset(line.split(",")[:2]) for line in lines})  # each once
    assert f"60 nodes, {edges} edges, 48 features" in told
    assert "column 'topic' is the label, not a feature" in told
    assert "about " not in told


def test_a_dry_run_has_the_sample_that_the_run_would_have(slow: None) -> None:
    found = dry_run(DATA, HOP)
    assert found.plan.anchors in (100, 50, 20)
    assert found.to_dict()["anchors"] == found.plan.anchors


@pytest.mark.parametrize("sizes", [(8, 8), (8, 20), (20, None)])
def test_a_sampled_run_resumes_to_the_same_embeddings(
    tmp_path: Path, sizes: tuple[int, int | None]
) -> None:
    options = replace(HOP, anchors=sizes[0], negatives=sizes[1])
    whole = muxgcl.run(DATA, replace(options, out=tmp_path / "whole"))
    parts = replace(options, out=tmp_path / "parts")
    muxgcl.run(DATA, replace(parts, epochs=2))
    again = replace(parts, resume=True, anchors=None, negatives=None)  # as it was begun
    resumed = muxgcl.run(DATA, again)
    assert np.array_equal(resumed.embedding, whole.embedding)
    assert resumed.plan.anchors == sizes[0]
    exact = muxgcl.run(DATA, replace(HOP, out=tmp_path / "exact"))
    assert not np.array_equal(exact.embedding, whole.embedding)


def test_a_run_goes_on_with_its_own_sample_alone(tmp_path: Path) -> None:
    begun = replace(HOP, out=tmp_path / "run", anchors=8, negatives=8, score=False)
    muxgcl.run(DATA, begun)
    kept = Run(tmp_path / "run").config()["run"]
    assert (kept["anchors"], kept["keys"]) == (8, 8)
    with pytest.raises(UserError, match=r"anchors = 8; 9 was asked for"):
        muxgcl.run(DATA, replace(begun, anchors=9, resume=True))
    every = replace(begun, anchors=None, negatives=None, exact=True, resume=True)
    with pytest.raises(UserError, match=r"anchors = 8; all was asked for"):
        muxgcl.run(DATA, every)


def test_a_sample_of_all_nodes_is_the_exact_run(tmp_path: Path) -> None:
    found = [
        muxgcl.run(DATA, replace(HOP, out=tmp_path / name, anchors=size, negatives=size))
        for name, size in (("exact", None), ("sampled", 300))
    ]
    assert np.array_equal(found[0].embedding, found[1].embedding)


def test_exact_and_a_sample_exclude_each_other() -> None:
    with pytest.raises(UserError, match="ask for one"):
        RunOptions(exact=True, negatives=8)


def test_there_are_no_more_threads_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(4)
        monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
        limit_threads()
        assert torch.get_num_threads() <= 2
        torch.set_num_threads(1)
        limit_threads()
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def fitted(preset: str = "best", **given: Any) -> muxgcl.MuxGCL:
    settings = SMALL | {"hidden": 12, "zero_bias": False}
    embedder = muxgcl.MuxGCL(preset=preset, epochs=6, params=settings, device="cpu", **given)
    return embedder.fit(GRAPH)


@pytest.mark.usefixtures("slow")
def test_an_embedder_of_another_method_samples_where_a_run_would_and_warns() -> None:
    settings = {key: value for key, value in SMALL.items() if key != "affinity_epochs"}
    embedder = muxgcl.MuxGCL(method="grace", epochs=20, params=settings, device="cpu")
    with pytest.warns(UserWarning, match=r"each step contrasts \d+ nodes.*sample=0 contrasts all"):
        embedder.fit(GRAPH)
    assert embedder.trained_.plan.anchors in (100, 50, 20)
    assert embedder.trained_.plan.anchors == embedder.trained_.plan.keys


@pytest.mark.usefixtures("slow")
def test_a_sample_of_an_embedder_changes_no_setting_that_was_given() -> None:
    settings = fitted().trained_.plan.settings
    assert (settings.fanout, settings.zero_bias) == (5, False)


@pytest.mark.usefixtures("slow")
def test_a_sample_by_default_is_no_surprise_and_no_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = fitted("auto", verbose=True)  # a warning would be an error
    assert one.trained_.plan.anchors in (50, 20)  # a quarter of 300 nodes at most
    assert "each step contrasts" in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(
    ("sample", "sizes"), [(0, (None, None)), (40, (40, 40)), ((30, 60), (30, 60))]
)
def test_an_embedder_takes_the_sample_that_it_is_given(
    sample: Any, sizes: tuple[int | None, int | None], tmp_path: Path
) -> None:
    one = fitted(sample=sample)  # a warning would be an error
    assert (one.trained_.plan.anchors, one.trained_.plan.keys) == sizes
    one.save(tmp_path / "run")
    again = muxgcl.MuxGCL.load(tmp_path / "run", device="cpu")
    assert again.sample == sample
    assert np.array_equal(again.fit(GRAPH).embedding_, one.embedding_)


def test_a_sample_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="sample must be a number of nodes or a pair"):
        muxgcl.MuxGCL(sample="many").fit(GRAPH)


@pytest.mark.usefixtures("slow")
def test_the_command_that_is_kept_repeats_the_sample_that_speed_decided(tmp_path: Path) -> None:
    first = muxgcl.run(DATA, replace(HOP, out=tmp_path / "one"), command="muxgcl run g")
    size = first.plan.anchors
    kept = Run(tmp_path / "one").config()["run"]["command"]
    assert kept == (
        f"muxgcl run g --anchors {size} --negatives {size} --set zero_bias=true --set fanout=5"
    )
    settings = {**HOP.settings, "zero_bias": "true", "fanout": "5"}
    asked = replace(
        HOP, out=tmp_path / "two", anchors=size, negatives=size, settings=settings, splits=1
    )
    again = muxgcl.run(DATA, asked, command="muxgcl run g --anchors")
    assert np.array_equal(again.embedding, first.embedding)
    assert Run(tmp_path / "two").config()["run"]["command"] == "muxgcl run g --anchors"


@pytest.mark.usefixtures("slow")
def test_the_command_that_is_kept_is_exact_where_speed_allowed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "BRIEF", float("inf"))
    options = replace(HOP, score=False, out=tmp_path)
    muxgcl.run(DATA, options, command="muxgcl run g")
    assert Run(tmp_path).config()["run"]["command"] == "muxgcl run g --exact"
    muxgcl.run(DATA, replace(options, overwrite=True, exact=True), command="muxgcl run g --x")
    assert Run(tmp_path).config()["run"]["command"] == "muxgcl run g --x"
    monkeypatch.setattr(cost, "ROUGH_SECONDS", float("inf"))  # nothing is measured
    muxgcl.run(DATA, replace(options, overwrite=True), command="muxgcl run g")
    assert Run(tmp_path).config()["run"]["command"] == "muxgcl run g"
