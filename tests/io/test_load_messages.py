"""Every kind of bad input gets the one line that docs/data-formats.md says it gets."""

import os
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from npy_header import npy_header

from muxgcl.errors import UserError
from muxgcl.io.load import load

DOCUMENT = Path(__file__).parents[2] / "docs" / "data-formats.md"
Mistake = Callable[[pytest.MonkeyPatch], object]
MISTAKES: dict[str, Mistake] = {}


def mistake(name: str) -> Callable[[Mistake], Mistake]:
    def keep(function: Mistake) -> Mistake:
        MISTAKES[name] = function
        return function

    return keep


def edges(text: str, **options: object) -> object:
    Path("edges.csv").write_text(text)
    return load("edges.csv", **options)


def nodes(text: str, **options: object) -> object:
    Path("nodes.csv").write_text(text)
    return edges("a,b\nb,c\n", features="nodes.csv", **options)


def npz(name: str = "x.npz", **arrays: object) -> str:
    np.savez_compressed(name, **arrays)
    return name


def features(source: str) -> object:
    return edges("0,1\n1,2\n", features=source)


@mistake("no such file")
def _(patch: pytest.MonkeyPatch) -> object:
    return load("nowhere.csv")


@mistake("an empty file")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("")


@mistake("a file of blank lines")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("\n\n\n")


@mistake("a header and nothing else")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("source,target\n")


@mistake("a suffix that is not known")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("graph.xlsx").write_bytes(b"PK")
    return load("graph.xlsx")


@mistake("a pipe or a device in place of a file")
def _(patch: pytest.MonkeyPatch) -> object:
    os.mkfifo("pipe.csv")
    return load("pipe.csv")


@mistake("a file larger than memory allows")
def _(patch: pytest.MonkeyPatch) -> object:
    patch.setenv("MUXGCL_MAX_BYTES", "1000")
    return edges("1,2\n" * 500)


@mistake("a folder without edges")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("graph").mkdir()
    Path("graph/nodes.csv").write_text("id,age\na,1\n")
    return load("graph")


@mistake("a folder with two files of edges")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("graph").mkdir()
    Path("graph/edges.csv").write_text("a,b\n")
    Path("graph/edges.tsv").write_text("a\tb\n")
    return load("graph")


@mistake("a wrong number of fields on line 7")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("source,target\n1,2\n2,3\n3,4\n4,5\n5,6\n6,7,8\n7,8\n")


@mistake("text that is not UTF-8")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("edges.csv").write_bytes("René,Zoë\n".encode("latin-1"))
    return load("edges.csv")


@mistake("UTF-16, or bytes that are no text")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("edges.csv").write_bytes("a,b\n".encode("utf-16"))
    return load("edges.csv")


@mistake("a quotation mark that is never closed")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges('a,b\nb,"c\n')


@mistake("an edge list of one column")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("a\nb\n")


@mistake("two columns of one name")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("source,target,kind,kind\na,b,1,2\n")


@mistake("a column that is not there")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("source,target\na,b\n", weight_column="cost")


@mistake("one column as source and target")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("source,target\na,b\n", source_column="target")


@mistake("a blank id")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("source,target\na,b\n,c\n")


@mistake("an id of absurd length")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("a,b\nb," + "c" * 5000 + "\n")


@mistake("a weight that is no number")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("source,target,weight\na,b,1\nb,c,heavy\n")


@mistake("a negative weight")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("source,target,weight\na,b,1\nb,c,-2\n")


@mistake("an edge without weight among others with")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("source,target,weight\na,b,1\nb,c,\n")


@mistake("no edge but self-loops")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("a,a\nb,b\n")


@mistake("an edge to a node that the table of nodes lacks")
def _(patch: pytest.MonkeyPatch) -> object:
    return nodes("id,age\na,1\nb,2\n")


@mistake("a header that was taken for an edge, as one of its words is a node")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("nodes.csv").write_text("id,age\na,1\nb,2\nc,3\n")
    return edges("fan,c\na,b\nb,c\n", features="nodes.csv")


@mistake("a column to leave out that is not there")
def _(patch: pytest.MonkeyPatch) -> object:
    return nodes("id,age\na,1\nb,2\nc,3\n", exclude="wage")


@mistake("an edge list whose first two columns are not the ends")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("nodes.csv").write_text("id,age\na,1\nb,2\n")
    return edges("cost,sender,receiver\n2.5,a,b\n", features="nodes.csv")


@mistake("ids that are counted from 1, and an array")
def _(patch: pytest.MonkeyPatch) -> object:
    np.save("x.npy", np.ones((3, 2), np.float32))
    return edges("1,2\n2,3\n", features="x.npy")


