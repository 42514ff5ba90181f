"""The stages of a run, one by one: how a folder is begun, what is compared, what is kept."""

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import muxgcl
from muxgcl import Observer, RunOptions, UserError
from muxgcl.app import judge, pipeline
from muxgcl.app.begin import as_begun, begin, observed_so_far, refuse_foreign
from muxgcl.app.job import prepare
from muxgcl.app.judge import controls_stage, score_stage, stops_are_told
from muxgcl.app.source import Source
from muxgcl.evaluate import PaperProtocol
from muxgcl.graph import Graph, graph_fingerprint
from muxgcl.io import planted
from muxgcl.io.load import Loaded
from muxgcl.runs.environment import device_name
from muxgcl.runs.fit import Fitted, Ready, Stopped, make_ready
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan

SMALL = {"width": 8, "projection": 8, "projection_out": 8, "epochs": 5}


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    data = planted(nodes=40)
    data.y[:4] = -1
    return muxgcl.load(data)


def plan_of(**changes: Any) -> Plan:
    settings = {**SMALL, **changes.pop("settings", {})}
    return Plan.make("grace", "quick", "toy", settings, device="cpu", **changes)


def ready_of(loaded: Loaded, **changes: Any) -> Ready:
    return make_ready(plan_of(**changes), Graph.from_data(loaded.tensors))


def begun(
    run: Run, ready: Ready, loaded: Loaded, *, resume: bool = False, overwrite: bool = False
) -> list[str]:
    source = Source("toy.csv")
    how = {"resume": resume, "overwrite": overwrite, "command": "muxgcl run toy.csv"}
    return begin(run, ready, source, loaded, **how)


@pytest.fixture
def run(loaded: Loaded, tmp_path: Path) -> Run:
    """A folder that was begun with seed 0, 5 epochs, one member."""
    run = Run(tmp_path / "run")
    assert begun(run, ready_of(loaded), loaded) == []
    return run


def test_a_config_says_what_the_graph_and_the_machine_were(run: Run, loaded: Loaded) -> None:
    tables, graph = run.config(), ready_of(loaded).graph
    assert tables["data"] == {
        "nodes": 40,
        "edges": loaded.tensors.edge_index.shape[1],
        "features": loaded.tensors.x.shape[1],
        "classes": len(set(loaded.tensors.y.tolist()) - {-1}),
        "fingerprint": graph_fingerprint(graph),
        "notes": loaded.notes,
    }
    facts = {"command": "muxgcl run toy.csv", "device_used": "cpu", "backend_used": "chunked"}
    assert facts.items() <= tables["run"].items()
    assert tables["source"]["graph"].endswith("toy.csv")


def test_a_graph_without_labels_has_no_classes(loaded: Loaded, tmp_path: Path) -> None:
    data = planted(nodes=40)
    del data.y
    bare = muxgcl.load(data)
    begun(Run(tmp_path / "run"), ready_of(bare), bare)
    assert Run(tmp_path / "run").config()["data"]["classes"] == 0


def test_a_new_run_clears_what_an_old_one_left_and_only_when_asked(
    run: Run, loaded: Loaded
) -> None:
    run.log([{"epoch": 1, "loss": 1.0}])
    with pytest.raises(UserError, match="holds a run already"):
        begun(run, ready_of(loaded, seed=3), loaded)
    assert run.config()["run"]["seed"] == 0
    assert len(run.metrics()) == 1
    assert begun(run, ready_of(loaded, seed=3), loaded, overwrite=True) == []
    assert run.config()["run"]["seed"] == 3
    assert run.metrics() == []


