"""MUX-GCL's presets side by side: the published settings, ours, and what `auto` picks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.datasets import DATASETS
from muxgcl.evaluate import summarise
from muxgcl.plan import Plan
from muxgcl.reproduce.job import settings_of
from muxgcl.reproduce.layout import Table
from muxgcl.reproduce.numbers import DASH
from muxgcl.reproduce.paper import TITLES
from muxgcl.reproduce.plan import FIVE, Scope
from muxgcl.reproduce.records import Found

Scores = list[float]  # one for each split


def preset_table(found: Found, folder: Path) -> Table:
    """Seed 0 on the splits of Table I, from the records of `benchmarks/presets.py`."""
    published = {name: _published(found, name) for name in FIVE}
    ours = {name: None for name in FIVE} | dict(_recorded(folder / "presets.jsonl", "best"))
    picked = {name: None for name in FIVE} | dict(_recorded(folder / "presets.jsonl", "auto"))
    ours |= {name: published[name] for name in FIVE if _same_settings(name)}
    alike = ", ".join(TITLES[name] for name in FIVE if _same_settings(name)) or "nowhere"
    return Table(
        "presets",
        "Presets of MUX-GCL: test accuracy in percent",
        ["preset", *(TITLES[name] for name in FIVE)],
        [
            ["paper", *(_cell(published[name]) for name in FIVE)],
            ["best", *(_cell(ours[name]) for name in FIVE)],
            ["auto", *(_cell(picked[name]) for name in FIVE)],
            ["auto minus best", *(_gap(picked[name], ours[name]) for name in FIVE)],
        ],
        [
            "One training seed, mean ± standard deviation over 20 splits, the same for all. Where "
            f"nothing better is known yet, `best` is `paper`: {alike}."
        ],
    )


def _published(found: Found, dataset: str) -> Scores | None:
    record = found.get(Scope().scored("mux-gcl", dataset)[0])
    return None if record is None else list(record["result"]["accuracy"])


def _recorded(file: Path, preset: str) -> Iterator[tuple[str, Scores]]:
    """Scores by dataset, of settings that the preset still has."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    for row in map(json.loads, lines):
        if (row["preset"], row["seed"]) == (preset, 0) and _current(row):
            yield row["dataset"], row["accuracy"]


def _current(row: dict[str, Any]) -> bool:
    """Whether a preset still says what was run; what `auto` picks hangs on the graph."""
    if row["preset"] == "auto":
        return row["dataset"] in DATASETS
    tables = settings_of(Plan.make(row["method"], row["preset"], row["dataset"]))
    return bool(tables["settings"] | tables["train"] == row["settings"])


def _same_settings(dataset: str) -> bool:
    one, two = (settings_of(Plan.make("mux-gcl", name, dataset)) for name in ("paper", "best"))
    return one == two


def _cell(scores: Scores | None) -> str:
    if scores is None:
        return DASH
    of_splits = summarise(scores)
    return f"{of_splits.mean:.2f} ± {of_splits.std:.2f}"


def _gap(one: Scores | None, two: Scores | None) -> str:
    if one is None or two is None:
        return DASH
    return f"{summarise(np.subtract(one, two)).mean:+.2f}"
