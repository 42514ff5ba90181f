"""A run folder, a study or a record that was damaged or edited is one line: file and field."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from muxgcl.errors import UserError
from muxgcl.graph import Graph, fingerprint
from muxgcl.io import planted
from muxgcl.io.schema import read_json, read_lines, table_of, text
from muxgcl.report import read_run
from muxgcl.reproduce.records import RecordStore, fault_of
from muxgcl.runs.fit import fit
from muxgcl.runs.folder import CHECKSUM, Run
from muxgcl.runs.plan import Plan

SMALL = {"width": 8, "projection": 8, "epochs": 6}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.from_data(planted(nodes=60, seed=1))


def plan(**settings: Any) -> Plan:
    return Plan.make("grace", "quick", overrides={**SMALL, **settings}, device="cpu")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A folder with every file that a run may hold."""
    run = Run(tmp_path / "run")
    tables = plan().tables()
    run.write_config({**tables, "data": {"nodes": 3, "features": 2, "notes": ["a"]}})
    run.log([{"epoch": e, "loss": 1.0, "terms": {"a": 1.0}, "ms": 2.0} for e in (1, 2, 3)])
    run.log_observed(1, [80.0], split_seed=0)
    run.save_embeddings(np.arange(3), torch.randn(3, 2))
    run.save_scores({"holdout": {"accuracy": {"mean": 80.0, "std": 1.0, "n": 3}}})
    np.savez(run.nodes_file, label=np.array([0, 1, -1]), label_names=np.array(["x", "y"]))
    counts = {"edges": [-1.0, 0.0, 1.0], "positive": [1, 2], "negative": [2, 1], "auc": 0.5}
    found = {"similarities": {"u1-v1": counts}, "confusion": [[1, 0], [0, 1]], "peak_mib": 5.0}
    run.diagnostics_file.write_text(json.dumps(found))
    run.encoding_file.write_text(json.dumps({"numbers": {"a": [0.0, 1.0]}, "categories": {}}))
    return run


def read_all(run: Run) -> None:
    """Everything that any command reads of a run folder."""
    Plan.from_tables(run.config())
    run.observed(9, 0)
    run.encoding()
    read_run(run.path)


def test_a_whole_run_folder_is_read(run: Run) -> None:
    read_all(run)


BAD_JSON = [
    ("scores.json", "[]", "scores.json must be a table"),
    ("scores.json", '{"holdout": {"accuracy": {"mean": "x"}}}', "holdout.accuracy.mean must be a"),
    ("scores.json", '{"a": {"b": {"mean": NaN}}}', "a.b.mean must be a finite number"),
    ("scores.json", '{"a": {"b": {"mean": 1, "n": 0}}}', "a.b.n must be a whole number from 1"),
    ("scores.json", '{"a": {"b": {"maen": 1, "std": 2}}}', "a.b.mean is missing"),
    ("scores.json", '{"controls": 7}', "controls must be a table"),
    ("scores.json", '{"a": "\\ud800"}', "a must be Unicode text"),
    ("scores.json", '{"a": ' + "[" * 9999 + "]" * 9999 + "}", "scores.json"),
    ("scores.json", '{"a": 1' + "0" * 5000 + "}", "scores.json"),
    ("diagnostics.json", '{"similarities": []}', "similarities must be a table"),
    ("diagnostics.json", '{"confusion": [[1, 2]]}', r"confusion\[0\] must be a row of 1"),
    ("diagnostics.json", '{"confusion": 3}', "confusion must be a list"),
    ("diagnostics.json", '{"peak_mib": "much"}', "peak_mib must be a finite number"),
    ("diagnostics.json", '{"affinity_weights": {"0": {"edges": [0, 1]}}}', "0.counts is missing"),
    (
        "diagnostics.json",
        '{"affinity_weights": {"0": {"edges": [0, 1], "counts": [1, 2]}}}',
        "0.counts must be 1 counts",
    ),
    (
        "diagnostics.json",
        '{"affinity_weights": {"0": {"edges": [0, 0], "counts": [1]}}}',
        "edges must be ascending",
    ),
    ("encoding.json", '{"numbers": {}}', "categories is missing"),
    ("encoding.json", '{"numbers": {"a": [1]}, "categories": {}}', "numbers.a must be a list of 2"),
    ("encoding.json", '{"numbers": {"a": [1, 0]}, "categories": {}}', "scale other than 0"),
    ("encoding.json", '{"numbers": {}, "categories": {"a": [1]}}', r"categories.a\[0\] must be"),
    ("encoding.json", "not JSON", "encoding.json is damaged"),
    ("config.toml", "[run]\nmethod = 3\n", "run.method must be text"),
    ("config.toml", "[run]\nseed = -1\n", "run.seed must be a whole number"),
    ("config.toml", "run = 3\n", "run must be a table"),
    ("config.toml", "[run]\nseed = 1\n", "run.method is missing"),
    ("config.toml", "[run]\n[data]\nnotes = 'a'\n", "data.notes must be a list"),
    ("config.toml", "[run]\n[data]\nnodes = -4\n", "data.nodes must be a whole number"),
    ("config.toml", "[run]\n[source]\ngraph = 4\n", "source.graph must be text"),
    ("config.toml", "[run]\n[train]\nlr = nan\n", "train.lr must be a finite number"),
    ("config.toml", "[run]\nx = 1979-05-27\n", "run.x must be a finite number"),
    ("config.toml", "\x00\x01", "config.toml is damaged"),
    ("metrics.jsonl", '{"epoch": 1, "loss": 1.0}\n3\n', "line 2 must be a table"),
    ("metrics.jsonl", '{"epoch": 1}\n', "line 1: loss is missing"),
    ("metrics.jsonl", '{"epoch": 0, "loss": 1.0}\n', "epoch must be a whole number"),
    ("metrics.jsonl", '{"epoch": 1, "loss": NaN}\n', "loss must be a finite number"),
    ("metrics.jsonl", '{"epoch": 1, "loss": 1, "ms": "x"}\n', "ms must be a finite number"),
    ("metrics.jsonl", '{"epoch": 2, "loss": 1}\n{"epoch": 2, "loss": 1}\n', "epoch must be more"),
    ("metrics.jsonl", '{"epoch": 1, "loss": 1}\n\n{"epoch": 2, "loss": 1}\n', "line 2 is damaged"),
    ("observed.jsonl", '{"epoch": 1, "split_seed": 0}\n', "accuracy is missing"),
    ("observed.jsonl", '{"epoch": 1, "split_seed": 0, "accuracy": [1e9]}\n', r"accuracy\[0\] must"),
]