def test_resume_without_a_run_begins_one(loaded: Loaded, tmp_path: Path) -> None:
    run = Run(tmp_path / "new")
    assert begun(run, ready_of(loaded), loaded, resume=True) == []
    assert run.exists


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 1}, r"another seed \(0\); this command asks for 1"),
        ({"anchors": 8}, r"another number of anchors \(all\); this command asks for 8"),
        ({"keys": 8}, r"another number of negatives \(all\); this command asks for 8"),
        ({"capture": "off"}, r"another capture \(auto\); this command asks for off"),
        ({"backend": "reference"}, r"another backend \(chunked\); .* reference"),
        ({"settings": {"epochs": 4}}, r"another epochs \(5\); this command asks for 4"),
        ({"settings": {"lr": 0.5}}, r"another lr \(.*\); this command asks for 0.5"),
        ({"settings": {"drop_edges": (0.0, 0.0)}}, r"another drop_edges .* asks for \[0.0, 0.0\]"),
        ({"settings": {"epochs": 6, "lr": 0.5}}, r"another lr \("),
    ],
)
def test_a_run_goes_on_as_it_was_begun_or_not_at_all(
    run: Run, loaded: Loaded, changes: dict[str, Any], words: str
) -> None:
    before = run.config_file.read_text()
    with pytest.raises(UserError, match=words):
        begun(run, ready_of(loaded, **changes), loaded, resume=True)
    assert run.config_file.read_text() == before


def test_a_run_goes_on_with_the_same_graph_alone(run: Run) -> None:
    other = muxgcl.load(planted(nodes=40, seed=9))
    with pytest.raises(UserError, match=r"another graph \("):
        begun(run, ready_of(other), other, resume=True)


def test_the_same_command_goes_on_and_changes_nothing(run: Run, loaded: Loaded) -> None:
    before = run.config_file.read_text()
    assert begun(run, ready_of(loaded), loaded, resume=True) == []
    assert run.config_file.read_text() == before


