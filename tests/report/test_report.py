"""What a report is made of beside the map: scores, colours, run folders read back."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from report_cases import figure, run_record

from muxgcl.errors import UserError
from muxgcl.report import read_run
from muxgcl.report.palette import CATEGORIES
from muxgcl.report.scores import flatten
from muxgcl.runs.folder import Run

# scores and colours ----------------------------------------------------------------------------


def test_scores_of_every_shape_are_found() -> None:
    scores = {
        "holdout": {"accuracy": figure(84.25), "per_split": {"accuracy": [84.0]}},
        "paper": {
            "accuracy": figure(86.0, n=3),
            "optimistic": True,
            "best_epoch": 299,
            "unselected": figure(84.9, n=300),
        },
        "link": {"auc": 0.93},
        "controls": {"raw": {"accuracy": figure(70.5)}, "mine": {"link": {"auc": 0.5}}},
    }
    found = [(s.who, s.protocol, s.measure, s.mean, s.optimistic) for s in flatten(scores)]
    assert found == [
        ("", "holdout", "accuracy", 84.25, False),
        ("", "paper", "accuracy", 86.0, True),
        ("", "paper", "unselected", 84.9, False),
        ("", "link", "auc", 0.93, False),
        ("raw features", "holdout", "accuracy", 70.5, False),
        ("mine", "link", "auc", 0.5, False),
    ]


def test_a_score_says_its_spread_only_where_it_was_repeated() -> None:
    once, often = flatten({"link": {"auc": 0.93}, "holdout": {"accuracy": figure(84.256, 0.914)}})
    assert (str(once), str(often)) == ("0.930", "84.26 ± 0.91")


def test_the_measure_says_how_many_digits_a_score_has() -> None:
    scores = {"accuracy": figure(0.8, 0.1), "macro_f1": figure(0.835, 0.106), "own": figure(0.5)}
    found = flatten({"holdout": scores, "clustering": {"nmi": figure(0.5, 0.01)}})
    assert [str(score) for score in found] == [
        "0.80 ± 0.10",
        "0.83 ± 0.11",
        "0.500 ± 0.500",
        "0.500 ± 0.010",
    ]


def lab(colour: str, eye: list[list[float]]) -> np.ndarray:
    """CIELAB of what an eye sees; the matrix acts on linear RGB."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = to_xyz @ np.clip(np.array(eye) @ linear, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


EYES = {  # Machado, Oliveira and Fernandes 2009, severity 1
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


@pytest.mark.parametrize("eye", EYES)
def test_no_two_colours_look_alike_to_any_eye(eye: str) -> None:
    seen = [lab(colour, EYES[eye]) for colour in CATEGORIES]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 19  # 2 is just visible


# run folders -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = Run(tmp_path / "run")
    tables: dict[str, dict[str, Any]] = {
        "run": {"dataset": "cora", "method": "grace", "seed": 3, "command": "muxgcl run cora"},
        "data": {"nodes": 4, "edges": 6, "features": 2, "fingerprint": "ab", "notes": ["a rule"]},
        "train": {"epochs": 2},
        "method": {"width": 8},
        "versions": {"torch": "2.13.0"},
    }
    run.write_config(tables)
    return run.path


def test_a_run_folder_that_was_only_begun_is_read(folder: Path) -> None:
    record = read_run(folder)
    assert record.title == "grace on cora"
    assert record.embedding is None
    assert record.data_summary == {"nodes": 4, "edges": 6, "features": 2}
    assert record.data_notes == ["a rule"]
    assert record.command == "muxgcl run cora"
    assert record.settings["run"] == {"dataset": "cora", "method": "grace", "seed": 3}
    assert (record.seconds, record.epoch_ms) == (None, None)


def test_a_finished_run_folder_is_read_whole(folder: Path) -> None:
    run = Run(folder)
    run.log([{"epoch": e, "loss": 1.0, "terms": {}, "ms": float(e)} for e in (1, 2, 6)])
    run.save_embeddings(np.array(["a", "b", "c", "d"]), torch.arange(8.0).reshape(4, 2))
    run.save_scores({"holdout": {"accuracy": figure(80.0)}})
    wanted = {"confusion": [[1, 0], [0, 1]], "peak_mib": 5.0, "affinity_weights": {"0": {}}}
    (folder / "diagnostics.json").write_text(json.dumps(wanted))
    np.savez(
        folder / "nodes.npz",
        label=np.array([0, 1, -1, 0]),
        label_names=np.array(["x", "y"]),
        edge_index=np.array([[0, 1], [1, 0]]),
        **{"column:year": np.array([1, 2, 3, 4]), "column:file": np.array(["a", "b", "", "a"])},
    )
    record = read_run(folder)
    assert record.ids.tolist() == ["a", "b", "c", "d"]
    assert record.labels.tolist() == [0, 1, -1, 0]
    assert record.label_names == ["x", "y"]
    assert list(record.columns) == ["year", "file"]
    assert record.edge_index.shape == (2, 2)
    assert record.confusion == [[1, 0], [0, 1]]
    assert (record.seconds, record.epoch_ms, record.peak_mib) == (0.009, 2.0, 5.0)
    assert flatten(record.scores)[0].mean == 80.0


@pytest.mark.parametrize("name", ["diagnostics.json", "nodes.npz"])
@pytest.mark.parametrize("content", [b"", b"[1, 2", b"PK\x03\x04 cut"])
def test_a_damaged_file_is_named_in_one_line(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=f"{name} is (damaged|empty)") as caught:
        read_run(folder)
    assert "\n" not in str(caught.value)


def test_nothing_is_unpickled(folder: Path) -> None:
    np.savez(folder / "nodes.npz", label=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UserError, match=r"nodes.npz, array .label. holds Python objects"):
        read_run(folder)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"ids": np.arange(3)}, "expected 240 ids, one a node, got 3"),
        ({"labels": np.zeros(9, int)}, "expected 240 labels, one a node, got 9"),
        ({"columns": {"year": np.arange(2)}}, "expected 240 year, one a node, got 2"),
        ({"edge_index": np.array([[0], [240]])}, "edges between nodes 0 and 239"),
        ({"edge_index": np.array([1, 2])}, r"edge_index of shape \[2, edges\]"),
        ({"embedding": np.full((240, 2), np.nan)}, "must be finite"),
        ({"embedding": np.zeros((0, 2))}, r"got shape \(0, 2\)"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_parts_that_do_not_fit_are_refused(part: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run_record(**part)
