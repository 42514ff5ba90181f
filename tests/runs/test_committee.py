"""Several seeds side by side in one embedding."""

import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.preprocessing import normalize
from stage_cases import SCORED
from torch.testing import assert_close

import muxgcl
from muxgcl import MuxGCL, NodeEmbedder, Observer, UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.methods import METHODS, Method
from muxgcl.runs.committee import fit_members, side_by_side, total_cost
from muxgcl.runs.fit import Fitted, Stopped, fit
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan, build

OPTIONS = replace(SCORED, epochs=4, controls=False)


class StopsAt(Observer):
    """Asks for a stop after so many epochs, over all members."""

    def __init__(self, epoch: int) -> None:
        self.left = epoch

    def epochs(self, block: list[Epoch], total: int) -> None:
        self.left -= len(block)
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)


def test_members_are_the_runs_of_single_seeds_side_by_side(tmp_path: Path) -> None:
    data = planted(nodes=60)
    three = muxgcl.run(data, replace(OPTIONS, seed=5, members=3, out=tmp_path / "three"))
    single = [
        muxgcl.run(data, replace(OPTIONS, seed=seed, out=tmp_path / str(seed))).embedding
        for seed in (5, 6, 7)
    ]
    want = np.hstack([normalize(table) for table in single]) / np.sqrt(3)
    np.testing.assert_allclose(three.embedding, want, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(three.embedding, axis=1), 1, atol=1e-6)
    assert three.scores == Run(tmp_path / "three").scores()
    assert three.to_dict()["members"] == 3
    assert Run(tmp_path / "three").config()["run"]["members"] == 3
    for k, seed in enumerate((5, 6, 7)):
        mine, theirs = Run(tmp_path / "three", k), Run(tmp_path / str(seed))
        assert [line["loss"] for line in mine.metrics()] == [
            line["loss"] for line in theirs.metrics()
        ]
        for name, tensor in mine.checkpoint()[0].items():
            assert torch.equal(tensor, theirs.checkpoint()[0][name])


def test_blocks_of_rows_leave_the_callers_gradients_on() -> None:
    graph = Graph.from_data(planted(nodes=30))
    params = {"width": 8, "projection": 8}
    embedder = NodeEmbedder("grace", preset="quick", params=params, epochs=1, members=2).fit(graph)
    for block in embedder.committee_.embed_blocks(graph):
        assert torch.is_grad_enabled()
        assert not block.requires_grad
    assert torch.is_grad_enabled()


def test_one_member_is_the_run_without_members(tmp_path: Path) -> None:
    result = muxgcl.run(planted(nodes=60), replace(OPTIONS, out=tmp_path / "run", members=1))
    assert "members" not in Run(tmp_path / "run").config()["run"]
    assert not list((tmp_path / "run").glob("member-*"))
    assert result.embedding.shape == (60, 8)


@pytest.mark.parametrize("epoch", [2, 6, 11])
def test_a_committee_stopped_in_any_member_goes_on_to_the_same_bits(
    tmp_path: Path, epoch: int
) -> None:
    data = planted(nodes=60)
    options = replace(OPTIONS, members=3, output_width=5)
    whole = muxgcl.run(data, replace(options, out=tmp_path / "whole"))
    stopped = replace(options, out=tmp_path / "run")
    where = rf"epoch {(epoch - 1) % 4 + 1} of 4 \(member {(epoch - 1) // 4 + 1} of 3\)"
    with pytest.raises(Stopped, match=where):
        muxgcl.run(data, stopped, observer=StopsAt(epoch))
    resumed = muxgcl.run(data, replace(stopped, resume=True))
    assert np.array_equal(resumed.embedding, whole.embedding)
    assert resumed.scores == whole.scores
    for k in range(3):
        mine, theirs = (Run(tmp_path / name, k).checkpoint()[0] for name in ("run", "whole"))
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def test_a_stopped_committee_has_no_embedding_yet(tmp_path: Path) -> None:
    data, options = planted(nodes=60), replace(OPTIONS, members=2, out=tmp_path / "run")
    with pytest.raises(Stopped):
        muxgcl.run(data, options, observer=StopsAt(2))
    with pytest.raises(UserError, match="has no checkpoint of member 2"):
        muxgcl.embed(tmp_path / "run", data)