@mistake("an id that comes twice in the table of nodes")
def _(patch: pytest.MonkeyPatch) -> object:
    return nodes("id,age\na,1\nb,2\nc,3\na,4\n")


@mistake("NaN in a column")
def _(patch: pytest.MonkeyPatch) -> object:
    return nodes("id,age\na,1\nb,nan\nc,3\n")


@mistake("infinity in a column")
def _(patch: pytest.MonkeyPatch) -> object:
    return nodes("id,age\na,1\nb,2\nc,1e99\n")


@mistake("a word in a column of numbers")
def _(patch: pytest.MonkeyPatch) -> object:
    rows = "".join(f"n{node},{node}\n" for node in range(20))
    return nodes("id,age\na,1\nb,about 40\nc,3\n" + rows)


@mistake("a label column that is not there")
def _(patch: pytest.MonkeyPatch) -> object:
    return nodes("id,age\na,1\nb,2\nc,3\n", label_column="topic")


@mistake("labels asked for, but nowhere to be found")
def _(patch: pytest.MonkeyPatch) -> object:
    return edges("a,b\n", label_column="topic")


@mistake("a file of labels with several columns, none of a usual name")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("labels.csv").write_text("id,topic,year\na,x,1999\n")
    return edges("a,b\n", labels="labels.csv")


@mistake("a label for a node that the table of nodes lacks")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("labels.csv").write_text("id,label\na,x\nd,y\n")
    return nodes("id,age\na,1\nb,2\nc,3\n", labels="labels.csv")


@mistake("labels of quite other nodes")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("labels.csv").write_text("id,label\n1,x\n2,y\n")
    return edges("a,b\n", labels="labels.csv")


@mistake("a truncated Parquet file")
def _(patch: pytest.MonkeyPatch) -> object:
    pd.DataFrame({"source": range(99), "target": range(1, 100)}).to_parquet("edges.parquet")
    whole = Path("edges.parquet").read_bytes()
    Path("edges.parquet").write_bytes(whole[: len(whole) // 2])
    return load("edges.parquet")


@mistake("Parquet without pyarrow")
def _(patch: pytest.MonkeyPatch) -> object:
    patch.setitem(sys.modules, "pyarrow.parquet", None)
    Path("edges.parquet").write_bytes(b"PAR1")
    return load("edges.parquet")


@mistake("a Parquet column of lists")
def _(patch: pytest.MonkeyPatch) -> object:
    pq.write_table(pa.table({"id": [0, 1, 2], "v": [[1.0], [2.0], [3.0]]}), "nodes.parquet")
    return features("nodes.parquet")


@mistake("a small Parquet file of very many rows")
def _(patch: pytest.MonkeyPatch) -> object:
    patch.setenv("MUXGCL_MAX_BYTES", "1000000")
    same = pa.array(np.zeros(1_000_000, np.int64))
    pq.write_table(pa.table({"source": same, "target": same}), "edges.parquet")
    assert Path("edges.parquet").stat().st_size < 10_000
    return load("edges.parquet")


@mistake("an array of Python objects")
def _(patch: pytest.MonkeyPatch) -> object:
    np.save("x.npy", np.array([{}, {}, {}], dtype=object), allow_pickle=True)
    return features("x.npy")


@mistake("Python objects in an `.npz`")
def _(patch: pytest.MonkeyPatch) -> object:
    return features(npz(x=np.array([[{}], [{}], [{}]], dtype=object)))


@mistake("a header that declares 10 GB")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("x.npy").write_bytes(npy_header((1_250_000_000, 1)) + bytes(80))
    return features("x.npy")


@mistake("the same inside an `.npz`")
def _(patch: pytest.MonkeyPatch) -> object:
    with zipfile.ZipFile("x.npz", "w") as archive:
        archive.writestr("x.npy", npy_header((1_250_000_000, 1)) + bytes(80))
    return features("x.npz")


@mistake("a zip bomb")
def _(patch: pytest.MonkeyPatch) -> object:
    patch.setenv("MUXGCL_MAX_BYTES", "1000000")
    with zipfile.ZipFile("x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy_header((3, 1_000_000)) + bytes(24_000_000))
    assert Path("x.npz").stat().st_size < 50_000
    return features("x.npz")


@mistake("a header of absurd length")
def _(patch: pytest.MonkeyPatch) -> object:
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"1," * 500_000 + b")}\n"
    Path("x.npy").write_bytes(b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text)
    return features("x.npy")


@mistake("a truncated `.npy`")
def _(patch: pytest.MonkeyPatch) -> object:
    np.save("x.npy", np.eye(3))
    Path("x.npy").write_bytes(Path("x.npy").read_bytes()[:-8])
    return features("x.npy")


@mistake("an `.npz` that is none")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("x.npz").write_text("not a zip archive")
    return features("x.npz")


@mistake("an `.npz` without one table of features")
def _(patch: pytest.MonkeyPatch) -> object:
    return features(npz(a=np.eye(3), b=np.eye(3)))


@mistake("NaN in an array")
def _(patch: pytest.MonkeyPatch) -> object:
    np.save("x.npy", np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]]))
    return features("x.npy")


