"""What is decided before a run: its folder, its notes, its estimate, what is refused."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stage_cases import SCORED, Heard

import muxgcl
from muxgcl import RunOptions, UserError
from muxgcl.app import prepare as preparing
from muxgcl.app.budget import Budget
from muxgcl.app.prepare import prepare
from muxgcl.evaluate import development_hash
from muxgcl.io import planted
from muxgcl.io.load import Loaded
from muxgcl.kernels.ring import Workers
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import labels_of


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that ask nobody: here there is one process."""
    monkeypatch.setattr(preparing, "all_succeed", lambda workers: nullcontext())
    monkeypatch.setattr(preparing, "agree", lambda workers, plan: None)
    monkeypatch.setattr(preparing, "same", lambda workers, asked: None)
    monkeypatch.setattr(preparing, "from_first", lambda workers, work: work())


def unlabelled() -> Loaded:
    data = planted(nodes=40)
    data.y[:] = -1
    return muxgcl.load(data)


def test_a_run_is_kept_under_a_name_that_says_what_it_is(loaded: Loaded, tmp_path: Path) -> None:
    job = prepare(loaded, replace(SCORED, out=None, seed=3), None, None)
    assert job.folder(job.plan) == Path("runs/graph-grace-quick-seed3")
    assert job.folder(job.plan, several=True) == Path("runs/graph-grace-quick-seed3")
    named = prepare(loaded, replace(SCORED, out=tmp_path / "here", seed=3), None, None)
    assert named.folder(named.plan) == tmp_path / "here"
    assert named.folder(named.plan, several=True) == tmp_path / "here" / "seed3"
    file = tmp_path / "mine.toml"
    file.write_text("width = 8\n")
    own = prepare(loaded, replace(SCORED, out=None, preset=str(file)), None, None)
    assert own.folder(own.plan).name == "graph-grace-mine-seed0"


def test_all_that_is_asked_for_reaches_the_plan(loaded: Loaded) -> None:
    options = RunOptions(
        method="grace",
        preset="quick",
        settings={"width": 8},
        epochs=3,
        seed=5,
        members=2,
        output_width=6,
        device="cpu",
        backend="reference",
        capture="off",
        anchors=9,
        negatives=11,
    )
    plan = prepare(loaded, options, None, None).plan
    assert (plan.method, plan.preset, plan.dataset) == ("grace", "quick", "graph")
    assert (plan.settings.width, plan.train.epochs, plan.seed) == (8, 3, 5)
    assert (plan.members, plan.output_width, plan.anchors, plan.keys) == (2, 6, 9, 11)
    assert (plan.device, plan.backend, plan.capture) == ("cpu", "reference", "off")


def test_notes_say_what_was_done_picked_and_left_out(loaded: Loaded, tmp_path: Path) -> None:
    options = replace(SCORED, preset="auto", out=tmp_path)
    told = replace(loaded, notes=["three edges twice"])
    notes = prepare(told, options, None, None).notes
    assert notes[0] == "three edges twice"
    assert any(note.startswith("epochs = ") or note.startswith("lr = ") for note in notes[1:])
    missing = "no labels, so nothing is classified (--labels or --label-column names them)"
    assert missing not in notes
    bare = unlabelled()
    assert prepare(bare, options, None, None).notes[-1] == missing
    assert missing not in prepare(bare, replace(options, score=False), None, None).notes


def test_settings_that_were_searched_by_other_labels_come_with_a_warning(
    loaded: Loaded, tmp_path: Path
) -> None:
    labels = labels_of(loaded.tensors)
    assert labels is not None
    file = tmp_path / "found.toml"
    options = replace(SCORED, preset=str(file), out=tmp_path / "run")
    for half, warns in ((development_hash(labels), False), ("another", True), (None, False)):
        file.write_text("width = 8\n" + ("" if half is None else f'development = "{half}"\n'))
        notes = prepare(loaded, options, None, None).notes
        found = [note for note in notes if "was searched on another graph" in note]
        assert bool(found) == warns
        if warns:
            assert found[0].startswith(f"{file} was searched on another graph, or on this one")
            unscored = prepare(loaded, replace(options, score=False), None, None).notes
            assert not any("was searched" in note for note in unscored)


def test_what_a_run_is_scored_by(loaded: Loaded) -> None:
    options = replace(SCORED, protocols=None, splits=3, split_seed=8)
    judging = prepare(loaded, options, None, None).judging
    assert (judging.protocols, judging.splits, judging.split_seed) == (("holdout",), 3, 8)
    assert judging.controls
    assert judging.report == options.report
    assert prepare(loaded, replace(options, report=True), None, None).judging.report
    assert judging.data is loaded.tensors
    asked = replace(options, protocols=("holdout-all",), controls=False)
    assert prepare(loaded, asked, None, None).judging.protocols == ("holdout-all",)
    assert not prepare(loaded, asked, None, None).judging.controls
    assert not prepare(loaded, replace(options, score=False), None, None).judging.controls
    assert not prepare(unlabelled(), options, None, None).judging.controls


