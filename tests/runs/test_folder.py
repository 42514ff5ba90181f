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


def test_a_checkpoint_comes_back(run: Run) -> None:
    tensors = {"method/w": torch.randn(3, 2), "random/cpu": torch.get_rng_state()}
    run.save_checkpoint(tensors, epoch=7, method="grace")
    got, facts = run.checkpoint()
    assert facts == {"epoch": 7, "method": "grace"}
    assert all(torch.equal(got[name], tensors[name]) for name in tensors)
    assert sorted(p.name for p in run.path.iterdir()) == ["checkpoint.safetensors", "config.toml"]


@pytest.mark.parametrize("keep", [0, 5, 40, -1])
def test_a_damaged_checkpoint_is_one_clear_line(run: Run, keep: int) -> None:
    run.save_checkpoint({"method/w": torch.randn(30)}, epoch=1)
    whole = run.checkpoint_file.read_bytes()
    run.checkpoint_file.write_bytes(whole[:keep])
    with pytest.raises(UserError, match="damaged"):
        run.checkpoint()


def test_damaged_embeddings_and_scores_are_one_clear_line(run: Run) -> None:
    run.save_embeddings(np.arange(3), torch.randn(3, 2))
    run.embeddings_file.write_bytes(run.embeddings_file.read_bytes()[:-30])
    with pytest.raises(UserError, match="damaged"):
        run.embeddings()
    run.scores_file.write_text("{")
    with pytest.raises(UserError, match="damaged"):
        run.scores()


def test_pickled_embeddings_are_refused(run: Run) -> None:
    np.savez(run.embeddings_file, id=np.array([{}], dtype=object), embedding=np.zeros((1, 2)))
    with pytest.raises(UserError, match="never unpickled"):
        run.embeddings()


def test_metrics_past_the_checkpoint_and_cut_lines_are_dropped(run: Run) -> None:
    run.log([{"epoch": e, "loss": 1.0} for e in (1, 2, 3)])
    with run.metrics_file.open("a") as file:
        file.write('{"epoch": 4, "lo')
    run.keep_metrics(2)
    assert [line["epoch"] for line in run.metrics()] == [1, 2]


def test_what_was_observed_comes_back_without_a_cut_line(run: Run) -> None:
    run.log_observed(5, [80.0, 81.0], split_seed=0)
    run.log_observed(6, [82.0], split_seed=0)
    run.log_observed(7, [83.0], split_seed=1)
    with run.observed_file.open("a") as file:
        file.write('{"epoch": 8, "acc')
    assert run.observed(9, split_seed=0) == {5: (80.0, 81.0), 6: (82.0,)}
    run.log_observed(7, [84.0], split_seed=0)  # the cut line is gone
    assert run.observed(9, split_seed=0) == {5: (80.0, 81.0), 6: (82.0,), 7: (84.0,)}
    assert run.observed(5, split_seed=0) == {5: (80.0, 81.0)}


def test_files_have_the_mode_that_the_umask_asks_for(run: Run) -> None:
    before = os.umask(0o027)
    try:
        run.save_checkpoint({"method/w": torch.zeros(1)}, epoch=1)
        run.save_scores({"a": 1})
    finally:
        os.umask(before)
    for file in (run.checkpoint_file, run.scores_file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_scores_add_up(run: Run) -> None:
    run.save_scores({"a": 1})
    run.save_scores({"b": 2})
    assert run.scores() == {"a": 1, "b": 2}


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
    assert run.foreign() is None
    (tmp_path / ".lock").write_text("")
    assert run.foreign() is None
    (tmp_path / "report.html").write_text("somebody's, as there is no run")
    assert run.foreign() == "report.html"
    for other in ('title = "of a web site"', "[run]\nscript = 'make'\n", "[run", "\xff", "- yaml"):
        (tmp_path / "config.toml").write_text(other, encoding="latin-1")
        assert run.foreign() == "config.toml"
    for ours in ("[run]\nseed = 0\n", "[run]\nseed = "):  # the second one was cut short
        (tmp_path / "config.toml").write_text(ours)
        assert run.foreign() is None


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        Run(tmp_path).config()
