"""What tests of the command line share: a small graph in files, a run on it, and how to ask."""

import csv
from pathlib import Path

import pytest

from muxgcl.app import screen
from muxgcl.cli import app, commands  # noqa: F401  (declares the commands)
from muxgcl.cli.app import run as command_line
from muxgcl.io import planted

screen.FIRST_LINE = 600.0  # a busy machine must not add a line to what a test counts

TINY = [
    "--preset",
    "quick",
    "--set",
    "width=8",
    "--set",
    "projection=8",
    "--set",
    "projection_out=8",
]
FAST = [*TINY, "--epochs", "2", "--quiet", "--splits", "2", "--device", "cpu"]


def write_files(folder: Path) -> Path:
    """A small graph as a person has it: edges and nodes as CSV, string ids."""
    data = planted(nodes=60, seed=3)
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["from", "to"])
        writer.writerows([f"n{a}", f"n{b}"] for a, b in data.edge_index.T.tolist() if a < b)
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"f{i}" for i in range(data.x.shape[1])), "topic"])
        for i, row in enumerate(data.x.tolist()):
            writer.writerow([f"n{i}", *row, f"class {int(data.y[i])}"])
    return folder


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = command_line(list(words))
    out, err = capsys.readouterr()
    return status, out, err
