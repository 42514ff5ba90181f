"""Nobody else's files: links are not followed, nothing is emptied, leftovers are only ours."""

import csv
import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cli_cases import FAST, ask

from muxgcl.errors import UserError
from muxgcl.io.files import HOUR, LOCK, append_lines, locked, remove_leftovers, write_text
from muxgcl.io.save import save_table
from muxgcl.reproduce.records import RecordStore
from muxgcl.runs.folder import Run


@pytest.mark.parametrize("what", [Run, RecordStore])
def test_a_lock_that_is_a_link_is_refused_and_its_target_is_left_alone(
    tmp_path: Path, what: type
) -> None:
    precious = tmp_path / "thesis.txt"
    precious.write_text("years of work")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / LOCK).symlink_to(precious)
    with pytest.raises(UserError, match=r"\.lock is a link"), what(folder).locked():
        pass
    assert precious.read_text() == "years of work"


def test_a_link_to_nothing_is_not_created_through(tmp_path: Path) -> None:
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link"), locked(tmp_path / LOCK):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_never_empties_a_file(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("somebody wrote here")
    with locked(tmp_path / LOCK):
        pass
    assert (tmp_path / LOCK).read_text() == "somebody wrote here"


def test_a_lock_that_is_a_folder_or_a_pipe_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / LOCK).mkdir()
    with pytest.raises(UserError, match="Is a directory"), locked(tmp_path / "a" / LOCK):
        pass
    (tmp_path / "b").mkdir()
    os.mkfifo(tmp_path / "b" / LOCK)
    with pytest.raises(UserError, match="not a regular file"), locked(tmp_path / "b" / LOCK):
        pass


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP])
def test_a_file_system_without_locks_is_named_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(UserError, match="file system without locks") as caught,
        Run(tmp_path).locked(),
    ):
        pass
    assert "another process" not in str(caught.value).replace("a second process", "")
    write_text(tmp_path / "file", "needs no lock")
    assert (tmp_path / "file").read_text() == "needs no lock"


WRITER = """
import os, sys, time
from pathlib import Path
from muxgcl.io.files import write_atomically
def slowly(file):
    file.write(b"half"); file.flush()
    print("writing", flush=True)
    time.sleep(60)
write_atomically(Path(sys.argv[1]), slowly)
"""


def test_a_temporary_file_of_a_killed_writer_is_removed_at_the_next_start(tmp_path: Path) -> None:
    run = Run(tmp_path)
    words = [sys.executable, "-c", WRITER, str(run.scores_file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"writing\n"
        (part,) = tmp_path.glob(".muxgcl.*.part")
        remove_leftovers(tmp_path)
        assert part.exists()  # its writer lives
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert part.exists()
    with run.locked():
        pass
    assert [file.name for file in tmp_path.iterdir()] == [LOCK]


def test_leftovers_are_plain_files_of_ours_and_old_enough(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    (tmp_path / ".muxgcl.link.part").symlink_to(target)
    (tmp_path / ".muxgcl.folder.part").mkdir()
    os.mkfifo(tmp_path / ".muxgcl.pipe.part")
    (tmp_path / ".other.part").write_text("")
    (tmp_path / ".muxgcl.young.part").write_text("")
    (tmp_path / ".muxgcl.old.part").write_text("")
    os.utime(tmp_path / ".muxgcl.old.part", (time.time() - 9999,) * 2)
    before = {file.name for file in tmp_path.iterdir()}
    remove_leftovers(tmp_path, older_than=3600)
    assert before - {file.name for file in tmp_path.iterdir()} == {".muxgcl.old.part"}
    remove_leftovers(tmp_path)
    gone = {".muxgcl.old.part", ".muxgcl.young.part"}
    assert before - {file.name for file in tmp_path.iterdir()} == gone
    assert target.read_text() == "mine"
    remove_leftovers(tmp_path / "nowhere")


def test_a_write_removes_old_leftovers_beside_it(tmp_path: Path) -> None:
    old, young = tmp_path / ".muxgcl.old.part", tmp_path / ".muxgcl.young.part"
    for file in (old, young):
        file.write_text("half")
    os.utime(old, (time.time() - 2 * HOUR,) * 2)
    write_text(tmp_path / "table.md", "whole")
    assert {file.name for file in tmp_path.iterdir()} == {young.name, "table.md"}


@pytest.mark.parametrize("content", ["title = 'a web site'\n", "[run]\nscript = 'make'\n", "[run"])
@pytest.mark.parametrize("more", [[], ["--overwrite"], ["--resume"]])
def test_a_foreign_config_is_not_replaced(
    own: list[str], tmp_path: Path, content: str, more: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "config.toml").write_text(content)
    words = ["run", *own, "--method", "grace", *FAST, "--out", str(tmp_path), *more]
    status, _, err = ask(capsys, *words)
    assert (status, len(err.splitlines())) == (2, 1)
    assert "there is config.toml" in err
    assert (tmp_path / "config.toml").read_text() == content


def test_clearing_follows_no_link(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.write_config({"run": {"method": "grace"}})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "events.out.tfevents.1").write_text("somebody's")
    (elsewhere / "scores.json").write_text("somebody's")
    (run.path / "tensorboard").symlink_to(elsewhere)
    run.scores_file.symlink_to(elsewhere / "scores.json")
    run.clear()
    assert sorted(file.name for file in elsewhere.iterdir()) == [
        "events.out.tfevents.1",
        "scores.json",
    ]
    assert (elsewhere / "scores.json").read_text() == "somebody's"


def test_writing_replaces_a_link_and_not_its_target(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("somebody's")
    (tmp_path / "file").symlink_to(target)
    write_text(tmp_path / "file", "ours")
    assert target.read_text() == "somebody's"
    assert (tmp_path / "file").read_text() == "ours"


def test_csv_exports_hold_no_formulas(tmp_path: Path) -> None:
    ids = ["=1+1", "+cmd", "-x", "@sum", "\tx", "plain", "-5", "+1e3", "a=b", ""]
    save_table(tmp_path / "z.csv", np.array(ids), np.full((10, 1), -1.5))
    with (tmp_path / "z.csv").open(newline="") as file:
        _, *rows = csv.reader(file)
    assert [row[0] for row in rows] == [
        "'=1+1", "'+cmd", "'-x", "'@sum", "'\tx", "plain", "-5", "+1e3", "a=b", "",
    ]  # fmt: skip
    assert {row[1] for row in rows} == {"-1.5"}  # a number is a number


def test_a_log_takes_whole_lines_after_a_disk_that_filled_up(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    append_lines(log, [{"a": 1}])
    with log.open("a") as file:
        file.write('{"a": 2, "b')
    append_lines(log, [{"a": 3}])
    assert log.read_text() == '{"a": 1}\n{"a": 3}\n'
