"""The graph that a newcomer brings."""

import pytest
from cli_cases import command_line

from muxgcl import load
from muxgcl.io.load import Loaded

SIZES = {"classes": 6, "features": 24, "degree": 8, "homophily": 0.7, "signal": 0.5, "words": 6}


@pytest.fixture(scope="session")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("made") / "graph"
    words = ["datasets", "make", "sbm", "--out", str(folder), "--nodes", "2000"]
    assert command_line([*words, *(f"--{name}={value}" for name, value in SIZES.items())]) == 0
    return load(folder)