@pytest.mark.parametrize(("name", "content", "words"), BAD_JSON)
def test_a_text_file_of_another_shape_is_named_with_its_field(
    run: Run, name: str, content: str, words: str
) -> None:
    (run.path / name).write_text(content)
    with pytest.raises(UserError, match=words) as caught:
        read_all(run)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("line", ["train = 3", "settings = {}", "choices = ['a']"])
def test_keys_of_the_table_run_that_are_no_settings_of_a_run_are_passed_over(
    run: Run, line: str
) -> None:
    before = Plan.from_tables(run.config())
    text = run.config_file.read_text()
    run.config_file.write_text(text.replace("[run]\n", f"[run]\n{line}\n"))
    assert Plan.from_tables(run.config()) == before


BAD_ARRAYS: list[tuple[str, dict[str, Any], str]] = [
    ("embeddings.npz", {"id": np.arange(3)}, "no array 'embedding'"),
    ("embeddings.npz", {"id": np.arange(2), "embedding": np.ones((3, 2))}, "2 ids, but 3"),
    ("embeddings.npz", {"id": np.arange(3), "embedding": np.ones(3)}, "embedding must be numbers"),
    ("embeddings.npz", {"id": np.arange(3.0), "embedding": np.ones((3, 2))}, "id must be a list"),
    ("embeddings.npz", {"id": np.arange(3), "embedding": np.full((3, 2), np.nan)}, "finite"),
    (
        "embeddings.npz",
        {"id": np.array([0xD800, 1, 2], "<u4").view("<U1"), "embedding": np.ones((3, 2))},
        "not Unicode",
    ),
    (
        "embeddings.npz",
        {"id": np.array([0x7FFFFFFF, 1, 2], "<u4").view("<U1"), "embedding": np.ones((3, 2))},
        "not Unicode",
    ),
    ("nodes.npz", {"label": np.array([0, 10**15, 1])}, "label must be from -1 to 2"),
    ("nodes.npz", {"label": np.array([0, -7, 1])}, "label must be from -1 to 2"),
    ("nodes.npz", {"label": np.array([0.5, 1, 1])}, "label must be a list"),
    ("nodes.npz", {"label": np.zeros(3, int), "column:a": np.ones(2)}, "column:a must be 3 values"),
    ("nodes.npz", {"edge_index": np.ones((3, 2), int)}, "edge_index must be whole numbers"),
    ("nodes.npz", {"column:a": np.ones((3, 2))}, "column:a must be a list"),
]


