"""Settings as arguments, and embedders that are kept, told of and shown."""

import inspect
import json
import re
import sys
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cli_cases import ask
from rich.console import Console
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from torch_geometric.data import Data

import muxgcl
from muxgcl import MuxGCL, NodeEmbedder, RunOptions, UserError
from muxgcl.app import screen
from muxgcl.estimators import ARGUMENTS
from muxgcl.io import planted
from muxgcl.methods.mux_gcl import MuxGclConfig
from muxgcl.methods.mux_hop import MuxHopConfig
from muxgcl.runs.settings import TrainConfig

SMALL = {
    "width": 8, "hidden": 8, "projection": 8, "projection_out": 8, "affinity_epochs": 1,
    "preset": "quick", "epochs": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def graph() -> Data:
    return planted(nodes=50, seed=2)


def test_every_setting_of_both_methods_is_an_argument() -> None:
    configs = (TrainConfig, MuxHopConfig, MuxGclConfig)
    settings = {field.name for config in configs for field in fields(config)}
    names = set(inspect.signature(MuxGCL).parameters)
    assert names - ARGUMENTS == settings
    common = set(inspect.signature(NodeEmbedder).parameters)
    assert common <= names
    assert common - ARGUMENTS == {"epochs", "lr"}
    assert set(MuxGCL().get_params()) == names


def test_an_argument_is_the_same_setting_as_in_params(graph: Data) -> None:
    one = MuxGCL(**SMALL, temperature=0.7, scale_weights=(0.2, 0.2, 0.6))
    rest = {k: v for k, v in SMALL.items() if k not in ("preset", "epochs")}
    given = {**rest, "temperature": 0.7, "scale_weights": (0.2, 0.2, 0.6)}
    two = MuxGCL(preset="quick", epochs=2, params=given)
    three = MuxGCL(preset="quick", epochs=2, params={**given, "temperature": 0.1}, temperature=0.7)
    want = one.fit_transform(graph)
    assert one.model_.cfg.temperature == 0.7
    assert np.array_equal(two.fit_transform(graph), want)
    assert np.array_equal(three.fit_transform(graph), want)
    other = clone(one).set_params(temperature=0.2)
    assert not np.array_equal(other.fit_transform(graph), want)
    published = MuxGCL("mux-gcl", width=8, layers=3, scale_weights=(0.1, 0.1, 0.2, 0.6), epochs=1)
    assert published.fit(graph).model_.cfg.layers == 3


def test_a_clone_has_the_same_settings_and_a_typo_is_one_line(graph: Data) -> None:
    one = MuxGCL(**SMALL, on_epoch=print)
    assert clone(one).get_params() == one.get_params()
    assert "temperature" not in repr(one)  # only what was given is shown
    with pytest.raises(TypeError, match="unexpected keyword argument 'temprature'"):
        MuxGCL(temprature=0.3)
    with pytest.raises(ValueError, match="Invalid parameter 'temprature' for estimator MuxGCL"):
        MuxGCL().set_params(temprature=0.3)
    with pytest.raises(UserError, match=r"hops is a setting of mux-hop, .* not of mux-gcl"):
        MuxGCL("mux-gcl", hops=3).fit(graph)
    with pytest.raises(UserError, match="width must be a whole number, got 'wide'"):
        MuxGCL(width="wide").fit(graph)


class Scored(BaseEstimator):
    """Classes of nodes from an embedder: what a grid search over its settings needs."""

    def __init__(self, embedder: MuxGCL, graph: Data) -> None:
        self.embedder, self.graph = embedder, graph

    def fit(self, nodes: np.ndarray, y: np.ndarray) -> "Scored":
        self.z_ = clone(self.embedder).fit_transform(self.graph)
        self.probe_ = LogisticRegression(max_iter=200).fit(self.z_[nodes[:, 0]], y)
        return self

    def score(self, nodes: np.ndarray, y: np.ndarray) -> float:
        return float(self.probe_.score(self.z_[nodes[:, 0]], y))


def test_a_grid_search_goes_over_settings(graph: Data) -> None:
    widths = [4, 8]
    scored = Scored(MuxGCL(**SMALL), graph)
    grid = {"embedder__width": widths, "embedder__temperature": [0.3]}
    search = GridSearchCV(scored, grid, cv=2, error_score="raise")
    search.fit(np.arange(50)[:, None], graph.y.numpy())
    assert [one["embedder__width"] for one in search.cv_results_["params"]] == widths
    best = search.best_params_["embedder__width"]
    assert search.best_estimator_.z_.shape[1] == 3 * best + graph.x.shape[1]  # three scales, A^2 X


@pytest.mark.parametrize("method", ["mux-hop", "mux-gcl", "sgc", "signa", "bgrl"])
def test_what_was_saved_is_loaded_to_the_bit(graph: Data, tmp_path: Path, method: str) -> None:
    own = {} if method in ("sgc", "bgrl") else {"width": 8}
    one = NodeEmbedder(method, preset="quick", params=own, epochs=2, random_state=3).fit(graph)
    one.save(tmp_path / "run")
    two = NodeEmbedder.load(tmp_path / "run")
    assert np.array_equal(two.embedding_, one.embedding_)
    assert np.array_equal(two.transform(graph), one.transform(graph))
    for name in ("seed_", "n_features_in_", "loss_", "encoding_"):
        assert getattr(two, name) == getattr(one, name), name
    assert two.epoch_ms_ == pytest.approx(one.epoch_ms_)
    assert np.array_equal(clone(two).fit_transform(graph), one.embedding_)  # the same settings


def test_members_scaling_and_the_map_are_kept(graph: Data, tmp_path: Path) -> None:
    pair = graph.edge_index, 7 * graph.x.numpy() + np.arange(graph.x.shape[1])
    one = MuxGCL(**SMALL, members=2, output_width=5).fit(pair)
    one.save(tmp_path / "run")
    two = MuxGCL.load(str(tmp_path / "run"))
    assert np.array_equal(two.transform(pair), one.transform(pair))
    assert two.transform(pair).shape == (50, 5)
    assert two.encoding_ == one.encoding_
    assert two.encoding_.changes
    assert two.loss_ == one.loss_
    assert two.epoch_ms_ == pytest.approx(one.epoch_ms_)


def test_a_run_of_the_command_line_is_an_embedder_and_the_other_way_round(
    graph: Data, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {k: v for k, v in SMALL.items() if k not in ("preset", "epochs")}
    options = RunOptions(preset="quick", settings=settings, epochs=2, score=False, device="cpu")
    result = muxgcl.run(graph, RunOptions(**{**vars_of(options), "out": tmp_path / "run"}))
    one = MuxGCL.load(result.path)
    assert np.array_equal(one.embedding_, result.embedding)
    assert np.array_equal(one.transform(graph), muxgcl.embed(result.path, graph).table)
    one.save(tmp_path / "again")
    for words in (["info"], ["neighbours", "7"], ["embed"]):
        command, *rest = words
        assert ask(capsys, command, str(tmp_path / "again"), *rest, "--json")[0] == 0
    near = json.loads(ask(capsys, "neighbours", str(tmp_path / "again"), "7", "--json")[1])
    assert near["nodes"]
    assert np.array_equal(muxgcl.embed(tmp_path / "again", graph).table, one.transform(graph))


def vars_of(options: RunOptions) -> dict[str, object]:
    return {field.name: getattr(options, field.name) for field in fields(options)}


def test_a_folder_is_replaced_only_when_asked_and_by_the_graph_trained_on(
    graph: Data, tmp_path: Path
) -> None:
    one = MuxGCL(**SMALL).fit(graph)
    with pytest.raises(UserError, match="expected the graph that was trained on, got another one"):
        one.save(tmp_path / "run", planted(nodes=50, seed=4))
    one.save(tmp_path / "run", graph)
    with pytest.raises(UserError, match="holds a run already: overwrite=True replaces it"):
        one.save(tmp_path / "run")
    one.save(tmp_path / "run", overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(UserError, match="is not empty and holds no run"):
        one.save(tmp_path / "mine", overwrite=True)
    deepwalk = NodeEmbedder("deepwalk", params={"width": 8}, epochs=1).fit(graph)
    deepwalk.save(tmp_path / "walks")
    with pytest.raises(UserError, match="deepwalk embeds no graph but its own"):
        NodeEmbedder.load(tmp_path / "walks")


def test_a_report_of_an_embedder_is_a_page(graph: Data, tmp_path: Path) -> None:
    one = MuxGCL(**SMALL).fit(graph)
    page = one.report(tmp_path / "page.html")
    assert page == tmp_path / "page.html"
    assert "mux-hop" in page.read_text()
    with_nodes = one.report(tmp_path / "nodes.html", graph)
    assert with_nodes.stat().st_size > page.stat().st_size  # labels and edges are in it
    assert sorted(file.name for file in tmp_path.iterdir()) == ["nodes.html", "page.html"]


def test_a_callback_sees_every_epoch_and_may_end_the_training(graph: Data) -> None:
    seen = []
    one = MuxGCL(**{**SMALL, "epochs": 7}, members=2, on_epoch=seen.append).fit(graph)
    assert [epoch.number for epoch in seen] == [*range(1, 8)] * 2
    assert np.mean([seen[6].loss, seen[13].loss]) == pytest.approx(one.loss_)

    def stop(epoch: object) -> None:
        raise StopIteration("enough")

    with pytest.raises(StopIteration, match="enough"):
        MuxGCL(**SMALL, on_epoch=stop).fit(graph)


@pytest.mark.parametrize("widgets", [True, False])
def test_a_notebook_has_a_bar_where_it_has_widgets_and_lines_elsewhere(
    graph: Data,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    widgets: bool,
) -> None:
    shown = []

    class Output:  # what rich asks of ipywidgets
        def __enter__(self) -> None: ...
        def __exit__(self, *error: object) -> None: ...
        def clear_output(self, wait: bool = False) -> None:
            shown.append("drawn")

    notebook = SimpleNamespace(display=lambda *shown: None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=notebook))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    fake = SimpleNamespace(Output=Output) if widgets else None
    monkeypatch.setitem(sys.modules, "ipywidgets", fake)
    monkeypatch.setattr(screen.console, "is_jupyter", True)
    MuxGCL(**SMALL, verbose=True).fit(graph)
    assert bool(shown) == widgets
    assert ("epoch 2/2: loss" in capsys.readouterr().err) != widgets


def test_a_terminal_has_a_bar(graph: Data, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "told").open("w") as file:
        console = Console(file=file, force_terminal=True, width=100)
        monkeypatch.setattr(screen, "console", console)
        MuxGCL(**SMALL, verbose=True).fit(graph)
    told = (tmp_path / "told").read_text()
    assert "2/2" in told
    assert "training" in told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (r"nodes = \d+", r"data\.nodes is 1,000,000,000, but there are 50 embeddings"),
        (r"features = \d+", r"1,000,000,000 features would take 16\.0 GB of memory"),
        (r"width = \d+", "at most 10,000,000, got 1,000,000,000"),
    ],
)
def test_a_size_that_a_run_folder_lies_about_is_refused_before_memory_is_taken(
    graph: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, told: str
) -> None:
    MuxGCL(**SMALL).fit(graph).save(tmp_path / "run")
    config = tmp_path / "run" / "config.toml"
    name = line.split()[0]
    text = re.sub(f"^{line}", f"{name} = 1000000000", config.read_text(), flags=re.M)
    config.write_text(text)
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "10000000000")
    with pytest.raises(UserError, match=told):
        MuxGCL.load(tmp_path / "run")
