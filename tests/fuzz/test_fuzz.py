"""A few mutations of every kind of file, the same ones each time; `make fuzz` tries thousands."""

from pathlib import Path

import pytest
from fuzz_target import Target, attempt, keep_whole, mutate
from fuzz_targets import TARGETS

BUDGET = {"options": 8, "study": 6, "half a run": 8, "journal": 6, "labels": 8, "forged weights": 6}
USUAL = 25
WORDS = ("options",)  # refused with a status instead
NO_FILES = ("options", "forged weights")  # what is changed is said by a number


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_changed_file_is_read_or_refused_in_one_line(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unchecked: None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUXGCL_MAX_BYTES", str(10**9))
    whole = tmp_path / "whole"
    whole.mkdir()
    target.seed(whole)
    keep_whole(target, whole)
    outcomes = [
        attempt(target, mutate(target, whole, tmp_path / "work", number))
        for number in range(BUDGET.get(target.name, USUAL))
    ]
    assert target.name in WORDS or "refused" in outcomes  # the test has met what it is about


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_an_unchanged_file_is_read(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unchecked: None
) -> None:
    if target.name in NO_FILES:
        pytest.skip("has no file to leave as it is")
    monkeypatch.chdir(tmp_path)
    whole = tmp_path / "whole"
    whole.mkdir()
    target.seed(whole)
    keep_whole(target, whole)
    assert attempt(target, whole) == "read"


def test_every_mutation_has_a_share() -> None:
    assert sum(target.share for target in TARGETS) == pytest.approx(1)
