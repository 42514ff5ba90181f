"""Tiny graphs, one seed, one thread."""

import os
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


# of the command line, which loads only where it is tested


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from cli_cases import write_files

    return write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def own(files: Path) -> list[str]:
    features = str(files / "nodes.csv")
    return [str(files / "edges.csv"), "--features", features, "--label-column", "topic"]


@pytest.fixture(scope="module")
def trained(own: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from cli_cases import FAST, command_line

    out = tmp_path_factory.mktemp("runs") / "run"
    words = ["run", *own, "--method", "grace", *FAST, "--out", str(out)]
    assert command_line([*words, "--no-report"]) == 0
    return out
