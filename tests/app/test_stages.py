"""The stages of a run, one by one: what is trained, scored, kept and told."""

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stage_cases import OPTIONS, Heard, begun, fitted_of, ready_of

import muxgcl
from muxgcl import UserError
from muxgcl.app import folder_graph, judge
from muxgcl.app import members as training
from muxgcl.app.judge import controls_stage, score_stage
from muxgcl.app.prepare import prepare
from muxgcl.evaluate import PaperProtocol
from muxgcl.io import planted
from muxgcl.io.load import Loaded
from muxgcl.methods import METHODS
from muxgcl.runs.environment import device_name
from muxgcl.runs.fit import Ready, Stopped, make_ready
from muxgcl.runs.folder import Run
from muxgcl.runs.scoring import Judging

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
    how = Judging(loaded.tensors, ("holdout",), splits=3, split_seed=7)
    ready = ready_of(loaded)
    found = score_stage(run, fitted_of(ready), z, how, paper, heard)
    assert asked == {"protocols": ("holdout",), "device": None, "splits": 3, "split_seed": 7}
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
    assert "paper" not in score_stage(run, fitted_of(ready), z, how, paper, heard)
    monkeypatch.setattr(judge, "score", lambda *given, **how: ({}, None))
    score_stage(run, fitted_of(ready), z, replace(how, protocols=()), None, heard)
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
    how = Judging(loaded.tensors, ("holdout",), splits=3, split_seed=7)
    given = (run, ready.plan, ready.graph, how, heard)
    found = controls_stage(*given)
    assert found == {"controls": {"raw": {"holdout": 1}, "sgc": {"holdout": 2}}}
    assert run.scores()["controls"] == {"raw": {"public": {}, "holdout": 1}, "sgc": {"holdout": 2}}
    assert heard.phases == ["controls"]
    assert heard.steps == [(1, 6), (2, 6)]
    assert heard.notes == ["not all controls could be scored: no room"]
    assert asked == [(("holdout",), {"splits": 3, "split_seed": 7, "clusters": True})]
    controls_stage(*given, clusters=False)
    assert asked[1][1] == {"splits": 3, "split_seed": 7, "clusters": False}


def test_controls_that_cannot_begin_leave_the_scores_alone(
    run: Run, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **how: Any) -> Any:
        raise MemoryError
        yield

    monkeypatch.setattr(judge, "score_controls", fails)
    heard, ready = Heard(), ready_of(loaded)
    how = Judging(loaded.tensors, ("holdout",), splits=3, split_seed=7)
    given = (run, ready.plan, ready.graph, how, heard)
    assert controls_stage(*given) == {}
    assert heard.notes == ["not all controls could be scored: MemoryError"]
    assert not run.scores_file.exists()

    def stopped(*given: Any, **how: Any) -> Any:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(judge, "score_controls", stopped)
    with pytest.raises(Stopped, match="stopped while scoring controls"):
        controls_stage(*given)


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
    folder_graph.save_nodes(run, named)
    found = run.nodes()
    assert found["column:age"].tolist() == list(range(40))
    assert np.array_equal(found["edge_index"], loaded.tensors.edge_index.numpy())
    assert found["edge_index"].dtype == np.int32
    assert np.array_equal(found["label"], loaded.tensors.y.numpy())
    assert found["label_names"].tolist() == ["a", "b", "c", "d"]
    folder_graph.save_nodes(run, replace(loaded, label_names=None, columns={}))
    assert set(run.nodes()) == {"edge_index", "label"}


def test_the_peak_of_memory_is_that_of_all_stretches(loaded: Loaded, tmp_path: Path) -> None:
    job = prepare(loaded, replace(OPTIONS, out=tmp_path / "run"), None, None)
    run = Run(tmp_path / "run")
    run.path.mkdir()
    before = 12_345_678.0
    run.diagnostics_file.write_text(json.dumps({"peak_mib": before}))
    ready = make_ready(job.plan, job.graph)
    assert training.train_stage(job, ready, run, None).peak_mib == before
    run.diagnostics_file.write_text("{}")
    fresh = make_ready(job.plan, job.graph)
    job = replace(job, options=replace(job.options, resume=False))
    run.clear()
    assert training.train_stage(job, fresh, run, None).peak_mib < before


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
    monkeypatch.setattr(training, "train", fails)
    with pytest.raises(UserError, match="not a finite"):
        training.train_stage(job, ready, run, None)
    assert run.exists == done


def test_a_stop_of_one_of_several_members_says_which(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(job: Any, ready: Any, run: Run, *rest: Any) -> Any:
        if run.member == len(members) - 1:
            raise Stopped("stopped after epoch 1 of 2", signal.SIGTERM, resumable=False)
        return real(job, ready, run, *rest)

    real = training.train_stage
    monkeypatch.setattr(training, "train_stage", stops)
    for members, words in (([0], "of 2$"), ([0, 1], r"of 2 \(member 2 of 2\)$")):
        heard = Heard()
        options = replace(OPTIONS, out=tmp_path / f"{len(members)}", members=len(members))
        with pytest.raises(Stopped, match=words) as stop:
            muxgcl.run(loaded, options, observer=heard)
        assert (stop.value.number, stop.value.resumable) == (signal.SIGTERM, False)
        told = [note for note in heard.notes if note.startswith("member")]
        assert told == [f"member {k + 1} of 2: seed {k}" for k in members if len(members) > 1]


def test_members_are_prepared_and_trained_in_turn_and_all_but_the_first_forget(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgot: list[Any] = []
    built: list[Any] = []

    def ready(plan: Any, graph: Any, **how: Any) -> Ready:
        found = make_ready(plan, graph, **how)
        built.append(found.method)
        return found

    monkeypatch.setattr(training, "make_ready", ready)
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
    assert training._peak_before(run) == 0.0
    run.diagnostics_file.write_text('{"seconds": 1.0}')
    assert training._peak_before(run) == 0.0


def test_memory_is_given_back_before_scores_and_before_controls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training leaves free memory behind, which scores would come on top of."""
    done: list[str] = []

    def told(name: str) -> Callable[..., Any]:
        real = getattr(judge, name)

        def call(*args: Any, **how: Any) -> Any:
            done.append(name)
            return real(*args, **how)

        return call

    for name in ("give_back", "score", "score_controls"):
        monkeypatch.setattr(judge, name, told(name))
    options = muxgcl.RunOptions(
        settings={"hidden": 8, "width": 8, "affinity": "none"},
        epochs=1,
        splits=2,
        device="cpu",
        report=False,
        out=tmp_path / "run",
    )
    muxgcl.run(planted(nodes=60), options)
    assert done == ["give_back", "score", "give_back", "score_controls"]