def test_members_go_with_neither_protocol_paper_nor_workers(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone(monkeypatch)
    several = replace(SCORED, members=2)
    with pytest.raises(UserError, match="epochs of one training, not of several members"):
        prepare(loaded, replace(several, protocols=("holdout", "paper")), None, None)
    with pytest.raises(UserError, match="members are trained by one process each"):
        prepare(loaded, several, None, None, workers=Workers(0, 2))
    assert prepare(loaded, several, None, None).plan.members == 2
    one = prepare(loaded, replace(SCORED, protocols=("paper",)), None, None, workers=Workers(0, 2))
    assert one.workers == Workers(0, 2)


def test_a_log_that_is_not_known_is_refused_before_training(loaded: Loaded) -> None:
    with pytest.raises(UserError, match="log must be one of tensorboard, mlflow, wandb, got 'x'"):
        prepare(loaded, replace(SCORED, log="x"), None, None)


def test_scores_that_cannot_be_had_are_refused_before_training() -> None:
    with pytest.raises(UserError, match="protocol public needs labels"):
        prepare(unlabelled(), replace(SCORED, protocols=("public",)), None, None)
    with pytest.raises(UserError, match="a score of the controls needs labels"):
        prepare(unlabelled(), replace(SCORED, controls=True), None, None)
    prepare(unlabelled(), replace(SCORED, controls=True, score=False), None, None)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({0: 0, 1: 1}, "2 nodes have a label, expected at least 6"),
        ({0: 1}, "1 node has a label, expected at least 6"),
        (dict.fromkeys(range(40), 0), "all labels are the same"),
    ],
)
def test_labels_that_are_too_few_to_score_stop_no_training(
    tmp_path: Path, labels: dict[int, int], reason: str
) -> None:
    data, heard = planted(nodes=40), Heard()
    data.y[:] = -1
    for node, label in labels.items():
        data.y[node] = label
    options = replace(SCORED, out=tmp_path / "run", report=True)
    result = muxgcl.run(data, options, observer=heard)
    assert result.embedding.shape == (40, 8)
    assert list(result.scores) == ["no labels"]
    assert [note for note in heard.notes if "score" in note] == [f"not scored: {reason}"]
    assert not any("no labels" in note for note in heard.notes)
    assert (tmp_path / "run" / "report.html").is_file()
    assert (labels_of(muxgcl.load(data).tensors) == Run(tmp_path / "run").labels()).all()
    for asked in ({"protocols": ("holdout",)}, {"controls": True}):
        with pytest.raises(UserError, match=r"too few|at least two classes"):
            prepare(data, replace(options, out=tmp_path / "other", **asked), None, None)


def test_the_estimate_knows_what_was_asked_for_and_is_left_out_where_a_run_goes_on(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def budget(plan: Plan, graph: Any, **how: Any) -> Budget:
        how.pop("on_measure")()
        asked.append(how)
        return Budget(replace(plan, anchors=7, keys=7), notes=("about 3 s",))

    monkeypatch.setattr(preparing, "budget", budget)
    heard = Heard()
    options = replace(SCORED, out=tmp_path / "run", exact=True, settings={"width": 8}, epochs=2)
    job = prepare(loaded, options, None, heard, always=True)
    assert heard.phases == ["loading", "estimating"]
    assert (job.plan.anchors, job.notes[-1]) == (7, "about 3 s")
    (how,) = asked
    assert (how["exact"], how["always"], how["given"]) == (True, True, {"width": 8, "epochs": 2})
    assert how["scores"].splits == options.splits
    prepare(loaded, replace(options, score=False), None, None)
    assert asked[1]["scores"] is None
    assert asked[1]["always"] is False
    prepare(unlabelled(), options, None, None)
    assert asked[2]["scores"] is None
    prepare(loaded, replace(options, resume=True), None, None)  # there is nothing to resume
    assert len(asked) == 4
    assert {how["workers"] for how in asked} == {1}
    alone(monkeypatch)
    prepare(loaded, options, None, None, workers=Workers(0, 2))
    assert asked[4]["workers"] == 2
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").write_text('[run]\nmethod = "grace"\n')
    assert prepare(loaded, replace(options, resume=True), None, None).plan.anchors is None
    assert len(asked) == 5


@pytest.mark.parametrize("given", [{"options": {"epochs": 2}}, {"load": {"features": "nodes.csv"}}])
def test_a_dict_in_place_of_options_is_one_line(given: dict[str, Any], loaded: Loaded) -> None:
    kind = "RunOptions" if "options" in given else "LoadOptions"
    with pytest.raises(UserError, match=rf"expected {kind}\(\.\.\.\), got dict"):
        muxgcl.run(loaded, **given)
