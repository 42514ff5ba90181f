"""Columns become features by stated rules, the same for the next graph."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from muxgcl.errors import UserError
from muxgcl.io.load import Encoding, Loaded, load
from muxgcl.io.structure import NAMES


def ring(nodes: int) -> torch.Tensor:
    return torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])


def encoded(**columns: object) -> Loaded:
    frame = pd.DataFrame({"id": range(len(next(iter(columns.values())))), **columns})
    return load((ring(len(frame)), frame))


def test_numbers_get_zero_mean_and_unit_variance() -> None:
    graph = encoded(age=[10.0, 20.0, 60.0, 5.0])
    x = graph.data.x[:, 0].double()
    assert abs(x.mean()) < 1e-7
    assert abs((x**2).mean() - 1) < 1e-6
    assert "column 'age': scaled to zero mean, unit variance" in graph.notes


def test_indicators_and_constants() -> None:
    graph = encoded(flag=[0, 1, 1, 0], truth=[True, False, True, True], same=[7, 7, 7, 7])
    assert graph.data.x.T.tolist() == [[0, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 0]]
    assert "2 columns of 0 and 1 kept as they are" in graph.notes
    assert "column 'flag': 0 and 1, kept as it is" in encoded(flag=[0, 1, 1, 0]).notes


def test_a_blank_column_is_told_as_blank(tmp_path: Path) -> None:
    gap = [None] * 3
    one = encoded(x=gap, flag=[0, 1, 1])
    assert one.data.x.tolist() == [[0, 0], [0, 1], [0, 1]]
    assert one.notes[1:3] == ["column 'x' is blank: zeros", "column 'flag': 0 and 1, kept as it is"]
    two = encoded(x=gap, y_=gap, age=[1.0, 2.0, 3.0])
    assert "columns 'x', 'y_' are blank: zeros" in two.notes
    assert not any("0 and 1" in note for note in two.notes)
    (tmp_path / "n.csv").write_text("id,x,n\n0,,5\n1, NA,6\n2,,9\n")
    kept = load(ring(3), features=tmp_path / "n.csv", scale=False)
    assert "column 'x' is blank: zeros" in kept.notes
    assert "1 column kept as it is: as asked" in kept.notes


def test_notes_count_one_and_many() -> None:
    graph = encoded(kind=["a", "a", "a"], name=["Ann", None, None], age=[1.0, None, 4.0])
    assert "column 'kind': 1 category one-hot encoded" in graph.notes
    assert "column 'name': text, 1 value: not used as a feature" in graph.notes
    missing = "1 missing number set to the mean, or to 0 in columns kept as is"
    assert missing in graph.notes


def test_categories_are_one_hot_in_sorted_order() -> None:
    graph = encoded(city=["Rome", "Bern", "Rome", "Bern", "Oslo", None])
    want = [[0, 0, 1], [1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert graph.data.x.tolist() == want
    assert "column 'city': 3 categories one-hot encoded" in graph.notes
    assert "column 'city': 1 missing, zeros" in graph.notes


def test_numbers_come_before_categories() -> None:
    graph = encoded(city=["a", "b", "a"], flag=[1, 0, 0])
    assert graph.data.x.tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]


def test_names_and_too_many_categories_are_left_out_but_shown() -> None:
    graph = encoded(
        flag=[0, 1] * 300,
        name=[f"n{node}" for node in range(600)],
        word=[f"w{node % 299}" for node in range(600)],
    )
    assert graph.data.x.shape == (600, 1)
    assert "column 'name': text, 600 different values: not used as a feature" in graph.notes
    assert "column 'word': text, 299 different values: not used as a feature" in graph.notes
    assert graph.columns["name"][7] == "n7"


def test_columns_for_a_report_are_plain_arrays() -> None:
    graph = encoded(age=[1.5, None, 3.0], note=["x" * 500, None, "y"])
    assert {name: column.dtype.kind for name, column in graph.columns.items()} == {
        "age": "f",
        "note": "U",
    }
    np.testing.assert_array_equal(graph.columns["age"], [1.5, np.nan, 3.0])
    assert graph.columns["note"].tolist() == ["x" * 100, "", "y"]


@pytest.mark.parametrize("gap", ["", "NA", "null", " ", "NaN", "nan", "NAN"])
def test_a_missing_number_is_the_mean(tmp_path: Path, gap: str) -> None:
    (tmp_path / "n.csv").write_text(f"id,age,flag\n0,1,1\n1,{gap},{gap}\n2,5,0\n")
    graph = load(ring(3), features=tmp_path / "n.csv")
    assert graph.data.x.tolist() == [[-1, 1], [0, 0], [1, 0]]
    assert any(note.startswith("2 missing numbers set to the mean") for note in graph.notes)


def test_a_column_is_text_if_a_late_block_says_so(tmp_path: Path) -> None:
    rows = [f"{node},{node % 2},{node % 3}\n" for node in range(40_000)]
    rows[39_000] = "39000,1,x\n"
    for place in range(0, 39_000, 2):  # too many words for a slip of the pen
        rows[place] = f"{place},0,b\n"
    rows[:21_845] = [f"{node},1,{node % 3}\n" for node in range(21_845)]  # one block of numbers
    (tmp_path / "n.csv").write_text("id,flag,kind\n" + "".join(rows))
    graph = load(ring(40_000), features=tmp_path / "n.csv")
    assert graph.encoding.categories == {"kind": ["0", "1", "2", "b", "x"]}
    assert graph.columns["kind"][:3].tolist() == ["0", "1", "2"]
    assert graph.data.x[39_000].tolist() == [1, 0, 0, 0, 0, 1]


def test_underscores_are_text_not_numbers(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("id,term\n0,20_21\n1,20_22\n2,20_21\n")
    graph = load(ring(3), features=tmp_path / "n.csv")
    assert graph.encoding.categories == {"term": ["20_21", "20_22"]}


def test_scale_false_keeps_the_numbers() -> None:
    x = torch.tensor([[3.0, 100.0], [5.0, -4.0], [0.5, 1.0]])
    assert torch.equal(load((ring(3), x), scale=False).data.x, x)


# --- wide and sparse -------------------------------------------------------------------------


def words(nodes: int, columns: int, each: int) -> sp.csr_array:
    chance = np.random.default_rng(0)
    rows = np.repeat(np.arange(nodes), each)
    matrix = sp.coo_array(
        (np.ones(len(rows), np.float32), (rows, chance.integers(columns, size=len(rows)))),
        shape=(nodes, columns),
    ).tocsr()
    matrix.data[:] = 1
    return matrix


def test_wide_sparse_features_stay_sparse(tmp_path: Path) -> None:
    matrix = words(34_000, 8_000, 20)
    sp.save_npz(tmp_path / "x.npz", matrix)
    edges = ring(34_000)
    tracemalloc.start()
    graph = load(edges, features=tmp_path / "x.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6  # written out it would be 1,088 MB
    assert graph.data.x.is_sparse
    assert graph.data.x.shape == (34_000, 8_000)
    found = graph.data.x.indices().numpy()
    assert np.array_equal(found, np.stack(matrix.nonzero()))
    assert graph.data.x.values().unique().tolist() == [1]
    assert "8,000 columns kept as they are: wide and mostly zeros" in graph.notes


def test_wide_csv_is_read_in_blocks_that_stay_sparse(tmp_path: Path) -> None:
    dense = words(300, 6_000, 30).toarray().astype(np.int8)
    lines = [f"{node}," + ",".join(map(str, row)) for node, row in enumerate(dense.tolist())]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    tracemalloc.start()
    graph = load(ring(300), features=tmp_path / "x.csv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6  # the cells as text alone would be 90 MB
    assert np.array_equal(graph.data.x.numpy(), dense)


def test_counts_in_a_wide_sparse_table_are_not_scaled() -> None:
    matrix = words(50, 200, 5) * 3
    assert np.array_equal(load((ring(50), matrix)).data.x.numpy(), matrix.toarray())
    assert np.array_equal(load((ring(50), matrix.toarray())).data.x.numpy(), matrix.toarray())


def test_a_bag_without_a_word_has_no_features(tmp_path: Path) -> None:
    matrix = words(50, 200, 5).tolil()
    matrix[7:9] = 0
    for table in (matrix.tocsr(), matrix.toarray()):
        assert "2 nodes have no features: zeros" in load((ring(50), table)).notes
    frame = pd.DataFrame(matrix.toarray()).set_axis([f"w{at}" for at in range(200)], axis=1)
    frame.insert(0, "id", range(50))
    frame["w3"], frame["w4"] = None, [np.nan] * 8 + [1.0] * 42
    notes = load((ring(50), frame)).notes
    assert "column 'w3' is blank: zeros" in notes
    assert "199 columns kept as they are: wide and mostly zeros" in notes
    assert "1 node has no features: zeros" in notes  # node 8 was given a word
    frame["kind"] = ["x", "y"] * 25
    assert not any("no features" in note for note in load((ring(50), frame)).notes)


def test_zeros_stored_in_a_sparse_matrix_change_nothing() -> None:
    matrix = words(50, 200, 5)
    padded = matrix.copy()
    padded.data[::3] = 0
    plain = sp.csr_array(padded.toarray())
    assert torch.equal(load((ring(50), padded)).data.x, load((ring(50), plain)).data.x)


# --- the next graph --------------------------------------------------------------------------


def test_an_encoding_treats_new_nodes_as_it_did_the_old() -> None:
    frame = pd.DataFrame(
        {"id": range(6), "age": [1.0, 2, 3, 4, 5, 9], "city": ["a", "b", "a", "b", "c", "c"]}
    )
    old = load((ring(6), frame))
    stored = Encoding.from_dict(json.loads(json.dumps(old.encoding.as_dict())))
    assert stored == old.encoding
    more = pd.concat([frame, pd.DataFrame({"id": [6, 7], "age": [1e3, 0], "city": ["z", "a"]})])
    new = load((ring(8), more[["city", "id", "age"]]), id_column="id", encoding=stored)
    assert torch.equal(new.data.x[:6], old.data.x)
    assert new.data.x[6, 1:].tolist() == [0, 0, 0]
    assert "column 'city': unknown, so left at zero: 'z'" in new.notes


def test_an_encoding_without_columns_means_features_from_edges() -> None:
    graph = load(
        (ring(4), pd.DataFrame({"id": range(4), "age": [1.0, 2, 3, 4]})), encoding=Encoding()
    )
    assert graph.feature_names == NAMES


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"age": [1.0, 2, 3]},
            "column 'city' is missing from the features; the model",
        ),
        ({"age": ["x", "y", "x"], "city": ["a", "b", "a"]}, "'age' holds text; expected numbers"),
        ({"age": [1, 2, 3], "city": [1, 2, 1]}, "'city' holds numbers; expected text"),
    ],
)
def test_an_encoding_names_what_does_not_fit(columns: dict[str, object], message: str) -> None:
    frame = pd.DataFrame({"id": range(3), "age": [1.0, 5.0, 7.0], "city": ["a", "b", "a"]})
    encoding = load((ring(3), frame)).encoding
    with pytest.raises(UserError, match=message):
        load((ring(3), pd.DataFrame({"id": range(3), **columns})), encoding=encoding)


@pytest.mark.parametrize(
    ("trained", "new"),
    [
        (["1", "2", "3a"], ["1", "2"]),
        (["12 kg", "3 lb"], ["12 kg"]),
        (["2021-01-01", "unknown"], ["2021-01-01"]),
        (["1,5", "x"], ["1,5"]),
    ],
)
def test_categories_of_new_nodes_may_all_look_like_numbers(
    trained: list[str], new: list[str], tmp_path: Path
) -> None:
    def nodes(cells: list[str]) -> pd.DataFrame:
        repeated = (cells * 24)[:24]
        return pd.DataFrame({"id": range(24), "kind": repeated, "age": np.arange(24) % 5.0})

    old = load((ring(24), nodes(trained)))
    want = [old.feature_names.index(f"kind={cell}") for cell in (new * 24)[:24]]
    nodes(new).to_csv(tmp_path / "n.csv", index=False)
    nodes(new).to_parquet(tmp_path / "n.parquet", index=False)
    for table in (tmp_path / "n.csv", tmp_path / "n.parquet", nodes(new)):
        graph = load((ring(24), table), encoding=old.encoding)
        assert graph.data.x[:, 1:].argmax(1).tolist() == [column - 1 for column in want]
        assert (graph.data.x[:, 1:].sum(1) == 1).all()
