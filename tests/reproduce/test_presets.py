"""The table of presets shows what was run with the settings that a preset has now."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from muxgcl.reproduce.artefacts import Scope
from muxgcl.reproduce.presets import preset_table
from muxgcl.reproduce.records import Found
from muxgcl.reproduce.typeset import Table
from muxgcl.runs.plan import Plan

OLD = Scope(protocol="holdout-all")  # a line that names no protocol is older than the halves


def settings(dataset: str, **changed: object) -> dict[str, Any]:
    plan = Plan.make("mux-gcl", "best", dataset)
    return {**json.loads(json.dumps(asdict(plan.settings) | asdict(plan.train))), **changed}


def row(preset: str, dataset: str, accuracy: list[float], seed: int = 0, **changed: object) -> str:
    found = {"method": "mux-gcl", "dataset": dataset, "preset": preset, "seed": seed}
    return json.dumps(found | {"settings": settings(dataset, **changed), "accuracy": accuracy})


def parity(dataset: str, scores: list[list[float]], **changed: object) -> str:
    found = {"dataset": dataset, "preset": "best", "per_split": {"fast": scores}}
    return json.dumps(found | {"settings": settings(dataset, **changed)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [
        row("best", "cora", [84.0, 86.0], seed=1),
        row("best", "cora", [83.0, 85.0], seed=0),
        row("auto", "cora", [82.0, 83.0], width=7),  # what auto picks hangs on the graph
        row("best", "photo", [93.0, 93.0], width=7),  # the preset was changed since
        row("auto", "photo", [92.0, 92.0]),
    ]
    (tmp_path / "presets.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def cells(table: Table) -> dict[str, dict[str, str]]:
    """By the first word of a row (the first three for a difference) and the dataset."""
    return {
        line[0].split(":")[0].replace("`", ""): dict(zip(table.header[1:], line[1:], strict=True))
        for line in table.rows
    }


def test_what_was_run_is_shown_and_paired_by_seed(folder: Path) -> None:
    shown = cells(preset_table(Found([]), folder, OLD))
    assert shown["best"]["Cora"].startswith("84.50 ± 1.29, n = 4 (85.5, -1.00")
    # seed 0 alone is in both, and it is the second line of the file: 82 - 83 and 83 - 85
    assert shown["auto minus best"]["Cora"] == "-1.50 (1 seed)"


def test_settings_that_a_preset_no_longer_has_are_not_shown(folder: Path) -> None:
    shown = cells(preset_table(Found([]), folder, OLD))
    assert shown["best"]["Photo"].startswith("—")
    assert shown["auto minus best"]["Photo"] == "—"
    assert shown["auto"]["Photo"] == "92.00 ± 0.00, n = 2"


def test_the_fast_road_of_a_parity_counts_as_best(folder: Path) -> None:
    lines = [parity("photo", [[94.0, 95.0], [96.0, 97.0]]), parity("cora", [[1.0]], epochs=1)]
    without_settings = {"dataset": "photo", "preset": "best", "per_split": {"fast": [[1.0]]}}
    lines.append(json.dumps(without_settings))
    (folder / "parity.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shown = cells(preset_table(Found([]), folder, OLD))
    assert shown["best"]["Photo"].startswith("95.50 ±")
    assert shown["best"]["Cora"].startswith("84.50 ±")


def test_lines_of_another_protocol_are_not_shown(folder: Path) -> None:
    new = json.loads(row("best", "cora", [80.0, 82.0])) | {"protocol": "holdout"}
    with (folder / "presets.jsonl").open("a") as file:
        file.write(json.dumps(new) + "\n")
    assert cells(preset_table(Found([]), folder, OLD))["best"]["Cora"].startswith("84.50")
    assert cells(preset_table(Found([]), folder, Scope()))["best"]["Cora"].startswith("81.00")


def test_without_records_there_are_dashes(tmp_path: Path) -> None:
    table = preset_table(Found([]), tmp_path, OLD)
    assert {cell[:1] for line in table.rows for cell in line[1:]} == {"—"}
