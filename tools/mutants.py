"""`make mutants`: change the code a little, many times; the tests should notice each time.

Usage: python tools/mutants.py [--area NAME ...] [--sample 100] [--seed 0] [--record FILE]

A copy of the repository under `build/mutants` holds one changed file at a time. This process loads
the libraries once and forks for every mutant: the child runs those tests that reach the changed
lines, fastest first, and stops at the first that fails. What was found is kept in
`build/mutants/results.jsonl`, so a run that was stopped goes on, and after new tests only the
survivors are tried again. `tools/mutants.toml` names areas, tests and survivors that may live.
"""

import argparse
import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib import import_module
from math import sqrt
from pathlib import Path
from typing import Any

from mutants_child import enter, load_all_but, measure, run_tests
from mutate import Mutant, mutants

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutants"
TREE = WORK / "tree"
PACKAGE = TREE / "src" / "muxgcl"
TESTS_SECONDS = 15.0  # of tests a mutant, fastest first: who survives them counts as a survivor
LIBRARIES = (
    "torch", "torch_geometric.data", "torch_geometric.utils", "numpy", "scipy.sparse.linalg",
    "scipy.stats", "sklearn.cluster", "sklearn.linear_model", "sklearn.metrics", "pytest",
    "sklearn.model_selection", "jaxtyping", "beartype", "hypothesis", "safetensors.torch", "typer",
    "rich.progress", "rich.table", "matplotlib.figure", "joblib", "tomli_w", "networkx", "triton",
)  # fmt: skip
WANTED = 0.85


@dataclass(frozen=True, slots=True)
class Area:
    """Modules, and the test files that answer for them."""

    name: str
    modules: list[str]
    tests: list[str]


def copy_tree() -> None:
    """The repository's files as they are now, under `build/mutants/tree`."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    out = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    names = {name for name in out.split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        there = TREE / name
        if not there.exists() or there.read_bytes() != (ROOT / name).read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, there)
    for file in (TREE / "src").rglob("*.py"):
        if str(file.relative_to(TREE)) not in names:
            file.unlink()


def hashed(*paths: Path) -> str:
    """One hash of what these files hold."""
    return sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def append(path: Path, line: dict[str, Any]) -> None:
    """One more line of JSON."""
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def forked(job: Callable[[], int], seconds: float) -> str:
    """What became of `job` in a child: its exit code as text, or "timeout"."""
    child = os.fork()
    if child == 0:
        os.setsid()
        code = 70
        try:
            code = job()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done or time.monotonic() > end:
            break
        time.sleep(0.01)
    with suppress(ProcessLookupError):  # and the processes that the tests started
        os.killpg(child, signal.SIGKILL)
    if not done:
        os.waitpid(child, 0)
        return "timeout"
    return str(os.waitstatus_to_exitcode(status))


def measured(area: Area, never: list[str]) -> dict[str, dict[str, Any]]:
    """Every test of an area: its seconds, and the lines it reaches in the area's modules."""
    known = {(row["file"], row["state"]): row for row in read_lines(WORK / "measured.jsonl")}
    sources = [PACKAGE / module for module in area.modules]
    found: dict[str, dict[str, Any]] = {}
    for file in area.tests:
        state = hashed(TREE / "tests" / file, *sources)
        row = known.get((file, state))
        if row is None:
            out = WORK / "measure.json"
            out.unlink(missing_ok=True)
            came = forked(partial(measure, TREE, file, sources, never, out), 900)
            if came != "0":
                raise SystemExit(f"{file} fails before anything is changed ({came}): {WORK}/log")
            row = {"file": file, "state": state, "tests": json.loads(out.read_text())}
            append(WORK / "measured.jsonl", row)
        found |= row["tests"]
    return found


