"""`muxgcl tune`, `evaluate --task link` and `--log tensorboard` as a person uses them."""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pandas
import pytest

from muxgcl.app.log import logged
from muxgcl.cli import app, commands  # noqa: F401  (declares the commands)
from muxgcl.cli.app import run as command_line
from muxgcl.evaluate import development_hash, development_splits, probe
from muxgcl.evaluate.development import development_labels
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.io.load import load
from muxgcl.runs import cost
from muxgcl.runs.fit import fit
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan
from muxgcl.runs.rates import Rates
from muxgcl.runs.scipy_tables import features_table
from muxgcl.tune import ByLabels

SMALL = {"width": 8, "projection": 8, "projection_out": 8, "affinity": "none"}
FAST = {**SMALL, "epochs": 2}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a person's graph, and that person in it."""
    monkeypatch.chdir(tmp_path)
    data = planted(nodes=60, seed=3)
    edges = pandas.DataFrame(data.edge_index.T.numpy(), columns=["from", "to"])
    edges.to_csv("edges.csv", index=False)
    nodes = pandas.DataFrame(data.x.numpy()).add_prefix("f")
    nodes.insert(0, "id", range(60))
    nodes.assign(label=data.y.numpy()).to_csv("nodes.csv", index=False)
    return tmp_path


