"""A small labelled graph, and a run folder that was begun on it."""

from pathlib import Path

import pytest
from stage_cases import begun, ready_of

import muxgcl
from muxgcl.io import planted
from muxgcl.io.load import Loaded
from muxgcl.runs.folder import Run


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    data = planted(nodes=40)
    data.y[:4] = -1
    return muxgcl.load(data)


@pytest.fixture
def run(loaded: Loaded, tmp_path: Path) -> Run:
    """A folder that was begun with seed 0, 5 epochs, one member."""
    run = Run(tmp_path / "run")
    assert begun(run, ready_of(loaded), loaded) == []
    return run
