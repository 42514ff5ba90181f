"""The table of presets shows what was run with the settings that a preset has now."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from muxgcl.plan import Plan
from muxgcl.reproduce.presets import preset_table
from muxgcl.reproduce.records import Found


def row(preset: str, dataset: str, accuracy: list[float], **changed: object) -> str:
    plan = Plan.make("mux-gcl", "best", dataset)
    settings = json.loads(json.dumps(asdict(plan.settings) | asdict(plan.train))) | changed
    found = {"method": "mux-gcl", "dataset": dataset, "preset": preset, "seed": 0}
    return json.dumps(found | {"settings": settings, "accuracy": accuracy})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [
        row("best", "cora", [84.0, 86.0]),
        row("auto", "cora", [83.0, 84.0], width=7),  # what auto picks hangs on the graph
        row("best", "photo", [93.0, 93.0], width=7),  # the preset was changed since
        row("auto", "photo", [92.0, 92.0]),
    ]
    (tmp_path / "presets.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_what_was_run_is_shown_and_paired(folder: Path) -> None:
    table = preset_table(Found([]), folder)
    cells = {line[0]: dict(zip(table.header[1:], line[1:], strict=True)) for line in table.rows}
    assert cells["best"]["Cora"] == "85.00 ± 1.41"
    assert cells["auto minus best"]["Cora"] == "-1.50"


def test_settings_that_a_preset_no_longer_has_are_not_shown(folder: Path) -> None:
    table = preset_table(Found([]), folder)
    cells = {line[0]: dict(zip(table.header[1:], line[1:], strict=True)) for line in table.rows}
    assert cells["best"]["Photo"] == cells["auto minus best"]["Photo"] == "—"
    assert cells["auto"]["Photo"] == "92.00 ± 0.00"


def test_without_records_there_are_dashes(tmp_path: Path) -> None:
    table = preset_table(Found([]), tmp_path)
    assert {cell for line in table.rows for cell in line[1:]} == {"—"}
