"""Text is Unicode: every character comes back, and what is none is refused before training."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import networkx
import numpy as np
import pytest
from cli_cases import FAST, ask

from muxgcl.errors import UserError
from muxgcl.io.load import load
from muxgcl.runs.folder import Run
from muxgcl.runs.settings import to_toml

PLANES = range(17)
SURROGATES = range(0xD800, 0xE000)
STRANGE = "😀𓀀\U0010ffff𠀀é\u202e\u2028'\"\\"  # of several planes, and what quoting must survive


@pytest.mark.parametrize("plane", PLANES)
def test_every_character_of_a_plane_comes_back_from_toml(plane: int) -> None:
    codes = range(0x10000 * plane, 0x10000 * (plane + 1))
    text = "".join(chr(code) for code in codes if code not in SURROGATES)
    assert tomllib.loads(to_toml({"t": {"k": text}}).encode().decode()) == {"t": {"k": text}}
    assert tomllib.loads(to_toml({"k": [text[:9]]})) == {"k": [text[:9]]}


def test_a_name_of_any_plane_comes_back_from_toml() -> None:
    assert tomllib.loads(to_toml({"t": {STRANGE: 1}})) == {"t": {STRANGE: 1}}


def test_lone_surrogates_are_refused_before_a_config_is_written(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    for tables in ({"run": {"command": "a\udcff"}}, {"run": {"\ud800": 1}}):
        with pytest.raises(UserError, match="must be Unicode text"):
            run.write_config(tables)
    assert not run.exists


def _graph(**attributes: str) -> networkx.Graph:
    graph = networkx.path_graph(4)
    for node in graph:
        graph.nodes[node].update(attributes)
    return graph


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (networkx.Graph([("a\ud800", "b"), ("b", "c")]), "the id of a node must be Unicode text"),
        (_graph(kind="a\udfff"), "column 'kind' must be Unicode text"),
        (_graph(**{"k\ud800": "1"}), "a column must be Unicode text"),
        (_graph(label="\udc00"), "a label must be Unicode text"),
    ],
)
def test_lone_surrogates_in_a_graph_are_refused_on_loading(
    graph: networkx.Graph, words: str
) -> None:
    with pytest.raises(UserError, match=words) as caught:
        load(graph)
    str(caught.value).encode()


def test_an_array_of_texts_that_are_no_unicode_is_refused(tmp_path: Path) -> None:
    for code in (0xD800, 0xDFFF, 0x110000, 0x7FFFFFFF):
        ids = np.array([code, 65, 66], "<u4").view("<U1")
        np.savez(tmp_path / "nodes.npz", x=np.eye(3), id=ids)
        (tmp_path / "edges.csv").write_text("A,B\n")
        with pytest.raises(UserError, match="holds text that is not Unicode"):
            load(tmp_path)


def test_emoji_in_names_paths_and_labels_survive_a_whole_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "graph 😀 𓀀"
    folder.mkdir()
    rows = [f"n{i}𠀀,{i % 7},kind 😀{i % 3},{'abc'[i % 3]}😀" for i in range(60)]
    (folder / "nodes.csv").write_text("id,size 🎲,kind 𓀀,topic 🏷\n" + "\n".join(rows) + "\n")
    edges = [f"n{i}𠀀,n{(i * 7 + k) % 60}𠀀" for i in range(60) for k in (1, 2)]
    (folder / "edges.csv").write_text("from,to\n" + "\n".join(edges) + "\n")
    out = str(tmp_path / "run 🏃")
    words = [str(folder), "--label-column", "topic 🏷", "--method", "grace", *FAST]
    status, text, err = ask(capsys, "run", *words, "--out", out, "--json")
    assert (status, err.count("Traceback")) == (0, 0), err
    assert json.loads(text)["run"] == out
    tables = Run(Path(out)).config()
    assert tables["source"]["label_column"] == "topic 🏷"
    assert "😀" in tables["source"]["graph"]
    assert "🎲" in (Path(out) / "report.html").read_text(encoding="utf-8")
    for again in (
        ["run", *words, "--out", out, "--resume"],
        ["evaluate", out, "--splits", "2"],
        ["embed", out, "--out", str(tmp_path / "z 🧊.csv")],
        ["cluster", out],
        ["report", out],
    ):
        status, _, err = ask(capsys, *again)
        assert status == 0, (again, err)
    assert "n7𠀀," in (tmp_path / "z 🧊.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", [["--out"], ["--label-column"], []])
def test_bytes_that_are_not_utf_8_are_refused_before_anything_is_read(option: list[str]) -> None:
    words = [b"muxgcl", b"run", b"cora", *(o.encode() for o in option), b"a\xff"]
    program = "from muxgcl.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *words[1:]], capture_output=True, env={**os.environ}
    )
    assert done.returncode == 2
    assert done.stderr.decode("ascii").splitlines() == [
        "muxgcl: 'a\\udcff' is not UTF-8: rename what it names"
    ]
