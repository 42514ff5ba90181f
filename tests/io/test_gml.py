"""GML, as NetworkX and others write it."""

from pathlib import Path

import networkx as nx
import pytest

from muxgcl import UserError, load

LABELLED = """\
Creator "somebody"
graph [
  directed 0
  node [ id 7 label "Ann" value 1 graphics [ x 1.5 y 2.5 ] ]
  node [ id 3 label "Bob" value 0 ]
  node [ id 9 label "Cleo" value 1 ]
  edge [ source 7 target 3 weight 2.5 ]
  edge [ source 3 target 9 weight 1 ]
]
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="ascii")
    return path


def test_nodes_are_called_by_their_labels(tmp_path: Path) -> None:
    graph = load(written(tmp_path / "g.gml", LABELLED), label_column="value")
    assert graph.ids.tolist() == ["Ann", "Bob", "Cleo"]
    assert graph.data.y.tolist() == [1, 0, 1]
    assert graph.data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.data.edge_weight.tolist() == [2.5, 2.5, 1, 1]


def test_nodes_without_labels_keep_their_ids(tmp_path: Path) -> None:
    text = LABELLED.replace('label "Bob" ', "")
    graph = load(written(tmp_path / "g.gml", text), label_column="value")
    assert graph.ids.tolist() == [7, 3, 9]


def test_what_networkx_writes_is_the_same_graph(tmp_path: Path) -> None:
    network = nx.karate_club_graph()
    nx.write_gml(network, tmp_path / "g.gml")
    one, two = load(tmp_path / "g.gml", label_column="club"), load(network, label_column="club")
    assert one.ids.tolist() == two.ids.tolist()
    assert one.label_names == two.label_names
    for name in ("edge_index", "edge_weight", "y", "x"):
        assert one.data[name].equal(two.data[name]), name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LABELLED.replace("Cleo", "Ann"), "two nodes have the same label"),
        (LABELLED[:90], "cannot be read as GML: "),
        ("nothing", "cannot be read as GML: "),
        (LABELLED.replace("7 target 3", "5 target 3"), "cannot be read as GML: "),
    ],
)
def test_a_mistake_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said) as error:
        load(written(tmp_path / "g.gml", text))
    assert "\n" not in str(error.value)