def test_members_are_added_by_resume_and_never_taken_away(tmp_path: Path) -> None:
    data, options = planted(nodes=60), replace(OPTIONS, out=tmp_path / "run")
    muxgcl.run(data, options)
    grown = muxgcl.run(data, replace(options, members=2, resume=True))
    want = muxgcl.run(data, replace(options, members=2, out=tmp_path / "want"))
    assert np.array_equal(grown.embedding, want.embedding)
    with pytest.raises(UserError, match=r"members = 2; "):
        muxgcl.run(data, replace(options, resume=True))
    muxgcl.run(data, replace(options, overwrite=True))
    assert not list((tmp_path / "run").glob("member-*"))


def test_a_new_graph_is_embedded_by_all_members_and_the_map_of_training(tmp_path: Path) -> None:
    data, other = planted(nodes=60), planted(nodes=80, seed=4)
    options = replace(OPTIONS, members=2, output_width=6)
    run = muxgcl.run(data, replace(options, out=tmp_path / "run"))
    assert np.array_equal(muxgcl.embed(run.path, data).table, run.embedding)
    single = [
        muxgcl.embed(
            muxgcl.run(data, replace(OPTIONS, seed=seed, out=tmp_path / str(seed))).path, other
        ).table
        for seed in (0, 1)
    ]
    wide = np.hstack([normalize(table) for table in single]) / np.sqrt(2)
    want = wide @ Run(run.path).output_map().numpy()
    np.testing.assert_allclose(muxgcl.embed(run.path, other).table, want, atol=1e-5)


def test_protocol_paper_is_of_one_training(tmp_path: Path) -> None:
    options = replace(OPTIONS, members=2, protocols=("paper",), out=tmp_path / "run")
    with pytest.raises(UserError, match="not of several members"):
        muxgcl.run(planted(nodes=60), options)


def test_seeds_of_committees_share_no_member(tmp_path: Path) -> None:
    options = replace(OPTIONS, members=2, score=False, out=tmp_path)
    found = muxgcl.run_seeds(planted(nodes=60), 2, options)
    assert [one.plan.seed for one in found.runs] == [0, 2]


def test_the_estimator_has_members_and_a_width(tmp_path: Path) -> None:
    data = planted(nodes=60)
    settings = {"preset": "quick", "params": dict(OPTIONS.settings), "epochs": 4}
    embedder = NodeEmbedder("grace", **settings, members=2, output_width=6, device="cpu").fit(data)
    run = muxgcl.run(data, replace(OPTIONS, members=2, output_width=6, out=tmp_path / "run"))
    assert np.array_equal(embedder.embedding_, run.embedding)
    assert_close(torch.tensor(embedder.transform(data)), torch.tensor(run.embedding))
    assert MuxGCL(members=3, output_width=4).get_params()["members"] == 3


def test_hidden_links_are_predicted_by_the_whole_committee(tmp_path: Path) -> None:
    data = planted(nodes=60)
    found = []
    for members in (1, 2):
        options = replace(OPTIONS, members=members, score=False, out=tmp_path / str(members))
        run = muxgcl.run(data, options)
        found.append(muxgcl.predict_links(run.path, data, repeats=1).scores["link"]["auc"]["mean"])
    assert found[0] != found[1]


def test_checkpoints_of_members_in_each_others_place_are_refused(tmp_path: Path) -> None:
    data, options = planted(nodes=60), replace(OPTIONS, seed=5, members=2, out=tmp_path / "run")
    run = muxgcl.run(data, options)
    first, second = (Run(run.path, k).checkpoint_file for k in range(2))
    kept = [file.read_bytes() for file in (first, second)]
    for contents, name, seeds in (
        ([kept[0], kept[0]], second.name, "is of seed 5, expected that of seed 6"),
        ([kept[1], kept[0]], first.name, "is of seed 6, expected that of seed 5"),
    ):
        for file, content in zip((first, second), contents, strict=True):
            file.write_bytes(content)
        with pytest.raises(UserError, match=f"{name} {seeds}"):
            muxgcl.embed(run.path, data)
        with pytest.raises(UserError, match=f"{name} {seeds}"):
            muxgcl.run(data, replace(options, resume=True))
        with pytest.raises(UserError, match=f"{name} {seeds}"):
            NodeEmbedder.load(run.path)
    for file, content in zip((first, second), kept, strict=True):
        file.write_bytes(content)
    assert np.array_equal(muxgcl.embed(run.path, data).table, run.embedding)


