"""Which two columns are the ends of edges, and what is said about them."""

from pathlib import Path

import pytest

from muxgcl.io.load import load


@pytest.mark.parametrize(
    "ends",
    ["from_id,to_id", "src_id,dst_id", "source_id,target_id", "citing,cited", "u,v", "start,end"],
)
def test_ends_of_edges_are_known_by_their_names_wherever_they_stand(
    tmp_path: Path, ends: str
) -> None:
    file = tmp_path / "d14.csv"
    file.write_text(f"edge_id,{ends},amount\n901,1,2,5\n902,2,3,6\n")
    assert load(file).ids.tolist() == [1, 2, 3]
    file.write_text(f"date,{ends.upper()}\n2020-01-01,a,b\n2020-01-02,b,c\n")
    assert load(file).ids.tolist() == ["a", "b", "c"]


def test_ends_that_only_their_place_tells_are_named(tmp_path: Path) -> None:
    file = tmp_path / "d14.csv"
    rows = "".join(f"{900 + row},{row},{row + 1}\n" for row in range(12))
    file.write_text("edge_id,one,two\n" + rows)
    graph = load(file)
    line = (
        f"{file}: edges go from column 'edge_id' to column 'one' (--source, --target name others)"
    )
    apart = f"{file}: no id is in both columns; is this a list of edges between one kind of nodes?"
    assert line in graph.notes
    assert apart in graph.notes
    named = load(file, source_column="one", target_column="two")
    assert not any("edges go from" in note or "no id is" in note for note in named.notes)


def test_ends_with_sure_names_are_not_told(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text("when,source,target\n1,a,b\n2,b,c\n")
    assert not any("edges go from" in note for note in load(file).notes)


def test_nodes_may_be_called_u_and_v(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text("u,v\nv,w\nw,u\n")
    assert load(file).ids.tolist() == ["u", "v", "w"]


def test_ids_of_two_kinds_of_nodes_are_pointed_out(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user_id,movie_id\n1,7\n2,7\n7,1\n")
    told = (
        "'user_id' and 'movie_id' are read as ids of the same nodes: 7 in one is 7 in the other; "
        "prefix them (u7, m7) if they are not"
    )
    assert told in load(file).notes
    for header in ("node1_id,node2_id", "source_id,target_id", "a,b"):
        file.write_text(f"{header}\n1,7\n2,7\n7,1\n")
        assert not any("of the same nodes" in note for note in load(file).notes)
    file.write_text("user_id,movie_id\nu1,m7\nu2,m7\nu7,m1\n")
    assert not any("of the same nodes" in note for note in load(file).notes)
