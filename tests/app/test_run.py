"""`muxgcl.run` in Python: what the command line does, file by file."""

import json
import signal
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cli_cases import FAST, command_line
from stage_cases import SCORED as OPTIONS

import muxgcl
from muxgcl import LoadOptions, Observer, UserError
from muxgcl.app import pipeline
from muxgcl.evaluate import Verdict, structure
from muxgcl.io import planted
from muxgcl.runs.fit import Stopped
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch


class Heard(Observer):
    """Remembers every event by name."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def phase(self, name: str) -> None:
        self.events.append(("phase", name))

    def note(self, text: str) -> None:
        self.events.append(("note", text))

    def epochs(self, block: list[Epoch], total: int) -> None:
        self.events += [("epoch", (epoch.number, total)) for epoch in block]

    def scores(self, method: str, scores: Any, verdict: Verdict | None) -> None:
        self.events.append(("scores", (method, verdict)))

    def wrote(self, what: str, path: Path) -> None:
        self.events.append(("wrote", what))

    def of(self, kind: str) -> list[Any]:
        return [value for name, value in self.events if name == kind]


@pytest.fixture
def load(files: Path) -> LoadOptions:
    return LoadOptions(features=files / "nodes.csv", label_column="topic")


def without_times(path: Path) -> dict[str, Any]:
    """All that a run folder says, but for times and for the command that was typed."""
    tables = tomllib.loads((path / "config.toml").read_text())
    for name in ("created", "command"):
        tables["run"].pop(name, None)
    lines = [{**line, "ms": 0} for line in Run(path).metrics()]
    return {"config": tables, "metrics": lines, "scores": Run(path).scores()}


def test_python_and_the_command_line_make_the_same_run(
    files: Path, own: list[str], load: LoadOptions, tmp_path: Path
) -> None:
    one, two = tmp_path / "python", tmp_path / "shell"
    result = muxgcl.run(files / "edges.csv", replace(OPTIONS, out=one, report=True), load=load)
    assert command_line(["run", *own, "--method", "grace", *FAST, "--out", str(two)]) == 0
    assert {p.name for p in one.iterdir()} == {p.name for p in two.iterdir()}
    assert (one / "report.html").is_file()
    assert without_times(one) == without_times(two)
    for name in ("embeddings.npz", "nodes.npz"):
        with np.load(one / name) as mine, np.load(two / name) as theirs:
            assert mine.files == theirs.files
            assert all(np.array_equal(mine[key], theirs[key]) for key in mine.files)
    mine, theirs = (Run(path).checkpoint()[0] for path in (one, two))
    assert all(torch.equal(mine[key], theirs[key]) for key in mine)
    assert np.array_equal(result.embedding, Run(two).embeddings()[1])
    assert result.ids.tolist() == [f"n{i}" for i in range(60)]
    assert result.scores == Run(one).scores()


def test_python_says_nothing_unless_asked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    muxgcl.run(planted(nodes=60), replace(OPTIONS, out=tmp_path / "run", report=True))
    assert capfd.readouterr() == ("", "")


def test_an_observer_hears_every_event_in_order(tmp_path: Path) -> None:
    heard = Heard()
    options = replace(OPTIONS, out=tmp_path / "run", report=True)
    result = muxgcl.run(planted(nodes=60), options, observer=heard)
    phases = ["loading", "preparing", "training", "scoring", "controls", "report"]
    assert heard.of("phase") == phases
    assert heard.of("epoch") == [(1, 2), (2, 2)]
    assert heard.of("scores") == [("grace", result.verdict)]
    assert heard.of("wrote") == ["embeddings", "report"]
    assert heard.of("note") == Run(tmp_path / "run").config()["data"]["notes"]


def test_a_run_that_is_resumed_equals_one_that_was_not_stopped(tmp_path: Path) -> None:
    data = planted(nodes=60)
    options = replace(OPTIONS, epochs=6, controls=False)

    class StopsAtThree(Observer):
        def epochs(self, block: list[Epoch], total: int) -> None:
            if block[-1].number == 3:
                signal.raise_signal(signal.SIGINT)

    whole = muxgcl.run(data, replace(options, out=tmp_path / "whole"))
    stopped = replace(options, out=tmp_path / "stopped")
    with pytest.raises(Stopped, match="stopped after epoch 3 of 6") as stop:
        muxgcl.run(data, stopped, observer=StopsAtThree())
    assert (stop.value.number, stop.value.resumable) == (signal.SIGINT, True)
    assert not Run(tmp_path / "stopped").embeddings_file.exists()
    resumed = muxgcl.run(data, replace(stopped, resume=True))
    assert np.array_equal(resumed.embedding, whole.embedding)
    assert resumed.scores == whole.scores
    assert without_times(tmp_path / "whole") == without_times(tmp_path / "stopped")


def test_resume_with_more_epochs_trains_longer(tmp_path: Path) -> None:
    data = planted(nodes=60)
    options = replace(OPTIONS, controls=False)
    long = muxgcl.run(data, replace(options, epochs=6, out=tmp_path / "long"))
    muxgcl.run(data, replace(options, epochs=2, out=tmp_path / "run"))
    heard = Heard()
    longer = replace(options, epochs=6, out=tmp_path / "run", resume=True)
    result = muxgcl.run(data, longer, observer=heard)
    assert [number for number, _ in heard.of("epoch")] == [3, 4, 5, 6]
    assert np.array_equal(result.embedding, long.embedding)
    assert Run(tmp_path / "run").config()["train"]["epochs"] == 6
    assert "training goes on beyond epoch 2, to 6" in heard.of("note")
    with pytest.raises(
        UserError, match=r"epochs = 6; 3 was asked for, but a run can only be trained longer"
    ):
        muxgcl.run(data, replace(longer, epochs=3))


def test_a_run_that_goes_on_keeps_the_scores_of_its_embedding_and_labels_alone(
    tmp_path: Path,
) -> None:
    data, run = planted(nodes=60), Run(tmp_path / "run")
    options = replace(OPTIONS, epochs=2, controls=False, out=run.path)
    muxgcl.run(data, options)
    found = {"link": {"auc": {"mean": 0.7}}, "public": {"accuracy": {"mean": 70.0}}}
    run.save_scores(found)
    again = replace(options, resume=True)
    muxgcl.run(data, again)  # nothing was left to train: the embedding is the same
    assert run.scores().keys() == {"holdout", "clustering", "link", "public"}
    data.y = data.y.roll(1)
    heard = Heard()
    muxgcl.run(data, replace(again, score=False), observer=heard)
    assert run.scores() == {"link": found["link"]}
    assert "confusion" not in run.diagnostics()
    muxgcl.run(data, replace(again, epochs=3, score=False), observer=heard)
    assert run.scores() == run.diagnostics() == {}
    told = [note for note in heard.of("note") if note.endswith("are dropped")]
    assert told == [f"scores of the earlier {what} are dropped" for what in ("labels", "embedding")]


def test_a_run_whose_embeddings_were_damaged_goes_on_without_their_scores(tmp_path: Path) -> None:
    data, run = planted(nodes=60), Run(tmp_path / "run")
    options = replace(OPTIONS, epochs=2, controls=False, out=run.path)
    whole = muxgcl.run(data, options)
    run.save_scores({"link": {"auc": {"mean": 0.7}}})
    run.embeddings_file.write_bytes(b"damaged")
    muxgcl.run(data, replace(options, resume=True))
    assert np.array_equal(run.embeddings()[1], whole.embedding)
    assert run.scores().keys() == {"holdout", "clustering"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"backend": "reference"}, "begun with backend = chunked; reference was asked for"),
        ({"capture": "off"}, "begun with capture = auto; off was asked for"),
    ],
)
def test_resume_compares_how_a_run_computes(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    data, options = planted(nodes=60), replace(OPTIONS, out=tmp_path / "run", score=False)
    muxgcl.run(data, options)
    with pytest.raises(UserError, match=message):
        muxgcl.run(data, replace(options, resume=True, **change))
    same = replace(options, resume=True, backend="chunked", device="auto")  # what auto came to
    if not torch.cuda.is_available():
        assert muxgcl.run(data, same).embedding.shape == (60, 8)


def test_resume_compares_the_device(tmp_path: Path) -> None:
    data, options = planted(nodes=60), replace(OPTIONS, out=tmp_path / "run", score=False)
    muxgcl.run(data, options)
    run = Run(tmp_path / "run")
    tables = run.config()
    assert (tables["run"]["device_used"], tables["run"]["backend_used"]) == ("cpu", "chunked")
    tables["run"]["device_used"] = "cuda"
    run.write_config(tables)
    with pytest.raises(UserError, match=r"device = cuda; cpu was asked for"):
        muxgcl.run(data, replace(options, resume=True))


def test_the_method_is_built_once_and_settings_are_chosen_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from muxgcl.runs import auto, cost, fit

    counts = {"build": 0, "choose": 0}

    def counted(name: str, real: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            counts[name] += 1
            return real(*given, **named)

        return call

    monkeypatch.setattr(fit, "build", counted("build", fit.build))
    monkeypatch.setattr(auto, "settings_for", counted("choose", auto.settings_for))
    monkeypatch.setattr(cost, "ROUGH_SECONDS", 0.0)  # time and memory are estimated, too
    options = replace(OPTIONS, preset="auto", out=tmp_path / "run", controls=False)
    heard = Heard()
    muxgcl.run(planted(nodes=60), options, observer=heard)
    assert "estimating" in heard.of("phase")
    assert counts == {"build": 2, "choose": 1}  # once more for the steps that are timed
    counts["build"] = 0
    monkeypatch.setattr("muxgcl.app.budget.measured", lambda rates, plan, graph: rates)
    muxgcl.run(planted(nodes=60), replace(options, overwrite=True))
    assert counts["build"] == 1
    assert any(note.startswith("lr = 0.0005: the graph is small") for note in heard.of("note"))


def test_seeds_are_counted_up_and_summarised(tmp_path: Path) -> None:
    options = replace(OPTIONS, seed=4, out=tmp_path)
    found = muxgcl.run_seeds(planted(nodes=60), 3, options)
    assert [one.plan.seed for one in found.runs] == [4, 5, 6]
    assert [one.path.name for one in found.runs] == ["seed4", "seed5", "seed6"]
    means = [one.scores["holdout"]["accuracy"]["mean"] for one in found.runs]
    assert found.scores["holdout"]["accuracy"]["mean"] == pytest.approx(np.mean(means))
    assert found.verdict is not None
    assert (found.verdict.seeds, found.verdict.difference.n) == (3, 6)
    raw = [one.scores["controls"]["raw"]["holdout"]["accuracy"]["mean"] for one in found.runs]
    over = found.scores["controls"]["raw"]["holdout"]["accuracy"]
    assert over == {"mean": pytest.approx(np.mean(raw)), "std": pytest.approx(0.0), "n": 3}
    with pytest.raises(UserError, match="seeds must be at least 1, got 0"):
        muxgcl.run_seeds(planted(nodes=60), 0, options)


def test_a_failing_control_costs_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any) -> Any:
        raise RuntimeError("not enough memory for this")

    monkeypatch.setattr("muxgcl.runs.control_scores.untrained", fails)
    heard = Heard()
    options = replace(OPTIONS, out=tmp_path / "run", report=True)
    result = muxgcl.run(planted(nodes=60), options, observer=heard)
    assert "not all controls could be scored: not enough memory for this" in heard.of("note")
    assert result.scores == Run(tmp_path / "run").scores()
    assert set(result.scores) == {"holdout", "clustering", "controls"}
    assert list(result.scores["controls"]) == ["raw", "A X", "A^2 X", "X|AX|A^2X"]  # came before
    assert (tmp_path / "run" / "report.html").is_file()


def test_scores_are_on_disk_before_controls_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pulls_the_plug(*given: Any, **more: Any) -> Any:
        raise SystemExit

    monkeypatch.setattr(pipeline, "controls_stage", pulls_the_plug)
    with pytest.raises(SystemExit):
        muxgcl.run(planted(nodes=60), replace(OPTIONS, out=tmp_path / "run"))
    assert set(Run(tmp_path / "run").scores()) == {"holdout", "clustering"}
    assert json.loads((tmp_path / "run" / "diagnostics.json").read_text())["confusion"]


def test_controls_of_sparse_features_are_scored(tmp_path: Path) -> None:
    data = planted(nodes=60)
    loaded = muxgcl.load(data)
    wide = torch.zeros(60, 1000)
    wide[:, :48] = loaded.tensors.x
    loaded.tensors.x = wide.to_sparse()
    result = muxgcl.run(loaded, replace(OPTIONS, out=tmp_path / "run"))
    loaded.tensors.x = wide
    dense = muxgcl.run(loaded, replace(OPTIONS, out=tmp_path / "dense"))
    assert result.scores["controls"] == dense.scores["controls"]
    assert len(result.scores["controls"]) == 6


def test_without_labels_what_was_asked_for_is_missing_and_said(tmp_path: Path) -> None:
    data = planted(nodes=60)
    del data.y
    options = replace(OPTIONS, out=tmp_path / "run")
    for change, what in (({"protocols": ("public",)}, "protocol public"), ({"controls": True}, "")):
        with pytest.raises(UserError, match=f"{what}.* needs labels, and this graph has none"):
            muxgcl.run(data, replace(options, **change))
    assert not (tmp_path / "run").exists()
    heard = Heard()
    result = muxgcl.run(data, options, observer=heard)
    assert result.verdict is None
    figures = {name: part["mean"] for name, part in result.scores["no labels"].items()}
    judged = structure(result.embedding, data.edge_index.numpy())
    assert judged is not None
    assert figures == judged.to_dict()
    kept = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert kept["no labels"] == result.scores["no labels"]
    assert any(note.startswith("no labels, so nothing is classified") for note in heard.of("note"))


def test_file_options_of_a_named_dataset_are_refused(tmp_path: Path) -> None:
    for options, flag in (
        (LoadOptions(features="x.csv"), "--features"),
        (LoadOptions(labels="y.csv"), "--labels"),
        (LoadOptions(source_column="a"), "--source"),
        (LoadOptions(header=False), "--header"),
    ):
        with pytest.raises(UserError, match=f"cora is a dataset: .*{flag}"):
            muxgcl.run("cora", replace(OPTIONS, out=tmp_path / "run"), load=options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["raw", "sgc", "random-gcn"])
def test_an_untrained_method_embeds_a_new_graph_from_its_folder(tmp_path: Path, name: str) -> None:
    options = replace(OPTIONS, method=name, preset=None, settings={}, epochs=None, score=False)
    data = planted(nodes=60)
    result = muxgcl.run(data, replace(options, out=tmp_path / "run"))
    again = muxgcl.embed(tmp_path / "run", data)
    assert np.array_equal(again.table, result.embedding)
    grown = planted(nodes=80, seed=5)
    want = muxgcl.run(grown, replace(options, out=tmp_path / "other"))
    if name != "random-gcn":  # the others have no weights: only scaling differs, and is kept
        other = muxgcl.load(grown, encoding=muxgcl.load(data).encoding)
        want = muxgcl.run(other, replace(options, out=tmp_path / "scaled"))
        assert np.allclose(muxgcl.embed(tmp_path / "run", grown).table, want.embedding, atol=1e-6)
    assert muxgcl.embed(tmp_path / "run", grown).table.shape == want.embedding.shape
