"""The examples run, say what they show, and show it."""

import ast
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from muxgcl.methods import METHODS

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What an example registers is gone after it."""
    before = dict(METHODS)
    yield
    METHODS.clear()
    METHODS.update(before)


def run(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name), run_name="__main__")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_starts_with_a_sentence_on_what_it_shows(path: Path) -> None:
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert said is not None
    assert said.splitlines()[0].endswith(".")


def test_ten_lines_give_embeddings_that_say_more_than_the_features(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = run("01_ten_lines.py")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["raw features", "embeddings"]
    assert found["right"] > 0.9  # the last one printed: of the embeddings


def test_people_most_alike_are_mostly_of_one_team(capsys: pytest.CaptureFixture[str]) -> None:
    found = run("02_own_graph.py")
    out = capsys.readouterr().out
    assert "column 'team' is the label, not a feature" in out
    assert found["loaded"].ids[0] == "person-000"
    assert np.mean(found["label"][found["nearest"]] == found["label"][0]) > 0.5


def test_an_own_method_beats_the_features_it_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    found = run("03_own_method.py")
    raw, own = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (raw[0], own[0]) == ("raw:", "denoise:")
    assert METHODS["denoise"] is found["Denoise"]
    assert found["result"].accuracy.mean > 90