def tests_for(mutant: Mutant, module: str, tests: dict[str, dict[str, Any]]) -> list[str]:
    """Tests that reach the changed lines, fastest first, so many as fit into the time.

    What runs when the module loads may show in any test: tables of checks are built there.
    """
    low, high = mutant.reach
    every = [(row["seconds"], test) for test, row in tests.items()]
    reach = [
        (seconds, test)
        for seconds, test in every
        if any(low <= line <= high for line in tests[test]["lines"].get(module, ()))
    ]
    chosen: list[str] = []
    total = 0.0
    for seconds, test in sorted(every if mutant.loads or not reach else reach):
        total += seconds
        if chosen and total > TESTS_SECONDS:
            break
        chosen.append(test)
    return chosen


def try_mutant(mutant: Mutant, module: str, tests: dict[str, dict[str, Any]]) -> tuple[str, int]:
    """Whether tests notice: "killed" or "survived", and how many tests were there to run."""
    path = PACKAGE / module
    chosen = tests_for(mutant, module, tests)
    original = path.read_bytes()
    forget_bytecode(path)
    times = [tests[test]["seconds"] for test in chosen]
    longest, limit = 15 + 5 * max(times), 60 + 5 * sum(times)
    try:
        path.write_bytes(mutant.apply(original))
        came = forked(partial(run_tests, chosen, longest), limit)
    finally:
        path.write_bytes(original)
    if came in ("4", "5", "70"):  # no test ran
        raise SystemError(f"{mutant.key}: the tests did not start ({came})")
    return ("survived" if came == "0" else "killed"), len(chosen)


def forget_bytecode(path: Path) -> None:
    """A file that changes twice a second outwits Python's look at times and sizes."""
    for file in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        file.unlink()


def sampled(area: Area, size: int, seed: int) -> tuple[list[tuple[str, Mutant]], int]:
    """A random sample of an area's mutants, the same for the same seed, and how many there are."""
    every = [(m, mutant) for m in area.modules for mutant in mutants((PACKAGE / m).read_bytes())]
    chosen = random.Random(f"{area.name} {seed}").sample(every, min(size, len(every)))
    order = {id(mutant): i for i, (_, mutant) in enumerate(every)}
    return sorted(chosen, key=lambda pair: order[id(pair[1])]), len(every)


def accepted(mutant: Mutant, module: str, listed: list[dict[str, str]]) -> dict[str, str] | None:
    """The entry that lets this one live: of its function, of its line, or of this very change."""
    for entry in listed:
        here = entry["module"] == module and mutant.function.startswith(entry.get("function", ""))
        same = entry.get("was", mutant.was) == mutant.was
        if here and same and entry.get("now", mutant.now) == mutant.now:
            return entry
    return None


