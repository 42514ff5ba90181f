"""Mistakes in Parquet files, arrays, matrices, XML and objects in memory."""

import struct
import sys
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from mistake_cases import Mistakes, edges, features, npy_header, npz
from pyarrow.feather import write_feather

from muxgcl.io.load import load

MISTAKES = Mistakes()
mistake = MISTAKES.add


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


@mistake("a truncated Arrow file")
def _(patch: pytest.MonkeyPatch) -> object:
    pd.DataFrame({"source": range(99), "target": range(1, 100)}).to_feather("edges.arrow")
    whole = Path("edges.arrow").read_bytes()
    Path("edges.arrow").write_bytes(whole[: len(whole) // 2])
    return load("edges.arrow")


@mistake("another file with an Arrow file's name")
def _(patch: pytest.MonkeyPatch) -> object:
    Path("edges.feather").write_bytes(b"FEA1 and so on")
    return load("edges.feather")


@mistake("an Arrow file with a damaged message")
def _(patch: pytest.MonkeyPatch) -> object:
    pd.DataFrame({"source": range(99), "target": range(1, 100)}).to_feather("edges.arrow")
    whole = bytearray(Path("edges.arrow").read_bytes())
    whole[8:16] = bytes(8)  # the stream seems to end before it begins
    Path("edges.arrow").write_bytes(whole)
    return load("edges.arrow")


@mistake("Arrow without pyarrow")
def _(patch: pytest.MonkeyPatch) -> object:
    patch.setitem(sys.modules, "pyarrow", None)
    Path("edges.arrow").write_bytes(b"ARROW1")
    return load("edges.arrow")


@mistake("an Arrow column of lists")
def _(patch: pytest.MonkeyPatch) -> object:
    table = pa.table({"id": [0, 1, 2], "v": [[1.0], [2.0], [3.0]]})
    write_feather(table, "nodes.feather")
    return features("nodes.feather")


@mistake("a small Arrow file of very many rows")
def _(patch: pytest.MonkeyPatch) -> object:
    patch.setenv("MUXGCL_MAX_BYTES", "1000000")
    same = pa.array(np.zeros(1_000_000, np.int64))
    table = pa.table({"source": same, "target": same})
    write_feather(table, "edges.feather", compression="zstd")
    assert Path("edges.feather").stat().st_size < 30_000
    return load("edges.feather")


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
