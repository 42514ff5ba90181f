"""Scripts of benchmarks/ and tools/: each says how it is called, and still runs on a tiny case."""

import json
import sys
from argparse import Namespace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import muxgcl.io
from muxgcl.evaluate import development_splits
from muxgcl.evaluate.development import development_labels
from muxgcl.graph import Graph
from muxgcl.io import planted

ROOT = Path(__file__).parents[1]
SCRIPTS = [
    path.relative_to(ROOT)
    for folder in ("benchmarks", "tools")
    for path in sorted((ROOT / folder).glob("*.py"))
    if '__name__ == "__main__"' in path.read_text("utf-8")
]
SMALL = ["hidden=8", "width=8", "affinity=none"]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dataset is a graph of 60 nodes, on a CPU."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(muxgcl.io, "open_dataset", lambda name, root=None: planted(nodes=60))


def script(path: Path | str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = spec_from_file_location(f"script_{Path(path).stem}", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # its dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def call(module: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, words)])
    module.main()


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("path", SCRIPTS, ids=str)
def test_a_script_says_how_it_is_called(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = script(path, monkeypatch)
    assert f"python {path}" in (module.__doc__ or "")
    with pytest.raises(SystemExit) as ended:
        call(module, monkeypatch, "--help")
    assert ended.value.code == 0
    assert "usage: " in capsys.readouterr().out


TRAINED: dict[str, list[object]] = {
    "new_nodes": ["cora", "--seeds", 1, "--splits", 2, "--epochs", 1, "--preset", "quick"],
    "parity": ["cora", "--seeds", 1, "--splits", 2, "--epochs", 1],
    "width": ["cora", "--seeds", 1, "--splits", 2, "--epochs", 1, "--preset", "quick"],
    "scale": ["--accuracy", "cora", "--sizes", 16, "--epochs", 1, "--splits", 2, "--set", *SMALL],
}


@pytest.mark.parametrize("name", TRAINED)
def test_a_benchmark_that_trains_leaves_records(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = script(f"benchmarks/{name}.py", monkeypatch)
    if name == "width":
        monkeypatch.setattr(module, "WIDTHS", (4, 8))
    words = TRAINED[name]
    call(module, monkeypatch, *words, "--device", "cpu", "--record", tmp_path / "r.jsonl")
    rows = records(tmp_path / "r.jsonl")
    assert len(rows) == {"new_nodes": 3, "width": 3, "scale": 2}.get(name, 1)
    assert all(row["dataset"] == "cora" and row["commit"] for row in rows)


def test_a_search_judges_a_training_on_the_way_and_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = script("benchmarks/search.py", monkeypatch)
    graph = planted(nodes=60)
    y = development_labels(graph.y.numpy())
    splits = development_splits(graph.y.numpy(), 2, 0)
    job = {"method": "grace", "dataset": "cora", "preset": "quick", "device": "cpu"}
    job |= {"looks": 2, "readouts": [*module.READOUTS], "cache": str(tmp_path)}
    how = {"epochs": 4, "width": 8, "projection": 8, "projection_out": 8}
    found = list(module.train(job, how, 400, Graph.from_data(graph), y, splits))
    assert [settings["epochs"] for settings, _ in found] == [2, 4]
    for _, row in found:
        assert set(row["accuracy"]) == set(module.READOUTS)
        assert row["label_free"]["rank"] > 0


def test_a_candidate_is_judged_at_every_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = script("benchmarks/candidates.py", monkeypatch)
    changes = {"epochs": 2, "hidden": 8, "width": 8, "projection": 8, "affinity": "none"}
    todo = module.job("cora", "default", changes, 16, 400, (1, 2))
    how = {"design": "general", "splits": 2, "device": "cpu", "data_root": None}
    rows = list(module.train(todo, Namespace(**how, cache=tmp_path)))
    assert [row["epochs"] for row in rows] == [1, 2]
    assert len({*map(module.name_of, module.general())}) == len([*module.general()])


def test_every_readout_is_a_finite_table_of_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    module = script("benchmarks/readouts.py", monkeypatch)
    graph = Graph.from_data(planted(nodes=60))
    f, walks = torch.randn(60, 8), torch.randn(60, 4)
    found = {name: table for name, table, _ in module.candidates(f, graph, walks, (1, 1, 1), 0.5)}
    assert len(found) > 20
    for name, table in found.items():
        assert len(table) == 60, name
        assert table.isfinite().all(), name


def test_time_and_memory_of_a_block_model_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = script("benchmarks/scale.py", monkeypatch)
    sizes = ["--nodes", 200, "--classes", 3, "--anchors", 32, "--epochs", 1, "--splits", 2]
    how = ["--sample", 150, "--set", *SMALL, "--device", "cpu", "--record", tmp_path / "r.jsonl"]
    call(module, monkeypatch, *sizes, *how)
    (row,) = records(tmp_path / "r.jsonl")
    assert (row["nodes"], row["anchors"]) == (200, 32)


def test_coverage_is_recorded_for_every_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = script("benchmarks/coverage.py", monkeypatch)
    where = ["--records", ROOT / "records", "--out", tmp_path / "r.jsonl"]
    call(module, monkeypatch, "--count", 2, "--seeds", 1, 5, *where)
    rows = records(tmp_path / "r.jsonl")
    assert {row["pattern"] for row in rows} >= set(module.PLAIN)
    of_seeds = {}  # MUX-GCL minus GRACE on Cora, on the report half alone
    for method in ("mux-gcl", "grace"):
        found = {
            row["seed"]: row["result"]["accuracy"]
            for row in records(ROOT / "records" / "table1.jsonl")
            if (row["method"], row["dataset"], row["protocol"]) == (method, "cora", "holdout")
            and row["schema"] == 2
        }
        of_seeds[method] = [found[seed] for seed in sorted(found)]
    gap = np.array(of_seeds["mux-gcl"]) - np.array(of_seeds["grace"])
    shown = next(row for row in rows if row["pattern"] == "mux-gcl minus grace on cora")
    assert list(shown["variances"].values()) == pytest.approx(module.components(gap))
    assert {(row["seeds"], row["coverage"] is None) for row in rows if row["interval"] == "t"} == {
        (1, True),
        (5, False),
    }