def test_damage_that_stops_a_longer_training_changes_no_setting(tmp_path: Path) -> None:
    data, options = planted(nodes=60), replace(OPTIONS, members=2, out=tmp_path / "run")
    run = muxgcl.run(data, options)
    config = Run(run.path).config_file.read_bytes()
    second = Run(run.path, 1)
    whole = {file: file.read_bytes() for file in (second.metrics_file, second.checkpoint_file)}
    for file, content, words in (
        (second.metrics_file, b"nonsense\n" + whole[second.metrics_file], "line 1 is damaged"),
        (second.metrics_file, b"", "has no line for epoch 1"),
        (second.checkpoint_file, Run(run.path).checkpoint_file.read_bytes(), "is of seed 0"),
        (second.checkpoint_file, whole[second.checkpoint_file][:-9], "is damaged"),
    ):
        file.write_bytes(content)
        with pytest.raises(UserError, match=words):
            muxgcl.run(data, replace(options, resume=True, epochs=9))
        assert Run(run.path).config_file.read_bytes() == config
        assert file.read_bytes() == content
        file.write_bytes(whole[file])
    muxgcl.run(data, replace(options, resume=True, epochs=9))


def test_members_are_trained_as_single_seeds_are_and_forget_the_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forgot: list[Method] = []
    monkeypatch.setattr(METHODS["grace"], "forget", lambda self: forgot.append(self))
    graph = Graph.from_data(planted(nodes=60))
    plan = Plan.make("grace", "quick", overrides=OPTIONS.overrides, device="cpu", members=2)
    seen: list[int] = []
    committee, embedding, fitted = fit_members(
        plan, graph, on_block=lambda block: seen.extend(epoch.number for epoch in block)
    )
    assert seen == [1, 2, 3, 4] * 2
    single = [fit(one, graph) for one in plan.of_members()]
    assert fitted.loss == pytest.approx(np.mean([one.loss for one in single]))
    assert_close(embedding, side_by_side([one.embed() for one in single]))
    members = [id(method) for method in committee.methods]
    assert [id(method) for method in forgot] == members
    committee.forget()
    assert [id(method) for method in forgot] == 2 * members


def test_what_members_took_is_added_up() -> None:
    graph = Graph.from_data(planted(nodes=30))
    method = build(Plan.make("raw", "quick"), graph)

    def took(loss: float | None, ms: float, mib: float, seconds: float) -> Fitted:
        return Fitted(method, graph, loss, ms, mib, seconds, "a CPU", "chunked")

    one, two = took(1.0, 10.0, 200.0, 5.0), took(3.0, 20.0, 300.0, 6.0)
    assert total_cost([one]) is one
    assert total_cost([one, two]) == took(2.0, 15.0, 300.0, 11.0)
    assert total_cost([two, one, one]).loss == pytest.approx(5 / 3)
    assert total_cost([took(None, 0.0, 0.0, 0.0)] * 2).loss is None


def test_an_estimator_saves_each_members_seed(tmp_path: Path) -> None:
    settings = {"preset": "quick", "params": {"width": 8, "projection": 8}, "epochs": 1}
    one = NodeEmbedder("grace", **settings, members=2, random_state=3, device="cpu")
    one.fit(planted(nodes=60)).save(tmp_path / "run")
    assert [Run(tmp_path / "run", k).checkpoint()[1]["seed"] for k in range(2)] == [3, 4]


def test_a_checkpoint_written_before_seeds_were_kept_is_read(tmp_path: Path) -> None:
    data, run = planted(nodes=60), Run(tmp_path / "run")
    want = muxgcl.run(data, replace(OPTIONS, out=run.path)).embedding
    tensors, facts = run.checkpoint()
    run.save_checkpoint(tensors, epoch=facts["epoch"], method=facts["method"])
    assert np.array_equal(muxgcl.embed(run.path, data).table, want)


def test_zero_rows_of_a_member_stay_zero() -> None:
    one, two = torch.randn(5, 3), torch.randn(5, 4)
    one[2] = 0
    found = side_by_side([one, two])
    assert found[2, :3].eq(0).all()
    assert_close(found[2].norm(), torch.tensor(0.5**0.5))
    assert side_by_side([one]) is one


def test_more_members_than_anybody_can_train_are_refused_at_once(tmp_path: Path) -> None:
    for wrong, told in ((10**9, "at most 1,000"), (2.0, "a whole number"), (True, "a whole")):
        with pytest.raises(UserError, match=f"members must be {told}"):
            muxgcl.run(planted(nodes=60), replace(OPTIONS, members=wrong, out=tmp_path / "run"))
    assert not list(tmp_path.iterdir())
