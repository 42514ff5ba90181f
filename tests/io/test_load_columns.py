"""Which columns become features, and as what: row numbers, commas, dates, leaks, structure."""

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest
import torch
from torch_geometric.data import Data

from muxgcl.errors import UserError
from muxgcl.io.load import Encoding, Loaded, load
from muxgcl.io.networks import merged_order
from muxgcl.io.roles import NodeColumns
from muxgcl.io.structure import structural_features

RING = pd.DataFrame(
    {"source": [f"n{k}" for k in range(24)], "target": [f"n{(k + 1) % 24}" for k in range(24)]}
)


def table(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"n{k}" for k in range(24)], **columns})


def by_every_table(nodes: pd.DataFrame, folder: Path, **options: object) -> list[Loaded]:
    nodes.to_csv(folder / "n.csv", index=False)
    nodes.to_parquet(folder / "n.parquet", index=False)
    network = nx.Graph(RING.itertuples(index=False))
    known = nodes.set_index("id").to_dict("index")
    ordered = nx.Graph()
    ordered.add_nodes_from((one, known[one]) for one in nodes["id"])
    ordered.add_edges_from(network.edges)
    return [
        load(RING, features=folder / "n.csv", **options),
        load(RING, features=folder / "n.parquet", **options),
        load(RING, features=nodes, **options),
        load(ordered, **options),
    ]


# --- row numbers -----------------------------------------------------------------------------


def filtered() -> pd.DataFrame:
    """What pandas has after rows were taken out: an index with gaps."""
    nodes = table(age=np.arange(24) % 7.0)
    return nodes[nodes["age"] < 5]


@pytest.mark.parametrize("id_name", ["id", "node", "userId", "who"])
def test_an_index_that_numbers_rows_is_no_feature(id_name: str, tmp_path: Path) -> None:
    nodes = filtered().rename(columns={"id": id_name})
    edges = pd.DataFrame({"s": nodes[id_name].iloc[:-1], "t": nodes[id_name].iloc[1:].tolist()})
    nodes.to_parquet(tmp_path / "n.parquet")
    assert "__index_level_0__" in parquet.read_schema(tmp_path / "n.parquet").names
    nodes.to_csv(tmp_path / "n.csv")
    edges.to_parquet(tmp_path / "e.parquet")
    edges.to_csv(tmp_path / "e.csv")
    for suffix in ("parquet", "csv"):
        graph = load(tmp_path / f"e.{suffix}", features=tmp_path / f"n.{suffix}")
        assert graph.ids.tolist() == nodes[id_name].tolist()
        assert graph.feature_names == ["age"]
        assert sum("numbers the rows, not used" in note for note in graph.notes) == 2
    assert load(edges, features=nodes).feature_names == ["age"]


def test_an_index_of_names_holds_the_ids_in_a_frame_in_parquet_and_in_csv(tmp_path: Path) -> None:
    for nodes in (
        table(age=np.arange(24.0), wage=np.arange(24.0) ** 2).set_index("id"),
        table(age=np.arange(24.0), wage=np.arange(24.0) ** 2).set_index("id").rename_axis(None),
    ):
        nodes.to_parquet(tmp_path / "n.parquet")
        nodes.to_csv(tmp_path / "n.csv")
        for features in (nodes, tmp_path / "n.parquet", tmp_path / "n.csv"):
            graph = load(RING, features=features)
            assert graph.ids.tolist() == nodes.index.tolist()
            assert graph.feature_names == ["age", "wage"]


def test_an_index_of_integers_holds_the_ids_where_no_column_does(tmp_path: Path) -> None:
    nodes = pd.DataFrame({"city": ["Oslo", "Bern"] * 6, "age": np.arange(12.0)}, index=range(5, 17))
    nodes.index = nodes.index.to_numpy()  # no longer a range
    edges = np.array([range(5, 16), range(6, 17)])
    nodes.to_parquet(tmp_path / "n.parquet")
    nodes.to_csv(tmp_path / "n.csv")
    for features in (nodes, tmp_path / "n.parquet", tmp_path / "n.csv"):
        graph = load(edges, features=features)
        assert graph.ids.tolist() == list(range(5, 17))
        assert graph.feature_names == ["age", "city=Bern", "city=Oslo"]


def test_a_named_id_column_settles_it(tmp_path: Path) -> None:
    nodes = filtered().rename(columns={"id": "7"})[["age", "7"]]
    nodes.to_parquet(tmp_path / "n.parquet")
    edges = pd.DataFrame({"s": nodes["7"].iloc[:-1], "t": nodes["7"].iloc[1:].tolist()})
    for features in (nodes, tmp_path / "n.parquet"):
        graph = load(edges, features=features, id_column="7")
        assert graph.feature_names == ["age"]


