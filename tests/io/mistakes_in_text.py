"""Mistakes in paths, text files, ids and labels."""

import os
from pathlib import Path

import numpy as np
import pytest
from mistake_cases import Mistakes, edges, nodes

from muxgcl.io.load import load

MISTAKES = Mistakes()
mistake = MISTAKES.add


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