@pytest.mark.parametrize(("name", "arrays", "words"), BAD_ARRAYS)
def test_arrays_of_another_shape_are_named(
    run: Run, name: str, arrays: dict[str, Any], words: str
) -> None:
    np.savez(run.path / name, **arrays)
    with pytest.raises(UserError, match=words) as caught:
        read_all(run)
    assert name in str(caught.value)


def test_a_zip_bomb_in_a_runs_own_file_is_refused_before_it_unfolds(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "20000000")
    for file in (run.nodes_file, run.embeddings_file):
        np.savez_compressed(file, id=np.arange(3), embedding=np.zeros((3, 10**6)))
        assert file.stat().st_size < 100_000
        with pytest.raises(UserError, match=r"would take 24.0 MB of memory"):
            read_all(run)
        file.unlink()


def test_a_file_that_is_a_folder_is_named(run: Run) -> None:
    for file in (run.scores_file, run.nodes_file, run.embeddings_file):
        file.unlink()
        file.mkdir()
        with pytest.raises(UserError, match=f"{file.name} is not a regular file"):
            read_all(run)
        file.rmdir()


# the log of epochs


def test_a_bad_line_in_the_middle_of_the_metrics_is_named_and_nothing_is_dropped(
    graph: Graph, tmp_path: Path
) -> None:
    run = Run(tmp_path)
    fit(plan(), graph, run=run)
    lines = run.metrics_file.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:20] + b"\n"
    run.metrics_file.write_bytes(b"".join(lines))
    with pytest.raises(UserError, match="line 3 is damaged: it is no JSON"):
        fit(plan(), graph, run=run, resume=True)
    assert run.metrics_file.read_bytes() == b"".join(lines)


def test_a_line_that_is_missing_from_the_metrics_is_named(graph: Graph, tmp_path: Path) -> None:
    run = Run(tmp_path)
    fit(plan(), graph, run=run)
    lines = run.metrics_file.read_bytes().splitlines(keepends=True)
    for kept, epoch in ((lines[:2], 3), (lines[:1] + lines[2:], 2), ([], 1)):
        run.metrics_file.write_bytes(b"".join(kept))
        with pytest.raises(UserError, match=f"no line for epoch {epoch}, but the checkpoint is"):
            fit(plan(), graph, run=run, resume=True)
        assert run.metrics_file.read_bytes() == b"".join(kept)


# the checkpoint


def test_every_flipped_bit_of_a_checkpoint_is_found(run: Run) -> None:
    run.save_checkpoint({"method/w": torch.arange(4.0), "random/cpu": torch.zeros(3)}, epoch=2)
    content = run.checkpoint_file.read_bytes()
    want = run.checkpoint()
    spaces = 0
    for at in range(len(content)):
        for bit in (0, 5):
            changed = bytearray(content)
            changed[at] ^= 1 << bit
            run.checkpoint_file.write_bytes(changed)
            try:
                got = run.checkpoint()
            except UserError:
                continue
            spaces += 1  # between the header's words: it says the same
            assert got[1] == want[1]
            assert got[0].keys() == want[0].keys()
            assert all(torch.equal(got[0][name], want[0][name]) for name in want[0])
    assert spaces < 0.02 * 2 * len(content)