# --- the order of attributes -------------------------------------------------------------------


def test_attributes_are_merged_in_an_order_that_every_node_agrees_with() -> None:
    assert merged_order([["b", "c"], ["a", "b"], ["c", "d"]]) == ["a", "b", "c", "d"]
    for records in ([["b"], ["a", "b", "c"]], [["c"], ["b", "c"], ["a", "b"]], [[], ["a"], ["b"]]):
        merged = merged_order(records)
        assert sorted(merged) == sorted({key for record in records for key in record})
        for record in records:
            assert [key for key in merged if key in record] == record


# --- commas and dates --------------------------------------------------------------------------


def test_decimal_commas_are_numbers_by_every_route(tmp_path: Path) -> None:
    values = np.arange(24) / 8 + 0.5
    plain = table(size=values)
    commas = table(size=[f"{value}".replace(".", ",") for value in values])
    want = load(RING, features=plain)
    for graph in by_every_table(commas, tmp_path):
        assert torch.equal(graph.data.x, want.data.x)
        assert "column 'size': decimal commas" in graph.notes
    text = commas.to_csv(index=False, sep=";")
    (tmp_path / "semicolons.csv").write_text(text)
    graph = load(RING, features=tmp_path / "semicolons.csv")
    assert torch.equal(graph.data.x, want.data.x)
    (tmp_path / "headless.csv").write_text(text.split("\n", 1)[1])
    assert torch.equal(load(RING, features=tmp_path / "headless.csv").data.x, want.data.x)


