"""The run folder: whole files, one writer, clear lines."""

import multiprocessing
import os
import stat
from pathlib import Path

import numpy as np
import pytest
import torch

from muxgcl.errors import UserError
from muxgcl.io.files import write_atomically, write_text
from muxgcl.runs.folder import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    folder = Run(tmp_path / "run")
    folder.write_config({"run": {"method": "grace"}})
    return folder


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")

    def broken(file) -> None:
        file.write(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_atomically(path, broken)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    def full(file) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match=r"cannot write .*No space left"):
        write_atomically(tmp_path / "file", full)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UserError, match="cannot write"), Run(tmp_path / "file" / "run").locked():
        pass


def _hold(path: Path, ready, done) -> None:
    with Run(path).locked():
        ready.set()
        done.wait(30)


def test_two_processes_cannot_write_one_folder(run: Run) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(run.path, ready, done))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(UserError, match="another process"), run.locked():
            pass
    finally:
        done.set()
        other.join(30)
    with run.locked():
        pass


def test_files_have_the_mode_that_the_umask_asks_for(run: Run) -> None:
    before = os.umask(0o027)
    try:
        run.save_checkpoint({"method/w": torch.zeros(1)}, epoch=1)
        run.save_scores({"a": 1})
    finally:
        os.umask(before)
    for file in (run.checkpoint_file, run.scores_file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_config_of_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[tool]\nname = 1\n")
    with pytest.raises(UserError, match="is not of a run: it has no table"):
        Run(tmp_path).config()


def test_clearing_removes_a_runs_files_and_no_others(run: Run) -> None:
    run.save_scores({"a": 1})
    (run.path / "notes.txt").write_text("mine")
    (run.path / "tensorboard").mkdir()
    (run.path / "tensorboard" / "events.out.tfevents.1").write_text("")
    run.clear()
    left = sorted(str(file.relative_to(run.path)) for file in run.path.rglob("*"))
    assert left == ["notes.txt", "tensorboard"]


def test_what_is_foreign_to_a_run_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.foreign_entry() is None
    (tmp_path / ".lock").write_text("")
    assert run.foreign_entry() is None
    (tmp_path / "report.html").write_text("somebody's, as there is no run")
    assert run.foreign_entry() == "report.html"
    for other in ('title = "of a web site"', "[run]\nscript = 'make'\n", "[run", "\xff", "- yaml"):
        (tmp_path / "config.toml").write_text(other, encoding="latin-1")
        assert run.foreign_entry() == "config.toml"
    for ours in ("[run]\nseed = 0\n", "[run]\nseed = "):  # the second one was cut short
        (tmp_path / "config.toml").write_text(ours)
        assert run.foreign_entry() is None


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        Run(tmp_path).config()


# file by file -----------------------------------------------------------------------------------


def test_members_past_the_first_have_metrics_and_checkpoints_of_their_own(run: Run) -> None:
    first, second = Run(run.path, 0), Run(run.path, 1)
    assert (first.metrics_file.name, second.metrics_file.name) == (
        "metrics.jsonl",
        "member-1.jsonl",
    )
    assert first.checkpoint_file.name == "checkpoint.safetensors"
    assert second.checkpoint_file.name == "member-1.safetensors"
    assert first.embeddings_file == second.embeddings_file == run.path / "embeddings.npz"
    with pytest.raises(UserError, match=r"has no checkpoint$"):
        first.checkpoint()
    with pytest.raises(UserError, match=r"has no checkpoint of member 2$"):
        second.checkpoint()
    second.save_checkpoint({"w": torch.ones(2)}, epoch=3)
    second.log([{"epoch": 1, "loss": 0.5}])
    run.clear()
    assert [*run.path.iterdir()] == []


def test_a_link_is_removed_and_never_what_it_points_to(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    kept = other / "events.out.tfevents.1"
    kept.touch()
    (run.path / "tensorboard").symlink_to(other)
    (other / "scores.json").write_text("{}")
    run.scores_file.symlink_to(other / "scores.json")
    run.clear()
    assert kept.exists()
    assert (other / "scores.json").exists()
    assert not run.scores_file.is_symlink()
    assert not run.exists


def test_clearing_an_empty_folder_is_no_error(tmp_path: Path) -> None:
    Run(tmp_path / "nothing").clear()


def test_the_config_goes_last_so_that_half_a_clearing_is_still_a_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []
    Run(run.path, 1).log([{"epoch": 1, "loss": 1.0}])
    monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: removed.append(self.name))
    run.clear()
    assert removed.count("config.toml") == removed.count("member-1.jsonl") == 1
    assert removed[-1] == "config.toml"


def test_the_first_foreign_name_in_the_alphabet_is_told(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", ".hidden"):
        (tmp_path / name).touch()
    assert Run(tmp_path).foreign_entry() == "a.txt"
    assert Run(tmp_path / "b.txt").foreign_entry() is None  # no folder


def test_a_config_holds_what_was_written_and_no_text_that_no_file_can(run: Run) -> None:
    tables = {"run": {"method": "grace", "seed": 3}, "method": {"width": 8, "drop": [0.1, 0.2]}}
    run.write_config(tables)
    assert run.config() == tables
    with pytest.raises(UserError, match=r"config\.toml: run\.command must be Unicode text"):
        run.write_config({"run": {"command": "\ud800"}})
    assert run.config() == tables


def test_what_is_not_there_is_nothing_and_no_error(run: Run) -> None:
    assert (run.nodes(), run.labels(), run.scores(), run.diagnostics()) == ({}, None, {}, {})
    assert run.encoding() is None
    assert run.metrics() == []
    np.savez(run.nodes_file, label=np.array([0, 1]))
    labels = run.labels()
    assert labels is not None
    assert labels.tolist() == [0, 1]


def test_what_a_killed_writer_left_is_removed_when_the_folder_is_held(run: Run) -> None:
    left = run.path / ".muxgcl.half.part"
    left.touch()
    with run.locked():
        assert not left.exists()
        with pytest.raises(UserError), Run(run.path).locked():
            raise AssertionError("two held one folder")


def test_every_file_of_a_run_has_the_name_that_the_docs_say(tmp_path: Path) -> None:
    files = {name: file.name for name, file in vars(Run(tmp_path)).items() if name.endswith("file")}
    assert files == {
        "config_file": "config.toml",
        "metrics_file": "metrics.jsonl",
        "checkpoint_file": "checkpoint.safetensors",
        "output_file": "output.safetensors",
        "observed_file": "observed.jsonl",
        "embeddings_file": "embeddings.npz",
        "nodes_file": "nodes.npz",
        "graph_file": "graph.safetensors",
        "scores_file": "scores.json",
        "diagnostics_file": "diagnostics.json",
        "encoding_file": "encoding.json",
        "report_file": "report.html",
    }