def forged(run: Run, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Edit a checkpoint as someone would who also mends its checksum."""
    tensors, facts = run.checkpoint()
    change(tensors, facts)
    run.save_checkpoint(tensors, **facts)


FORGERIES: list[tuple[Callable[[dict[str, Any], dict[str, Any]], Any], str]] = [
    (lambda t, f: f.update(epoch=-5), "epoch must be a whole number"),
    (lambda t, f: f.update(epoch=1_000_000), "epoch must be at most 6, got 1000000"),
    (lambda t, f: f.update(epoch="3"), "epoch must be a whole number"),
    (lambda t, f: f.pop("epoch"), "epoch is missing"),
    (lambda t, f: f.update(method="dgi"), "is of dgi, not grace"),
    (lambda t, f: f.update(seed=7), "is of seed 7, expected that of seed 0"),
    (lambda t, f: f.update(seed="0"), "seed must be a whole number"),
    (lambda t, f: t.pop("random/cpu"), "random/cpu must be torch.uint8 .* got nothing"),
    (lambda t, f: t.update({"random/cpu": torch.zeros(5056, dtype=torch.uint8)}), "damaged"),
    (lambda t, f: t.update({"random/cpu": torch.zeros(3, dtype=torch.uint8)}), "random/cpu must"),
    (lambda t, f: t.update({_moment(t): torch.zeros(2, 2)}), r"must be torch.float32 .* \[2, 2\]"),
    (lambda t, f: t.pop(_moment(t)), "got nothing"),
    (lambda t, f: t.update({_moment(t): t[_moment(t)].double()}), "got torch.float64"),
    (lambda t, f: t[_moment(t)].fill_(torch.nan), "must be finite"),
    (lambda t, f: t.pop(next(k for k in t if k.startswith("method/"))), "got nothing"),
]


def _moment(tensors: dict[str, Any]) -> str:
    return next(k for k in tensors if k.startswith("optimizer/") and tensors[k].ndim == 2)


@pytest.mark.parametrize(("change", "words"), FORGERIES)
def test_a_checkpoint_that_does_not_fit_is_named(
    graph: Graph, tmp_path: Path, change: Callable[..., Any], words: str
) -> None:
    run = Run(tmp_path)
    fit(plan(), graph, run=run)
    forged(run, change)
    with pytest.raises(UserError, match=words) as caught:
        fit(plan(), graph, run=run, resume=True)
    assert "\n" not in str(caught.value)
    assert "checkpoint.safetensors" in str(caught.value)


def test_a_checkpoint_without_a_checksum_is_refused(run: Run) -> None:
    from safetensors.torch import save_file

    save_file({"method/w": torch.zeros(3)}, run.checkpoint_file, {"epoch": "1"})
    with pytest.raises(UserError, match="it has no checksum"):
        run.checkpoint()
    assert CHECKSUM not in {"epoch", "method"}
    assert fingerprint({"a": torch.zeros(())}, {}) != fingerprint({"a": torch.ones(())}, {})


# records


def test_a_record_with_nan_or_of_another_shape_is_a_fault_not_a_traceback(tmp_path: Path) -> None:
    sound = json.loads(
        (Path(__file__).parents[2] / "records" / "table1.jsonl").read_text().splitlines()[0]
    )
    assert fault_of(sound, "table1") == ""
    for name, value in (
        ("seconds", float("nan")),
        ("seed", True),
        ("splits", "20"),
        ("result", {"accuracy": 7}),
        ("result", {"accuracy": ["x"]}),
        ("versions", {"\ud800": "1"}),
    ):
        assert fault_of({**sound, name: value}, "table1")
    (tmp_path / "table1.jsonl").write_bytes(b"\xff\n" + b"[" * 99999 + b"\n3\n{}\n")
    faults = [line.fault for line in RecordStore(tmp_path).lines()]
    assert len(faults) == 4
    assert all(fault.startswith("malformed") for fault in faults)


def test_a_benchmarks_log_with_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "engine.jsonl").write_text('{"a": 1}\nnot JSON\n')
    with pytest.raises(UserError, match=r"engine.jsonl, line 2 is damaged"):
        read_lines(tmp_path / "engine.jsonl")


def test_a_reader_believes_no_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "1000")
    (tmp_path / "x.json").write_text(json.dumps({"a": "b" * 400}))
    with pytest.raises(UserError, match="would take"):
        read_json(tmp_path / "x.json", table_of(text))


BAD_GRAPHS = [
    ({"edge_index": torch.tensor([[0, 9], [9, 0]])}, "edge_index does not fit"),
    ({"edge_index": torch.tensor([[0.0], [1.0]])}, "edge_index does not fit"),
    ({"x": torch.ones(2, 2)}, "x does not fit a graph of 3 nodes"),
    ({"x": torch.full((3, 2), float("nan"))}, "x does not fit"),
    ({"edge_weight": torch.ones(7)}, "edge_weight does not fit"),
    ({"train_mask": torch.ones(3)}, "train_mask does not fit"),
    ({"strange": torch.ones(3)}, "strange does not fit"),
]


@pytest.mark.parametrize(("change", "words"), BAD_GRAPHS)
def test_a_kept_graph_of_another_shape_is_named_with_its_tensor(
    run: Run, change: dict[str, torch.Tensor], words: str
) -> None:
    good = {"x": torch.ones(3, 2), "edge_index": torch.tensor([[0, 1], [1, 0]])}
    run.save_graph(good, features=2)
    assert run.graph(3) is not None
    run.save_graph(good | change, features=2)
    with pytest.raises(UserError, match=words):
        run.graph(3)
    run.save_graph({"x": torch.ones(3, 2)}, features=2)
    with pytest.raises(UserError, match="edge_index is missing"):
        run.graph(3)
