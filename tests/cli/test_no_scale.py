"""Numbers that are kept as they are: in a run, where it goes on, and where it embeds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from cli_cases import FAST, command_line

from muxgcl.app.source import graph_of_run
from muxgcl.io.load import load
from muxgcl.runs.folder import Run


def test_a_run_keeps_numbers_as_they_are_goes_on_and_embeds_alike(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, frame = tmp_path / "run", pd.read_csv(own[2])
    frame[frame.columns[1]] = np.arange(len(frame)) % 7
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    own = [own[0], "--features", str(tmp_path / "nodes.csv"), *own[3:]]
    words = ["run", *own, "--method", "grace", *FAST, "--no-report", "--out", str(out)]
    assert command_line([*words, "--no-scale"]) == 0
    plain = load(own[0], features=own[2], label_column="topic", scale=False).tensors.x
    scaled = load(own[0], features=own[2], label_column="topic").tensors.x
    assert not torch.equal(plain, scaled)
    run = Run(out)
    assert run.config()["source"]["scale"] is False
    assert torch.equal(graph_of_run(run)[0].tensors.x, plain)
    assert command_line([*words, "--no-scale", "--resume"]) == 0
    capsys.readouterr()
    assert command_line([*words, "--resume"]) == 2  # scaled features are another graph
    assert "graph" in capsys.readouterr().err
    table = tmp_path / "z.npy"
    assert command_line(["embed", str(out), *own[:3], "--out", str(table)]) == 0
    np.testing.assert_allclose(np.load(table), np.load(run.embeddings_file)["embedding"], atol=1e-6)


def test_a_dataset_has_no_numbers_to_keep(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["run", "cora", "--no-scale", "--dry-run"]) == 2
    assert "scale (--no-scale) is for a graph that is read from files" in capsys.readouterr().err
