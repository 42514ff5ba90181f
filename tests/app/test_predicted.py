"""Predicted classes of a run's nodes: what is printed, written and refused."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli_cases import ask

import muxgcl
from muxgcl import LoadOptions, UserError
from muxgcl.evaluate import classify
from muxgcl.runs.folder import Run

PLAIN = ["--method", "sgc", "--splits", "2", "--no-report", "--no-controls", "--quiet"]


@pytest.fixture(scope="module")
def half(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which two of three nodes have a label."""
    folder = tmp_path_factory.mktemp("half")
    with (files / "nodes.csv").open() as file:
        rows = list(csv.reader(file))
    for at, row in enumerate(rows[1:]):
        row[-1] = "" if at % 3 == 0 else row[-1]
    shutil.copy(files / "edges.csv", folder)
    with (folder / "nodes.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    muxgcl.run(
        folder / "edges.csv",
        muxgcl.RunOptions(method="sgc", out=folder / "run", splits=2, report=False),
        load=LoadOptions(features=folder / "nodes.csv", label_column="topic"),
    )
    return folder / "run"


def test_every_node_has_a_row_in_the_order_of_the_embeddings(
    half: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids, z = Run(half).embeddings()
    y, names = Run(half).nodes()["label"], Run(half).nodes()["label_names"]
    want = classify(z, y)
    before = {file.name: file.stat().st_mtime_ns for file in half.iterdir()}
    status, out, err = ask(capsys, "predict", str(half))
    assert status == 0
    with (half / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ids.tolist()
    assert [row["class"] for row in rows] == names[want.predicted].tolist()
    assert [float(row["probability"]) for row in rows] == want.probability.tolist()
    assert [row["label"] for row in rows] == [names[one] if one >= 0 else "" for one in y]
    assert f"accuracy to expect: {want.accuracy:.1f} %" in err
    told = {line.rsplit(maxsplit=2)[0]: line.split()[-2:] for line in out.splitlines()[1:]}
    for at, name in enumerate(names.tolist()):
        new = int(((want.predicted == at) & (y < 0)).sum())
        assert told[name] == [str(int((y == at).sum())), str(new)]
    after = {file.name: file.stat().st_mtime_ns for file in half.iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"predictions.csv"}


def test_json_has_the_counts(half: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = ask(capsys, "predict", str(half), "--json", "--quiet")
    found = json.loads(out)
    assert (status, found["nodes"], found["labelled"]) == (0, 60, 40)
    assert found["out"] == str(half / "predictions.csv")
    assert 0 <= found["accuracy"] <= 100


def test_labels_may_come_later(half: Path, tmp_path: Path) -> None:
    ids, z = Run(half).embeddings()
    y = np.where(np.arange(60) % 2 == 0, np.arange(60) % 4 // 2, -1)
    rows = [f"{ids[at]},{'ab'[y[at]]}" for at in range(60) if y[at] >= 0]
    (tmp_path / "later.csv").write_text("\n".join(["id,kind", *rows]) + "\n")
    load = LoadOptions(labels=tmp_path / "later.csv", label_column="kind")
    found = muxgcl.predict_classes(half, load=load, out=tmp_path / "p.csv")
    assert found.predicted.tolist() == ["ab"[one] for one in classify(z, y).predicted]
    assert sum(label is not None for label in found.label) == 30
    assert int((Run(half).labels() >= 0).sum()) == 40  # the run keeps its own


def test_labels_without_ids_come_in_the_order_of_the_embeddings(
    half: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "y.npy", np.arange(60) % 3)
    words = ["predict", str(half), "--labels", str(tmp_path / "y.npy"), "--out"]
    status, _, told = ask(capsys, *words, str(tmp_path / "p.csv"))
    assert status == 0
    assert "y.npy: taken in the order of the nodes: 'n0', 'n1', 'n2', ..." in told


def test_classes_without_names_are_numbers(tmp_path: Path) -> None:
    data = muxgcl.load_dataset("cora")
    run = muxgcl.run("cora", muxgcl.RunOptions(method="raw", score=False, out=tmp_path / "run"))
    found = muxgcl.predict_classes(run.path)
    assert (found.predicted == data.y.numpy()).mean() > 0.6
    assert found.label == data.y.tolist()


def test_what_cannot_be_predicted_is_one_line(
    half: Path, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match=r"written as \.csv, got 'p\.parquet'"):
        muxgcl.predict_classes(half, out=tmp_path / "p.parquet")
    words = [str(files / "edges.csv"), *PLAIN, "--out", str(tmp_path / "run")]
    assert ask(capsys, "run", *words)[0] == 0
    status, _, told = ask(capsys, "predict", str(tmp_path / "run"))
    assert (status, "has no labels to learn from" in told) == (2, True)
    status, _, told = ask(capsys, "predict", str(tmp_path / "nothing"))
    assert (status, told.strip()) == (2, f"muxgcl: there is no folder {tmp_path / 'nothing'}")


def test_a_run_with_gaps_in_its_labels_names_the_command(
    half: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = half.parent
    words = [str(folder / "edges.csv"), "--features", str(folder / "nodes.csv"), *PLAIN]
    words += ["--label-column", "topic", "--out", str(tmp_path / "run")]
    status, _, told = ask(capsys, "run", *words)
    assert (status, f"muxgcl predict {tmp_path / 'run'}" in told) == (0, True)