@mistake("features that are no table of numbers")
def _(patch: pytest.MonkeyPatch) -> object:
    np.save("x.npy", np.ones(3))
    return features("x.npy")


@mistake("an edge beyond the last row of an array")
def _(patch: pytest.MonkeyPatch) -> object:
    np.save("x.npy", np.eye(2))
    return features("x.npy")


@mistake("a sparse matrix with an index outside of it")
def _(patch: pytest.MonkeyPatch) -> object:
    matrix = sp.csr_array(np.eye(3))
    parts = {"data": matrix.data, "indices": matrix.indices + 1, "indptr": matrix.indptr}
    return features(npz(**parts, shape=np.array([3, 3]), format=np.array(b"csr")))


@mistake("a sparse matrix of absurd shape")
def _(patch: pytest.MonkeyPatch) -> object:
    patch.setenv("MUXGCL_MAX_BYTES", "1000000")
    empty = {name: np.zeros(0, np.int64) for name in ("row", "col", "data")}
    return features(npz(**empty, shape=np.array([10**12, 3]), format=np.array(b"coo")))


@mistake("an `.npz` in place of a graph")
def _(patch: pytest.MonkeyPatch) -> object:
    return load(npz("graph.npz", x=np.eye(3)))


@mistake("an adjacency matrix that is not square")
def _(patch: pytest.MonkeyPatch) -> object:
    sp.save_npz("graph.npz", sp.csr_array(np.ones((2, 3))))
    return load("graph.npz")


@mistake("XML with a document type (entity bombs need one)")
def _(patch: pytest.MonkeyPatch) -> object:
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    Path("graph.graphml").write_text(f"<?xml version='1.0'?>{bomb}<graphml>&b;</graphml>")
    return load("graph.graphml")


@mistake("XML that is cut off")
def _(patch: pytest.MonkeyPatch) -> object:
    nx.write_gexf(nx.path_graph(4), "graph.gexf")
    Path("graph.gexf").write_text(Path("graph.gexf").read_text()[:-40])
    return load("graph.gexf")


@mistake("XML that is no GraphML")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("graph.graphml").write_text("<html></html>")
    return load("graph.graphml")


@mistake("an object that is no graph")
def _(patch: pytest.MonkeyPatch) -> object:
    return load({"a": ["b"]})


@mistake("an edge index of the wrong shape")
def _(patch: pytest.MonkeyPatch) -> object:
    return load((torch.zeros(5, 3, dtype=torch.int64), torch.eye(3)))


@mistake("an edge index beyond the features")
def _(patch: pytest.MonkeyPatch) -> object:
    return load((torch.tensor([[0, 1], [1, 7]]), torch.eye(3)))


@mistake("an array of labels of the wrong shape")
def _(patch: pytest.MonkeyPatch) -> object:
    return load((torch.tensor([[0, 1], [1, 2]]), torch.eye(3)), labels=np.zeros((3, 2), int))


@mistake("an array of labels of another length than the nodes")
def _(patch: pytest.MonkeyPatch) -> object:
    return load((torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.eye(4)), labels=[0, 1, 0])


@mistake("an array of labels that ends before an edge's node")
def _(patch: pytest.MonkeyPatch) -> object:
    np.save("y.npy", np.array([0, 1, 0]))
    return edges("0,1\n1,2\n2,3\n", labels="y.npy")


@mistake("NetworkX nodes 1 and '1'")
def _(patch: pytest.MonkeyPatch) -> object:
    return load(nx.Graph([(1, "1"), ("1", 2)]))


def documented() -> dict[str, str]:
    """The table of mistakes in the documentation."""
    text = DOCUMENT.read_text().split("## What it says when something is wrong")[1]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {name: message.strip("`") for name, message in rows[2:]}


def test_the_documentation_lists_every_mistake() -> None:
    assert list(documented()) == list(MISTAKES)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_the_line_that_is_documented(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error:
        MISTAKES[name](monkeypatch)
    said, want = str(error.value), documented()[name]
    assert "\n" not in said
    if want.endswith("..."):  # a parser's own words follow, and change with its version
        assert said.startswith(want.removesuffix("..."))
    else:
        assert said == want
