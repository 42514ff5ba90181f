"""Finished run folders from Python: embed, evaluate, cluster, report, describe."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stage_cases import SCORED, Heard

import muxgcl
from muxgcl import LoadOptions, UserError
from muxgcl.io import planted
from muxgcl.runs.folder import Run

OPTIONS = replace(SCORED, splits=3)


@pytest.fixture
def unlabelled(files: Path, tmp_path: Path) -> Path:
    """A run on a person's graph whose labels are not known yet."""
    lines = [line.split(",") for line in (files / "nodes.csv").read_text().splitlines()]
    (tmp_path / "nodes.csv").write_text("".join(",".join(line[:-1]) + "\n" for line in lines))
    rows = [f"{line[0]},{line[-1]}\n" for line in lines]
    (tmp_path / "topics.csv").write_text("".join([rows[0], *reversed(rows[1:])]))
    load = LoadOptions(features=tmp_path / "nodes.csv")
    muxgcl.run(files / "edges.csv", replace(OPTIONS, out=tmp_path / "run"), load=load)
    return tmp_path / "run"


def test_labels_given_later_score_as_if_they_had_been_there(
    unlabelled: Path, files: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="needs labels, and this graph has none"):
        muxgcl.evaluate_run(unlabelled)
    later = LoadOptions(labels=tmp_path / "topics.csv", label_column="topic")
    found = muxgcl.evaluate_run(unlabelled, load=later, splits=3)
    load = LoadOptions(features=files / "nodes.csv", label_column="topic")
    whole = muxgcl.run(files / "edges.csv", replace(OPTIONS, out=tmp_path / "whole"), load=load)
    assert found.scores["holdout"] == whole.scores["holdout"]
    assert found.verdict == whole.verdict
    assert np.array_equal(Run(unlabelled).labels(), Run(tmp_path / "whole").labels())
    assert muxgcl.cluster_run(unlabelled).scores["clustering"]["clusters"] == 3
    assert muxgcl.run_info(unlabelled)["classes"] == 3
    again = muxgcl.evaluate_run(unlabelled, splits=3)  # the labels are known by now
    assert again.scores["holdout"] == found.scores["holdout"]


