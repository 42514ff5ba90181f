"""Advice that is printed is a command that works."""

from pathlib import Path

import pytest
from cli_cases import ask
from numpy.testing import assert_allclose

import muxgcl
from muxgcl.evaluate.verdict import METHOD_OF
from muxgcl.graph import Graph
from muxgcl.runs.control_scores import control_tables
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan


@pytest.mark.parametrize("control", METHOD_OF)
def test_the_options_that_are_advised_make_the_control(
    control: str, own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ["run", *own, *METHOD_OF[control].split(), "--splits", "2", "--no-report"]
    status, printed, told = ask(capsys, *words, "--out", str(out))
    assert status == 0, told
    loaded = muxgcl.load(own[0], features=own[2], label_column="topic")
    table = control_tables(Plan.make("raw"), Graph.from_data(loaded.tensors))[control]
    dense = table if not hasattr(table, "toarray") else table.toarray()
    assert_allclose(Run(out).embeddings()[1], dense, atol=1e-5)
    assert f"the best control, {control}" not in printed  # which it is itself
