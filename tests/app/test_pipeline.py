"""A whole run from its first line to its last: workers, seeds, protocols, stops, reports."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stage_cases import OPTIONS, Heard, begun, fitted_of

import muxgcl
from muxgcl import Observer
from muxgcl.app import members, pipeline
from muxgcl.app.prepare import prepare
from muxgcl.evaluate import PaperProtocol
from muxgcl.io import planted
from muxgcl.io.load import Loaded
from muxgcl.kernels.ring import Workers
from muxgcl.runs.fit import Fitted, Ready, Stopped, make_ready
from muxgcl.runs.folder import Run
from muxgcl.runs.scoring import Judging


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


@pytest.mark.parametrize("seeds", [1, 2])
def test_seeds_that_go_on_are_looked_for_where_each_of_them_is(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: int
) -> None:
    options = replace(OPTIONS, out=tmp_path, resume=True)
    muxgcl.run_seeds(loaded, seeds, options)
    asked: list[Any] = []
    monkeypatch.setattr("muxgcl.app.prepare.budget", lambda *given, **how: asked.append(given))
    muxgcl.run_seeds(loaded, seeds, options)
    assert not asked  # nothing is estimated of a run that was begun


def test_a_stop_before_anything_is_written_cannot_be_resumed(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*given: Any, **how: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(members, "make_ready", stopped)
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
    def all_succeed(workers: Any) -> Iterator[None]:
        asked.append(workers)
        yield

    def trained(ready: Ready, **how: Any) -> Fitted:
        asked.append(how)
        return real(ready)

    real = members.train
    monkeypatch.setattr(members, "train", trained)
    monkeypatch.setattr(members, "all_succeed", all_succeed)
    monkeypatch.setattr(pipeline, "from_first", lambda workers, work: work())
    monkeypatch.setattr(members, "make_ready", lambda plan, graph, **how: make_ready(plan, graph))
    options = replace(OPTIONS, out=tmp_path / "run", score=True, protocols=(protocol,))
    job = replace(prepare(loaded, options, None, None), workers=Workers(1, 2))
    result = pipeline._run_one(job, job.plan, tmp_path / "run", None)
    assert asked[0] is None  # of a method that was built for one
    assert asked[1]["observe_last"] == 100
    assert (asked[1]["observe"] is None) == (protocol == "holdout")
    assert result.embedding.shape == (0, 0)  # the first has it
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
        paper = members.paper_protocol(job, job.plan, run)
        assert (paper is not None) == found
    assert paper is not None
    assert (paper.seed, paper.epochs) == (7, {})
    begun(run, make_ready(job.plan, job.graph), loaded)
    run.save_checkpoint({}, epoch=1)
    run.log_observed(1, [50.0], split_seed=7)
    job = replace(job, options=replace(job.options, resume=True))
    paper = members.paper_protocol(job, job.plan, run)
    assert paper is not None
    assert paper.epochs == {1: (50.0,)}
    bare = replace(job, options=replace(job.options, score=False))
    assert members.paper_protocol(bare, job.plan, run) is None


def test_epochs_of_protocol_paper_are_logged_as_they_are_seen(
    loaded: Loaded, tmp_path: Path
) -> None:
    job = prepare(loaded, replace(OPTIONS, out=tmp_path / "run"), None, None)
    run, paper = Run(tmp_path / "run"), PaperProtocol(np.arange(40) % 2, seed=3)
    paper.observe = lambda epoch, z: (float(epoch),)  # type: ignore[method-assign]
    ready = make_ready(job.plan, job.graph)
    begun(run, ready, loaded)
    members.train_stage(job, ready, run, paper)
    assert run.observed(9, split_seed=3) == {1: (1.0,), 2: (2.0,)}


def test_scores_and_controls_have_the_splits_that_are_asked_for(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def scored(name: str) -> Any:
        def stage(*given: Any, **how: Any) -> dict[str, Any]:
            (judging,) = (one for one in given if isinstance(one, Judging))
            asked[name] = judging.splits, judging.split_seed, how
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
        assert asked == dict.fromkeys(want, (3, 8, {}))
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
    heard = Heard()
    found = pipeline.dry_run(loaded, options, observer=heard)
    assert heard.notes[0].startswith("40 nodes, ")
    assert found.plan.method == "grace"
    assert not (tmp_path / "run").exists()
    muxgcl.run(loaded, options)
    assert pipeline.dry_run(loaded, options).cost is not None  # of a run from its first epoch


def test_what_is_computed_once_a_graph_is_kept_beside_the_runs(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def ready(plan: Any, graph: Any, *, cache: Path, **how: Any) -> Ready:
        asked.append(cache)
        return make_ready(plan, graph, **how)

    monkeypatch.setattr(members, "make_ready", ready)
    muxgcl.run(loaded, replace(OPTIONS, out=tmp_path / "runs" / "run", members=2))
    assert asked == [tmp_path / "runs" / ".affinity"] * 2


def test_a_run_that_replaces_another_keeps_what_protocol_paper_saw(tmp_path: Path) -> None:
    data = planted(nodes=80)
    options = replace(OPTIONS, out=tmp_path / "run", score=True, report=False, controls=False)
    options = replace(options, protocols=("paper",))
    first = muxgcl.run(data, options)
    again = muxgcl.run(data, replace(options, overwrite=True))
    assert set(Run(again.path).observed(9, options.split_seed)) == {1, 2}
    assert again.scores == first.scores
