"""A mapped file of features that somebody cuts short while a run reads it: nothing is lost."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from muxgcl.io import planted
from muxgcl.runs.folder import Run

RUN = """
import os, sys
from muxgcl.cli import commands
from muxgcl.cli.app import run
from muxgcl.io import npz
from muxgcl.runs import checkpoint
from muxgcl.runs.folder import Run

npz.MAPPED, checkpoint.CHECKPOINT_SECONDS = 1, -1.0  # maps any file, keeps every block of epochs
save, (cut, *words) = Run.save_checkpoint, sys.argv[1:]

def save_and_cut(*given, **facts):
    save(*given, **facts)
    if cut:
        os.truncate(cut, 0)

Run.save_checkpoint = save_and_cut
sys.exit(run(words))
"""
TRAIN = [
    "--method", "grace", "--preset", "quick", "--set", "width=8", "--set", "projection=8",
    "--no-scale", "--epochs", "40", "--device", "cpu", "--quiet",
]  # fmt: skip


def train(folder: Path, cut: Path | None, *more: str) -> int:
    files = [str(folder / "edges.csv"), "--features", str(folder / "x.npy")]
    words = ["train", *files, *TRAIN, "--out", str(folder / f"run-{cut is not None}"), *more]
    command = [sys.executable, "-c", RUN, "" if cut is None else str(cut), *words]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode <= 0, done.stderr
    return done.returncode


@pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="needs a system that has SIGBUS")
def test_a_run_whose_features_are_cut_keeps_its_checkpoint_and_resumes(tmp_path: Path) -> None:
    data = planted(nodes=60)
    np.save(tmp_path / "x.npy", data.x.numpy())
    rows = data.edge_index.T.numpy()
    np.savetxt(tmp_path / "edges.csv", rows, "%d", delimiter=",", header="from,to", comments="")
    whole = (tmp_path / "x.npy").read_bytes()
    assert train(tmp_path, None) == 0
    assert train(tmp_path, tmp_path / "x.npy") == -signal.SIGBUS
    kept = Run(tmp_path / "run-True")
    assert 0 < kept.checkpoint()[1]["epoch"] < 40
    (tmp_path / "x.npy").write_bytes(whole)
    assert train(tmp_path, None, "--out", str(tmp_path / "run-True"), "--resume") == 0
    one, two = (Run(tmp_path / f"run-{name}").embeddings()[1] for name in (True, False))
    np.testing.assert_array_equal(one, two)