def test_weights_may_have_decimal_commas(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("source;target;weight\na;b;0,5\nb;c;2\n")
    assert load(tmp_path / "e.csv").data.edge_weight.tolist() == [0.5, 0.5, 2, 2]
    (tmp_path / "e.csv").write_text("1;2;0,5\n2;3;2,5\n")
    assert load(tmp_path / "e.csv", weight_column="3").data.edge_weight.tolist() == [
        *(0.5, 0.5, 2.5, 2.5)
    ]


def test_commas_between_thousands_are_told_from_decimal_commas() -> None:
    many = table(people=["1,234", "12,345,678", "900"] * 8)
    graph = load(RING, features=many)
    assert graph.columns["people"][:3].tolist() == [1234, 12345678, 900]
    assert "column 'people': commas between thousands" in graph.notes
    small = load(RING, features=table(share=["0,125", "0,250", "1"] * 8))
    assert small.columns["share"][:3].tolist() == [0.125, 0.25, 1]


def test_points_between_thousands_stand_beside_decimal_commas() -> None:
    many = table(pay=["1.234,5", "12.345.678", "-1.000", "0,5", "7", "1234,25"] * 4)
    graph = load(RING, features=many)
    want = [1234.5, 12345678, -1000, 0.5, 7, 1234.25]
    assert graph.columns["pay"][:6].tolist() == want
    assert "column 'pay': decimal commas, points between thousands" in graph.notes
    both = load(RING, features=table(pay=["1,234.5", "12,345.678", "3.25", "7"] * 6))
    assert both.columns["pay"][:4].tolist() == [1234.5, np.float32(12345.678), 3.25, 7]
    for odd in ("1.23,5", "12.34", "1,234.5", "1.234.56"):
        graph = load(RING, features=table(pay=["1,5", "2.000", odd] * 8))
        assert list(graph.encoding.categories) == ["pay"], odd


def test_decimal_points_beside_decimal_commas_are_told() -> None:
    notes = load(RING, features=table(size=["0,5", "1,5"] * 12, pay=[1.234, 999] * 12)).notes
    assert [n for n in notes if n.startswith("column 'pay': decimal points, beside decimal comm")]
    plain = load(RING, features=table(size=["0,5", "1,5"] * 12, pay=[1234, 999] * 12)).notes
    assert not [note for note in plain if "decimal points" in note]


@pytest.mark.parametrize("odd", ["1,5,2", "1.5", "about 1,5", "1,5 m"])
def test_a_column_with_one_cell_that_does_not_fit_stays_text(odd: str) -> None:
    graph = load(RING, features=table(size=["1,5", "2,5", odd] * 8))
    assert graph.encoding.categories == {"size": sorted(["1,5", "2,5", odd])}


DAYS = [18628 + 11 * k for k in range(24)]  # from 2021-01-01 on
MOMENTS = pd.to_datetime(np.array(DAYS), unit="D")


@pytest.mark.parametrize(
    "form",
    ["%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%SZ", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"],
)
def test_dates_become_days_by_every_route(form: str, tmp_path: Path) -> None:
    for graph in by_every_table(table(joined=MOMENTS.strftime(form)), tmp_path):
        assert graph.columns["joined"].tolist() == DAYS
        assert graph.feature_names == ["joined"]
        assert "column 'joined': dates, as days since 1970-01-01" in graph.notes


def test_columns_of_dates_in_pandas_and_parquet_become_days(tmp_path: Path) -> None:
    for moments in (MOMENTS, MOMENTS.tz_localize("UTC"), MOMENTS.date):
        nodes = table(joined=moments)
        nodes.loc[3, "joined"] = pd.NaT
        nodes.to_parquet(tmp_path / "n.parquet")
        for features in (nodes, tmp_path / "n.parquet"):
            days = load(RING, features=features).columns["joined"]
            assert np.flatnonzero(np.isnan(days)).tolist() == [3]
            assert np.delete(days, 3).tolist() == DAYS[:3] + DAYS[4:]


def test_dates_whose_day_and_month_cannot_be_told_apart_are_said_to_be_text() -> None:
    graph = load(RING, features=table(joined=["03/04/2021", "05/06/2021"] * 12))
    told = "column 'joined': dates read as text: day or month first? write them as 2021-12-31"
    assert told in graph.notes
    assert list(graph.encoding.categories) == ["joined"]


def test_a_month_that_does_not_exist_is_text() -> None:
    graph = load(RING, features=table(joined=["2021-13-01", "2021-12-01"] * 12))
    assert list(graph.encoding.categories) == ["joined"]


def test_numbers_from_text_keep_the_order_of_the_table() -> None:
    nodes = table(a=["1,5", "2"] * 12, b=np.arange(24.0), c=MOMENTS.strftime("%Y-%m-%d"))
    graph = load(RING, features=nodes[["id", "c", "a", "b"]])
    assert graph.feature_names == ["c", "a", "b"]


def test_new_nodes_have_their_dates_read_in_the_same_way() -> None:
    old = load(RING, features=table(joined=MOMENTS.strftime("%Y-%m-%d")))
    new = load(RING, features=table(joined=MOMENTS.strftime("%d.%m.%Y")), encoding=old.encoding)
    assert torch.equal(old.data.x, new.data.x)


# --- columns that are asked for ------------------------------------------------------------------


def test_included_and_excluded_columns_by_every_route(tmp_path: Path) -> None:
    nodes = table(
        a=np.arange(24.0), b=np.arange(24.0) % 5, ab=np.arange(24.0) % 7, c=["x", "y"] * 12
    )
    for options, names in (
        ({"include": "a"}, ["a"]),
        ({"include": ["a*"]}, ["a", "ab"]),
        ({"include": ["ab", "c"]}, ["ab", "c=x", "c=y"]),
        ({"exclude": ["c", "a"]}, ["b", "ab"]),
        ({"include": ["a*"], "exclude": "a"}, ["ab"]),
    ):
        for graph in by_every_table(nodes, tmp_path, **options):
            assert graph.feature_names == names


def test_columns_of_a_matrix_go_by_their_place(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((24, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    edges = np.array([range(23), range(1, 24)])
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edges))
    for source, features in ((edges, x), (edges, tmp_path / "x.npy"), (data, None)):
        graph = load(source, features=features, exclude="3", scale=False)
        assert torch.equal(graph.data.x, torch.from_numpy(x[:, :3]))
        with pytest.raises(UserError, match="has no column '4' to include or exclude"):
            load(source, features=features, exclude="4")


def test_a_column_that_cannot_be_read_may_be_left_out(tmp_path: Path) -> None:
    nodes = table(age=np.arange(24.0), tags=[["a"]] * 24)
    nodes.to_parquet(tmp_path / "n.parquet")
    with pytest.raises(UserError, match="column 'tags' holds list<"):
        load(RING, features=tmp_path / "n.parquet")
    graph = load(RING, features=tmp_path / "n.parquet", exclude="tags")
    assert graph.feature_names == ["age"]


# --- structure -----------------------------------------------------------------------------------


def test_structure_stands_beside_the_columns_where_it_is_asked_for() -> None:
    nodes = table(age=np.arange(24.0))
    plain, both = load(RING, features=nodes), load(RING, features=nodes, structure=True)
    made = structural_features(both.data.edge_index.numpy(), both.ids)
    assert torch.equal(both.data.x, torch.cat([plain.data.x, torch.from_numpy(made)], 1))
    assert both.feature_names[:2] == ["age", "degree bin 0"]
    assert len(both.feature_names) == both.data.num_features
    assert "made from the edges (16 of degree, 288 of position), beside the columns" in both.notes
    assert torch.equal(load(RING, features=nodes, exclude="*").data.x, torch.from_numpy(made))
    assert torch.equal(load(RING).data.x, load(RING, structure=True).data.x)


def test_an_encoding_remembers_whether_structure_was_added() -> None:
    nodes = table(age=np.arange(24.0))
    both = load(RING, features=nodes, structure=True)
    stored = Encoding.from_dict(both.encoding.as_dict())
    assert torch.equal(load(RING, features=nodes, encoding=stored).data.x, both.data.x)
    plain = load(RING, features=nodes)
    assert "structure" not in plain.encoding.as_dict()
    with pytest.raises(UserError, match="the encoding has none"):
        load(RING, features=nodes, structure=True, encoding=plain.encoding)


def test_features_have_names_by_every_route(tmp_path: Path) -> None:
    nodes = table(age=np.arange(24.0), city=["Oslo", "Bern"] * 12)
    for graph in by_every_table(nodes, tmp_path):
        assert graph.feature_names == ["age", "city=Bern", "city=Oslo"]
    edges = np.array([range(23), range(1, 24)])
    assert load(edges, features=np.eye(24, 3)).feature_names == ["0", "1", "2"]


def test_many_columns_of_one_kind_are_one_line(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(40)]
    rows = [";".join(["id", *names, "day"])]
    rows += [";".join([str(i), *(f"{i},{j % 9}5" for j in range(40)), f"2021-0{i + 1}-01"])
             for i in range(6)]  # fmt: skip
    (tmp_path / "nodes.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n2,3\n3,4\n4,5\n")
    notes = [note for note in load(tmp_path).notes if "decimal" in note or "dates" in note]
    assert len(notes) == 2
    assert notes[0].startswith("columns 'c0', 'c1', ")
    assert notes[0].endswith("and 32 more: decimal commas")


@pytest.mark.parametrize("mark", ["?", "-", "n.a.", "."])
def test_a_mark_among_numbers_is_a_missing_number(tmp_path: Path, mark: str) -> None:
    ages = [mark if i % 3 == 0 else str(i) for i in range(30)]
    rows = ["id,age,kind", *(f"{i},{age},{mark if i % 2 else 'x'}" for i, age in enumerate(ages))]
    (tmp_path / "nodes.csv").write_text("\n".join(rows) + "\n")
    edges = "\n".join(f"{i},{(i + 1) % 30}" for i in range(30))
    (tmp_path / "edges.csv").write_text(f"source,target\n{edges}\n")
    graph = load(tmp_path)
    assert f"column 'age': numbers, '{mark}' where one is missing" in graph.notes
    assert graph.feature_names == ["age", f"kind={mark}", "kind=x"]  # among words it is a word
    assert np.isnan(graph.columns["age"][::3]).all()
    assert graph.columns["age"][1:3].tolist() == [1, 2]
    assert graph.data.x[0, 0] == 0  # the mean


def test_what_keeps_a_column_from_being_numbers_is_named(tmp_path: Path) -> None:
    cells = [("none yet", "lost", str(i))[i % 5 if i % 5 < 2 else 2] for i in range(60)]
    rows = ["id,age", *(f"{i},{cell}" for i, cell in enumerate(cells))]
    (tmp_path / "nodes.csv").write_text("\n".join(rows) + "\n")
    edges = "\n".join(f"{i},{(i + 1) % 60}" for i in range(60))
    (tmp_path / "edges.csv").write_text(f"source,target\n{edges}\n")
    told = "column 'age': text, 38 different values: not used as a feature; numbers but for 'lost'"
    assert any(note.startswith(told) for note in load(tmp_path).notes)


def test_the_column_of_ids_is_looked_for_a_few_times_however_many_columns_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    ids = NodeColumns.ids

    def counting(self: NodeColumns, table: str, columns: list[str]) -> str:
        asked.append(len(columns))
        return ids(self, table, columns)

    monkeypatch.setattr(NodeColumns, "ids", counting)
    names = [f"x{k}" for k in range(500)]
    rows = [[str(row), *("1" if row == k else "0" for k in range(500))] for row in range(3)]
    lines = [",".join(cells) for cells in (["id", *names], *rows)]
    (tmp_path / "nodes.csv").write_text("\n".join(lines) + "\n")
    loaded = load([(0, 1), (1, 2)], features=tmp_path / "nodes.csv")
    assert loaded.tensors.x.shape == (3, 500)
    assert len(asked) < 10


# --- units and gaps ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "want", "how"),
    [
        (["12 kg", "3.5 kg", "-1 kg"], [12, 3.5, -1], "numbers with 'kg'"),
        (["5%", "10%", "0.5%"], [5, 10, 0.5], "numbers with '%'"),
        (["$3", "$1,250.5", "$7"], [3, 1250.5, 7], "numbers with '$', commas between thousands"),
        (
            ["3,5 \u20ac", "1.000,25 \u20ac"],
            [3.5, 1000.25],
            "numbers with '\u20ac', decimal commas",
        ),
        (["5 km/h", "7 km/h"], [5, 7], "numbers with 'km/h'"),
        (
            ["1 234", "12\u202f345\u00a0678", "999"],
            [1234, 12345678, 999],
            "spaces between thousands",
        ),
        (["1 234,5", "0,25"], [1234.5, 0.25], "spaces between thousands, decimal commas"),
        (["1'234", "12'345.5"], [1234, 12345.5], "apostrophes between thousands"),
    ],
)
def test_numbers_with_a_unit_or_spaces_are_numbers(
    cells: list[str], want: list[float], how: str, tmp_path: Path
) -> None:
    repeated = (cells * 24)[:24]
    for graph in by_every_table(table(size=repeated), tmp_path):
        assert graph.columns["size"][: len(want)].tolist() == want
        assert [note for note in graph.notes if note.startswith(f"column 'size': {how}")]


@pytest.mark.parametrize(
    "cells",
    [
        ["12 kg", "3 lb"],  # two units
        ["12 kg", "3"],
        ["room 5", "room 7"],
        ["p1", "p2"],
        ["1st", "2nd"],
        ["10:30", "11:30"],
        ["5-10", "11-20"],
        ["<5", "5"],
        ["1 23", "4 567"],
        ["555 123 456", "555 234 567"],
        ["0 123", "4 567"],
        ["192.168.100.200", "10.100.100.100"],
    ],
)
def test_what_is_no_number_with_one_unit_stays_text(cells: list[str]) -> None:
    graph = load(RING, features=table(size=cells * 12))
    assert graph.encoding.categories == {"size": sorted(cells)}


def test_a_number_that_often_stands_for_a_missing_one_is_told() -> None:
    graph = load(RING, features=table(a=[1, 2, -999] * 8, b=[1, -2, -999] * 8, c=[1, 2, 999] * 8))
    told = [note for note in graph.notes if "like -999" in note]
    assert len(told) == 1
    assert told[0].startswith("column 'a': ")


@pytest.mark.parametrize("cell", [[1, 2], (1, 2), {"a": 1}, np.zeros(2)])
def test_a_frame_with_lists_is_refused(cell: object) -> None:
    with pytest.raises(UserError, match=r"column 'v' holds lists; expected numbers or text"):
        load(RING, features=table(v=[cell] * 24))


# --- labels that may be none -------------------------------------------------------------------


def about_label(*cells: object) -> list[str]:
    nodes = table(age=np.arange(24) % 5.0, topic=[*cells] * (24 // len(cells)))
    notes = load(RING, features=nodes, label_column="topic").notes
    return [note for note in notes if note.startswith("label 'topic'")]


@pytest.mark.parametrize("mark", ["?", "-", "n.a.", "-1", "unknown", "Unlabelled"])
def test_a_class_that_may_be_a_missing_label_is_told(mark: str) -> None:
    (note,) = about_label("7", "8", mark)
    assert note == (
        f"label 'topic': '{mark}' read as a class; leave the cell blank where a node has none"
    )


def test_two_classes_may_be_called_as_they_like() -> None:
    assert about_label("+", "-") == about_label(-1, 1) == about_label("known", "unknown") == []
    assert about_label("a", "b", "c") == []


def test_classes_that_differ_in_case_alone_are_told() -> None:
    assert about_label("art", "Art", "chess") == [
        "label 'topic': 'Art', 'art' are different classes"
    ]


def test_negative_floats_in_an_array_of_labels_are_missing() -> None:
    given = np.where(np.arange(24) < 8, -1.0, np.arange(24) % 2)
    graph = load(nx.cycle_graph(24), labels=given)
    assert graph.label_names == ["0", "1"]
    assert int((graph.data.y < 0).sum()) == 8


def test_the_order_of_labels_without_ids_is_told_where_nodes_have_names() -> None:
    told = "the labels: taken in the order of the nodes: 'n0', 'n1', 'n2', ..."
    labels = ["a", "b"] * 12
    assert told in load(RING, features=table(age=np.arange(24)), labels=labels).notes
    notes = load(nx.cycle_graph(24), labels=labels).notes
    assert not [note for note in notes if "order" in note]