TUNE = ["tune", "edges.csv", "--quiet", "--device", "cpu", "--splits", "2", "--epochs", "2"]
TUNE += [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
RUN = ["--quiet", "--device", "cpu", "--splits", "2", "--no-report", "--out", "run"]
WITH_NODES = ["--features", "nodes.csv"]


def test_the_written_settings_are_taken_by_run(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line([*TUNE, *WITH_NODES, "--trials", "3", "--out", "best.toml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["trials"], found["failed"], found["method"]) == (3, 0, "mux-hop")
    written = tomllib.loads((own / "best.toml").read_text())
    assert "development_accuracy" in written.pop("source")
    labels = pandas.read_csv("nodes.csv")["label"].to_numpy()
    assert written.pop("development") == development_hash(labels)
    assert written.pop("sample") == [0, 0]  # all nodes
    settings = {k: v for k, v in found["best"]["settings"].items() if v is not None}
    assert written == settings
    assert command_line(["run", "edges.csv", *WITH_NODES, "--preset", "best.toml", *RUN]) == 0
    tables = tomllib.loads((own / "run" / "config.toml").read_text())
    assert tables["run"]["preset"] == "best.toml"
    assert {**tables["train"], **tables["method"]} == written
    assert "another order of its nodes" not in capsys.readouterr().err


def test_a_search_samples_as_a_run_would_and_says_what_it_will_take(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hard = Rates(1e12, 1e12, 1e12, 5.0, 1e9, 0.0)  # a machine that finds pairs hard
    monkeypatch.setattr("muxgcl.app.budget.calibrate", lambda plan, graph: hard)
    monkeypatch.setattr("muxgcl.app.budget.measured", lambda rates, plan, graph: rates)
    monkeypatch.setattr(cost, "SIZES", (12, 8))
    words = [*TUNE, *WITH_NODES, "--trials", "2", "--seeds", "2", "--out", "best.toml", "--json"]
    assert command_line(words) == 0
    printed, told = capsys.readouterr()
    assert len(printed.splitlines()) == 1  # the JSON alone
    (line,) = [line for line in told.splitlines() if " a trial, " in line]
    assert re.fullmatch(r"about .+ a trial, about .+ for 2 trials, .+ GiB on this CPU", line)
    assert "each step contrasts 8 nodes: the exact contrast would take" in told
    written = tomllib.loads((own / "best.toml").read_text())
    assert written.pop("sample") == [8, 8]
    assert command_line(["run", "edges.csv", *WITH_NODES, "--preset", "best.toml", *RUN]) == 0
    tables = tomllib.loads((own / "run" / "config.toml").read_text())
    assert (tables["run"]["anchors"], tables["run"]["keys"]) == (8, 8)
    del written["source"], written["development"]
    assert {**tables["train"], **tables["method"]} == written
    assert "settings that suit a sample" not in capsys.readouterr().err
    more = ["--trials", "3", "--exact"]
    assert command_line([*TUNE, *WITH_NODES, "--seeds", "2", *more]) == 2
    assert "begun with another sample" in capsys.readouterr().err


def test_run_warns_where_settings_were_searched_with_other_halves(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "best.toml").write_text('development = "0123456789abcdef"\nepochs = 2\nwidth = 8\n')
    assert command_line(["run", "edges.csv", *WITH_NODES, "--preset", "best.toml", *RUN]) == 0
    assert "may have read labels of test nodes" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read best.toml: No such file"),
        ("width = ", "best.toml is not a table of settings"),
        ("\xff", "best.toml is not a table of settings"),
        ("[best.cora]\nwidth = 8", "must be one flat table of settings, but has [best]"),
        ("widht = 8", "unknown setting 'widht'; did you mean width"),
        ("width = 'wide'", "width must be a whole number, got 'wide'"),
    ],
)
def test_a_bad_file_of_settings_is_one_line(
    own: Path, capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    if text is not None:
        (own / "best.toml").write_text(text, encoding="latin-1")
    assert command_line(["run", "edges.csv", "--preset", "best.toml", *RUN]) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not (own / "run").exists()


def test_controls_stand_beside_the_best_trial(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*TUNE, "--features", "nodes.csv", "--trials", "1"]
    assert command_line(words) == 0
    told = capsys.readouterr().out
    assert re.search(r"development \(n = 2\) +accuracy %", told)
    assert re.search(r"  A\^2 X +\d+\.\d\d ± \d+\.\d\d\n", told)
    assert "over 2 splits of one run; ahead in" in told
    assert command_line([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    loaded = load("edges.csv", features="nodes.csv")
    graph, y = Graph.from_data(loaded.tensors), loaded.tensors.y.numpy()
    splits = development_splits(y, 2)
    controls = {
        name: part["development"]["accuracy"]["mean"]
        for name, part in found["scores"]["controls"].items()
    }
    best = max(controls, key=lambda name: controls[name])
    assert set(controls) > {"raw", "A X", "A^2 X", "untrained", "majority"}
    raw = probe(features_table(graph.features), development_labels(y), splits)
    assert controls["raw"] == pytest.approx(raw.accuracy.mean)
    difference = found["best"]["development_accuracy"] - controls[best]
    assert found["verdict"]["control"] == best
    assert found["verdict"]["difference"]["mean"] == pytest.approx(difference)
    assert f"paired difference {difference:+.2f}" in found["verdict"]["sentence"]
    assert "chosen on these splits, from 1 trials" in found["verdict"]["sentence"]


def test_controls_that_fail_cost_no_search_and_the_reason_is_told(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(measure: ByLabels, plan: Plan) -> dict[str, list[float]]:
        raise MemoryError("a table of 9 GiB\ndoes not fit")

    monkeypatch.setattr(ByLabels, "controls", fail)
    assert command_line([*TUNE, "--features", "nodes.csv", "--trials", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "no controls, and no verdict: a table of 9 GiB does not fit\n" in err
    found = json.loads(out)
    assert found["verdict"] is None
    assert found["scores"]["controls"] == {}
    assert found["scores"]["development"]["accuracy"]["n"] == 2


@pytest.mark.parametrize("words", [[*WITH_NODES], []], ids=["labels", "structure"])
def test_edges_with_a_direction_and_a_type_are_searched(
    own: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    edges = pandas.read_csv("edges.csv")
    edges.assign(kind=["ab"[k % 2] for k in range(len(edges))]).to_csv("edges.csv", index=False)
    kinds = ["--directed", "--edge-type", "kind", "--trials", "1"]
    assert command_line([*TUNE, *words, *kinds, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trials"] == 1
    plain = [word for word in kinds if word != "--directed"]
    assert command_line([*TUNE, *words, *plain]) == 2  # another graph
    assert "was begun with another graph" in capsys.readouterr().err


def test_a_study_is_continued_by_the_same_command(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for trials in ("1", "2"):
        assert command_line([*TUNE, "--trials", trials, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["trials"] == 2
    assert found["study"] == "runs/edges-mux-hop-by-structure.study"
    assert set(found["auto"]) == {"structure", "stability", "modularity"}
    assert (own / "runs" / "edges-mux-hop-by-structure.toml").is_file()


def _stop() -> None:
    raise KeyboardInterrupt


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []

    def stop_at_the_third(plan: Plan, graph: Graph, **rest: Any) -> Any:
        trained.append(plan)
        if len(trained) == 3:
            raise KeyboardInterrupt
        return fit(plan, graph, **rest)

    monkeypatch.setattr("muxgcl.tune.measure.fit", stop_at_the_third)
    secret = ["--storage", "postgresql://me:s3cr+t@host/db"]
    monkeypatch.setattr(sys, "argv", ["muxgcl", *TUNE, *secret])
    assert command_line([*TUNE, "--trials", "4"]) == 130  # as of a program that Ctrl-C stopped
    words = " ".join(capsys.readouterr().err.split())
    assert "s3cr" not in words
    assert "postgresql://me:***@host/db" in words
    assert "stopped after 2 of 4 trials, which are kept in runs/edges-mux-hop" in words
    assert "continue with: muxgcl tune edges.csv" in words
    monkeypatch.setattr("muxgcl.tune.measure.fit", lambda *_, **__: _stop())
    assert command_line([*TUNE, "--trials", "4", "--study", "other"]) == 130
    assert "stopped after 0 of 4 trials; continue" in " ".join(capsys.readouterr().err.split())
    monkeypatch.setattr("muxgcl.tune.measure.fit", stop_at_the_third)
    assert command_line([*TUNE, "--trials", "4"]) == 0
    assert len(trained) == 3 + 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "labels"], "this graph has no labels"),
        (["--trials", "0"], "trials must be at least 1"),
        (["--seeds", "0"], "seeds must be at least 1"),
        (["--out", "best.json"], "ending in .toml"),
        (["--study", "x.toml"], "ending in .toml, got x.toml"),
        (["--set", "lr"], "key=value"),
        (["--method", "raw"], "raw has no setting left to search"),
        (
            ["--set", "hops=3", "--set", "scale_weights=1"],
            "scale_weights needs one number for each of the 4 scales",
        ),
    ],
)
def test_a_mistake_is_one_line(
    own: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    plain = TUNE if "raw" not in words else TUNE[:5]  # the others' settings are none of raw's
    assert command_line([*plain, *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (own / "runs").exists()


def test_without_optuna_there_is_one_line(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("muxgcl.tune")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("muxgcl.tune", raising=False)
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert command_line(TUNE) == 2
    assert capsys.readouterr().err == "muxgcl: tune needs Optuna: pip install optuna\n"


def test_evaluate_predicts_links_by_training_anew(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = [w for key, v in FAST.items() for w in ("--set", f"{key}={v}")]
    assert command_line(["train", "edges.csv", *small, *RUN[:3], "--out", "run"]) == 0
    before = (own / "run" / "embeddings.npz").read_bytes()
    capsys.readouterr()
    assert command_line(["evaluate", "run", "--task", "link", "--repeats", "2", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)["scores"]["link"]
    assert found["retrained"] is True
    assert found["auc"]["n"] == 2
    assert "trained anew" in err
    assert json.loads((own / "run" / "scores.json").read_text())["link"] == found
    assert (own / "run" / "embeddings.npz").read_bytes() == before
    assert command_line(["evaluate", "run", "--task", "link", "--controls"]) == 2


# TensorBoard ----------------------------------------------------------------------------------


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    return {
        tag: {event.step: event.value for event in events.Scalars(tag)}
        for tag in events.Tags()["scalars"]
    }


def test_tensorboard_shows_what_metrics_say(own: Path) -> None:
    pytest.importorskip("tensorboard")
    small = [w for key, v in SMALL.items() for w in ("--set", f"{key}={v}")]
    words = ["train", "edges.csv", *small, "--epochs", "3", "--quiet", "--device", "cpu"]
    assert command_line([*words, "--out", "run", "--log", "tensorboard"]) == 0
    shown = scalars(own / "run" / "tensorboard")
    lines = Run(own / "run").metrics()
    assert shown["loss"] == pytest.approx({line["epoch"]: line["loss"] for line in lines})
    for name in lines[0]["terms"]:
        terms = {line["epoch"]: line["terms"][name] for line in lines}
        assert shown[f"terms/{name}"] == pytest.approx(terms)
    assert len(shown["ms per epoch"]) == 3


def test_a_log_that_was_not_asked_for_is_not_written(own: Path) -> None:
    small = [w for key, v in FAST.items() for w in ("--set", f"{key}={v}")]
    assert command_line(["train", "edges.csv", *small, *RUN[:3], "--out", "run"]) == 0
    assert not (own / "run" / "tensorboard").exists()


def test_what_was_logged_past_a_checkpoint_is_hidden(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    run = Run(tmp_path)
    for numbers in ([1, 2, 3, 4], [3, 4, 5]):  # the second begins at a checkpoint after epoch 2
        with logged(run, "tensorboard", lambda block: None) as on_block:
            on_block([Epoch(n, {"a": 10.0 * len(numbers)}, 0.1) for n in numbers])
    assert scalars(tmp_path / "tensorboard")["loss"] == {1: 40, 2: 40, 3: 30, 4: 30, 5: 30}


def test_without_tensorboard_there_is_one_line_before_any_work(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert command_line(["train", "edges.csv", "--out", "run", "--log", "tensorboard"]) == 2
    assert "pip install tensorboard" in capsys.readouterr().err
    assert not (own / "run").exists()
