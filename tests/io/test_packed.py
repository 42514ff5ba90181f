"""Text packed by gzip: the same graph, the same words about mistakes, and no bombs."""

import gzip
import shutil
from pathlib import Path

import pytest
import torch

from muxgcl import UserError, load
from muxgcl.app.source import Source
from muxgcl.io import arrow_text
from muxgcl.io.load import Loaded

NODES = "id,age,team\n" + "".join(f"n{k},{20 + k},{'ab'[k % 2]}\n" for k in range(9))
EDGES = "".join(f"n{k},n{k + 1}\n" for k in range(8))


def packed(path: Path, text: str) -> Path:
    with gzip.open(path, "wb") as file:
        file.write(text.encode())
    return path


def same(one: Loaded, two: Loaded) -> None:
    assert one.ids.tolist() == two.ids.tolist()
    for name in ("x", "edge_index", "y"):
        assert torch.equal(one.data[name], two.data[name]), name


@pytest.fixture
def plain(tmp_path: Path) -> Loaded:
    (tmp_path / "e.csv").write_text(EDGES)
    (tmp_path / "n.csv").write_text(NODES)
    return load(tmp_path / "e.csv", features=tmp_path / "n.csv", label_column="team")


@pytest.mark.parametrize("ending", [".csv.gz", ".CSV.GZ", ".tsv.gz", ".txt.gz", ".edges.gz"])
def test_packed_text_is_the_same_graph(ending: str, tmp_path: Path, plain: Loaded) -> None:
    cut = (lambda text: text.replace(",", "\t")) if "tsv" in ending else (lambda text: text)
    edges = packed(tmp_path / f"edges{ending}", cut(EDGES))
    nodes = packed(tmp_path / f"nodes{ending}", "\ufeff" + cut(NODES))
    same(load(edges, features=nodes, label_column="team"), plain)
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(edges, folder)
    shutil.copy(nodes, folder)
    same(load(folder, label_column="team"), plain)
    assert Source(edges).dataset == "edges"


def test_pyarrow_reads_packed_text_as_python_does(
    tmp_path: Path, plain: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_text, "SMALL", 0)
    read, real = [], arrow_text.ArrowReader.blocks
    monkeypatch.setattr(
        arrow_text.ArrowReader,
        "blocks",
        lambda self, text: read.append(real(self, text)) or read[-1],
    )
    edges, nodes = packed(tmp_path / "e.csv.gz", EDGES), packed(tmp_path / "n.csv.gz", NODES)
    same(load(edges, features=nodes, label_column="team"), plain)
    assert len(read) == 2
    assert None not in read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "edges.csv.gz is empty"),
        ("a,b\nb,c,d\n", "edges.csv.gz, line 2: 3 fields, but line 1 has 2"),
        ("source,target,weight\na,b,1\nb,c,-1\n", "edges.csv.gz, line 3: the weight of an edge"),
        ("a\0,b\n", "edges.csv.gz is not text: it holds zero bytes"),
    ],
)
def test_a_mistake_names_the_line_inside(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        load(packed(tmp_path / "edges.csv.gz", text))


def test_what_is_not_packed_or_cut_off_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv.gz"
    file.write_text(EDGES)
    with pytest.raises(UserError, match="cannot be read as file: Not a gzipped file"):
        load(file)
    content = packed(file, EDGES * 50).read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match="cannot be read as file: Compressed file ended before"):
        load(file)
    (tmp_path / "g.npz.gz").write_bytes(content)
    with pytest.raises(UserError, match=r"g\.npz\.gz: expected a graph as .*, got '\.gz'"):
        load(tmp_path / "g.npz.gz")


def test_a_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = packed(tmp_path / "edges.csv.gz", "a,b\n" * 2_000_000)
    assert file.stat().st_size < 20_000
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "6000000")
    with pytest.raises(UserError, match=r"edges\.csv\.gz would take .* the limit is 6\.0 MB"):
        load(file)
