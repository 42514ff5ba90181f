"""How long a command takes from start to end: in a fresh process, with a fresh folder, repeatedly.

    python benchmarks/run_time.py --record records/run-time.jsonl -- run cora --no-report

The first time pays for what is kept afterwards (compiled kernels, bytecode) and stands by itself.
Affinities are computed anew each time. `$MUXGCL_NOTE` is written into the record; so is what the
command said beforehand that it would take, the most memory that it had, and with `--json` its
scores.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from muxgcl.io.files import append_lines
from muxgcl.runs.environment import commit, device_name, pick_device, versions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="after the first time")
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("command", nargs="+", help="what follows `muxgcl`")
    args = parser.parse_args()
    seconds: list[float] = []
    told = ""
    for _ in range(args.repeats + 1):
        # nothing is left from one time to the next, such as affinities
        with tempfile.TemporaryDirectory() as folder:
            out = ["--out", str(Path(folder) / "run")] if args.command[0] == "run" else []
            begin = time.perf_counter()
            command = [sys.executable, "-m", "muxgcl", *args.command, *out]
            output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            told = subprocess.run(command, check=True, **output).stdout
            seconds.append(round(time.perf_counter() - begin, 2))
            print(seconds[-1], flush=True)
    row = {
        "kind": "run-time",
        "command": " ".join(["muxgcl", *args.command]),
        "first_s": seconds[0],
        "seconds": seconds[1:],
        "estimate": re.findall("about .* on this [CG]PU", told)[:1],
        "peak_mib": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10),
        "scores": accuracies(told) if "--json" in args.command else {},
        "note": os.environ.get("MUXGCL_NOTE", ""),
        "device": device_name(pick_device("auto")),
        "versions": versions(),
        "commit": commit(),
    }
    append_lines(args.record, [row])


def accuracies(told: str) -> dict[str, float]:
    """Of the method and of each control, in percent."""
    found = json.loads(next(line for line in told.splitlines() if line.startswith("{")))
    tables = {found["method"]: found["scores"], **found["scores"].get("controls", {})}
    return {
        name: round(scores["holdout"]["accuracy"]["mean"], 2)
        for name, scores in tables.items()
        if "holdout" in scores
    }


if __name__ == "__main__":
    main()
