"""A generated graph of any size, and the folder of arrays that holds it."""

import errno
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cli_cases import ask

from muxgcl.errors import UserError
from muxgcl.io import sbm
from muxgcl.io.array_folder import Stream
from muxgcl.io.load import load
from muxgcl.io.sbm import Sbm, make_sbm

MODEL = Sbm(nodes=3000, classes=4, features=200, degree=10, homophily=0.6, words=8, signal=0.5)
FILES = ["edges.npy", "features_indices.npy", "features_indptr.npy", "graph.json", "labels.npy"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sbm") / "graph"
    make_sbm(folder, MODEL)
    return folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in made.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_the_same_seed_writes_the_same_bytes_and_another_seed_others(
    made: Path, tmp_path: Path
) -> None:
    make_sbm(tmp_path / "again", MODEL)
    make_sbm(tmp_path / "other", Sbm(nodes=3000, classes=4, features=200, degree=10, seed=1))
    assert sorted(file.name for file in made.iterdir()) == FILES
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (made / name).read_bytes()
    assert (tmp_path / "other" / "edges.npy").read_bytes() != (made / "edges.npy").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["again", "other"]


def test_blocks_join_without_a_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sbm, "BLOCK", 700)
    make_sbm(tmp_path / "blocks", MODEL)
    indptr = np.load(tmp_path / "blocks" / "features_indptr.npy")
    assert indptr.shape == (3001,)
    assert (np.diff(indptr) >= 1).all()
    assert indptr[-1] == len(np.load(tmp_path / "blocks" / "features_indices.npy"))
    edges = np.load(tmp_path / "blocks" / "edges.npy")
    assert 14_500 < len(edges) <= 15_000  # less those that would lead to the node itself


def test_edges_stay_in_their_class_as_often_as_asked(made: Path) -> None:
    edges, labels = np.load(made / "edges.npy"), np.load(made / "labels.npy")
    same = (labels[edges[:, 0]] == labels[edges[:, 1]]).mean()
    assert same == pytest.approx(0.6 + 0.4 / 4, abs=0.03)
    assert (edges[:, 0] != edges[:, 1]).all()
    assert len(edges) == pytest.approx(15_000, rel=0.02)


def test_some_nodes_have_many_more_neighbours_than_others(made: Path) -> None:
    degree = np.bincount(np.load(made / "edges.npy").ravel(), minlength=3000)
    assert degree.mean() == pytest.approx(10, rel=0.02)
    assert degree.max() > 8 * degree.mean()
    assert degree.var() > 3 * degree.mean()  # Poisson's, without weights, would be the mean


def test_a_class_has_words_of_its_own(made: Path) -> None:
    """Half of a node's words are of its class: words tell classes apart, none does it alone."""
    loaded = load(made)
    x, y = loaded.tensors.x.to_dense(), loaded.tensors.y
    often = torch.stack([x[y == c].mean(0) for c in range(4)])  # [classes, words]
    assert ((often.max(0).values - often.min(0).values) > 0.03).float().mean() > 0.3
    assert often.max() < 0.9
    assert int(x.sum(1).max()) <= 8
    assert set(x.unique().tolist()) == {0.0, 1.0}


def test_a_folder_of_arrays_loads_as_what_was_written(made: Path) -> None:
    loaded, edges = load(made), np.load(made / "edges.npy")
    assert loaded.ids.tolist() == list(range(3000))
    assert loaded.tensors.x.shape == (3000, 200)
    both = {(a, b) for a, b in edges.tolist()} | {(b, a) for a, b in edges.tolist()}
    assert {(a, b) for a, b in loaded.tensors.edge_index.T.tolist()} == both
    assert loaded.tensors.y.tolist() == np.load(made / "labels.npy").tolist()


def test_a_graph_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Stream, block: np.ndarray) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Stream, "write", full)
    with pytest.raises(UserError, match=r"cannot write .*: No space left on device"):
        make_sbm(tmp_path / "graph", MODEL)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_replaced(made: Path) -> None:
    with pytest.raises(UserError, match="is there already"):
        make_sbm(made, MODEL)


