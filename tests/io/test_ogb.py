"""Folders of the Open Graph Benchmark, made small: text and arrays, with the public split."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import ask

from muxgcl.errors import UserError
from muxgcl.io.load import load
from muxgcl.io.ogb import is_ogb_folder

NODES = 30
RNG = np.random.default_rng(0)
EDGES = np.unique(RNG.integers(0, NODES, (2, 90)), axis=1)
EDGES = EDGES[:, EDGES[0] < EDGES[1]]  # each once
FEATURES = RNG.normal(size=(NODES, 4)).astype(np.float32)
LABELS = np.arange(NODES) % 3
SPLIT = {"train": np.arange(0, 12), "valid": np.arange(12, 18), "test": np.arange(18, 30)}


def write(path: Path, table: Any, form: str = "%d") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        np.savetxt(file, np.asarray(table), delimiter=",", fmt=form)


def as_text(folder: Path, **changes: Any) -> Path:
    """As ogbn-arxiv and ogbn-products are unpacked."""
    raw = folder / "raw"
    write(raw / "edge.csv.gz", changes.get("edges", EDGES.T))
    write(raw / "node-feat.csv.gz", changes.get("features", FEATURES), "%.9g")
    write(raw / "node-label.csv.gz", changes.get("labels", LABELS), changes.get("form", "%d"))
    write(raw / "num-node-list.csv.gz", [changes.get("nodes", NODES)])
    write(raw / "num-edge-list.csv.gz", [EDGES.shape[1]])
    for part, nodes in SPLIT.items():
        write(folder / "split" / "time" / f"{part}.csv.gz", changes.get(part, nodes))
    return folder


def as_arrays(folder: Path) -> Path:
    """As ogbn-papers100M is: most nodes have no class."""
    as_text(folder)
    raw = folder / "raw"
    for file in raw.iterdir():
        file.unlink()
    labels = np.where(LABELS[:, None] == 2, np.nan, LABELS[:, None]).astype(np.float32)
    np.savez(raw / "node-label.npz", node_label=labels)
    np.savez_compressed(
        raw / "data.npz",
        edge_index=EDGES,
        node_feat=FEATURES.astype(np.float16),
        num_nodes_list=np.array([NODES]),
        num_edges_list=np.array([EDGES.shape[1]]),
        node_year=np.full((NODES, 1), 2015),
    )
    return folder


def pairs(edge_index: Any) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in edge_index.T}


def test_a_folder_of_text_is_the_graph_that_was_written(tmp_path: Path) -> None:
    folder = as_text(tmp_path / "ogbn_arxiv")
    assert is_ogb_folder(folder)
    found = load(folder, scale=False)
    assert pairs(found.tensors.edge_index) == pairs(np.hstack([EDGES, EDGES[::-1]]))
    np.testing.assert_allclose(found.tensors.x.numpy(), FEATURES, rtol=1e-6)
    names = np.array(found.label_names)
    np.testing.assert_array_equal(names[found.tensors.y.numpy()], LABELS.astype(str))
    for part, mask in (("train", "train_mask"), ("valid", "val_mask"), ("test", "test_mask")):
        np.testing.assert_array_equal(np.flatnonzero(found.tensors[mask].numpy()), SPLIT[part])


def test_a_folder_of_arrays_has_nodes_without_a_class(tmp_path: Path) -> None:
    found = load(as_arrays(tmp_path / "ogbn_papers100M"), scale=False)
    assert pairs(found.tensors.edge_index) == pairs(np.hstack([EDGES, EDGES[::-1]]))
    np.testing.assert_array_equal(found.tensors.x.numpy(), FEATURES.astype(np.float16))
    np.testing.assert_array_equal(found.tensors.y.numpy() < 0, LABELS == 2)
    assert int(found.tensors.train_mask.sum()) == 12


def test_a_run_takes_such_a_folder_and_its_public_split(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = as_text(tmp_path / "ogbn_arxiv"), tmp_path / "run"
    words = ["run", str(folder), "--method", "sgc", "--protocol", "public", "--out", str(out)]
    status, _, err = ask(capsys, *words, "--no-report", "--no-controls", "--quiet")
    assert status == 0, err
    assert '"public"' in (out / "scores.json").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": 31}, "expected 31 nodes, got 30 rows of features and 30 labels"),
        ({"labels": np.ones((NODES, 2))}, "expected one class a node, got 2"),
        ({"edges": np.ones((5, 3))}, "expected two nodes an edge"),
        ({"train": [0, 30]}, "expected nodes 0 to 29, got 30"),
        ({"train": [0, -5]}, "expected nodes 0 to 29, got -5"),
        ({"edges": [[0, 77]]}, "77"),
        ({"labels": LABELS + 0.5, "form": "%g"}, "label 0: expected the number of a class"),
        ({"labels": LABELS + 1e30, "form": "%g"}, "label 0: expected the number of a class"),
        ({"labels": LABELS - 7.0}, "label 0: expected the number of a class, or nan, got -7"),
    ],
)
def test_what_does_not_fit_together_is_one_line(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        load(as_text(tmp_path / "graph", **changes))


def test_damaged_files_are_one_line(tmp_path: Path) -> None:
    folder = as_text(tmp_path / "graph")
    file = folder / "raw" / "node-feat.csv.gz"
    whole = file.read_bytes()
    for content in (whole[: len(whole) // 2], b"not gzip at all", gzip.compress(b"1,2\nx,y\n")):
        file.write_bytes(content)
        with pytest.raises(UserError, match=r"node-feat.csv.gz cannot be read as") as told:
            load(folder)
        assert "\n" not in str(told.value)
    file.write_bytes(gzip.compress(b"1" * (1 << 21)))
    with pytest.raises(UserError, match="a line of more than"):
        load(folder)


@pytest.mark.parametrize("name", ["node_feat", "node_label"])
def test_a_single_number_instead_of_a_table_is_one_line(tmp_path: Path, name: str) -> None:
    folder = as_arrays(tmp_path / "graph")
    file = folder / "raw" / ("node-label.npz" if name == "node_label" else "data.npz")
    with np.load(file) as arrays:
        changed = dict(arrays) | {name: np.float32(3)}
    np.savez(file, **changed)
    with pytest.raises(UserError, match="expected a table of features and a list of labels"):
        load(folder)


def test_empty_lines_are_nothing(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    folder = as_text(tmp_path / "graph")
    file = folder / "raw" / "edge.csv.gz"
    want = load(folder).tensors.edge_index
    file.write_bytes(gzip.compress(b"\n\n" + gzip.decompress(file.read_bytes()) + b"\n \n"))
    assert load(folder).tensors.edge_index.equal(want)
    file.write_bytes(gzip.compress(b"\n\n"))
    with pytest.raises(UserError, match="expected two nodes an edge"):
        load(folder)
    assert not recwarn.list


@pytest.mark.parametrize("line", [b"0," * 250_000 + b"0\n", b"0,0\n"])
def test_a_file_that_unfolds_to_more_than_the_limit_is_refused_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    parsed = []
    read = np.loadtxt
    monkeypatch.setattr(np, "loadtxt", lambda *a, **k: parsed.append(read(*a, **k)) or parsed[-1])
    folder = as_text(tmp_path / "graph")
    file = folder / "raw" / "edge.csv.gz"
    file.write_bytes(gzip.compress(line * (40_000_000 // len(line)), 1))
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "50000000")
    with pytest.raises(UserError, match=r"edge\.csv\.gz would take .* of memory"):
        load(folder)
    assert sum(block.nbytes for block in parsed) < 50_000_000


def test_a_public_split_with_an_empty_part_is_told_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = as_text(tmp_path / "graph", valid=[])
    words = ["run", str(folder), "--protocol", "public", "--out", str(tmp_path / "run")]
    status, _, err = ask(capsys, *words, "--quiet")
    assert (status, err.count("\n")) == (2, 1)
    assert "one is empty" in err
    assert not (tmp_path / "run").exists()
