"""Runs side by side: what is compared with what, and under which name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cases import bare_record, figure

from muxgcl.report import RunRecord, compare
from muxgcl.report.paired import pair_rows, scores_of_runs


def run(folder: str, accuracies: list[float], raw: float = 70.0, **changed: Any) -> RunRecord:
    """A run on a graph called `edges`, with one control."""

    def part(values: list[float]) -> dict[str, Any]:
        found = {"accuracy": values, "split_seed": 0}
        return {"accuracy": figure(float(np.mean(values)), n=len(values)), "per_split": found}

    parts: dict[str, Any] = {
        "title": folder,
        "dataset": "edges",
        "folder": folder,
        "fingerprint": "one",
        "labels": np.array([0, 1, 0, 1]),
        "scores": {
            "holdout": part(accuracies),
            "controls": {"raw": {"holdout": part([raw] * len(accuracies))}},
        },
    }
    return bare_record(**parts | changed)


def controls(*records: RunRecord) -> dict[str, float]:
    rows = scores_of_runs(records, [record.title for record in records])
    return {name: score.mean for name, score in rows if score.is_control}


def test_a_control_that_runs_share_is_there_once() -> None:
    assert controls(run("a", [80.0, 81.0]), run("b", [82.0, 81.0])) == {"edges: raw features": 70.0}


@pytest.mark.parametrize(
    "changed",
    [{"fingerprint": "two"}, {"labels": np.array([0, 0, 1, 1])}, {"label_names": ["x", "y"]}],
)
def test_controls_of_other_graphs_or_labels_are_not_merged(changed: dict[str, Any]) -> None:
    one, two = run("a", [80.0, 81.0]), run("b", [82.0, 81.0], raw=60.0, **changed)
    assert controls(one, two) == {
        "edges (a): raw features": 70.0,
        "edges (b): raw features": 60.0,
    }
    assert pair_rows([one, two], ["a", "b"]) == []


def test_controls_on_other_splits_are_not_merged() -> None:
    found = controls(run("a", [80.0, 81.0]), run("b", [82.0], raw=60.0))
    assert found == {"edges (a): raw features": 70.0, "edges (b): raw features": 60.0}


def test_runs_are_paired_on_the_splits_that_both_have() -> None:
    rows = pair_rows([run("a", [80.0, 81.0]), run("b", [82.0, 82.0, 10.0])], ["a", "b"])
    assert rows == [["b", "a", "+1.50 ± 0.71 (holdout, n = 2)", "2 of 2"]]


def test_verdicts_stand_on_the_page_where_no_two_runs_can_be_paired(tmp_path: Path) -> None:
    one, two = run("a", [80.0, 81.0]), run("b", [60.0, 61.0], fingerprint="two")
    compare([one, two], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "training paid: none is 10.50 points" in page
    assert "training did not pay: none is 9.50 points" in page
