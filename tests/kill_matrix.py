"""Killed anywhere, or out of disk anywhere: every command goes on, and ends as if nothing had been.

All files of ours are written by `os.replace` (whole files), `os.rename` (folders) or `append_lines`
(logs), and Optuna's journal by `append_logs`. A command is killed before and after each of these,
and in the middle of every line; then it is asked again. A kill between two writes leaves what a
kill before the second one leaves.

Usage: python tests/kill_matrix.py [--record records/kills.jsonl]
"""

import argparse
import io
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import optuna
import pytest
from cli_cases import command_line, write_files
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

import muxgcl.cli.reproduce
import muxgcl.reproduce.records
import muxgcl.runs.checkpoint
import muxgcl.runs.folder
from muxgcl.io import planted
from muxgcl.io.files import HOUR, PART, append_lines, json_lines
from muxgcl.reproduce.records import RecordStore
from muxgcl.reproduce.runner import Runner
from muxgcl.runs.environment import commit, versions
from muxgcl.runs.folder import Run
from muxgcl.tune import shared
from muxgcl.tune.study import START, counts

TRAIN = [
    "--method", "grace", "--preset", "quick", "--set", "width=8", "--set", "projection=8",
    "--epochs", "3", "--quiet", "--device", "cpu",
]  # fmt: skip
HOP = [
    "--method", "mux-hop", "--preset", "quick", "--set", "width=8", "--set", "hidden=8", "--set",
    "affinity=none", "--epochs", "2", "--quiet", "--device", "cpu",
]  # fmt: skip
COMMANDS = (
    "run", "run --overwrite", "train", "embed", "embed to FAISS", "embed --new-nodes", "export",
    "evaluate", "evaluate --labels", "cluster", "links", "report", "tune", "tune --storage",
    "reproduce", "make",
)  # fmt: skip
NEEDS_A_RUN = {*COMMANDS} - {"run", "train", "tune", "tune --storage", "reproduce", "make"}
PACKAGES = {"embed to FAISS": "faiss", "export": "onnx"}  # that a command needs beside our own
MADE = {
    "embed": "z.csv", "embed to FAISS": "z.faiss", "embed --new-nodes": "z.csv", "export": "f.onnx",
    "cluster": "clusters.csv", "links": "links.csv",
}  # fmt: skip
PARTS = "*".join(PART)  # temporary files, which go once they are old
SIZES = (0, 64, 400, 1000, 2500, 5000, 9000, 20_000, 60_000)  # bytes that a file may take


@dataclass
class Tally:
    """How often a command was stopped, and where it did not end the same."""

    stops: int = 0
    asked: int = 0
    faults: list[str] = field(default_factory=list)


def quietly(words: list[str]) -> tuple[int, list[str]]:
    """Status and lines on standard error."""
    err = io.StringIO()
    with redirect_stderr(err), redirect_stdout(io.StringIO()):
        status = command_line(words)
    return status, err.getvalue().splitlines()


