"""Killed anywhere, or out of disk anywhere: every command goes on, and ends the same.

`make kills` records the same matrix.
"""

import os
from pathlib import Path

import pytest
from kill_cases import COMMANDS, PACKAGES
from kill_matrix import fill_the_disk, kill_everywhere

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The value of .grace_period.:UserWarning"),
    pytest.mark.timeout(3000),
]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_at_any_write_ends_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(PACKAGES.get(name, "muxgcl"))
    monkeypatch.chdir(tmp_path)
    found = kill_everywhere(name, tmp_path)
    assert not found.faults
    assert found.stops >= found.asked - 1 > 0  # the test has met what it is about


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_on_a_disk_that_fills_up_is_one_line_and_then_ends_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(PACKAGES.get(name, "muxgcl"))
    monkeypatch.chdir(tmp_path)
    found = fill_the_disk(name, tmp_path)
    assert not found.faults
    assert found.stops >= 2