def cut(folder: Path) -> None:
    file = folder / "edges.npy"
    file.write_bytes(file.read_bytes()[:-1000])


def lose_a_label(folder: Path) -> None:
    np.save(folder / "labels.npy", np.zeros(2999, np.int32))


def turn_to_floats(folder: Path) -> None:
    np.save(folder / "edges.npy", np.zeros((5, 2)))


def bend(folder: Path) -> None:
    indptr = np.load(folder / "features_indptr.npy")
    indptr[5] = indptr[7] + 1
    np.save(folder / "features_indptr.npy", indptr)


def exceed(folder: Path) -> None:
    indices = np.load(folder / "features_indices.npy")
    indices[3] = 200
    np.save(folder / "features_indices.npy", indices)


def zip_up(folder: Path) -> None:
    with (folder / "labels.npy").open("wb") as file:
        np.savez(file, labels=np.zeros(3000, np.int32))


def inflate(folder: Path) -> None:
    facts = json.loads((folder / "graph.json").read_text())
    (folder / "graph.json").write_text(json.dumps(facts | {"features": 10**400}))


def forget(folder: Path) -> None:
    facts = json.loads((folder / "graph.json").read_text())
    del facts["nodes"]
    (folder / "graph.json").write_text(json.dumps(facts))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (cut, r"edges\.npy declares .* of data, but holds"),
        (zip_up, r"labels\.npy cannot be read as NumPy"),
        (lose_a_label, "expected 3,000 nodes, got 2,999 labels"),
        (turn_to_floats, "expected whole numbers in 2 dimensions, got float64"),
        (bend, r"features_indptr\.npy does not fit"),
        (exceed, "has columns beyond the 200 stated"),
        (forget, r"graph\.json: nodes is missing"),
        (inflate, r"graph\.json: features must be a whole number"),
    ],
)
def test_a_damaged_folder_is_named_in_one_line(copy: Path, damage, told: str) -> None:
    damage(copy)
    with pytest.raises(UserError, match=told):
        load(copy)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"classes": 0}, {"nodes": 3}, {"homophily": 1.5}, {"signal": math.nan}, {"seed": -1}),
        *({"degree": 0}, {"degree": math.inf}, {"degree": math.nan}, {"degree": 1e300}),
    ],
)
def test_a_model_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="got"):
        Sbm(**wrong)


def test_the_command_line_makes_a_graph_that_a_run_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "made"
    words = ["datasets", "make", "sbm", "--nodes", "60", "--classes", "3", "--out", str(folder)]
    status, out, _ = ask(capsys, *words, "--features", "50", "--json")
    assert status == 0
    assert json.loads(out)["nodes"] == 60
    loaded = load(folder)
    assert loaded.tensors.num_nodes == 60
    assert len(set(loaded.tensors.y.tolist())) == 3
    status, _, told = ask(capsys, *words)
    assert (status, told.count("\n")) == (2, 1)
    status, out, _ = ask(capsys, "datasets", "--json")
    assert {"cora", "pubmed"} <= {row["dataset"] for row in json.loads(out)["datasets"]}


@pytest.mark.parametrize("size", [{"nodes": 2**30}, {"features": 10**12}, {"words": 10**9}])
def test_a_model_that_does_not_fit_in_memory_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: dict[str, Any]
) -> None:
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "1000000000")
    with pytest.raises(UserError, match=r"the model would take .* of memory"):
        make_sbm(tmp_path / "graph", Sbm(**size))
    assert not list(tmp_path.iterdir())


def test_a_graph_that_the_disk_has_no_room_for_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    with pytest.raises(UserError, match=r"graph would take .* of disk; .* are free"):
        make_sbm(tmp_path / "a" / "graph", Sbm(nodes=10**7, degree=10.0**7))
    assert not list(tmp_path.iterdir())


def test_brackets_in_the_name_of_a_folder_are_no_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["datasets", "make", "sbm", "--nodes", "60", "--classes", "3"]
    status, _, told = ask(capsys, *words, "--out", str(tmp_path / "[" / "red]"))
    assert status == 0
    assert "[/red]: 60 nodes" in told
