"""What is answered before any work: version, help, names that the shell completes; what loads."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from cli_cases import command_line

from muxgcl import LoadOptions, __version__
from muxgcl.app.source import flag_of
from muxgcl.cli import commands, options  # noqa: F401  (declares them)
from muxgcl.cli.app import app
from muxgcl.runs.scoring import PROTOCOLS

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


def test_an_option_without_a_value_shows_no_type(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["embed", "--help"], ["datasets", "make", "--help"]):
        assert command_line(words) == 0
        assert "<bool>" not in capsys.readouterr().out


def test_the_help_page_fits_80_columns_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["run", "--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "muxgcl", *words],
            env={**os.environ, "PYTHONPATH": SOURCE, "COLUMNS": "80"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert max(map(len, done.stdout.splitlines())) <= 80
        if words == ["--help"]:
            assert "--debug" in done.stdout
    for group in ("Training", "Run folder", "Scores", "Reading files", "Output"):
        assert f"─ {group} ─" in done.stdout
    line = next(line for line in done.stdout.splitlines() if "--quiet" in line)
    assert line.strip("│ ").split() == ["--quiet", "Show", "no", "progress."]  # no type
    assert max(line.find("The seed of the splits") for line in done.stdout.splitlines()) <= 45


def test_help_pages_name_debug_and_leave_room_for_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    for words in (["run"], ["reproduce"], ["cluster"], ["bench", "kernels"], ["tune"]):
        assert command_line([*words, "--help"]) == 0
        page = capsys.readouterr().out
        assert "--debug" in page
        options = page[page.index("─ Options ─") :]
        assert not re.search(r"range>|list\[", options), words
        assert "<tensorboard" not in page
    assert command_line(["cluster", "--debug", "x"]) == 2  # it still is for the program


def test_the_shell_completes_methods_and_datasets() -> None:
    for words, want in (("muxgcl run --method mux-g", "mux-gcl"), ("muxgcl run cor", "cora")):
        done = subprocess.run(
            [sys.executable, "-m", "muxgcl"],
            env={
                **os.environ,
                "PYTHONPATH": SOURCE,
                "_MUXGCL_COMPLETE": "complete_bash",
                "COMP_WORDS": words,
                "COMP_CWORD": str(len(words.split()) - 1),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.split() == [want]


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["--version"]) == 0
    assert capsys.readouterr().out == f"muxgcl {__version__}\n"


def test_every_option_of_loading_is_a_flag_of_the_command_line() -> None:
    root: Any = typer.main.get_command(app)
    options = root.commands["run"].params
    flags = {flag for option in options for flag in (*option.opts, *option.secondary_opts)}
    assert {flag_of(field.name) for field in fields(LoadOptions)} <= flags


def test_the_command_line_takes_every_protocol() -> None:
    assert tuple(one.value for one in options.Protocol) == PROTOCOLS


def test_without_a_command_the_help_page_is_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line([]) == 2
    told = capsys.readouterr()
    assert "reproduce" in told.out
    assert told.err == ""


def test_the_program_starts_as_a_module_without_what_takes_seconds_to_load() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "muxgcl", "run", "corra"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    imports = [line for line in lines if line.startswith("import time:")]
    (told,) = (line for line in lines if line not in imports)
    assert told.startswith("muxgcl: unknown dataset")
    loaded = {line.rpartition("|")[2].strip() for line in imports}
    assert "torch" in loaded
    slow = {"matplotlib", "optuna", "pandas", "pyarrow", "sklearn", "torch_geometric"}
    assert not loaded & slow
