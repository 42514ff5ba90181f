"""A run whose files have moved: its folder keeps the graph, or the graph is given again."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from cli_cases import ask
from stage_cases import SCORED, Heard

import muxgcl
from muxgcl import LoadOptions, MuxGCL, UserError
from muxgcl.app import folder_graph
from muxgcl.app.source import graph_of_run
from muxgcl.graph import Graph, graph_fingerprint
from muxgcl.io import planted
from muxgcl.io.load import load
from muxgcl.report import read_run
from muxgcl.runs.folder import Run

OPTIONS = replace(SCORED, splits=2, controls=False)


@pytest.fixture
def moved(files: Path, tmp_path: Path) -> tuple[Path, Path, Path]:
    """A run, and copies of its files: the originals are gone."""
    old, new = tmp_path / "old", tmp_path / "new"
    shutil.copytree(files, old)
    options = LoadOptions(features=old / "nodes.csv", label_column="topic")
    run = muxgcl.run(old / "edges.csv", replace(OPTIONS, out=tmp_path / "run"), load=options).path
    old.rename(new)
    lines = (new / "nodes.csv").read_text().splitlines()
    head, *rest = lines[0], *(line.replace("n", "new") for line in lines[1:3])
    (new / "new.csv").write_text("\n".join([head, *rest]) + "\n")
    return run, new / "edges.csv", new / "nodes.csv"


def test_the_folder_keeps_a_small_graph(moved: tuple[Path, Path, Path]) -> None:
    run, edges, nodes = moved
    before = Run(run).scores()["holdout"]
    assert muxgcl.evaluate_run(run, splits=2).scores["holdout"] == before
    found = muxgcl.embed(run, new_nodes=nodes.parent / "new.csv")
    given = LoadOptions(features=nodes, label_column="topic")
    again = muxgcl.embed(run, edges, new_nodes=nodes.parent / "new.csv", load=given)
    assert found.ids.tolist() == ["new0", "new1"]
    assert np.array_equal(found.table, again.table)


def test_a_graph_that_is_not_kept_is_given_again(
    moved: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run, edges, nodes = moved
    Run(run).graph_file.unlink()
    new = ["--new-nodes", str(nodes.parent / "new.csv"), "--out", str(run.parent / "z.csv")]
    for words in (["embed", str(run), *new], ["evaluate", str(run)]):
        status, _, told = ask(capsys, *words)
        assert (status, "edges.csv, which is gone: give the graph again" in told) == (2, True), told
    status, _, told = ask(capsys, "evaluate", str(run), str(edges))
    assert (status, "nodes.csv, the run's features, is gone: --features" in told) == (2, True)
    given = [str(edges), "--features", str(nodes)]
    assert ask(capsys, "embed", str(run), *given, "--label-column", "topic", *new)[0] == 0
    assert ask(capsys, "embed", str(run), *given, *new)[0] == 0  # columns are the run's
    assert ask(capsys, "evaluate", str(run), *given, "--splits", "2")[0] == 0
    assert ask(capsys, "evaluate", str(run), str(edges.parent), "--splits", "2")[0] == 0


def test_without_controls_embeddings_and_labels_suffice(moved: tuple[Path, Path, Path]) -> None:
    run, _, nodes = moved
    Run(run).graph_file.unlink()
    before = Run(run).scores()["holdout"]
    again = muxgcl.evaluate_run(run, splits=2, controls=False)
    assert again.scores["holdout"] == before
    labels = LoadOptions(labels=nodes, label_column="topic")
    given = muxgcl.evaluate_run(run, load=labels, splits=2, controls=False)
    assert given.scores["holdout"] == before
    with pytest.raises(UserError, match="--label-column is of a graph or of --labels"):
        muxgcl.evaluate_run(run, load=LoadOptions(label_column="topic"))


def test_an_estimator_that_was_saved_is_evaluated_on_the_command_line(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, edges = str(files / "nodes.csv"), str(files / "edges.csv")
    graph = load(edges, features=nodes, label_column="topic")
    small = {"hidden": 8, "width": 8, "projection": 8, "projection_out": 8, "affinity": "none"}
    MuxGCL(preset="quick", params=small, epochs=1, device="cpu").fit(graph).save(tmp_path / "run")
    words = ["evaluate", str(tmp_path / "run")]
    status, _, told = ask(capsys, *words, "--splits", "2")
    assert (status, "give the graph again" in told) == (2, True)
    words += [edges, "--features", nodes, "--label-column", "topic", "--splits", "2"]
    status, text, told = ask(capsys, *words)
    assert status == 0, told
    assert "holdout" in text or "mux-hop" in text


@pytest.mark.parametrize("sparse", [False, True])
def test_a_kept_graph_is_the_same_to_the_bit(tmp_path: Path, sparse: bool) -> None:
    data = planted(nodes=60)
    data.x = data.x.to_sparse() if sparse else data.x
    data.edge_weight = torch.rand(data.num_edges)
    run = Run(tmp_path)
    loaded = folder_graph.kept_nodes(run, np.arange(60))
    loaded = replace(loaded, tensors=data)
    run.save_embeddings(loaded.ids, torch.zeros(60, 2))
    folder_graph.save_graph(run, loaded)
    found = folder_graph.kept_graph(run)
    assert found is not None
    assert found.tensors.x.layout == data.x.layout
    one, two = (graph_fingerprint(Graph.from_data(t)) for t in (found.tensors, data))
    assert one == two


def test_a_large_graph_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_graph, "LARGEST", 1000)
    result = muxgcl.run(planted(nodes=60), replace(OPTIONS, out=tmp_path / "run", score=False))
    assert not Run(result.path).graph_file.exists()


def test_directions_and_types_are_kept(tmp_path: Path) -> None:
    rows = ["source,target,kind", *(f"{i},{(i * 7 + 1) % 30},{'ab'[i % 2]}" for i in range(30))]
    (tmp_path / "edges.csv").write_text("\n".join(rows) + "\n")
    small = {"hidden": 8, "width": 8, "projection": 8, "projection_out": 8, "affinity": "none"}
    options = replace(OPTIONS, method="mux-hop", settings=small, out=tmp_path / "run", score=False)
    given = LoadOptions(directed=True, edge_type_column="kind")
    run = Run(muxgcl.run(tmp_path / "edges.csv", options, load=given).path)
    _, graph = graph_of_run(run)
    (tmp_path / "edges.csv").unlink()
    again, _ = graph_of_run(run)
    assert again.tensors["edge_types"] == ["a", "b"]
    assert graph.edge_kinds is not None
    assert graph.edge_kinds.directed


def test_scores_of_other_labels_are_never_compared(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = LoadOptions(features=files / "nodes.csv", label_column="topic")
    run = muxgcl.run(
        files / "edges.csv", replace(SCORED, splits=2, out=tmp_path / "run"), load=load
    ).path
    assert muxgcl.run_info(run)["verdict"] is not None
    old = Run(run).diagnostics()["confusion"]
    rows = ["id,half", *(f"n{i},{'ab'[i % 2]}" for i in range(60))]
    (tmp_path / "halves.csv").write_text("\n".join(rows) + "\n")
    labels = LoadOptions(labels=tmp_path / "halves.csv", label_column="half")
    muxgcl.evaluate_run(run, load=labels, splits=2, controls=False)
    assert muxgcl.run_info(run)["verdict"] is None
    assert list(Run(run).scores()) == ["holdout"]
    assert len(Run(run).diagnostics()["confusion"]) == 2 != len(old)
    assert muxgcl.run_info(run)["classes"] == read_run(run).data_summary["classes"] == 2
    assert muxgcl.evaluate_run(run, splits=2).verdict is not None  # the labels given last


def test_the_first_confusion_of_a_run_that_was_only_trained_is_kept(tmp_path: Path) -> None:
    run = Run(muxgcl.run(planted(nodes=60), replace(OPTIONS, out=tmp_path, score=False)).path)
    muxgcl.evaluate_run(run.path, splits=2, controls=False)
    first = run.diagnostics()["confusion"]
    assert sum(map(sum, first)) > 0
    muxgcl.evaluate_run(run.path, protocols=("holdout-all",), splits=3, controls=False)
    assert run.diagnostics()["confusion"] == first


def test_a_leak_of_labels_given_later_is_pointed_out(files: Path, tmp_path: Path) -> None:
    lines = (files / "nodes.csv").read_text().splitlines()
    head, *rows = (line.rsplit(",", 1) for line in lines)
    nodes = [f"{head[0]},team", *(f"{cells},t{topic}" for cells, topic in rows)]
    (tmp_path / "nodes.csv").write_text("\n".join(nodes) + "\n")
    options = replace(OPTIONS, out=tmp_path / "run", score=False)
    own = LoadOptions(features=tmp_path / "nodes.csv")
    run = muxgcl.run(files / "edges.csv", options, load=own).path
    heard = Heard()
    labels = LoadOptions(labels=files / "nodes.csv", label_column="topic")
    muxgcl.evaluate_run(run, load=labels, splits=2, controls=False, observer=heard)
    assert any("possible leak: column 'team' is the label" in note for note in heard.notes)