def interval(killed: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z, share = 1.96, killed / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return round(middle - half, 3), round(min(1.0, middle + half), 3)


def try_all(
    pending: list[Mutant], module: str, tests: dict[str, dict[str, Any]], answering: str
) -> int:
    """Try mutants of one module; a line a mutant goes to the results."""
    enter(TREE)
    load_all_but(module, TREE)
    source = hashed(PACKAGE / module)
    unchanged = Mutant("", 1, (1, 1 << 30), False, 0, 0, "", "", "")
    few = {test: tests[test] for test in tests_for(unchanged, module, tests)[:20]}
    if try_mutant(unchanged, module, few)[0] != "survived":
        raise SystemError(f"{module}: a test fails though nothing is changed")
    for mutant in pending:
        began = time.monotonic()
        came, ran = try_mutant(mutant, module, tests)
        row: dict[str, Any] = {"module": module, "source": source, "key": mutant.key, "came": came}
        row |= {"tests": answering, "ran": ran, "seconds": round(time.monotonic() - began, 2)}
        append(WORK / "results.jsonl", row)
    return 0


def results() -> dict[tuple[str, str, str], dict[str, Any]]:
    """What became of every mutant that was tried, by module, its source and the change."""
    rows = read_lines(WORK / "results.jsonl")
    return {(row["module"], row["source"], row["key"]): row for row in rows}


def try_area(area: Area, given: argparse.Namespace, config: dict[str, Any]) -> dict[str, Any]:
    """Try an area's sample; survivors are printed; the figures come back."""
    tests = measured(area, config["never"])
    answering = hashed(*(TREE / "tests" / file for file in area.tests))
    chosen, total = sampled(area, given.sample, given.seed)
    per = {}
    for module in area.modules:
        source, known = hashed(PACKAGE / module), results()
        mine = [mutant for name, mutant in chosen if name == module]
        pending = []
        for mutant in mine:
            row = known.get((module, source, mutant.key), {"came": "survived", "tests": ""})
            if row["came"] == "survived" and row["tests"] != answering:
                pending.append(mutant)
        if pending and forked(partial(try_all, pending, module, tests, answering), 86_400) != "0":
            raise SystemExit(f"{module}: the tests did not start, see {WORK}/log")
        known = results()
        came = {mutant.key: known[module, source, mutant.key] for mutant in mine}
        per[module] = told(module, mine, came, config.get("accepted", []))
    sums = {k: sum(row[k] for row in per.values()) for k in next(iter(per.values()))}
    counted = sums["mutants"] - sums["accepted"]
    return {
        "kind": "mutants",
        "area": area.name,
        "possible": total,
        **sums,
        "score": round(sums["killed"] / counted, 4),
        "interval": interval(sums["killed"], counted),
        "modules": {module: row for module, row in per.items() if row["mutants"]},
    }


def told(
    module: str, tried: list[Mutant], came: dict[str, dict[str, Any]], listed: list[dict[str, str]]
) -> dict[str, int]:
    """Count what became of a module's mutants, and print those that nobody noticed."""
    counts = {"mutants": len(tried), "killed": 0, "survived": 0, "accepted": 0}
    for mutant in tried:
        row = came[mutant.key]
        lives = row["came"] == "survived" and accepted(mutant, module, listed)
        counts["accepted" if lives else row["came"]] += 1
        if row["came"] == "survived" and not lives:
            print(f"  {module}:{mutant.first} {mutant.function}, {row['ran']} tests")
            print(f"    - {mutant.was}\n    + {mutant.now}", flush=True)
    return counts


def areas(config: dict[str, Any], only: list[str] | None) -> Iterator[Area]:
    """The areas of the configuration, or those asked for; folders become their files."""
    for name, row in config["area"].items():
        if only is None or name in only:
            files: list[str] = []
            for test in row["tests"]:
                path = ROOT / "tests" / test
                inside = sorted(path.glob("test_*.py")) if path.is_dir() else [path]
                files += [str(file.relative_to(ROOT / "tests")) for file in inside]
            yield Area(name, row["modules"], files)


def main() -> None:
    """Try every area, say what survived, record the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--area", action="append", help="one area by its name; all without it")
    parser.add_argument("--sample", type=int, default=100, help="mutants an area, at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--record", type=Path, help="append a line an area to this file")
    given = parser.parse_args()
    config = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text(encoding="utf-8"))
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{TREE / 'src'}"}
    copy_tree()
    for library in LIBRARIES:
        import_module(library)
    gc.freeze()
    rows = []
    for area in areas(config, given.area):
        began = time.monotonic()
        row = try_area(area, given, config)
        seconds = round(time.monotonic() - began)
        rows.append(row | {"sample_seed": given.seed, "seconds": seconds})
        print(f"{area.name}: {row['killed']} of {row['mutants'] - row['accepted']} killed "
              f"({row['score']:.1%}, 95 % interval {row['interval'][0]:.0%} to "
              f"{row['interval'][1]:.0%}), {row['accepted']} accepted, of {row['possible']}; "
              f"{seconds} s", flush=True)  # fmt: skip
    if given.record:
        sys.path.insert(0, str(ROOT / "src"))
        environment = import_module("muxgcl.runs.environment")
        facts = {"versions": environment.versions(), "commit": environment.commit(),
                 "date": datetime.now(UTC).date().isoformat()}  # fmt: skip
        for row in rows:
            append(given.record, row | facts)
    sys.exit(any(row["score"] < WANTED for row in rows))


if __name__ == "__main__":
    main()
