"""The stages of a run, one by one: what is trained, scored, kept and told."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stage_cases import OPTIONS, Heard, begun, fitted_of, ready_of

import muxgcl
from muxgcl import Observer, UserError
from muxgcl.app import judge, pipeline
from muxgcl.app.job import prepare
from muxgcl.app.judge import controls_stage, score_stage
from muxgcl.evaluate import PaperProtocol
from muxgcl.io import planted
from muxgcl.io.load import Loaded
from muxgcl.kernels.ring import Workers
from muxgcl.methods import METHODS
from muxgcl.runs.environment import device_name
from muxgcl.runs.fit import Fitted, Ready, Stopped, make_ready
from muxgcl.runs.folder import Run

# scores -----------------------------------------------------------------------------------------


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
    def stops(job: Any, ready: Any, run: Run, *rest: Any) -> Any:
        if run.member == len(members) - 1:
            raise Stopped("stopped after epoch 1 of 2", signal.SIGTERM, resumable=False)
        return real(job, ready, run, *rest)

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


def test_notes_on_the_data_are_told_once_and_before_any_training(tmp_path: Path) -> None:
    events: list[str] = []

    class Ear(Observer):
        def note(self, text: str) -> None:
            events.append(text)

        def phase(self, name: str) -> None:
            events.append(name)

    data = planted(nodes=40)
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[1], [1]])], 1)  # a loop: a note
    loaded = muxgcl.load(data)
    assert loaded.notes
    muxgcl.run_seeds(loaded, 2, replace(OPTIONS, out=tmp_path), observer=Ear())
    for note in loaded.notes:
        assert events.count(note) == 1
        assert events.index(note) < events.index("training")
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} >= {"seed0", "seed1"}


def test_workers_reach_the_job_and_a_command_the_config(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def prepared(*given: Any, **how: Any) -> Any:
        asked.append(how["workers"])
        return prepare(*given, **{**how, "workers": None})

    monkeypatch.setattr(pipeline, "prepare", prepared)
    workers, options = Workers(0, 1), replace(OPTIONS, out=tmp_path / "run")
    muxgcl.run(loaded, options, workers=workers, command="what was typed")
    assert Run(tmp_path / "run").config()["run"]["command"] == "what was typed"
    options = replace(options, out=tmp_path / "seeds")
    muxgcl.run_seeds(loaded, 1, options, workers=workers, command="typed")
    assert Run(tmp_path / "seeds").config()["run"]["command"] == "typed"
    assert asked == [workers, workers]


def test_a_stop_before_anything_is_written_cannot_be_resumed(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*given: Any, **how: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "make_ready", stopped)
    with pytest.raises(Stopped, match="stopped while preparing; nothing was written") as stop:
        muxgcl.run(loaded, replace(OPTIONS, out=tmp_path / "run"))
    assert not stop.value.resumable
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("protocol", ["paper", "holdout"])
def test_a_worker_beside_the_first_trains_and_writes_nothing(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    asked: list[Any] = []

    @contextmanager
    def first_begins(workers: Any) -> Iterator[None]:
        asked.append(workers)
        yield

    def trained(ready: Ready, **how: Any) -> Fitted:
        asked.append(how)
        return real(ready)

    real = pipeline.train
    monkeypatch.setattr(pipeline, "train", trained)
    monkeypatch.setattr(pipeline, "first_begins", first_begins)
    monkeypatch.setattr(pipeline, "make_ready", lambda plan, graph, **how: make_ready(plan, graph))
    options = replace(OPTIONS, out=tmp_path / "run", score=True, protocols=(protocol,))
    job = replace(prepare(loaded, options, None, None), workers=Workers(1, 2))
    result = pipeline._run_one(job, job.plan, tmp_path / "run", None)
    assert asked[0] is None  # of a method that was built for one
    assert asked[1]["observe_last"] == 100
    assert (asked[1]["observe"] is None) == (protocol == "holdout")
    assert result.embedding.shape == (40, 8)
    assert (result.scores, result.verdict) == ({}, None)
    assert not (tmp_path / "run").exists()


def test_each_seed_of_several_members_has_members_of_its_own(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(
        pipeline, "_run_one", lambda job, plan, *rest, **how: seeds.append(plan.seed)
    )
    monkeypatch.setattr(pipeline, "SeedsResult", tuple)
    pipeline.run_seeds(loaded, 3, replace(OPTIONS, out=tmp_path, members=4, seed=5))
    assert seeds == [5, 9, 13]


def test_the_protocol_of_the_paper_is_had_by_asking_and_goes_on_with_what_it_saw(
    loaded: Loaded, tmp_path: Path
) -> None:
    options = replace(OPTIONS, out=tmp_path / "run", score=True, split_seed=7)
    run = Run(tmp_path / "run")
    for protocols, found in ((("holdout",), False), (("holdout", "paper"), True)):
        job = prepare(loaded, replace(options, protocols=protocols), None, None)
        paper = pipeline._paper_protocol(job, job.plan, run)
        assert (paper is not None) == found
    assert paper is not None
    assert (paper.seed, paper.epochs) == (7, {})
    begun(run, make_ready(job.plan, job.graph), loaded)
    run.save_checkpoint({}, epoch=1)
    run.log_observed(1, [50.0], split_seed=7)
    job = replace(job, options=replace(job.options, resume=True))
    paper = pipeline._paper_protocol(job, job.plan, run)
    assert paper is not None
    assert paper.epochs == {1: (50.0,)}
    bare = replace(job, options=replace(job.options, score=False))
    assert pipeline._paper_protocol(bare, job.plan, run) is None


def test_epochs_of_protocol_paper_are_logged_as_they_are_seen(
    loaded: Loaded, tmp_path: Path
) -> None:
    job = prepare(loaded, replace(OPTIONS, out=tmp_path / "run"), None, None)
    run, paper = Run(tmp_path / "run"), PaperProtocol(np.arange(40) % 2, seed=3)
    paper.observe = lambda epoch, z: (float(epoch),)  # type: ignore[method-assign]
    ready = make_ready(job.plan, job.graph)
    begun(run, ready, loaded)
    pipeline.train_stage(job, ready, run, paper)
    assert run.observed(9, split_seed=3) == {1: (1.0,), 2: (2.0,)}


def test_scores_and_controls_have_the_splits_that_are_asked_for(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def scored(name: str) -> Any:
        def stage(*given: Any, **how: Any) -> dict[str, Any]:
            asked[name] = how
            return {name: 1}

        return stage

    monkeypatch.setattr(pipeline, "score_stage", scored("scores"))
    monkeypatch.setattr(pipeline, "controls_stage", scored("controls"))
    options = replace(OPTIONS, out=tmp_path / "run", score=True, splits=3, split_seed=8)
    for controls, want in ((None, {"scores", "controls"}), (False, {"scores"})):
        asked.clear()
        job = prepare(loaded, replace(options, controls=controls), None, None)
        ready = make_ready(job.plan, job.graph)
        run = Run(tmp_path / "run")
        found = pipeline._score(job, job.plan, run, fitted_of(ready), torch.ones(40, 2), None)
        assert asked == {name: {"splits": 3, "split_seed": 8} for name in want}
        assert found == dict.fromkeys(want, 1)


@pytest.mark.parametrize(("score", "report"), [(True, True), (True, False), (False, True)])
def test_a_report_is_written_where_there_are_scores_and_it_is_wanted(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score: bool, report: bool
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(pipeline, "report_stage", lambda run, observer: told.append("report"))
    monkeypatch.setattr(pipeline, "_score", lambda *given: {"holdout": {}})

    class Ear(Observer):
        def scores(self, method: str, scores: Any, verdict: Any) -> None:
            told.append((method, scores, verdict))

        def wrote(self, what: str, path: Path) -> None:
            told.append((what, path.name))

    options = replace(OPTIONS, out=tmp_path / "run", score=score, report=report)
    muxgcl.run(loaded, options, observer=Ear())
    want: list[Any] = [("embeddings", "embeddings.npz")]
    want += [("grace", {"holdout": {}}, None)] if score else []
    assert told == want + (["report"] if score and report else [])


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


def test_members_are_prepared_and_trained_in_turn_and_all_but_the_first_forget(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgot: list[Any] = []
    built: list[Any] = []

    def ready(plan: Any, graph: Any, **how: Any) -> Ready:
        found = make_ready(plan, graph, **how)
        built.append(found.method)
        return found

    monkeypatch.setattr(pipeline, "make_ready", ready)
    monkeypatch.setattr(METHODS["grace"], "forget", lambda self: forgot.append(self))
    heard = Heard()
    options = replace(OPTIONS, out=tmp_path / "run", members=3, output_width=5)
    result = muxgcl.run(loaded, options, observer=heard)
    phases = [name for name in heard.phases if name in ("preparing", "training")]
    assert phases == ["preparing", "training"] * 3
    assert len(built) == 3
    assert [id(method) for method in forgot] == [id(method) for method in built[1:]]
    run = Run(tmp_path / "run")
    assert result.embedding.shape == (40, 5)
    assert run.output_map().shape == (3 * 8, 5)
    assert [len(Run(run.path, k).metrics()) for k in range(3)] == [2, 2, 2]


def test_a_run_keeps_embeddings_nodes_and_how_columns_became_features(
    files: Path, tmp_path: Path
) -> None:
    load = muxgcl.LoadOptions(features=files / "nodes.csv", label_column="topic")
    muxgcl.run(files / "edges.csv", replace(OPTIONS, out=tmp_path / "run"), load=load)
    run = Run(tmp_path / "run")
    assert run.embeddings()[0].tolist() == [f"n{i}" for i in range(60)]
    assert len(run.nodes()["label"]) == 60
    assert run.encoding() is not None


def test_no_earlier_stretch_took_no_memory(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert pipeline._peak_before(run) == 0.0
    run.diagnostics_file.write_text('{"seconds": 1.0}')
    assert pipeline._peak_before(run) == 0.0