@contextmanager
def counted(act: Callable[[int, str], None]) -> Iterator[None]:
    """`act` is told the number of each write, before it and after it, and amid a line."""
    number = 0

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
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(text[: len(text) // 2])
        then()
        os.truncate(path, size)

    with pytest.MonkeyPatch.context() as hook:
        hook.setattr(os, "replace", watched(os.replace, None))
        hook.setattr(os, "rename", watched(os.rename, None))
        for module in (muxgcl.runs.folder, muxgcl.reproduce.records):
            hook.setattr(module, "append_lines", watched(append_lines, half_a_line))
        append = JournalFileBackend.append_logs
        hook.setattr(JournalFileBackend, "append_logs", watched(append, None))
        yield


def in_a_child(work: Callable[[], int]) -> int:
    """Its exit status, or minus the signal that ended it; nothing of the caller runs in it."""
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
        self.name, self.files = name, folder / "files"
        self.files.mkdir(parents=True)
        write_files(self.files)
        self.more = folder / "more"
        self.more.mkdir()
        rows = (self.files / "nodes.csv").read_text().splitlines()
        new = rows[1].replace("n0,", "new,", 1)
        for name, lines in {
            "pairs": ["from,to", "n1,n2", "n3,n9"],
            "new": [rows[0], new],
            "new-edges": ["from,to", "new,n1", "n4,new"],
            "labels": ["id,kind", *(f"n{i},{'ab'[i % 2]}" for i in range(60))],
        }.items():
            (self.more / f"{name}.csv").write_text("\n".join(lines) + "\n")

    def prepare(self, out: Path) -> None:
        if self.name in NEEDS_A_RUN:
            train = HOP if self.name == "export" else TRAIN
            seed = "1" if self.name == "run --overwrite" else "0"
            words = ["run", *self.graph, *train, "--no-report", "--splits", "1", "--seed", seed]
            words += ["--out", str(out)]
            assert quietly(words)[0] == 0

    @property
    def graph(self) -> list[str]:
        return [str(self.files), "--label-column", "topic"]

    def words(self, out: Path, again: bool = False) -> list[str]:
        run = [*self.graph, *TRAIN, "--out", str(out)]
        more = ["--resume"] if again and (out / "config.toml").is_file() else []
        return {
            "run": ["run", *run, "--splits", "1", "--no-report", *more],
            "run --overwrite": ["run", *run, "--splits", "1", "--no-report", "--overwrite"],
            "train": ["train", *run, *more],
            "embed": ["embed", str(out), *self.graph, "--out", str(out / "z.csv")],
            "embed to FAISS": ["embed", str(out), *self.graph, "--out", str(out / "z.faiss")],
            "embed --new-nodes": [
                "embed", str(out), "--new-nodes", str(self.more / "new.csv"),
                "--new-edges", str(self.more / "new-edges.csv"), "--out", str(out / "z.csv"),
            ],
            "export": ["export", str(out), "--out", str(out / "f.onnx")],
            "evaluate": ["evaluate", str(out), "--splits", "1"],
            "evaluate --labels": [
                "evaluate", str(out), "--splits", "1", "--labels", str(self.more / "labels.csv"),
                "--label-column", "kind",
            ],
            "cluster": ["cluster", str(out), "--repeats", "1"],
            "links": ["links", str(out), str(self.more / "pairs.csv")],
            "report": ["report", str(out)],
            "tune": [
                "tune", *self.graph, "--method", "grace", "--trials", "2", "--epochs", "1",
                "--splits", "1", "--set", "width=8", "--device", "cpu", "--quiet",
                "--study", str(out / "s.study"),
            ],
            "tune --storage": [
                "tune", *self.graph, "--method", "grace", "--trials", "2", "--epochs", "1",
                "--splits", "1", "--set", "width=8", "--device", "cpu", "--quiet",
                "--study", "s", "--storage", str(out / "j"), "--out", str(out / "s.toml"),
            ],
            "reproduce": [
                "reproduce", "table1", "--datasets", "cora", "--methods", "raw,grace", "--seeds",
                "2", "--splits", "1", "--epochs", "1", "--device", "cpu",
                "--records", str(out / "records"), "--out", str(out / "tables"),
            ],
            "make": ["datasets", "make", "sbm", "--nodes", "80", "--out", str(out / "graph")],
        }[self.name]  # fmt: skip

    def done(self, out: Path) -> bool:
        """A graph is made once: a second `make` is refused."""
        return self.name == "make" and (out / "graph").exists()

    def loss(self, out: Path, *, began: bool = True) -> str | None:
        """What `--overwrite` has cost: the old run is whole until the new one has begun."""
        if self.name != "run --overwrite":
            return None
        run, old = Run(out), Run(out.parent / "old")
        if not old.exists:
            self.prepare(old.path)
        if began and (not run.exists or run.config()["run"]["seed"] != 1):
            return None
        if not run.exists or run.config()["run"]["seed"] != 1:
            return "the old run is gone, and no new one has begun"
        mine, theirs = run.embeddings()[1], old.embeddings()[1]
        same = mine.tobytes() == theirs.tobytes() and run.metrics() and run.checkpoint_file.exists()
        return None if same else "the old run is not whole, and no new one has begun"

    def result(self, out: Path) -> Any:
        """All that must be the same, however often it was stopped."""
        if self.name == "tune":
            return (out / "s.toml").read_text().replace(str(out), "")
        if self.name == "tune --storage":  # points are drawn anew; the first is the same
            assert (out / "s.toml").is_file()
            ended = [trial for trial in _trials(out / "j") if counts(trial)]
            return [len(ended), *(t.user_attrs["figures"] for t in ended if START in t.user_attrs)]
        if self.name == "make":
            return {file.name: file.read_bytes() for file in (out / "graph").iterdir()}
        if self.name == "reproduce":
            lines = RecordStore(out / "records").lines()
            kept = ("method", "protocol", "seed", "hash", "result")
            records = [
                [line.file, line.fault, *(line.record.get(k) for k in kept)] for line in lines
            ]
            return records, {file.name: file.read_text() for file in (out / "tables").iterdir()}
        run = Run(out)
        ids, z = run.embeddings()
        lines = [(line["epoch"], line["loss"], line["terms"]) for line in run.metrics()]
        found = [ids.tolist(), z.tolist(), lines, run.scores()]
        if self.name == "evaluate --labels":
            found += [run.nodes()[name].tolist() for name in ("label", "label_names")]
        made = MADE.get(self.name)
        return [*found, (out / made).read_bytes()] if made else found


def _trials(journal: Path) -> list[Any]:
    backend = JournalFileBackend(str(journal))
    study = optuna.load_study(storage=optuna.storages.JournalStorage(backend), study_name="s")
    found: list[Any] = study.get_trials()
    return found


@contextmanager
def quick(folder: Path) -> Iterator[None]:
    """A checkpoint every epoch, and small graphs under the names of large ones."""

    def small(name: str, root: Path | None) -> Any:
        return planted(nodes=60, classes=3, features=16, seed=len(name))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))  # what a kill leaves there goes with it
        patch.setattr(muxgcl.runs.checkpoint, "CHECKPOINT_SECONDS", -1.0)
        patch.setattr(muxgcl.cli.reproduce, "Runner", partial(Runner, open_graph=small))
        for name, seconds in {"GRACE": 0.3, "WAIT": 0.1, "LOOK": 0.05}.items():
            patch.setattr(shared, name, seconds)  # a dead worker's trial is taken over soon
        lock = partial(JournalFileOpenLock, grace_period=0.3)  # a dead worker's lock, too
        patch.setattr(shared, "JournalFileOpenLock", lock)
        patch.setattr(shared.Shared, "_begin_to_beat", lambda *_: None)  # writes by the clock
        yield


