"""How long a command takes from start to end: in a fresh process, with a fresh folder, repeatedly.

    python benchmarks/run_time.py --record records/run-time.jsonl -- run cora --no-report

The first time pays for what is kept afterwards (compiled kernels, bytecode) and stands by itself.
Affinities are computed anew each time. `$MUXGCL_NOTE` is written into the record.
"""

import argparse
import os
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
    seconds = []
    for _ in range(args.repeats + 1):
        # nothing is left from one time to the next, such as affinities
        with tempfile.TemporaryDirectory() as folder:
            out = ["--out", str(Path(folder) / "run")] if args.command[0] == "run" else []
            begin = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "muxgcl", *args.command, *out],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            seconds.append(round(time.perf_counter() - begin, 2))
            print(seconds[-1], flush=True)
    row = {
        "kind": "run-time",
        "command": " ".join(["muxgcl", *args.command]),
        "first_s": seconds[0],
        "seconds": seconds[1:],
        "note": os.environ.get("MUXGCL_NOTE", ""),
        "device": device_name(pick_device("auto")),
        "versions": versions(),
        "commit": commit(),
    }
    append_lines(args.record, [row])


if __name__ == "__main__":
    main()
