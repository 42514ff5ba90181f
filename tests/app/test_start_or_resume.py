"""How a run folder is begun, gone on with, or refused."""

import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stage_cases import OPTIONS, Heard, begun, plan_of, ready_of

import muxgcl
from muxgcl import RunOptions, UserError
from muxgcl.app.graph_facts import check_kinds, graph_facts
from muxgcl.app.source import Source
from muxgcl.app.start_or_resume import (
    begin,
    observed_so_far,
    refuse_foreign,
    with_original_epochs,
    with_original_sample,
    with_original_width,
)
from muxgcl.graph import Graph, graph_fingerprint
from muxgcl.io import planted
from muxgcl.io.load import Loaded
from muxgcl.runs.auto import Choice
from muxgcl.runs.fit import Stopped, make_ready, reporting_interrupts
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan


def test_a_config_says_what_the_graph_and_the_machine_were(run: Run, loaded: Loaded) -> None:
    tables, graph = run.config(), ready_of(loaded).graph
    assert tables["data"] == {
        "nodes": 40,
        "edges": loaded.tensors.edge_index.shape[1],
        "features": loaded.tensors.x.shape[1],
        "classes": len(set(loaded.tensors.y.tolist()) - {-1}),
        "fingerprint": graph_fingerprint(graph),
        "notes": loaded.notes,
    }
    facts = {"command": "muxgcl run toy.csv", "device_used": "cpu", "backend_used": "chunked"}
    assert facts.items() <= tables["run"].items()
    assert tables["source"]["graph"].endswith("toy.csv")


def test_a_graph_without_labels_has_no_classes(loaded: Loaded, tmp_path: Path) -> None:
    data = planted(nodes=40)
    del data.y
    bare = muxgcl.load(data)
    begun(Run(tmp_path / "run"), ready_of(bare), bare)
    assert Run(tmp_path / "run").config()["data"]["classes"] == 0
    assert graph_facts(Graph.from_data(bare.tensors))["classes"] == 0


def test_a_new_run_clears_what_an_old_one_left_and_only_when_asked(
    run: Run, loaded: Loaded
) -> None:
    run.log([{"epoch": 1, "loss": 1.0}])
    with pytest.raises(UserError, match="holds a run already"):
        begun(run, ready_of(loaded, seed=3), loaded)
    assert run.config()["run"]["seed"] == 0
    assert len(run.metrics()) == 1
    assert begun(run, ready_of(loaded, seed=3), loaded, overwrite=True) == []
    assert run.config()["run"]["seed"] == 3
    assert run.metrics() == []


def test_an_earlier_run_is_whole_until_it_is_replaced_and_that_happens_once(
    run: Run, loaded: Loaded, tmp_path: Path
) -> None:
    how: dict[str, Any] = {"resume": False, "overwrite": True, "command": None}
    new = Run(tmp_path / "new")
    assert begin(new, ready_of(loaded), Source("toy.csv"), loaded, **how) == ([], None)
    assert new.exists
    _, start = begin(run, ready_of(loaded, seed=3), Source("toy.csv"), loaded, **how)
    assert start is not None
    assert run.config()["run"]["seed"] == 0
    start()
    assert run.config()["run"]["seed"] == 3
    run.log([{"epoch": 1, "loss": 1.0}])
    start()
    assert len(run.metrics()) == 1


def test_resume_without_a_run_begins_one_and_says_so(loaded: Loaded, tmp_path: Path) -> None:
    run = Run(tmp_path / "new")
    told = [f"no run in {run.path} to go on with: a new one begins"]
    assert begun(run, ready_of(loaded), loaded, resume=True) == told
    assert run.exists


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 1}, r"seed = 0; 1 was asked for"),
        ({"anchors": 8}, r"anchors = all; 8 was asked for"),
        ({"keys": 8}, r"negatives = all; 8 was asked for"),
        ({"capture": "off"}, r"capture = auto; off was asked for"),
        ({"backend": "reference"}, r"backend = chunked; reference was asked for"),
        (
            {"settings": {"epochs": 4}},
            r"epochs = 5; 4 was asked for, but a run can only be trained",
        ),
        ({"settings": {"lr": 0.5}}, r"lr = .*; 0.5 was asked for"),
        ({"settings": {"drop_edges": (0.0, 0.0)}}, r"drop_edges = .*; \[0.0, 0.0\] was asked for"),
        ({"settings": {"epochs": 6, "lr": 0.5}}, r"lr = "),
    ],
)
def test_a_run_goes_on_as_it_was_begun_or_not_at_all(
    run: Run, loaded: Loaded, changes: dict[str, Any], words: str
) -> None:
    before = run.config_file.read_text()
    with pytest.raises(UserError, match=words):
        begun(run, ready_of(loaded, **changes), loaded, resume=True)
    assert run.config_file.read_text() == before


