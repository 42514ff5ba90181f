"""Write constraints-hashed.txt: what constraints.txt pins, with the sha256 of each file.

The hashes are those of the files that pip would install here, from the index that pip is set up
with. torch is left out: its file is another for each kind of device.

Usage: python tools/hash_constraints.py
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from muxgcl.io.files import write_text

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = ("torch==",)
LINUX_ONLY = ("triton",)


def main() -> None:
    """Ask pip which file it would take for every pin, and keep its sha256."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith(("#", *LEFT_OUT))]
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "pins.txt"
        wanted.write_text("\n".join(pins) + "\n", encoding="utf-8")
        report = Path(folder) / "report.json"
        how = ["--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", str(report)]
        words = [sys.executable, "-m", "pip", "install", *how, "-r", str(wanted)]
        subprocess.run(words, check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    rows = sorted(map(_row, found), key=str.lower)
    if len(rows) != len(pins):
        raise SystemExit(f"expected {len(pins)} files, got {len(rows)}")
    where = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    head = [
        "# Made by tools/hash_constraints.py from constraints.txt; `make locked` installs from it.",
        f"# The files are those for {where}; torch is left out.",
    ]
    write_text(ROOT / "constraints-hashed.txt", "\n".join([*head, *rows]) + "\n")


def _row(item: dict[str, Any]) -> str:
    facts = item["metadata"]
    digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
    only = " ; platform_system == 'Linux'" if facts["name"].lower() in LINUX_ONLY else ""
    return f"{facts['name']}=={facts['version']}{only} --hash=sha256:{digest}"


if __name__ == "__main__":
    main()
