"""Sizes are checked before memory is taken: what a few bytes declare is not believed."""

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from cli_cases import ask
from mistake_cases import npy_header
from pyarrow.feather import write_feather
from scipy.sparse import coo_array, save_npz

from muxgcl.errors import UserError
from muxgcl.evaluate import probe, random_split
from muxgcl.evaluate.probe import COUNTED
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.io.load import load
from muxgcl.runs.fit import make_ready
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import check_scoring
from muxgcl.runs.settings import preset
from muxgcl.tensors import Tensors

EDGES = torch.tensor([[0, 1], [1, 2]])


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "200000000")


def refused(source: object, words: str) -> None:
    """In one line, and within a tenth of the limit."""
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=words) as caught:
            load(source)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert peak < 20_000_000


def test_an_array_without_rows_and_a_billion_columns(tmp_path: Path) -> None:
    for shape in ((0, 10**12), (0, 10**6)):
        (tmp_path / "x.npy").write_bytes(npy_header(shape))
        refused((EDGES, tmp_path / "x.npy"), "has no rows")


@pytest.mark.parametrize("nodes", [5 * 10**6, 10**7, 10**8, 2**40])
def test_a_matrix_of_many_nodes_with_one_edge(nodes: int, tmp_path: Path) -> None:
    parts = {"row": np.array([0]), "col": np.array([1]), "data": np.ones(1)}
    np.savez(tmp_path / "g.npz", format=np.array("coo"), shape=np.array([nodes] * 2), **parts)
    assert (tmp_path / "g.npz").stat().st_size < 2000
    with pytest.raises(UserError, match="would take"):
        load(tmp_path / "g.npz")


def test_features_of_two_rows_and_a_hundred_million_columns(tmp_path: Path) -> None:
    empty = np.zeros(0)
    arrays = {
        "adj_data": np.ones(1), "adj_indices": np.array([1]), "adj_indptr": np.array([0, 1, 1]),
        "adj_shape": np.array([2, 2]), "attr_data": empty, "attr_indices": empty.astype(int),
        "attr_indptr": np.zeros(3, int), "attr_shape": np.array([2, 10**8]),
    }  # fmt: skip
    np.savez(tmp_path / "g.npz", **arrays)
    refused(tmp_path / "g.npz", "would take")
    save_npz(tmp_path / "x.npz", coo_array((2, 10**7)).tocsr())
    refused((torch.tensor([[0], [1]]), tmp_path / "x.npz"), "would take")


def test_a_word_that_a_parquet_file_holds_once_and_repeats(tmp_path: Path) -> None:
    words = pyarrow.array([0] * 5000, pyarrow.int32())
    column = pyarrow.DictionaryArray.from_arrays(words, pyarrow.array(["long " * 50_000]))
    ids = pyarrow.array([str(i) for i in range(5000)])
    file = tmp_path / "nodes.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": ids, "text": column}), file)
    assert file.stat().st_size < 500_000  # 1.2 GB of text
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n")
    before = pyarrow.total_allocated_bytes()
    refused(tmp_path, "would take")
    assert pyarrow.total_allocated_bytes() <= before + 20_000_000


def test_a_word_that_an_arrow_file_holds_once_and_repeats(tmp_path: Path) -> None:
    words = pyarrow.array([0] * 5000, pyarrow.int32())
    column = pyarrow.DictionaryArray.from_arrays(words, pyarrow.array(["long " * 50_000]))
    ids = pyarrow.array([str(i) for i in range(5000)])
    write_feather(pyarrow.table({"id": ids, "text": column}), tmp_path / "nodes.feather")
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n")
    before = pyarrow.total_allocated_bytes()
    refused(tmp_path, "would take 1.3 GB")
    assert pyarrow.total_allocated_bytes() <= before + 20_000_000


@pytest.mark.parametrize("kind", ["zeros", "nulls", "codes", "ends"])
def test_rows_that_an_arrow_file_declares_for_nothing(kind: str, tmp_path: Path) -> None:
    """Compressed zeros, a column of nulls, words of another kind, runs: a small file, any rows."""
    rows, file = 50_000_000, tmp_path / "nodes.arrow"
    if kind == "zeros":
        column = pyarrow.array(np.zeros(rows, np.int64))
    elif kind == "nulls":
        column = pyarrow.nulls(20 * rows)
    elif kind == "codes":
        word = pyarrow.array([b"long" * 50_000], pyarrow.binary())
        codes = pyarrow.array(np.zeros(1000, np.int8))
        column = pyarrow.DictionaryArray.from_arrays(codes, word)
    else:
        ends = pyarrow.array([rows], pyarrow.int32())
        column = pyarrow.RunEndEncodedArray.from_arrays(ends, pyarrow.array([1.5]))
    table = pyarrow.table({"id": column})
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    with pyarrow.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table)
    assert file.stat().st_size < 500_000
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n")
    del column, table
    before = pyarrow.total_allocated_bytes()
    refused(tmp_path, "would take" if kind in ("zeros", "nulls") else "expected numbers or text")
    assert pyarrow.total_allocated_bytes() <= before + 20_000_000