def test_a_run_goes_on_with_the_same_graph_alone(run: Run) -> None:
    other = muxgcl.load(planted(nodes=40, seed=9))
    with pytest.raises(UserError, match=r"another graph: this one has [\d,]+ edges instead of"):
        begun(run, ready_of(other), other, resume=True)


def test_the_same_command_goes_on_and_changes_nothing(run: Run, loaded: Loaded) -> None:
    before = run.config_file.read_text()
    assert begun(run, ready_of(loaded), loaded, resume=True) == []
    assert run.config_file.read_text() == before


def test_sizes_of_a_sample_are_compared_where_there_is_one(loaded: Loaded, tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    begun(run, ready_of(loaded, anchors=8, keys=16), loaded)
    assert begun(run, ready_of(loaded, anchors=8, keys=16), loaded, resume=True) == []
    with pytest.raises(UserError, match=r"anchors = 8; all was asked for"):
        begun(run, ready_of(loaded, keys=16), loaded, resume=True)


@pytest.mark.parametrize(
    ("changes", "note", "kept"),
    [
        (
            {"settings": {"epochs": 7}},
            "training goes on beyond epoch 5, to 7",
            ("train", "epochs", 7),
        ),
        ({"members": 3}, "members are added: 3 instead of 1", ("run", "members", 3)),
        ({"output_width": 4}, "the embedding becomes 4 wide", ("run", "output_width", 4)),
    ],
)
def test_what_may_grow_is_told_and_kept(
    run: Run, loaded: Loaded, changes: dict[str, Any], note: str, kept: tuple[str, str, int]
) -> None:
    assert begun(run, ready_of(loaded, **changes), loaded, resume=True) == [note]
    table, key, value = kept
    assert run.config()[table][key] == value
    assert begun(run, ready_of(loaded, **changes), loaded, resume=True) == []
    with pytest.raises(UserError, match=f"begun with {key} = {value}; "):
        begun(run, ready_of(loaded), loaded, resume=True)


def test_a_damaged_checkpoint_of_any_member_is_named_before_any_work(
    loaded: Loaded, tmp_path: Path
) -> None:
    run = Run(tmp_path / "run")
    begun(run, ready_of(loaded, members=2), loaded)
    for member in (0, 1):
        file = Run(run.path, member).checkpoint_file
        file.write_bytes(b"nothing of ours")
        with pytest.raises(UserError, match=file.name):
            begun(run, ready_of(loaded, members=2), loaded, resume=True)
        file.unlink()


def test_a_resumed_plan_takes_the_sample_that_the_run_was_begun_with(
    loaded: Loaded, tmp_path: Path
) -> None:
    run, plan = Run(tmp_path / "run"), plan_of()
    assert with_original_sample(run, plan, exact=False) == plan  # nothing is there
    begun(run, ready_of(loaded, anchors=8, keys=16), loaded)
    taken = with_original_sample(run, plan, exact=False)
    assert (taken.anchors, taken.keys) == (8, 16)
    assert with_original_sample(run, plan, exact=True) == plan
    assert taken.settings == plan.settings
    asked = plan_of(anchors=4)
    assert with_original_sample(run, asked, exact=False) == asked
    other = Plan.make("dgi", "quick", device="cpu")
    assert with_original_sample(run, other, exact=False) == other


def test_a_resumed_plan_takes_the_settings_that_its_sample_brought(
    loaded: Loaded, tmp_path: Path
) -> None:
    graph = Graph.from_data(loaded.tensors)
    run, plan = Run(tmp_path / "run"), Plan.make("mux-hop", "auto", graph=graph, device="cpu")
    assert (plan.settings.norm, plan.settings.fanout) == ("layer", 0)
    brought = replace(plan.settings, norm="batch", drop_edges=(0.7, 0.7), fanout=5)
    sampled = replace(plan, anchors=8, keys=8, settings=brought)
    begun(run, make_ready(sampled, graph), loaded)
    assert with_original_sample(run, plan, exact=False) == sampled
    assert with_original_sample(run, plan, exact=False, given=["fanout"]).settings.fanout == 0
    assert with_original_sample(run, plan, exact=True) == plan


@pytest.mark.parametrize(
    ("members", "width", "now", "default", "want"),
    [
        (1, None, 1, None, None),
        (1, None, 1, 6, None),  # begun without a width: stays so
        (1, None, 1, 1, None),
        (1, 6, 1, 6, 6),
        (1, 6, 2, 12, 12),  # so many columns for each member
        (2, 12, 3, 18, 18),
        (1, 4, 1, 6, None),  # a width that was asked for is asked for again
        (1, 6, 1, None, None),
    ],
)
def test_a_resumed_plan_has_the_default_width_where_the_run_has_it(
    loaded: Loaded, tmp_path: Path, members: int, width: int | None, now: int,
    default: int | None, want: int | None,
) -> None:  # fmt: skip
    run = Run(tmp_path / "run")
    plan = plan_of(members=now, output_width=default)
    assert with_original_width(run, plan, None) is plan  # there is no run
    begun(run, ready_of(loaded, members=members, output_width=width), loaded)
    assert with_original_width(run, plan, None) == replace(plan, output_width=want)
    assert with_original_width(run, plan, 5) is plan


def test_a_resumed_plan_is_as_long_as_the_run_unless_another_length_is_asked_for(
    loaded: Loaded, tmp_path: Path
) -> None:
    run, plan = Run(tmp_path / "run"), plan_of(settings={"epochs": 9})
    told = replace(plan, choices=(Choice("epochs", 9, "a small graph"),))
    assert with_original_epochs(run, told, ()) is told  # there is no run
    begun(run, ready_of(loaded), loaded)
    assert with_original_epochs(run, told, ("lr",)) == plan_of()
    assert with_original_epochs(run, told, ("epochs",)) is told


@pytest.mark.parametrize("more", [{"members": 2, "output_width": 4}, {"output_width": 3}])
def test_more_members_or_another_width_train_no_longer(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    data, options = planted(nodes=60), replace(OPTIONS, out=tmp_path / "run", report=False)
    muxgcl.run(data, options)
    muxgcl.run(data, replace(options, epochs=None, resume=True, **more))
    assert Run(tmp_path / "run").config()["train"]["epochs"] == 2
    assert Run(tmp_path / "run").metrics()[-1]["epoch"] == 2


def test_a_width_of_0_gives_all_columns_back(tmp_path: Path) -> None:
    data, options = planted(nodes=60), replace(OPTIONS, out=tmp_path / "run", report=False)
    full = muxgcl.run(data, options).embedding
    assert muxgcl.run(data, replace(options, resume=True, output_width=3)).embedding.shape[1] == 3
    heard = Heard()
    again = muxgcl.run(data, replace(options, resume=True, output_width=0), observer=heard)
    assert "the embedding becomes as wide as what is read out" in heard.notes
    assert (again.embedding == full).all()
    assert "output_width" not in Run(tmp_path / "run").config()["run"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("muxgcl run 'my graph'", "muxgcl run 'my graph' --epochs 7 --members 3"),
        ("muxgcl run g --epochs 5 --seed 0", "muxgcl run g --seed 0 --epochs 7 --members 3"),
        ("muxgcl run g --epochs=5 --members 1", "muxgcl run g --epochs 7 --members 3"),
        ("muxgcl run 'torn", "muxgcl run 'torn"),
        (None, None),
    ],
)
def test_the_command_of_a_resumed_run_has_it_as_it_is_now(
    run: Run, loaded: Loaded, before: str | None, after: str | None
) -> None:
    config = run.config()
    run.write_config({**config, "run": {**config["run"], "command": before}})
    begun(run, ready_of(loaded, settings={"epochs": 7}, members=3), loaded, resume=True)
    assert run.config()["run"].get("command") == after


def test_a_folder_of_other_things_is_refused_and_one_of_ours_is_not(
    run: Run, tmp_path: Path
) -> None:
    refuse_foreign(run)
    refuse_foreign(Run(tmp_path / "new"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(UserError, match=r"holds no run \(there is thesis.tex\)"):
        refuse_foreign(Run(tmp_path / "full"))


def test_protocol_paper_must_have_seen_each_of_the_last_epochs(run: Run) -> None:
    plan = plan_of(settings={"epochs": 10})
    assert observed_so_far(run, plan, 0, last=4) == {}  # no checkpoint: nothing is done
    run.save_checkpoint({}, epoch=6)
    assert observed_so_far(run, plan, 0, last=4) == {}  # the first to see is epoch 7
    run.save_checkpoint({}, epoch=8)
    run.log_observed(7, [70.0], split_seed=0)
    with pytest.raises(UserError, match=r"every epoch from 7 on, but .* is at epoch 8 without"):
        observed_so_far(run, plan, 0, last=4)
    run.log_observed(8, [80.0], split_seed=0)
    run.log_observed(9, [90.0], split_seed=0)  # of work that the checkpoint does not have
    assert observed_so_far(run, plan, 0, last=4) == {7: (70.0,), 8: (80.0,)}
    with pytest.raises(UserError, match="on these splits"):
        observed_so_far(run, plan, 1, last=4)


def test_with_few_epochs_protocol_paper_looks_at_all_of_them(run: Run) -> None:
    assert observed_so_far(run, plan_of(), 0, last=100) == {}  # no checkpoint: nothing is done
    run.save_checkpoint({}, epoch=1)
    with pytest.raises(UserError, match="every epoch from 1 on"):
        observed_so_far(run, plan_of(), 0, last=100)


def test_edges_of_other_kinds_than_those_trained_on_are_named(loaded: Loaded) -> None:
    plain = Graph.from_data(loaded.tensors)
    check_kinds({}, plain)
    with pytest.raises(
        UserError, match=r"^trained on directed .*, this graph has undirected edges"
    ):
        check_kinds({"directed": True}, plain)
    words = "^trained on types of edges buys, knows, this graph has one type of edges$"
    with pytest.raises(UserError, match=words):
        check_kinds({"edge_types": ["buys", "knows"]}, plain)


@pytest.mark.parametrize("resumable", [True, False])
def test_a_stop_says_when_it_came_and_what_is_left(resumable: bool) -> None:
    left = "what was done before is kept" if resumable else "nothing was written"
    with (
        pytest.raises(Stopped, match=f"stopped while baking; {left}") as stop,
        reporting_interrupts("baking", resumable=resumable),
    ):
        raise KeyboardInterrupt
    assert (stop.value.number, stop.value.resumable) == (signal.SIGINT, resumable)
    asked = KeyboardInterrupt()
    asked.number = signal.SIGTERM  # type: ignore[attr-defined]
    with pytest.raises(Stopped) as stop, reporting_interrupts("baking"):
        raise asked
    assert (stop.value.number, stop.value.resumable) == (signal.SIGTERM, True)


def test_a_folder_is_looked_at_before_the_graph_is(run: Run, tmp_path: Path) -> None:
    options = RunOptions(out=run.path, device="cpu")
    with pytest.raises(UserError, match="holds a run already"):
        muxgcl.run(tmp_path / "nothing.csv", options)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(UserError, match="holds no run"):
        muxgcl.run(tmp_path / "nothing.csv", RunOptions(out=tmp_path / "mine", resume=True))
    seeds = tmp_path / "seeds"
    shutil.copytree(run.path, seeds / "seed2")
    with pytest.raises(UserError, match="seed2 holds a run already"):
        muxgcl.run_seeds(tmp_path / "nothing.csv", 3, RunOptions(out=seeds))


def test_a_run_from_before_a_setting_was_there_goes_on(tmp_path: Path) -> None:
    options = RunOptions(method="sgc", out=tmp_path / "run", device="cpu", score=False)
    graph = planted(nodes=60)
    first = muxgcl.run(graph, options)
    config = tmp_path / "run" / "config.toml"
    text = config.read_text()
    assert "side_by_side = false\n" in text
    config.write_text(text.replace("side_by_side = false\n", ""))
    again = muxgcl.run(graph, replace(options, resume=True))
    assert (again.embedding == first.embedding).all()
    other = replace(options, resume=True, settings={"side_by_side": True})
    with pytest.raises(UserError, match="begun with side_by_side = "):
        muxgcl.run(graph, other)