def test_labels_of_unknown_nodes_are_refused(unlabelled: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text("id,topic\nn0,a\nnobody,b\n")
    with pytest.raises(UserError, match="'nobody' is not in the graph"):
        muxgcl.evaluate_run(unlabelled, load=LoadOptions(labels=tmp_path / "wrong.csv"))


def test_a_graph_in_memory_is_kept_or_asked_for_again(tmp_path: Path) -> None:
    data = planted(nodes=60)
    result = muxgcl.run(data, replace(OPTIONS, out=tmp_path / "run"))
    assert muxgcl.evaluate_run(result.path, splits=3).verdict == result.verdict
    Run(result.path).graph_file.unlink()
    with pytest.raises(UserError, match="its own was in memory: give the graph again"):
        muxgcl.evaluate_run(result.path)
    found = muxgcl.evaluate_run(result.path, data, splits=3)
    assert found.scores["holdout"] == result.scores["holdout"]
    assert found.verdict == result.verdict
    other = planted(nodes=60, seed=9)
    with pytest.raises(UserError, match=r"another graph than the one given: .* edges instead of"):
        muxgcl.evaluate_run(result.path, other)


def test_evaluating_again_keeps_what_it_does_not_measure(tmp_path: Path) -> None:
    data = planted(nodes=60)
    muxgcl.run(data, replace(OPTIONS, out=tmp_path / "run"))
    before = Run(tmp_path / "run").scores()
    muxgcl.evaluate_run(tmp_path / "run", data, splits=2)
    after = Run(tmp_path / "run").scores()
    assert after["clustering"] == before["clustering"]
    assert after["controls"]["raw"]["clustering"] == before["controls"]["raw"]["clustering"]
    assert after["controls"]["raw"]["holdout"]["accuracy"]["n"] == 2


def test_training_anew_is_told_with_how_often(tmp_path: Path) -> None:
    result = muxgcl.run(planted(nodes=60), replace(OPTIONS, out=tmp_path / "run", score=False))
    heard = Heard()
    muxgcl.predict_links(result.path, repeats=1, observer=heard)
    assert "trained anew, once without a tenth of them" in heard.notes[0]


def test_embeddings_are_returned_and_written_where_asked(tmp_path: Path) -> None:
    data = planted(nodes=60)
    result = muxgcl.run(data, replace(OPTIONS, out=tmp_path / "run", score=False))
    found = muxgcl.embed(result.path)
    assert np.array_equal(found.table, result.embedding)
    assert found.path is None
    grown = muxgcl.embed(result.path, data, out=tmp_path / "z.npy")
    assert np.array_equal(np.load(tmp_path / "z.npy"), result.embedding)
    assert grown.path == tmp_path / "z.npy"
    with pytest.raises(UserError, match="expected a file ending in"):
        muxgcl.embed(result.path, out=tmp_path / "z.txt")


@pytest.mark.parametrize(
    ("load", "flag"),
    [
        (LoadOptions(source_column="a"), "--source"),
        (LoadOptions(weight_column="w"), "--weight"),
        (LoadOptions(scale=False), "--no-scale"),
        (LoadOptions(id_column="i"), "--id-column"),
    ],
)
def test_an_option_without_its_graph_is_named_by_its_flag(
    tmp_path: Path, load: LoadOptions, flag: str
) -> None:
    result = muxgcl.run(planted(nodes=60), replace(OPTIONS, out=tmp_path / "run", score=False))
    with pytest.raises(UserError, match=f"^{flag} belongs to a new graph"):
        muxgcl.embed(result.path, load=load)
    with pytest.raises(UserError, match=f"^{flag} is of a graph or of --labels"):
        muxgcl.evaluate_run(result.path, load=load)


def test_info_says_how_far_a_run_is(tmp_path: Path) -> None:
    result = muxgcl.run(planted(nodes=60), replace(OPTIONS, out=tmp_path / "run"))
    found = muxgcl.run_info(result.path)
    assert (found["method"], found["nodes"], found["finished"]) == ("grace", 60, True)
    assert (found["epochs"], found["epochs_done"]) == (2, 2)
    assert found["settings"]["width"] == 8
    assert result.verdict is not None
    assert found["verdict"] == result.verdict.to_dict()
    Run(result.path).embeddings_file.unlink()
    assert not muxgcl.run_info(result.path)["finished"]


def test_a_finished_run_that_goes_on_is_not_finished_until_it_has_all_epochs(
    tmp_path: Path,
) -> None:
    run = Run(muxgcl.run(planted(nodes=60), replace(OPTIONS, out=tmp_path, score=False)).path)
    assert muxgcl.run_info(run.path)["finished"]
    config = run.config()
    config["train"]["epochs"] += 1  # as it is while it goes on
    run.write_config(config)
    assert not muxgcl.run_info(run.path)["finished"]


def test_a_report_is_written_where_asked(tmp_path: Path) -> None:
    data = planted(nodes=60)
    one = muxgcl.run(data, replace(OPTIONS, out=tmp_path / "one"))
    two = muxgcl.run(data, replace(OPTIONS, seed=1, out=tmp_path / "two"))
    assert muxgcl.report_runs([one.path]) == tmp_path / "one" / "report.html"
    page = muxgcl.report_runs([one.path, two.path], out=tmp_path / "both.html")
    assert "2 runs compared" in page.read_text()
    with pytest.raises(UserError, match=r"ending in \.html"):
        muxgcl.report_runs([one.path], out=tmp_path / "page.pdf")


def test_figures_of_runs_whose_folders_are_called_alike_are_kept_apart(tmp_path: Path) -> None:
    data = planted(nodes=60)
    options = replace(OPTIONS, method="sgc", settings={}, epochs=None, score=False)
    for parent in ("a", "b"):
        muxgcl.run(data, replace(options, out=tmp_path / parent / "seed0"))
    muxgcl.report_runs(
        [tmp_path / "a" / "seed0", tmp_path / "b" / "seed0"],
        out=tmp_path / "both.html",
        figures=tmp_path / "figures",
    )
    folders = sorted(folder.name for folder in (tmp_path / "figures").iterdir())
    assert folders == ["seed0-sgc-on-graph-seed-0", "seed0-sgc-on-graph-seed-0-2"]
    written = [{file.name for file in (tmp_path / "figures" / one).iterdir()} for one in folders]
    assert written[0] == written[1] != set()