def kill_everywhere(name: str, folder: Path) -> Tally:
    """Kill a command once at every write, ask again, and compare."""
    case, tally = Case(name, folder), Tally()
    moments: list[tuple[int, str]] = []
    with quick(folder):
        case.prepare(folder / "whole")
        with counted(lambda number, side: moments.append((number, side))):
            assert quietly(case.words(folder / "whole"))[0] == 0
        want = case.result(folder / "whole")
        for number, side in moments:
            out = folder / f"{number}-{side}"
            case.prepare(out)

            def die(at: int, where: str, moment: Any = (number, side)) -> None:
                if (at, where) == moment:
                    os.kill(os.getpid(), signal.SIGKILL)

            def work(out: Path = out, die: Any = die) -> int:
                with counted(die):
                    return quietly(case.words(out))[0]

            tally.asked += 1
            tally.stops += in_a_child(work) == -signal.SIGKILL
            if fault := case.loss(out):
                tally.faults.append(f"killed {side} write {number}: {fault}")
            for part in out.rglob(PARTS):
                os.utime(part, (time.time() - 2 * HOUR,) * 2)
            _again(case, out, want, f"killed {side} write {number}", tally)
            if list(out.rglob(PARTS)):
                tally.faults.append(f"killed {side} write {number}: a temporary file is left")
    return tally


def fill_the_disk(name: str, folder: Path) -> Tally:
    """A limit on the size of files: what lies beyond is not written, and the system says so."""
    case, tally = Case(name, folder), Tally()
    with quick(folder):
        case.prepare(folder / "whole")
        assert quietly(case.words(folder / "whole"))[0] == 0
        want = case.result(folder / "whole")
        for size in SIZES:
            out, told = folder / str(size), folder / f"{size}.told"
            case.prepare(out)

            def work(out: Path = out, size: int = size, told: Path = told) -> int:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                handle = os.open(told, os.O_WRONLY | os.O_CREAT)
                most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
                status, err = quietly(case.words(out))
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
                os.write(handle, "\n".join(err).encode())
                return status

            tally.asked += 1
            status = in_a_child(work)
            last = (told.read_text().splitlines() or [""])[-1]
            if status not in (0, 2):
                tally.faults.append(f"{size} bytes: status {status}: {last}")
            elif status == 2:
                tally.stops += 1
                if not last.startswith("muxgcl: ") or "File too large" not in last:
                    tally.faults.append(f"{size} bytes: {last}")
            if fault := case.loss(out, began=size > SIZES[2]):
                tally.faults.append(f"{size} bytes: {fault}")
            _again(case, out, want, f"{size} bytes", tally)
    return tally


def _again(case: Case, out: Path, want: Any, where: str, tally: Tally) -> None:
    """Ask once more, after which everything must be as if nothing had been."""
    status, err = (0, []) if case.done(out) else quietly(case.words(out, again=True))
    if status:
        tally.faults.append(f"{where}: then status {status}: {err[-1:]}")
    elif case.result(out) != want:
        tally.faults.append(f"{where}: another result")


def main() -> None:
    """The whole matrix, told command by command, and recorded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--record", type=Path, help="append a line of JSON to this file")
    parser.add_argument("--only", help="one command by its name")
    given = parser.parse_args()
    began, rows, faults = commit(), {}, []
    for name in COMMANDS:
        if given.only not in (None, name):
            continue
        if name in PACKAGES and find_spec(PACKAGES[name]) is None:
            raise SystemExit(f"{name} needs {PACKAGES[name]}, which is not installed")
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            killed, full = kill_everywhere(name, Path(one)), fill_the_disk(name, Path(two))
        rows[name] = {
            "kills": killed.stops, "differ": len(killed.faults),
            "full_disks": full.stops, "full_differ": len(full.faults),
        }  # fmt: skip
        faults += [f"{name}: {fault}" for fault in killed.faults + full.faults]
        print(f"{name}: {rows[name]}", flush=True)
    print("\n".join(faults))
    if given.record:
        totals = {key: sum(row[key] for row in rows.values()) for key in next(iter(rows.values()))}
        line = {
            "kind": "kills", **totals, "commands": rows, "commit": began, "versions": versions(),
            "date": datetime.now(UTC).date().isoformat(),
        }  # fmt: skip
        append_lines(given.record, [line])
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
