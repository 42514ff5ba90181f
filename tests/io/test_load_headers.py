"""Whether a text file begins with a header, and what counts as no row at all."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_load_rules import PATH, loaded, pairs

from muxgcl.errors import UserError
from muxgcl.io.load import load


@pytest.mark.parametrize(
    "edges",
    ["source,target\na,b\n", "from\tto\na\tb\n", "user_id,friend\na,b\n", "userId,f\na,b\n"],
)
def test_a_usual_name_is_a_header(tmp_path: Path, edges: str) -> None:
    assert loaded(tmp_path, edges).ids.tolist() == ["a", "b"]


def test_a_word_above_numbers_is_a_header(tmp_path: Path) -> None:
    assert loaded(tmp_path, "x,z\n1,2\n").ids.tolist() == [1, 2]
    assert loaded(tmp_path, "1,2\n3,4\n").ids.tolist() == [1, 2, 3, 4]


def test_an_edge_list_of_words_alone_has_a_header_if_its_words_never_come_again(
    tmp_path: Path,
) -> None:
    text = "fan,star\nann,bob\nbob,cid\n"
    graph = loaded(tmp_path, text)
    assert graph.ids.tolist() == ["ann", "bob", "cid"]
    assert graph.notes[0] == (
        f"{tmp_path}/edges.csv: line 1 is a header ('fan', 'star'), because its words occur "
        "nowhere else; --no-header reads it as an edge"
    )
    assert loaded(tmp_path, text, header=False).ids.tolist() == ["ann", "bob", "cid", "fan", "star"]
    for again in ("star,ann", "ann,fan"):
        graph = loaded(tmp_path, f"{text}{again}\n")
        assert graph.ids.tolist() == ["ann", "bob", "cid", "fan", "star"]
        assert f"{tmp_path}/edges.csv: no header found, the first line is an edge" in graph.notes
    assert loaded(tmp_path, f"{text}ann,fan\n", header=True).ids.tolist()[:2] == ["ann", "bob"]
    assert loaded(tmp_path, f"{text}ann,fan\n", source_column="fan").ids[3] == "fan"
    assert loaded(tmp_path, "source,b\n", header=False).ids.tolist() == ["b", "source"]
    assert loaded(tmp_path, "fan,star\n").ids.tolist() == ["fan", "star"]  # an edge alone


def test_a_first_edge_that_looks_like_the_others_is_no_header(tmp_path: Path) -> None:
    assert len(loaded(tmp_path, "n1,n2\nn3,n4\nn4,n5\n").ids) == 5
    assert len(loaded(tmp_path, "u,v\nv,w\n").ids) == 3
    assert len(loaded(tmp_path, "fan,fan\na,b\n").ids) == 3


def test_two_words_that_are_nodes_of_the_table_are_no_header(tmp_path: Path) -> None:
    nodes = "id,age\nfan,1\nstar,2\nann,3\nbob,7\n"
    graph = loaded(tmp_path, "fan,star\nann,bob\n", nodes)
    assert pairs(graph) == [("fan", "star"), ("star", "fan"), ("ann", "bob"), ("bob", "ann")]


HEADERS = (
    *("source,target", "from,to", "src dst", "node1,node2", "u,v", "Person A,Person B"),
    *("Source;Target", "FROM\tTO", "follower,followee", "citing,cited", "user,friend", "a,b"),
    *("head,tail", "id1,id2", "start,end", "sender,receiver", "parent,child", "node_a;node_b"),
    *('"left","right"', "Quelle;Ziel", "from_id,to_id", "x\ty"),
)


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("ids", ["words", "numbers"])
@pytest.mark.parametrize("weight", ["", "0.5"])
def test_a_plausible_header_is_a_header(header: str, ids: str, weight: str, tmp_path: Path) -> None:
    separator = next((one for one in ",;\t" if one in header), " ")
    nodes = ["ann", "bob", "cid", "dan"] if ids == "words" else ["7", "8", "9", "10"]
    lines = [(nodes[0], node) for node in nodes[1:]]
    rows = [(header, "cost"), *((separator.join(line), weight) for line in lines)]
    text = "\n".join(separator.join(row) if weight else row[0] for row in rows)
    file = tmp_path / ("edges.txt" if separator == " " else "edges.csv")
    file.write_text(text + "\n")
    graph = load(file)
    assert sorted(graph.ids.astype(str).tolist()) == sorted(nodes)
    assert graph.data.num_edges == 6


def test_a_table_of_nodes_of_words_alone_has_a_header(tmp_path: Path) -> None:
    graph = loaded(tmp_path, PATH, "who,city\na,Rome\nb,Oslo\nc,Rome\n")
    assert graph.ids.tolist() == ["a", "b", "c"]
    assert list(graph.columns) == ["city"]


def test_a_table_of_numbers_has_no_header(tmp_path: Path) -> None:
    graph = loaded(tmp_path, "0,1\n1,2\n", "0,0.5\n1,0.25\n2,8\n")
    assert graph.ids.tolist() == [0, 1, 2]
    assert graph.columns["2"].tolist() == [0.5, 0.25, 8]


def test_comments_blank_lines_spaces_and_a_byte_order_mark_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("\ufeff# a graph\n# 2 edges\n\n1   2 \n\n 2 3\n")
    assert load(tmp_path / "e.txt").ids.tolist() == [1, 2, 3]
    (tmp_path / "k.txt").write_text("% sym unweighted\n% 2 3 3\n1 2\n2 3\n")  # as KONECT writes
    assert load(tmp_path / "k.txt").ids.tolist() == [1, 2, 3]
    (tmp_path / "e.csv").write_text('"a x", b\r\n b ,"c, d"\r\n')
    assert load(tmp_path / "e.csv").ids.tolist() == ["a x", "b", "c, d"]


def test_an_edge_that_begins_with_a_comment_sign_is_told(tmp_path: Path) -> None:
    lines = [f"n{k},n{k + 1}" for k in range(20)]
    (tmp_path / "e.csv").write_text("\n".join([*lines, "#n7,n9"]) + "\n")
    graph = load(tmp_path / "e.csv")
    assert "#n7" in graph.ids.tolist()
    assert [note for note in graph.notes if "1 edge begins with '#'; only lines before" in note]
    (tmp_path / "e.csv").write_text("source,target\n#art,#music\n#music,#dance\n")
    assert not [note for note in load(tmp_path / "e.csv").notes if "begin" in note]


def test_a_name_that_a_user_gives_makes_line_1_a_header(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("citing,cited\np1,p2\np2,p3\n")
    with pytest.raises(UserError, match="no column 'nosuch'; it has 'citing', 'cited'"):
        load(tmp_path / "edges.csv", source_column="citing", target_column="nosuch")


@pytest.mark.parametrize("named", [False, True])
def test_an_adjacency_matrix_in_text_is_told(named: bool, tmp_path: Path) -> None:
    matrix = np.eye(14, k=1, dtype=int) + np.eye(14, k=-1, dtype=int)
    frame = pd.DataFrame(matrix, index=[f"n{k}" for k in range(14)])
    frame.columns = frame.index
    frame.to_csv(tmp_path / "m.csv", header=named, index=named)
    notes = load(tmp_path / "m.csv").notes
    assert [note for note in notes if "is it an adjacency matrix?" in note]
