"""`make fuzz`: every target in a process of its own, with limits of time and memory; a record."""

import argparse
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

SECONDS = 30
MEMORY = 2 << 30  # bytes beyond what the program itself takes
ROOT = Path(__file__).parents[2]


class TooSlow(BaseException):
    """A mutation took longer than it may."""


def work(name: str, first: int, count: int, pipe: Connection) -> None:
    """Try mutations one after another; each is told before and after."""
    from fuzz_target import attempt, keep_whole, mutate
    from fuzz_targets import TARGETS

    def late(*_: object) -> None:
        raise TooSlow

    signal.signal(signal.SIGALRM, late)
    target = next(target for target in TARGETS if target.name == name)
    os.chdir(tempfile.mkdtemp(prefix="muxgcl-fuzz-"))
    whole = Path("whole")
    whole.mkdir()
    target.seed(whole)
    keep_whole(target, whole)
    target_limit = _virtual_memory() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (target_limit, target_limit))
    for number in range(first, first + count):
        folder = mutate(target, whole, Path("work"), number)
        pipe.send((number, "began", ""))
        began = time.monotonic()
        signal.alarm(SECONDS)
        try:
            came, told = attempt(target, folder), ""
        except TooSlow:
            came, told = "slow", f"over {SECONDS} s"
        except MemoryError:
            came, told = "memory", traceback.format_exc()
        except Exception as error:
            came = "wrong" if type(error).__name__ == "SilentlyWrong" else "traceback"
            told = traceback.format_exc()
        finally:
            signal.alarm(0)
        pipe.send((number, came, told or f"{time.monotonic() - began:.3f}"))


def _virtual_memory() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def drive(name: str, count: int) -> dict[str, Any]:
    """All mutations of one target; a process that dies is a find, and the next one goes on."""
    found: dict[str, Any] = {"read": 0, "refused": 0, "finds": [], "slowest_s": 0.0}
    context = multiprocessing.get_context("spawn")
    at = 0
    while at < count:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=work, args=(name, at, count - at, theirs))
        child.start()
        theirs.close()
        began = False
        try:
            while True:
                number, came, told = ours.recv()
                began = came == "began"
                if began:
                    continue
                at = number + 1
                if came in ("read", "refused"):
                    found[came] += 1
                    found["slowest_s"] = max(found["slowest_s"], float(told))
                else:
                    found["finds"].append({"number": number, "kind": came, "told": told[-2000:]})
        except EOFError:
            child.join()
        if began:
            last = {"number": number, "kind": "crash", "told": f"exit code {child.exitcode}"}
            found["finds"].append(last)
            at = number + 1
        elif at < count:
            raise SystemExit(f"{name}: the worker ended before its first mutation")
    return found


def main() -> None:
    """Share the mutations among the targets, tell what was found, and record it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--only", help="one target by its name")
    parser.add_argument("--record", type=Path, help="append a line of JSON to this file")
    given = parser.parse_args()
    os.environ.setdefault("MUXGCL_MAX_BYTES", str(10**9))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from fuzz_targets import TARGETS

    from muxgcl.io.files import append_lines
    from muxgcl.runs.environment import commit, versions

    rows, began = {}, time.monotonic()
    for target in TARGETS:
        if given.only in (None, target.name):
            count = max(1, round(given.mutations * target.share))
            rows[target.name] = row = drive(target.name, count)
            finds = row["finds"]
            print(
                f"{target.name}: {count} mutations, {row['refused']} refused, {row['read']} read, "
                f"{len(finds)} finds, slowest {row['slowest_s']:.2f} s",
                flush=True,
            )
            for find in finds[:5]:
                print(f"  #{find['number']} {find['kind']}: {find['told'].strip()}", flush=True)
    finds = [find for row in rows.values() for find in row["finds"]]
    kinds = {k: sum(f["kind"] == k for f in finds)
             for k in ("traceback", "crash", "slow", "memory", "wrong")}  # fmt: skip
    total = sum(row["read"] + row["refused"] + len(row["finds"]) for row in rows.values())
    print(f"{total} mutations in {time.monotonic() - began:.0f} s: {json.dumps(kinds)}")
    if given.record:
        told = {name: {k: v for k, v in row.items() if k != "finds"} for name, row in rows.items()}
        line = {
            "kind": "fuzz", "mutations": total, **kinds, "limit_s": SECONDS,
            "limit_bytes": MEMORY, "targets": told, "commit": commit(), "versions": versions(),
            "date": datetime.now(UTC).date().isoformat(),
        }  # fmt: skip
        append_lines(given.record, [line])
    sys.exit(bool(finds))


if __name__ == "__main__":
    main()
