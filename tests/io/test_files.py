"""Logs that survive a kill, and a lock that a second process meets."""

import subprocess
import sys
from pathlib import Path

import pytest

from muxgcl.errors import UserError
from muxgcl.io.files import LOCK, append_lines, locked
from muxgcl.io.schema import read_lines


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize(
    ("left", "kept"),
    [
        ("", []),
        ('{"a": 1}\n', [{"a": 1}]),
        ('{"a": 1}', [{"a": 1}]),  # whole, but for its line break
        ('{"a": 1}\n{"b": 2, "c', [{"a": 1}]),
        ('{"b', []),
    ],
)
def test_a_line_is_never_joined_to_half_a_line(
    left: str, kept: list[dict[str, int]], sync: bool, tmp_path: Path
) -> None:
    file = tmp_path / "new" / "log.jsonl"
    file.parent.mkdir()
    file.write_text(left)
    assert read_lines(file) == kept
    append_lines(file, [{"x": 1}, {"ü": [2]}], sync=sync)
    assert read_lines(file) == [*kept, {"x": 1}, {"ü": [2]}]
    assert file.read_bytes().endswith(b"\n")


def test_a_log_that_is_not_there_is_empty_and_is_begun(tmp_path: Path) -> None:
    file = tmp_path / "new" / "log.jsonl"
    assert read_lines(file) == []
    append_lines(file, [{"x": 1}])
    assert read_lines(file) == [{"x": 1}]


@pytest.mark.parametrize("name", [LOCK, "study.journal"])
def test_a_second_process_is_told_who_holds_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / "held" / name
    shown = path.parent if name == LOCK else path
    code = (
        "import sys; from pathlib import Path; from muxgcl.io.files import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UserError, match=f"{shown} is being written by another"), locked(path):
            pass
        other.communicate("\n")
    with locked(path):  # free again
        pass
