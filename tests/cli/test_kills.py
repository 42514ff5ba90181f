"""Killed anywhere, or out of disk anywhere: every command goes on, and ends as if nothing had been.

All files of ours are written by `os.replace` (whole files) or `append_lines` (logs), and Optuna's
journal by `append_logs`. A command is killed before and after each of these, and in the middle of
every line; then it is asked again.
"""

import io
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from cli_cases import command_line, write_files

import muxgcl.runs.fit
import muxgcl.runs.folder
from muxgcl.io.files import json_lines
from muxgcl.runs.folder import Run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

TRAIN = [
    "--method", "grace", "--preset", "quick", "--set", "width=8", "--set", "projection=8",
    "--epochs", "3", "--quiet", "--device", "cpu",
]  # fmt: skip


def quietly(words: list[str]) -> tuple[int, list[str]]:
    """Status and lines on standard error."""
    err = io.StringIO()
    with redirect_stderr(err), redirect_stdout(io.StringIO()):
        status = command_line(words)
    return status, err.getvalue().splitlines()


@contextmanager
def counted(act: Callable[[int, str], None], patch: pytest.MonkeyPatch) -> Iterator[None]:
    """`act` is told the number of each write, before it and after it."""
    number = 0
    replace, append = os.replace, muxgcl.runs.folder.append_lines

    def watched(write: Callable[..., Any], half: Callable[..., None] | None) -> Callable[..., Any]:
        def watch(*given: Any, **rest: Any) -> Any:
            nonlocal number
            number += 1
            mine = number
            if half is not None:
                half(lambda: act(mine, "amid"), *given)
            act(mine, "before")
            came = write(*given, **rest)
            act(mine, "after")
            return came

        return watch

    def half_a_line(then: Callable[[], None], path: Path, lines: Any) -> None:
        text = json_lines(lines).encode()
        size = path.stat().st_size if path.exists() else 0
        with path.open("ab") as file:
            file.write(text[: len(text) // 2])
        then()
        os.truncate(path, size)

    with patch.context() as hook:
        hook.setattr(os, "replace", watched(replace, None))
        hook.setattr(muxgcl.runs.folder, "append_lines", watched(append, half_a_line))
        try:
            from optuna.storages.journal import JournalFileBackend

            hook.setattr(
                JournalFileBackend, "append_logs", watched(JournalFileBackend.append_logs, None)
            )
        except ImportError:
            pass
        yield


def in_a_child(work: Callable[[], int]) -> int:
    """Its exit status, or minus the signal that ended it; nothing of pytest runs in it."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = work()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Case:
    """A command, what it needs, and what must be the same in the end."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.files, self.out = folder / "files", folder / "out"
        if not self.files.exists():
            self.files.mkdir(parents=True)
            write_files(self.files)

    def prepare(self, out: Path) -> None:
        if self.name in ("embed", "evaluate", "cluster", "report"):
            words = ["run", *self.graph, *TRAIN, "--no-report", "--splits", "1", "--out", str(out)]
            assert quietly(words)[0] == 0

    @property
    def graph(self) -> list[str]:
        return [str(self.files), "--label-column", "topic"]

    def words(self, out: Path, again: bool = False) -> list[str]:
        run = [*self.graph, *TRAIN, "--out", str(out)]
        more = ["--resume"] if again and (out / "config.toml").is_file() else []
        return {
            "run": ["run", *run, "--splits", "1", "--no-report", *more],
            "train": ["train", *run, *more],
            "embed": ["embed", str(out), *self.graph, "--out", str(out / "z.csv")],
            "evaluate": ["evaluate", str(out), "--splits", "1"],
            "cluster": ["cluster", str(out), "--repeats", "1"],
            "report": ["report", str(out)],
            "tune": [
                "tune", *self.graph, "--method", "grace", "--trials", "2", "--epochs", "1",
                "--splits", "1", "--set", "width=8", "--device", "cpu", "--quiet",
                "--study", str(out / "s.study"),
            ],
        }[self.name]  # fmt: skip

    def result(self, out: Path) -> Any:
        """All that must be the same, however often it was killed."""
        if self.name == "tune":
            return (out / "s.toml").read_text().replace(str(out), "")
        run = Run(out)
        ids, z = run.embeddings()
        lines = [(line["epoch"], line["loss"], line["terms"]) for line in run.metrics()]
        found = [ids.tolist(), z.tolist(), lines, run.scores()]
        if self.name == "embed":
            found.append((out / "z.csv").read_text())
        if self.name == "cluster":
            found.append((out / "clusters.csv").read_text())
        return found

    def leftovers(self, out: Path) -> list[str]:
        return [file.name for file in out.glob(".muxgcl.*.part")]


COMMANDS = ("run", "train", "embed", "evaluate", "cluster", "report", "tune")


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_at_any_write_ends_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(muxgcl.runs.fit, "CHECKPOINT_SECONDS", -1.0)  # a checkpoint every epoch
    case = Case(name, tmp_path)
    case.prepare(tmp_path / "whole")
    moments: list[tuple[int, str]] = []
    with counted(lambda number, side: moments.append((number, side)), monkeypatch):
        assert quietly(case.words(tmp_path / "whole"))[0] == 0
    want = case.result(tmp_path / "whole")
    kills = 0
    for number, side in moments:
        out = tmp_path / f"{number}-{side}"
        case.prepare(out)

        def die(at: int, where: str, number: int = number, side: str = side) -> None:
            if (at, where) == (number, side):
                os.kill(os.getpid(), signal.SIGKILL)

        def work(out: Path = out, die: Any = die) -> int:
            with counted(die, monkeypatch):
                return quietly(case.words(out))[0]

        kills += in_a_child(work) == -signal.SIGKILL
        status, err = quietly(case.words(out, again=True))
        assert status == 0, (number, side, err)
        assert case.result(out) == want, (number, side)
        if name in ("run", "train"):
            assert not case.leftovers(out)
    assert kills >= len(moments) - 1  # the test has met what it is about
    print(f"{name}: {kills} kills")


SIZES = (0, 64, 400, 1000, 2500, 5000, 9000, 20_000, 60_000)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_on_a_disk_that_fills_up_is_one_line_and_then_ends_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on the size of files: what lies beyond is not written, and the system says so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(muxgcl.runs.fit, "CHECKPOINT_SECONDS", -1.0)
    case = Case(name, tmp_path)
    case.prepare(tmp_path / "whole")
    assert quietly(case.words(tmp_path / "whole"))[0] == 0
    want = case.result(tmp_path / "whole")
    full = 0
    for size in SIZES:
        out = tmp_path / str(size)
        case.prepare(out)
        told = tmp_path / f"{size}.told"

        def work(out: Path = out, size: int = size, told: Path = told) -> int:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            handle = os.open(told, os.O_WRONLY | os.O_CREAT)
            most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
            status, err = quietly(case.words(out))
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            os.write(handle, "\n".join(err).encode())
            return status

        status = in_a_child(work)
        assert status in (0, 2), (size, told.read_text())
        if status:
            full += 1
            last = told.read_text().splitlines()[-1]
            assert last.startswith("muxgcl: "), last
            assert "File too large" in last, last
        status, err = quietly(case.words(out, again=True))
        assert status == 0, (size, err)
        assert case.result(out) == want, size
    assert full >= 2