def test_sizes_of_a_sample_are_compared_where_there_is_one(loaded: Loaded, tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    begun(run, ready_of(loaded, anchors=8, keys=16), loaded)
    assert begun(run, ready_of(loaded, anchors=8, keys=16), loaded, resume=True) == []
    with pytest.raises(UserError, match=r"number of anchors \(8\); this command asks for all"):
        begun(run, ready_of(loaded, keys=16), loaded, resume=True)


@pytest.mark.parametrize(
    ("changes", "note", "kept"),
    [
        (
            {"settings": {"epochs": 7}},
            "training goes on beyond epoch 5, to 7",
            ("train", "epochs", 7),
        ),
        ({"members": 3}, "members are added: 3 instead of 1", ("run", "members", 3)),
        ({"output_width": 4}, "the embedding becomes 4 wide", ("run", "output_width", 4)),
    ],
)
def test_what_may_grow_is_told_and_kept(
    run: Run, loaded: Loaded, changes: dict[str, Any], note: str, kept: tuple[str, str, int]
) -> None:
    assert begun(run, ready_of(loaded, **changes), loaded, resume=True) == [note]
    table, key, value = kept
    assert run.config()[table][key] == value
    assert begun(run, ready_of(loaded, **changes), loaded, resume=True) == []
    words = {"epochs": "epochs", "members": "number of members", "output_width": "output_width"}
    with pytest.raises(UserError, match=f"another {words[key]} "):
        begun(run, ready_of(loaded), loaded, resume=True)


def test_a_damaged_checkpoint_of_any_member_is_named_before_any_work(
    loaded: Loaded, tmp_path: Path
) -> None:
    run = Run(tmp_path / "run")
    begun(run, ready_of(loaded, members=2), loaded)
    for member in (0, 1):
        file = Run(run.path, member).checkpoint_file
        file.write_bytes(b"nothing of ours")
        with pytest.raises(UserError, match=file.name):
            begun(run, ready_of(loaded, members=2), loaded, resume=True)
        file.unlink()


def test_a_resumed_plan_takes_the_sample_that_the_run_was_begun_with(
    loaded: Loaded, tmp_path: Path
) -> None:
    run, plan = Run(tmp_path / "run"), plan_of()
    assert as_begun(run, plan, exact=False) == plan  # nothing is there
    begun(run, ready_of(loaded, anchors=8, keys=16), loaded)
    taken = as_begun(run, plan, exact=False)
    assert (taken.anchors, taken.keys) == (8, 16)
    assert as_begun(run, plan, exact=True) == plan
    asked = plan_of(anchors=4)
    assert as_begun(run, asked, exact=False) == asked
    other = Plan.make("dgi", "quick", device="cpu")
    assert as_begun(run, other, exact=False) == other


def test_a_folder_of_other_things_is_refused_and_one_of_ours_is_not(
    run: Run, tmp_path: Path
) -> None:
    refuse_foreign(run)
    refuse_foreign(Run(tmp_path / "new"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(UserError, match=r"holds no run \(there is thesis.tex\)"):
        refuse_foreign(Run(tmp_path / "full"))


def test_protocol_paper_must_have_seen_each_of_the_last_epochs(run: Run) -> None:
    plan = plan_of(settings={"epochs": 10})
    assert observed_so_far(run, plan, 0, last=4) == {}  # no checkpoint: nothing is done
    run.save_checkpoint({}, epoch=6)
    assert observed_so_far(run, plan, 0, last=4) == {}  # the first to see is epoch 7
    run.save_checkpoint({}, epoch=8)
    run.log_observed(7, [70.0], split_seed=0)
    with pytest.raises(UserError, match=r"every epoch from 7 on, but .* is at epoch 8 without"):
        observed_so_far(run, plan, 0, last=4)
    run.log_observed(8, [80.0], split_seed=0)
    run.log_observed(9, [90.0], split_seed=0)  # of work that the checkpoint does not have
    assert observed_so_far(run, plan, 0, last=4) == {7: (70.0,), 8: (80.0,)}
    with pytest.raises(UserError, match="on these splits"):
        observed_so_far(run, plan, 1, last=4)


def test_with_few_epochs_protocol_paper_looks_at_all_of_them(run: Run) -> None:
    run.save_checkpoint({}, epoch=1)
    with pytest.raises(UserError, match="every epoch from 1 on"):
        observed_so_far(run, plan_of(), 0, last=100)


@pytest.mark.parametrize("resumable", [True, False])
def test_a_stop_says_when_it_came_and_what_is_left(resumable: bool) -> None:
    left = "what was done before is kept" if resumable else "nothing was written"
    with (
        pytest.raises(Stopped, match=f"stopped while baking; {left}") as stop,
        stops_are_told("baking", resumable=resumable),
    ):
        raise KeyboardInterrupt
    assert (stop.value.number, stop.value.resumable) == (signal.SIGINT, resumable)
    asked = KeyboardInterrupt()
    asked.number = signal.SIGTERM  # type: ignore[attr-defined]
    with pytest.raises(Stopped) as stop, stops_are_told("baking"):
        raise asked
    assert (stop.value.number, stop.value.resumable) == (signal.SIGTERM, True)


# scores -----------------------------------------------------------------------------------------


class Heard(Observer):
    def __init__(self) -> None:
        self.phases: list[str] = []
        self.steps: list[tuple[int, int]] = []
        self.notes: list[str] = []

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def step(self, done: int, total: int) -> None:
        self.steps.append((done, total))

    def note(self, text: str) -> None:
        self.notes.append(text)


def fitted_of(ready: Ready) -> Fitted:
    return Fitted(ready.method, ready.graph, 1.5, 2.5, 3.5, 4.5, "a CPU", "chunked")


def test_scores_and_what_a_report_draws_are_kept(
    run: Run, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {}

    def score(z: Any, data: Any, protocols: Any, **how: Any) -> Any:
        asked.update(how, protocols=protocols)
        return {"holdout": {"accuracy": {"mean": 50.0}}}, np.array([[1, 2], [3, 4]])

    def diagnose(fitted: Any, seed: int) -> dict[str, Any]:
        return {"seed": seed}

    monkeypatch.setattr(judge, "score", score)
    monkeypatch.setattr(judge, "diagnose", diagnose)
    paper = PaperProtocol(np.arange(40) % 2)
    paper.epochs = {1: (50.0, 60.0), 2: (70.0, 80.0)}
    heard, z = Heard(), torch.rand(40, 3)
    how = {"splits": 3, "split_seed": 7}
    ready = ready_of(loaded)
    found = score_stage(run, fitted_of(ready), z, loaded.tensors, ("holdout",), paper, heard, **how)
    assert asked == {"protocols": ("holdout",), **how}
    assert found["paper"] == paper.result().to_dict()
    assert run.scores() == found
    assert heard.phases == ["scoring"]
    assert json.loads(run.diagnostics_file.read_text()) == {
        "seed": 0,
        "confusion": [[1, 2], [3, 4]],
        "seconds": 4.5,
        "epoch_ms": 2.5,
        "peak_mib": 3.5,
        "device": "a CPU",
        "backend": "chunked",
    }
    paper.epochs = {}  # nothing was seen: there is nothing to say
    assert "paper" not in score_stage(
        run, fitted_of(ready), z, loaded.tensors, ("holdout",), paper, heard, **how
    )
    monkeypatch.setattr(judge, "score", lambda *given, **how: ({}, None))
    score_stage(run, fitted_of(ready), z, loaded.tensors, (), None, heard, **how)
    assert "confusion" not in json.loads(run.diagnostics_file.read_text())


def test_controls_are_kept_beside_what_was_known_of_them(
    run: Run, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def score_controls(*given: Any, **how: Any) -> Any:
        asked.append((given[3], how))
        yield "raw", {"holdout": 1}
        yield "sgc", {"holdout": 2}
        raise ValueError("no\n room")

    monkeypatch.setattr(judge, "score_controls", score_controls)
    run.save_scores({"controls": {"raw": {"public": {}, "holdout": 0}, "old": {"holdout": 9}}})
    heard, ready = Heard(), ready_of(loaded)
    given = (run, ready.plan, ready.graph, loaded.tensors, ("holdout",), heard)
    found = controls_stage(*given, splits=3, split_seed=7)
    assert found == {"controls": {"raw": {"holdout": 1}, "sgc": {"holdout": 2}}}
    assert run.scores()["controls"] == {"raw": {"public": {}, "holdout": 1}, "sgc": {"holdout": 2}}
    assert heard.phases == ["controls"]
    assert heard.steps == [(1, 6), (2, 6)]
    assert heard.notes == ["not all controls could be scored: no room"]
    assert asked == [(("holdout",), {"splits": 3, "split_seed": 7, "clusters": True})]
    controls_stage(*given, splits=1, split_seed=0, clusters=False)
    assert asked[1][1] == {"splits": 1, "split_seed": 0, "clusters": False}


def test_controls_that_cannot_begin_leave_the_scores_alone(
    run: Run, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **how: Any) -> Any:
        raise MemoryError
        yield

    monkeypatch.setattr(judge, "score_controls", fails)
    heard, ready = Heard(), ready_of(loaded)
    given = (run, ready.plan, ready.graph, loaded.tensors, ("holdout",), heard)
    assert controls_stage(*given, splits=3, split_seed=7) == {}
    assert heard.notes == ["not all controls could be scored: MemoryError"]
    assert not run.scores_file.exists()

    def stopped(*given: Any, **how: Any) -> Any:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(judge, "score_controls", stopped)
    with pytest.raises(Stopped, match="stopped while scoring controls"):
        controls_stage(*given, splits=3, split_seed=7)


# one run ----------------------------------------------------------------------------------------

OPTIONS = RunOptions(
    method="grace",
    preset="quick",
    settings={k: v for k, v in SMALL.items() if k != "epochs"},
    epochs=2,
    splits=2,
    device="cpu",
    score=False,
)


def test_a_result_says_what_training_took(loaded: Loaded, tmp_path: Path) -> None:
    result = muxgcl.run(loaded, replace(OPTIONS, out=tmp_path / "run"))
    run = Run(tmp_path / "run")
    lines = run.metrics()
    assert result.loss == lines[-1]["loss"]
    assert result.path == run.path
    assert result.plan.train.epochs == 2
    assert (result.device, result.backend) == (
        device_name(torch.device("cpu")),
        "chunked",
    )
    assert result.seconds > 0
    assert result.epoch_ms == pytest.approx(np.median([line["ms"] for line in lines]))
    assert (result.scores, result.verdict) == ({}, None)
    assert np.array_equal(result.embedding, run.embeddings()[1])
    assert not run.scores_file.exists()
    assert not run.report_file.exists()


def test_what_nodes_are_is_kept_for_the_report(loaded: Loaded, tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    named = replace(loaded, columns={"age": list(range(40))}, label_names=["a", "b", "c", "d"])
    pipeline.save_nodes(run, named)
    found = run.nodes()
    assert found["column:age"].tolist() == list(range(40))
    assert np.array_equal(found["edge_index"], loaded.tensors.edge_index.numpy())
    assert found["edge_index"].dtype == np.int32
    assert np.array_equal(found["label"], loaded.tensors.y.numpy())
    assert found["label_names"].tolist() == ["a", "b", "c", "d"]
    pipeline.save_nodes(run, replace(loaded, label_names=None, columns={}))
    assert set(run.nodes()) == {"edge_index", "label"}


def test_the_peak_of_memory_is_that_of_all_stretches(loaded: Loaded, tmp_path: Path) -> None:
    job = prepare(loaded, replace(OPTIONS, out=tmp_path / "run"), None, None)
    run = Run(tmp_path / "run")
    run.path.mkdir()
    before = 12_345_678.0
    run.diagnostics_file.write_text(json.dumps({"peak_mib": before}))
    ready = make_ready(job.plan, job.graph)
    assert pipeline.train_stage(job, ready, run, None).peak_mib == before
    run.diagnostics_file.write_text("{}")
    fresh = make_ready(job.plan, job.graph)
    job = replace(job, options=replace(job.options, resume=False))
    run.clear()
    assert pipeline.train_stage(job, fresh, run, None).peak_mib < before


@pytest.mark.parametrize("done", [False, True])
def test_a_training_that_fails_clears_a_folder_in_which_nothing_was_done(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    def fails(*given: Any, **how: Any) -> Any:
        raise UserError("the loss is not a finite number")

    job = prepare(loaded, replace(OPTIONS, out=tmp_path / "run"), None, None)
    run, ready = Run(tmp_path / "run"), make_ready(job.plan, job.graph)
    begun(run, ready, loaded)
    if done:
        run.log([{"epoch": 1, "loss": 1.0}])
    monkeypatch.setattr(pipeline, "train", fails)
    with pytest.raises(UserError, match="not a finite"):
        pipeline.train_stage(job, ready, run, None)
    assert run.exists == done


def test_a_stop_of_one_of_several_members_says_which(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(job: Any, ready: Any, run: Run, paper: Any) -> Any:
        if run.member == len(members) - 1:
            raise Stopped("stopped after epoch 1 of 2", signal.SIGTERM, resumable=False)
        return real(job, ready, run, paper)

    real = pipeline.train_stage
    monkeypatch.setattr(pipeline, "train_stage", stops)
    for members, words in (([0], "of 2$"), ([0, 1], r"of 2 \(member 2 of 2\)$")):
        heard = Heard()
        options = replace(OPTIONS, out=tmp_path / f"{len(members)}", members=len(members))
        with pytest.raises(Stopped, match=words) as stop:
            muxgcl.run(loaded, options, observer=heard)
        assert (stop.value.number, stop.value.resumable) == (signal.SIGTERM, False)
        told = [note for note in heard.notes if note.startswith("member")]
        assert told == [f"member {k + 1} of 2: seed {k}" for k in members if len(members) > 1]


def test_notes_on_the_data_are_told_once_for_several_seeds(tmp_path: Path) -> None:
    heard = Heard()
    data = planted(nodes=40)
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[1], [1]])], 1)  # a loop: a note
    loaded = muxgcl.load(data)
    assert loaded.notes
    muxgcl.run_seeds(loaded, 2, replace(OPTIONS, out=tmp_path), observer=heard)
    for note in loaded.notes:
        assert heard.notes.count(note) == 1
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} >= {"seed0", "seed1"}


def test_one_seed_needs_no_folder_of_its_own(loaded: Loaded, tmp_path: Path) -> None:
    found = muxgcl.run_seeds(loaded, 1, replace(OPTIONS, out=tmp_path / "run"))
    assert [one.path for one in found.runs] == [tmp_path / "run"]


def test_a_collapsed_embedding_is_told(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fitted, "embed", lambda self: torch.ones(40, 8))
    heard = Heard()
    muxgcl.run(loaded, replace(OPTIONS, out=tmp_path / "run"), observer=heard)
    assert any("it has collapsed" in note for note in heard.notes)


def test_a_dry_run_says_what_it_would_take_and_writes_nothing(
    loaded: Loaded, tmp_path: Path
) -> None:
    options = replace(OPTIONS, out=tmp_path / "run", resume=True)
    found = pipeline.dry_run(loaded, options)
    assert found.plan.method == "grace"
    assert not (tmp_path / "run").exists()
