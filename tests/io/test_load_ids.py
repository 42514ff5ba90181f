"""Which column of a table of nodes is the id, and what is said about it."""

from pathlib import Path

import pytest

from muxgcl import UserError
from muxgcl.io.load import Loaded, load


def loaded(folder: Path, nodes: str, **options: str) -> Loaded:
    (folder / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    (folder / "nodes.csv").write_text(nodes)
    return load(folder / "edges.csv", features=folder / "nodes.csv", **options)


@pytest.mark.parametrize("name", ["id", "ID", "node", "node_id"])
def test_a_column_called_id_is_the_id_wherever_it_stands(tmp_path: Path, name: str) -> None:
    graph = loaded(tmp_path, f"x,{name}\n3,1\n1,2\n2,3\n")
    assert graph.ids.tolist() == [1, 2, 3]
    assert graph.columns["x"].tolist() == [3, 1, 2]
    file = tmp_path / "nodes.csv"
    assert f"{file}: column '{name}' is read as the id (--id-column names another)" in graph.notes


def test_a_first_column_called_as_ids_are_stays_the_id(tmp_path: Path) -> None:
    graph = loaded(tmp_path, "user_id,node\n1,7\n2,8\n3,9\n")
    assert graph.ids.tolist() == [1, 2, 3]
    assert not any("is read as the id" in note for note in graph.notes)
    assert loaded(tmp_path, "x,id\n3,7\n1,8\n2,9\n", id_column="x").ids.tolist() == [3, 1, 2]


def test_a_repeated_id_says_which_column_was_read(tmp_path: Path) -> None:
    told = r"'1' is already on line 2 \(the first column, 'x', is read as the id; --id-column names"
    with pytest.raises(UserError, match=told):
        loaded(tmp_path, "x,key\n1,1\n1,2\n2,3\n")
    with pytest.raises(UserError, match=r"'1' is already on line 2$"):
        loaded(tmp_path, "x,key\n1,1\n1,2\n2,3\n", id_column="x")


def test_the_column_of_ids_cannot_be_the_label(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'id' is the column of node ids; it cannot be the label"):
        loaded(tmp_path, "id,x\n1,1\n2,1\n3,2\n", label_column="id")


def test_a_table_in_a_folder_that_is_not_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    people = tmp_path / "people.csv"
    people.write_text("id,label\n1,a\n2,b\n3,a\n")
    told = "people.csv is not used (a table of nodes is called nodes.*; --features names another)"
    assert told in load(tmp_path).notes
    assert told not in load(tmp_path, labels=people).notes
    assert told not in load(tmp_path, features=people).notes
