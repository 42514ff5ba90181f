"""Tiny graphs, one seed, one thread; shapes are checked at every call."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from jaxtyping import config

SOURCE = Path(__file__).parents[1] / "src"


def checked_modules() -> list[str]:
    """Every module of ours but Triton's, and the commands, whose annotations are Typer's."""
    files = [file for file in SOURCE.rglob("*.py") if file.stem != "__main__"]
    files = [file for file in files if "@triton.jit" not in file.read_text(encoding="utf-8")]
    paths = [file.relative_to(SOURCE).with_suffix("").parts for file in files]
    names = [".".join(path).removesuffix(".__init__") for path in paths if "cli" not in path]
    return [name for name in names if name != "muxgcl"]  # which loads when it is imported by name


if find_spec("beartype"):  # a GPU machine may lack it
    from shape_checks import install

    install(checked_modules())  # before our first import

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Shapes are not checked: a user's wrong table shall come to where we refuse it."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


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


# of the stages of a run


@pytest.fixture(scope="module")
def loaded() -> Any:
    """A small graph, most of it labelled."""
    import muxgcl
    from muxgcl.io import planted

    data = planted(nodes=40)
    data.y[:4] = -1
    return muxgcl.load(data)


@pytest.fixture
def run(loaded: Any, tmp_path: Path) -> Any:
    """A folder that was begun with seed 0, 5 epochs, one member."""
    from stage_cases import begun, ready_of

    from muxgcl.runs.folder import Run

    run = Run(tmp_path / "run")
    assert begun(run, ready_of(loaded), loaded) == []
    return run
