"""Random graphs come back as they were; random bytes give a graph or one line, and no traceback."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from muxgcl.cli.options import GraphName
from muxgcl.errors import UserError
from muxgcl.io import sources
from muxgcl.io.load import Loaded, load

patient = settings(deadline=None, max_examples=60)

# Ids as people write them: any letters and signs, no space around them.
words = st.text(
    st.characters(exclude_categories=("C", "Z")) | st.sampled_from(" ,;\"'#|_"),
    min_size=1,
    max_size=6,
).filter(lambda text: text == text.strip())
ids = st.one_of(
    st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=9, unique=True),
    st.lists(words, min_size=2, max_size=9, unique=True),
    st.lists(words | st.integers(0, 99).map(str), min_size=2, max_size=9, unique=True),
)
number = st.floats(-1e6, 1e6, width=32)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Edges with weights and nodes with a number, a category and a label; gaps everywhere."""
    names = draw(ids)
    node = st.sampled_from(names)
    pairs = draw(st.lists(st.tuples(node, node), max_size=25))
    pairs.append((names[0], names[1]))
    edges = pd.DataFrame(pairs, columns=["source", "target"])
    weights = st.floats(0.125, 8, width=32)
    edges["weight"] = draw(st.lists(weights, min_size=len(pairs), max_size=len(pairs)))
    count = len(names)

    def column(cells: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(st.none() | cells, min_size=count, max_size=count))

    nodes = pd.DataFrame(
        {
            "id": names,
            "age": pd.Series(column(number), dtype="float32"),
            "city": pd.Series(column(st.sampled_from(["x1", "x2", "true love"])), dtype=object),
            "label": pd.Series(column(st.sampled_from(["red", "blue", "2"])), dtype=object),
        }
    )
    return edges, nodes


def assert_same(one: Loaded, two: Loaded) -> None:
    assert one.ids.tolist() == two.ids.tolist()
    assert one.label_names == two.label_names
    assert set(one.data.keys()) == set(two.data.keys())
    assert all(torch.equal(one.data[name], two.data[name]) for name in set(one.data.keys()))


