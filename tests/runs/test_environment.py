"""The commit beside a figure is that of this source tree, or of none."""

import subprocess
from pathlib import Path

import pytest

from muxgcl.runs import environment


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The commit of a repository in `tmp_path`."""
    monkeypatch.delenv("MUXGCL_COMMIT", raising=False)
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    told = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(told, cwd=tmp_path, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("place", "known"), [("src", True), (".venv/lib/python3.12/site-packages", False)]
)
def test_a_package_in_the_environment_of_another_project_does_not_name_its_commit(
    repository: str, place: str, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / place / "muxgcl" / "runs" / "environment.py"
    module.parent.mkdir(parents=True)
    monkeypatch.setattr(environment, "__file__", str(module))
    assert environment.commit() == (repository.strip() if known else "unknown")
