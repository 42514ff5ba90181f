"""The command line as a person uses it: what it prints, where, and how it ends."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from cli_cases import FAST, TINY, ask

from muxgcl.io import planted
from muxgcl.runs.folder import Run
from muxgcl.runs.settings import preset

CONTROLS = {"raw", "A X", "A^2 X", "X|AX|A^2X", "untrained", "majority"}


def test_json_is_one_object_and_all_of_standard_output(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    status, text, _ = ask(
        capsys, "run", *own, "--set", "affinity_epochs=1", *FAST, "--out", out, "--json"
    )
    assert status == 0
    found = json.loads(text)
    assert len(text.splitlines()) == 1
    assert list(found) == [
        "dataset", "method", "preset", "epochs", "seed", "members", "width", "device",
        "backend", "loss", "epoch_ms", "peak_mib", "run", "scores", "verdict",
    ]  # fmt: skip
    assert (found["dataset"], found["method"], found["epochs"]) == ("edges", "mux-hop", 2)
    assert set(found["scores"]["holdout"]["accuracy"]) == {"mean", "std", "n"}
    assert found["scores"]["holdout"]["accuracy"]["n"] == 2
    assert 0 <= found["scores"]["holdout"]["accuracy"]["mean"] <= 100
    assert set(found["scores"]["clustering"]) == {"nmi", "ari"}
    assert set(found["scores"]["controls"]) == CONTROLS
    assert found["verdict"]["control"] in CONTROLS
    names = {p.name for p in Path(out).iterdir() if not p.name.startswith(".")}
    assert names >= {
        "config.toml", "metrics.jsonl", "checkpoint.safetensors", "embeddings.npz",
        "scores.json", "report.html",
    }  # fmt: skip


def test_ids_come_back_as_they_were(trained: Path) -> None:
    ids, table = Run(trained).embeddings()
    assert ids.tolist() == [f"n{i}" for i in range(60)]
    assert table.shape == (60, 8)


def test_embedding_the_training_graph_gives_the_training_embeddings(
    trained: Path, own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    want = Run(trained).embeddings()[1]
    for words in ([], own):
        file = str(tmp_path / "z.npz")
        assert ask(capsys, "embed", str(trained), *words, "--out", file)[0] == 0
        with np.load(file) as arrays:
            assert np.array_equal(arrays["embedding"], want)


@pytest.mark.parametrize("ending", ["npz", "npy", "csv", "parquet"])
def test_embeddings_in_every_format(
    trained: Path, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"z.{ending}"
    assert ask(capsys, "embed", str(trained), "--out", str(file))[0] == 0
    want = Run(trained).embeddings()[1]
    if ending == "npy":
        got = np.load(file)
    elif ending == "npz":
        with np.load(file) as arrays:
            got = arrays["embedding"]
    elif ending == "csv":
        with file.open() as lines:
            rows = list(csv.reader(lines))
        assert rows[1][0] == "n0"
        got = np.array([row[1:] for row in rows[1:]], dtype=np.float64).astype(np.float32)
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        table = parquet.read_table(file)
        assert table["id"].to_pylist()[:2] == ["n0", "n1"]
        got = np.stack([table[name].to_numpy() for name in table.column_names[1:]], 1)
    assert np.array_equal(got, want)


def test_new_nodes_can_be_embedded_and_far_old_ones_keep_their_embedding(
    trained: Path, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges = (files / "edges.csv").read_text() + "n0,new\n"
    nodes = (files / "nodes.csv").read_text().rstrip("\n").splitlines()
    nodes.append(",".join(["new", *nodes[1].split(",")[1:-1], "class 0"]))
    (tmp_path / "edges.csv").write_text(edges)
    (tmp_path / "nodes.csv").write_text("\n".join(nodes) + "\n")
    file = tmp_path / "z.npz"
    grown = [str(tmp_path / "edges.csv"), "--features", str(tmp_path / "nodes.csv")]
    status, _, err = ask(
        capsys, "embed", str(trained), *grown, "--label-column", "topic", "--out", str(file)
    )
    assert status == 0, err
    with np.load(file) as arrays:
        ids, table = arrays["id"], arrays["embedding"]
    before = Run(trained).embeddings()[1]
    assert ids[-1] == "new"
    data = planted(nodes=60, seed=3)
    near, ends = {0}, data.edge_index.tolist()
    for _ in range(3):  # two layers, and a degree that reaches one hop further
        near |= {b for a, b in zip(*ends, strict=True) if a in near}
    far = [i for i in range(60) if i not in near]
    assert far
    np.testing.assert_allclose(table[:60][far], before[far], atol=1e-6)
    assert not np.allclose(table[0], before[0], atol=1e-6)


def test_evaluate_and_cluster_add_their_scores(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text, _ = ask(capsys, "evaluate", str(trained), "--splits", "3", "--json")
    assert status == 0
    assert json.loads(text)["scores"]["holdout"]["accuracy"]["n"] == 3
    status, text, _ = ask(capsys, "cluster", str(trained), "--repeats", "2", "--json")
    assert status == 0
    assert json.loads(text)["scores"]["clustering"]["nmi"]["n"] == 2
    scores = Run(trained).scores()
    assert set(scores) == {"holdout", "clustering", "controls"}
    assert set(scores["controls"]) == CONTROLS


def test_brackets_in_names_are_told_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "edges.csv").write_text("source,target\nx,y\ny,z\nz,x\n")
    (tmp_path / "nodes.csv").write_text("id,price [/kg],[red]\nx,1,2\ny,2,5\nz,7,1\n")
    words = ["train", str(tmp_path / "edges.csv"), "--features", str(tmp_path / "nodes.csv")]
    out = tmp_path / ("long" * 40)
    words += [*TINY, "--method", "grace", "--epochs", "2", "--quiet", "--device", "cpu"]
    status, _, err = ask(capsys, *words, "--out", str(out))
    assert status == 0
    assert "price [/kg]" in err
    assert "[red]" in err
    assert f"{out}/embeddings.npz\n" in err  # in one line


def test_lists_name_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = ask(capsys, "methods", "--json")
    assert {"mux-gcl", "grace"} <= {row["method"] for row in json.loads(text)["methods"]}
    _, text, _ = ask(capsys, "datasets", "--json")
    rows = {row["dataset"]: row for row in json.loads(text)["datasets"]}
    assert rows["cora"] | {"title": ""} == {
        "dataset": "cora", "nodes": 2708, "edges": 10556, "features": 1433, "classes": 7,
        "at_hand": True, "packaged": True, "title": "",
    }  # fmt: skip


def test_bench_kernels_prints_its_rows(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--nodes", "50", "--width", "8", "--rank", "4", "--device", "cpu", "--json"]
    status, text, _ = ask(capsys, "bench", "kernels", *words)
    assert status == 0
    rows = json.loads(text)["rows"]
    assert [row["backend"] for row in rows] == ["reference", "chunked"]
    assert {"ms", "peak_mib", "tflops", "share_of_ceiling"} <= set(rows[0])


MISTAKES = {
    "unknown dataset": (["run", "corra"], "did you mean cora"),
    "unknown method": (["run", "GRAPH", "--method", "gracee"], "did you mean grace"),
    "unknown preset": (
        ["run", "GRAPH", "--preset", "fast"],
        "mux-hop has no preset 'fast'; it has best, quick, auto",
    ),
    "features as an argument": (
        ["run", "GRAPH", "people.csv"],
        "did you mean --features people.csv?",
    ),
    "no kind of bench": (["bench"], "bench: expected one of kernels, epoch, methods"),
    "unknown setting": (["run", "GRAPH", "--set", "widht=3"], "did you mean width"),
    "no such path": (["run", "/no/such/edges.csv"], "/no/such/edges.csv: no such file or folder"),
    "negative scale": (["run", "GRAPH", "--set", "scale_weights=-1,1,1"], "not be negative"),
    "scales that do not sum to 1": (
        ["run", "GRAPH", "--set", "scale_weights=.1,.1,.1"],
        "sum to 1",
    ),
    "too few scales": (["run", "GRAPH", "--set", "scale_weights=.5,.5"], "3 scales"),
    "temperature": (["run", "GRAPH", "--set", "temperature=0"], "temperature must be positive"),
    "negative width": (
        ["run", "GRAPH", "--set", "projection=-3"],
        "projection must not be negative",
    ),
    "no projector": (["run", "GRAPH", "--set", "projection=0"], "projection must be at least 1"),
    "epochs": (["run", "GRAPH", "--epochs", "0"], "epochs must be at least 1, got 0"),
    "unknown device": (["run", "GRAPH", "--device", "tpu"], "got 'tpu'"),
    "absent device": (["run", "GRAPH", "--device", "cuda:7"], "no cuda:7"),
    "unknown backend": (["run", "GRAPH", "--backend", "fast"], "got 'fast'"),
    "a backend that needs a GPU": (
        ["run", "GRAPH", "--device", "cpu", "--backend", "fused"],
        "needs a CUDA device",
    ),
    "a rate that is no number": (["run", "GRAPH", "--set", "lr=nan"], "lr must be a number"),
    "an infinite temperature": (
        ["run", "GRAPH", "--set", "temperature=inf"],
        "temperature must be a number",
    ),
    "a seed beyond 64 bits": (["run", "GRAPH", "--seed", "9" * 20], "a seed must be between"),
    "a table beyond memory": (
        ["run", "GRAPH", "--method", "grace", "--set", "width=100000000000"],
        "width must be a whole number of at most",
    ),
    "no splits": (["run", "GRAPH", "--splits", "0"], "splits must be at least 1"),
    "no public split": (
        ["run", "GRAPH", "--protocol", "public", "--protocol", "holdout"],
        "masks for a public split; this graph has none",
    ),
    "resume and overwrite": (["run", "GRAPH", "--resume", "--overwrite"], "ask for one of them"),
    "unknown option": (["run", "GRAPH", "--nope"], "--nope"),
    "no graph": (["run"], "GRAPH"),
    "unwritable folder": (["run", "GRAPH", "--out", "/proc/run"], "cannot write"),
    "not a run": (["embed", "/tmp"], "not a run folder"),
    "no folder": (["neighbours", "nothing", "p1"], "there is no folder nothing"),
    "epochs that are no number": (
        ["run", "GRAPH", "--epochs", "abc"],
        "muxgcl: --epochs: expected a whole number, got 'abc'",
    ),
    "a seed below 0": (
        ["cluster", "EMPTY", "--seed", "-4"],
        "'--seed': expected an integer from 0 to 4294967295, got -4",
    ),
    "an unknown log": (["run", "GRAPH", "--log", "x"], "'--log': 'x' is not one of"),
    "a file in place of a run folder": (["run", "GRAPH", "--out", "EDGES"], "expected a folder"),
    "a setting of another method": (
        ["run", "GRAPH", "--set", "layers=3"],
        "layers is a setting of mux-gcl",
    ),
    "no run to cluster": (["cluster", "EMPTY"], "not a run folder"),
    "no run to evaluate": (["evaluate", "EMPTY"], "not a run folder"),
    "files of a named dataset": (
        ["run", "cora", "--features", "x.csv", "--labels", "y.csv"],
        "cora is a dataset: features (--features) is for a graph that is read from files",
    ),
    "a protocol without labels": (
        ["run", "EDGES", "--protocol", "public", "--controls"],
        "protocol public needs labels, and this graph has none",
    ),
    "absent dataset": (["run", "photo", "--data-root", "EMPTY"], "photo"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_status_2(
    name: str, own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("muxgcl.io.named.urlopen", _no_network)
    words, message = MISTAKES[name]
    words = [w for word in words for w in (own if word == "GRAPH" else [word])]
    places = {"EMPTY": str(tmp_path), "EDGES": own[0]}
    words = [places.get(word, word) for word in words]
    status, out, err = ask(capsys, *words)
    assert status == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("muxgcl: ")
    assert message in err
    assert not (tmp_path / "runs").exists()  # nothing was begun


def _no_network(*_: object, **__: object) -> None:
    raise OSError("no network in tests")


def test_features_that_are_no_numbers_are_refused(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = np.ones((60, 3))
    table[7, 1] = np.nan
    np.savez(tmp_path / "x.npz", id=np.array([f"n{i}" for i in range(60)]), x=table)
    words = ["run", str(files / "edges.csv"), "--features", str(tmp_path / "x.npz"), *FAST]
    status, _, err = ask(capsys, *words, "--out", str(tmp_path / "run"))
    assert status == 2
    assert len(err.splitlines()) == 1


def test_as_many_clusters_as_asked_for_are_made_and_scored(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for count in (2, 6):
        out = tmp_path / f"{count}.csv"
        words = ["cluster", str(trained), "--clusters", str(count), "--out", str(out), "--json"]
        status, text, _ = ask(capsys, *words)
        assert status == 0
        found[count] = json.loads(text)["scores"]["clustering"]
        assert found[count]["clusters"] == count
        assert len({line.split(",")[1] for line in out.read_text().splitlines()[1:]}) == count
    assert found[2]["ari"]["mean"] != found[6]["ari"]["mean"]
    before = Run(trained).scores()
    assert ask(capsys, "cluster", str(trained), "--clusters", "0")[0] == 2
    assert Run(trained).scores() == before


def test_auto_tells_the_settings_that_are_used(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which is the default for a graph of one's own."""
    words = ["train", *own, "--set", "width=16", "--epochs", "1", "--quiet", "--device", "cpu"]
    run = tmp_path / "grace"
    status, _, err = ask(capsys, *words, "--method", "grace", "--out", str(run))
    assert status == 0
    assert "lr = 0.0005: the graph is small" in err
    assert not any(f"{key} = " in err for key in ("width", "epochs", "scale_weights", "affinity"))
    tables = Run(run).config()
    assert tables["run"]["preset"] == "auto"
    assert tables["method"]["projection"] == 16  # follows the width
    run = tmp_path / "node2vec"
    status, _, err = ask(capsys, *words, "--method", "node2vec", "--out", str(run))
    assert status == 0
    assert "lr = " not in err
    assert Run(run).config()["train"]["lr"] == preset("node2vec", "paper", "default")["lr"]


def test_test_labels_change_the_test_score_alone(tmp_path: Path) -> None:
    """Training sees no labels at all: other labels, the same embeddings."""
    from muxgcl.graph import Graph
    from muxgcl.runs.fit import fit
    from muxgcl.runs.plan import Plan

    data = planted(nodes=60, seed=3)
    other = data.clone()
    other.y = other.y[torch.randperm(60)]
    plan = Plan.make("grace", "quick", overrides={"width": 8, "projection": 8, "epochs": 2})
    one, two = (fit(plan, Graph.from_data(d)).embed() for d in (data, other))
    assert torch.equal(one, two)