def test_a_parquet_file_with_short_repeated_words_is_read(tmp_path: Path) -> None:
    rows = [str(i) for i in range(40)]
    kinds = pyarrow.array(["a", "b", None, "c"] * 10).dictionary_encode()
    table = pyarrow.table({"id": rows, "kind": kinds, "text": ["x", None] * 20})
    pyarrow.parquet.write_table(table, tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n")
    found = load(tmp_path)
    assert found.encoding.categories == {"kind": ["a", "b", "c"], "text": ["x"]}
    assert found.columns["kind"].tolist() == ["a", "b", "", "c"] * 10


def test_an_attribute_of_many_megabytes(tmp_path: Path) -> None:
    name = "a" * 5_000_000
    (tmp_path / "g.graphml").write_text(
        f'<graphml><graph edgedefault="undirected"><node id="{name}"/></graph></graphml>'
    )
    # in pieces, it would be read from its start 80 times: the tests' time limit stands guard
    with pytest.raises(UserError, match="an attribute of 5,000,000 characters"):
        load(tmp_path / "g.graphml")


def test_a_wide_header_with_one_name_twice(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(200_000)]
    (tmp_path / "nodes.csv").write_text(",".join(["id", *names, names[-1]]) + "\n")
    (tmp_path / "edges.csv").write_text("0,1\n")
    # counting every name would take minutes: the tests' time limit stands guard
    with pytest.raises(UserError, match="two columns called 'c199999'"):
        load(tmp_path)


# scores


def test_one_class_a_node_is_told_before_training() -> None:
    data = Tensors(x=torch.eye(300), edge_index=EDGES, y=torch.arange(300))
    with pytest.raises(UserError, match=r"300 classes among 300 labelled nodes .* ids\?"):
        check_scoring(data, ["holdout"], 2)


def test_confusions_are_counted_of_the_first_classes_only() -> None:
    y = np.arange(150).repeat(8)
    data = Tensors(x=torch.zeros(len(y), 1), edge_index=EDGES, y=torch.from_numpy(y))
    notes = check_scoring(data, ["holdout"], 2)
    assert notes == ["150 classes: confusions are counted of the first 100"]
    z = np.eye(150)[y]
    split = random_split(y, 0, train=0.5, val=0.1)
    found = probe(z, y, [split], strengths=(1.0, 512.0))
    assert found.confusion.shape == (COUNTED, COUNTED)
    first = y[split.test] < COUNTED
    assert found.confusion.sum() <= first.sum()
    assert found.confusion.trace() >= 0.9 * first.sum()


def test_so_many_splits_make_no_sense() -> None:
    data = Tensors(x=torch.eye(40), edge_index=EDGES, y=torch.arange(40) % 2)
    for splits, words in ((0, "at least 1"), (-3, "at least 1"), (10**6, "at most 10,000")):
        with pytest.raises(UserError, match=f"splits must be {words}"):
            check_scoring(data, ["holdout"], splits)


# settings


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"width": 10**6}, r"a table of width 1,000,000 would take"),
        ({"width": 10**308}, "width must be a whole number of at most"),
        ({"projection": 10**9}, "projection must be a whole number of at most"),
        ({"layers": 10**6}, "layers must be a whole number of at most 1,000"),
        ({"epochs": 10**20}, "epochs must be at most"),
        ({"projection": float("inf")}, "projection must be a whole number, got inf"),
        ({"width": float("nan")}, "width must be a whole number, got nan"),
        ({"width": "9" * 5000}, r"width must be a whole number, got '9+\.\.\."),
        ({"drop_edges": 0.5}, "drop_edges must be 2 numbers"),
    ],
)
def test_settings_without_bounds_are_one_short_line(settings: dict, words: str) -> None:
    graph = Graph.from_data(planted(nodes=60))
    with pytest.raises(UserError, match=words) as caught:
        make_ready(Plan.make("grace", "quick", overrides=settings), graph)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["projection = inf", "width = 1e308", "width = nan", "lr = inf"])
def test_a_preset_file_with_numbers_that_are_none_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    settings = preset("grace", str(tmp_path / "mine.toml"), "graph")
    graph = Graph.from_data(planted(nodes=60))
    with pytest.raises(UserError, match="must be"):
        make_ready(Plan.make("grace", "quick", overrides=settings), graph)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("muxgcl.io.delimited.read_delimited", "to read the graph"),
        ("muxgcl.runs.fit.Trainer", "to train"),
        ("muxgcl.evaluate.probe.unit_rows", "to score the embedding"),
    ],
)
def test_the_advice_fits_what_memory_ran_out_for(
    own: list[str], tmp_path: Path, where: str, words: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    module, _, name = where.rpartition(".")
    monkeypatch.setattr(sys.modules[module], name, full)
    small = ["--preset", "quick", "--set", "width=8", "--epochs", "1", "--splits", "1"]
    out = ["--out", str(tmp_path / "run"), "--quiet", "--no-report"]
    status, _, err = ask(capsys, "run", *own, "--method", "grace", *small, *out)
    assert status == 2
    assert err.splitlines()[-1].startswith(f"muxgcl: there is not enough memory {words}: ")