@patient
@given(graphs())
def test_a_random_graph_comes_back(graph: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    edges, nodes = graph
    found = load((edges, nodes))
    order = {name: place for place, name in enumerate(nodes["id"])}
    weights: dict[tuple[int, int], float] = {}
    for a, b, weight in edges.itertuples(index=False):
        for pair in ((order[a], order[b]), (order[b], order[a])):
            if a != b:
                weights[pair] = max(weights.get(pair, 0), weight)
    assert list(map(str, found.ids.tolist())) == list(map(str, nodes["id"]))
    assert found.data.edge_index.T.tolist() == [list(pair) for pair in sorted(weights)]
    if set(weights.values()) != {1.0}:
        assert found.data.edge_weight.tolist() == [weights[pair] for pair in sorted(weights)]
    label_names = [None, *found.label_names]
    labels = [label_names[1 + code] for code in found.data.y.tolist()]
    assert labels == [None if pd.isna(label) else label for label in nodes["label"]]
    assert torch.isfinite(found.data.x).all()


@patient
@given(graphs())
def test_files_and_networks_give_the_same_random_graph(
    graph: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    edges, nodes = graph
    want = load((edges, nodes))
    with TemporaryDirectory() as name:
        folder = Path(name)
        edges.to_csv(folder / "edges.csv", index=False)
        nodes.to_csv(folder / "nodes.csv", index=False)
        assert_same(load(folder), want)
        edges.to_csv(folder / "edges.tsv", index=False, sep="\t")
        nodes.to_parquet(folder / "n.parquet", index=False)
        assert_same(load(folder / "edges.tsv", features=folder / "n.parquet"), want)
    network = nx.MultiDiGraph()
    for record in nodes.to_dict("records"):
        known = {key: value for key, value in record.items() if not pd.isna(value)}
        network.add_node(known.pop("id"), **known)
    for a, b, weight in edges.itertuples(index=False):
        network.add_edge(a, b, weight=weight)
    if all(nodes[column].notna().any() for column in nodes):  # else it does not know the column
        again = load(network)
        if again.encoding == want.encoding:  # the order of attributes is that of their first use
            assert_same(again, want)


@patient
@given(st.integers(2, 8), st.data())
def test_loading_what_was_loaded_changes_nothing(nodes: int, data: st.DataObject) -> None:
    node = st.integers(0, nodes - 1)
    pairs = [*data.draw(st.lists(st.tuples(node, node), max_size=20)), (0, 1)]
    weights = data.draw(
        st.lists(st.floats(0.5, 4, width=32), min_size=len(pairs), max_size=len(pairs))
    )
    x = torch.eye(nodes)
    matrix = sp.coo_array((weights, tuple(np.array(pairs).T)), shape=(nodes, nodes))
    once = load((matrix, x))
    twice = load(once.data)
    assert_same(once, twice)
    assert not any("undirected" in note or "removed" in note for note in twice.notes)


# --- malformed files -------------------------------------------------------------------------


def complaint(name: str, content: bytes, **options: object) -> str:
    """What `load` says of a file, a table of features if it is called n.*; blank if it took it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        source = (torch.tensor([[0, 1], [1, 2]]), path) if name.startswith("n.") else path
        try:
            load(source, **options)
        except UserError as fault:  # anything else fails the test
            return str(fault)
    return ""


def is_one_line(said: str) -> bool:
    return "\n" not in said and len(said) < 600


GRAPHS = [f"g{suffix}" for suffix in sources.GRAPHS]
TABLES = [f"n{suffix}" for suffix in sources.NODES]
scribble = st.text(st.sampled_from("01ab2,;\t\n\r \"'#.-_eniNAéx"), max_size=80)


@patient
@given(st.sampled_from([*GRAPHS, *TABLES]), st.binary(max_size=200))
def test_random_bytes_give_one_line(name: str, content: bytes) -> None:
    assert is_one_line(complaint(name, content))


@settings(patient, max_examples=200)
@given(st.sampled_from(["g.csv", "g.tsv", "g.txt", "n.csv", "n.tsv"]), scribble)
def test_random_text_gives_a_graph_or_one_line(name: str, text: str) -> None:
    assert is_one_line(complaint(name, text.encode()))


@st.composite
def ragged(draw: st.DrawFn) -> str:
    """A CSV file some of whose rows, cells or quotation marks went wrong."""
    cells = ["0", "1", "2", "a", "", "nan", "inf", "-1", "1e999", "x,y", 'q"', "NA", "\n"]
    row = st.lists(st.sampled_from(cells), min_size=1, max_size=4)
    out = io.StringIO()
    csv.writer(out).writerows(draw(st.lists(row, min_size=1, max_size=8)))
    return out.getvalue()


@settings(patient, max_examples=200)
@given(st.sampled_from(["g.csv", "n.csv"]), ragged(), st.sampled_from([None, True, False]))
def test_a_ragged_csv_gives_a_graph_or_one_line(name: str, text: str, header: bool | None) -> None:
    assert is_one_line(complaint(name, text.encode(), header=header))


def small() -> nx.DiGraph:
    graph = nx.DiGraph([("a", "b", {"weight": 2.0}), ("b", "c")])
    nx.set_node_attributes(graph, {"a": 1, "b": 2, "c": 3}, "age")
    return graph


def saved(write: Callable[[Path], object], name: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


TABLE = pd.DataFrame({"id": [0, 1, 2], "n": [1.5, 2.5, 0.0], "t": ["x", "y", "x"]})
LINES = TABLE.to_csv(index=False).encode()
WHOLE = {
    **{f"g{suffix}": b"a b 2\nb c 1\n" for suffix in (".txt", ".edges", ".edgelist")},
    **{f"n{suffix}": LINES for suffix in (".csv", ".txt", ".edges", ".edgelist")},
    "n.tsv": LINES.replace(b",", b"\t"),
    "g.csv": b"source,target\na,b\nb,c\n",
    "g.tsv": b"a\tb\nb\tc\n",
    "g.graphml": saved(lambda path: nx.write_graphml(small(), path), "g.graphml"),
    "g.gexf": saved(lambda path: nx.write_gexf(small(), path), "g.gexf"),
    "g.gml": saved(lambda path: nx.write_gml(small(), path), "g.gml"),
    "g.json": json.dumps(nx.node_link_data(small(), edges="links")).encode(),
    "g.npz": saved(lambda path: sp.save_npz(path, sp.csr_array(np.eye(4)[[1, 2, 3, 0]])), "g.npz"),
    "n.npz": saved(lambda path: np.savez(path, x=np.eye(3), id=np.arange(3)), "n.npz"),
    "n.npy": saved(lambda path: np.save(path, np.eye(3)), "n.npy"),
    "n.parquet": saved(lambda path: TABLE.to_parquet(path), "n.parquet"),
}
WHOLE["g.parquet"] = saved(
    lambda path: pd.DataFrame({"a": [0, 1], "b": [1, 2]}).to_parquet(path), "g.parquet"
)
WHOLE |= {
    "n.arrow": saved(lambda path: TABLE.to_feather(path, compression="uncompressed"), "n.arrow"),
    "n.feather": saved(lambda path: TABLE.to_feather(path), "n.feather"),
    "g.feather": saved(
        lambda path: pd.DataFrame({"a": [0, 1], "b": [1, 2]}).to_feather(path), "g.feather"
    ),
}
WHOLE["g.arrow"] = WHOLE["g.feather"]
WHOLE |= {"n.pq": WHOLE["n.parquet"], "g.pq": WHOLE["g.parquet"]}


def test_every_format_has_a_whole_file_to_damage() -> None:
    assert set(WHOLE) == {*GRAPHS, *TABLES}


def test_every_format_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "data-formats.md").read_text(encoding="utf-8")
    listed = page.split("## Where a graph comes from")[1].split("\n## ")[0]
    assert [suffix for suffix in (*sources.GRAPHS, *sources.NODES) if suffix not in listed] == []
    said = get_args(GraphName)[1].help
    for reader in set(sources.GRAPHS.values()):  # the help names at least one suffix of each
        suffixes = [suffix for suffix, other in sources.GRAPHS.items() if other is reader]
        assert any(suffix in said for suffix in suffixes), suffixes


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_file_can_be_read(name: str) -> None:
    assert complaint(name, WHOLE[name]) == ""


@settings(patient, max_examples=300)
@given(st.sampled_from(list(WHOLE)), st.data())
def test_a_damaged_file_gives_a_graph_or_one_line(name: str, data: st.DataObject) -> None:
    content = bytearray(WHOLE[name])
    for _ in range(data.draw(st.integers(1, 4), label="wounds")):
        at = data.draw(st.integers(0, len(content) - 1), label="at")
        match data.draw(st.sampled_from(["flip", "cut", "drop", "insert"]), label="kind"):
            case "flip":
                content[at] = data.draw(st.integers(0, 255), label="byte")
            case "cut":
                del content[max(at, 1) :]
            case "drop":
                del content[at : at + data.draw(st.integers(1, 9))]
            case "insert":
                content[at:at] = data.draw(st.binary(min_size=1, max_size=9))
        if not content:
            break
    assert is_one_line(complaint(name, bytes(content)))
