"""Killed anywhere, or out of disk anywhere: every command goes on, and ends as if nothing had been.

All files of ours are written by `os.replace` (whole files), `os.rename` (folders) or `append_lines`
(logs), and Optuna's journal by `append_logs`. A command is killed before and after each of these,
and in the middle of every line; then it is asked again. A kill between two writes leaves what a
kill before the second one leaves.

Usage: python tests/kill_matrix.py [--record records/kills.jsonl]
"""

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from kill_cases import COMMANDS, PACKAGES, Case, quick, quietly
from optuna.storages.journal import JournalFileBackend

import muxgcl.reproduce.records
import muxgcl.runs.folder
from muxgcl.io.files import HOUR, PART, append_lines, json_lines
from muxgcl.runs.environment import commit, versions

PARTS = "*".join(PART)  # temporary files, which go once they are old
SIZES = (0, 64, 400, 1000, 2500, 5000, 9000, 20_000, 60_000)  # bytes that a file may take


@dataclass
class Tally:
    """How often a command was stopped, and where it did not end the same."""

    stops: int = 0
    asked: int = 0
    faults: list[str] = field(default_factory=list)


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
    torch.set_num_threads(1)  # a forked child has none of its parent's threads, and waits for them
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
