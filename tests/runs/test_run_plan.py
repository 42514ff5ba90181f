"""A plan: what it refuses, what `make` puts together, what reaches the method that is built."""

import tomllib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.methods import METHODS
from muxgcl.methods.grace import Grace
from muxgcl.runs.plan import (
    MOST_LAYERS,
    SCALARS,
    SEEDS,
    Plan,
    _weights_for,
    build,
    check_plan,
    check_sizes,
    find_method,
)
from muxgcl.runs.settings import to_toml

GRAPH = Graph.from_data(planted(nodes=40))
SMALL = {"width": 8, "projection": 8, "projection_out": 8}


def plan_of(method: str = "grace", settings: dict[str, Any] | None = None, **changes: Any) -> Plan:
    return Plan.make(method, "best", "toy", settings or {}, device="cpu", **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": -1}, f"a seed must be between 0 and {SEEDS - 1}, got -1"),
        ({"seed": SEEDS}, f"got {SEEDS}"),
        ({"seed": True}, "seed must be a whole number, got True"),
        ({"members": 0}, "members must be at least 1, got 0"),
        ({"members": 1001}, "members must be at most 1,000, got 1,001"),
        ({"seed": SEEDS - 2, "members": 3}, "members must be at most"),
        ({"members": 2.0}, r"members must be a whole number, got 2\.0"),
        ({"output_width": -1}, "output_width must be at least 1, or 0 for all columns, got -1"),
        ({"output_width": "8"}, "output_width must be a whole number, got '8'"),
        ({"method": "dgi", "anchors": 8}, r"dgi has no sampled contrast \(anchors, keys\); these"),
        ({"method": "dgi", "keys": 8}, "dgi has no sampled contrast"),
        ({"method": "grice"}, "unknown method 'grice'; did you mean grace"),
    ],
)
def test_a_plan_without_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_of(**changes)


def test_a_sample_is_refused_with_the_methods_that_have_one() -> None:
    with pytest.raises(UserError) as refused:
        plan_of("dgi", anchors=8)
    able = str(refused.value).partition("these have one: ")[2].split(", ")
    assert able == [name for name, kind in METHODS.items() if kind.samples]
    data = planted(nodes=12)
    data.update({"edge_parts": data.x.new_ones(1, data.edge_index.shape[1]), "directed": True})
    with pytest.raises(UserError) as refused:
        build(plan_of(settings=SMALL), Graph.from_data(data))
    assert str(refused.value).endswith("--edge-type); mux-hop does")


def test_the_bounds_of_a_plan_are_within_it() -> None:
    assert plan_of(seed=2**63 - 1).seed == SEEDS - 1  # what 64 bits with a sign can hold
    assert plan_of(members=1000).members == 1000
    assert plan_of(seed=SEEDS - 3, members=3).of_members()[-1].seed == SEEDS - 1
    assert plan_of(output_width=0).output_width == 0
    assert plan_of().output_width is None


def test_make_passes_on_all_that_it_is_given() -> None:
    given = {"seed": 3, "backend": "reference", "capture": "off", "members": 2, "output_width": 5}
    plan = plan_of(settings={"epochs": 7, "width": 16}, anchors=9, keys=11, **given)
    assert {name: getattr(plan, name) for name in given} == given
    assert (plan.method, plan.preset, plan.dataset, plan.device) == ("grace", "best", "toy", "cpu")
    assert (plan.train.epochs, plan.settings.width, plan.choices) == (7, 16, ())
    assert (plan.anchors, plan.keys) == (plan.sampling.anchors, plan.sampling.keys) == (9, 11)


def test_auto_tells_what_it_picked_and_nothing_that_was_overridden() -> None:
    picked = {c.key: c.value for c in Plan.make("grace", "auto", graph=GRAPH).choices}
    given = {"lr": 0.5, "epochs": 3, "temperature": 0.9}
    plan = Plan.make("grace", "auto", overrides=given, graph=GRAPH)
    left = {c.key: c.value for c in plan.choices}
    assert {"preset", "width"} <= set(left)
    assert left == {key: value for key, value in picked.items() if key not in given}
    used = asdict(plan.train) | asdict(plan.settings)
    assert all(used[key] == value for key, value in left.items() if key != "preset")
    assert (plan.train.lr, plan.train.epochs) == (0.5, 3)
    assert "affinity" not in left  # grace has none
    hop = Plan.make("mux-hop", "auto", overrides={"epochs": 3}, graph=GRAPH)
    assert {c.key for c in hop.choices} >= {"preset"}
    assert Plan.make("dgi", "auto", graph=GRAPH).choices == ()
    assert Plan.make("dgi", "auto", graph=GRAPH).settings == Plan.make("dgi", "best").settings


def test_a_width_of_ones_own_takes_the_projector_along_unless_that_has_one() -> None:
    width = Plan.make("grace", "auto", overrides={"width": 24}, graph=GRAPH).settings
    assert (width.width, width.projection) == (24, 24)
    both = Plan.make("grace", "auto", overrides={"width": 24, "projection": 12}, graph=GRAPH)
    assert (both.settings.width, both.settings.projection) == (24, 12)
    hop = Plan.make("mux-hop", "auto", graph=GRAPH).settings  # where it is no matter of width
    own = Plan.make("mux-hop", "auto", overrides={"width": 24}, graph=GRAPH).settings
    assert (own.width, own.projection) == (24, hop.projection)
    best = Plan.make("grace", "best", overrides={"width": 24}, graph=GRAPH).settings
    assert best.projection == Plan.make("grace", "best").settings.projection


def test_members_differ_in_their_seeds_alone() -> None:
    plan = plan_of(seed=4, members=3, output_width=6, anchors=9, keys=9)
    for k, one in enumerate(plan.of_members()):
        assert (one.seed, one.members, one.output_width) == (4 + k, 1, None)
        assert (one.settings, one.train, one.anchors) == (plan.settings, plan.train, 9)


def test_the_tables_of_a_plan_hold_it_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUXGCL_COMMIT", "abc")
    plan = plan_of(seed=4, members=2, output_width=6, anchors=9, keys=10, capture="off")
    tables = plan.tables()
    run = dict(tables["run"])
    assert "T" in run.pop("created")
    assert run == {
        "dataset": "toy",
        "method": "grace",
        "preset": "best",
        "seed": 4,
        "device": "cpu",
        "backend": "auto",
        "capture": "off",
        "anchors": 9,
        "keys": 10,
        "members": 2,
        "output_width": 6,
        "commit": "abc",
    }
    assert (tables["train"], tables["method"]) == (asdict(plan.train), asdict(plan.settings))
    assert "torch" in tables["versions"]
    assert plan_of().tables()["run"]["members"] is None
    assert Plan.from_tables(tables) == plan
    assert Plan.from_tables(tables, device="cuda:3").device == "cuda:3"


def test_all_fields_of_a_plan_but_its_configs_and_reasons_are_read_from_the_table_run() -> None:
    elsewhere = {"train", "settings", "choices"}
    assert set(SCALARS) == {field.name for field in fields(Plan)} - elsewhere


@pytest.mark.parametrize("name", ["method", "preset", "dataset"])
def test_tables_without_a_name_are_refused(name: str) -> None:
    tables = plan_of().tables()
    del tables["run"][name]
    with pytest.raises(UserError, match=rf"^config\.toml: run\.{name} is missing$"):
        Plan.from_tables(tables)
    tables = plan_of().tables()
    tables["method"] = {"widht": 3}
    with pytest.raises(UserError, match=r"^config\.toml: unknown setting 'widht'"):
        Plan.from_tables(tables)


def test_an_old_run_folder_may_state_a_former_setting_at_its_default() -> None:
    plan = plan_of("sfa", {"width": 8})
    tables = tomllib.loads(to_toml(plan.tables()))
    former = {"fanout": 0}
    assert not former.keys() & tables["method"].keys()
    old = {**tables, "method": tables["method"] | former}
    assert Plan.from_tables(tomllib.loads(to_toml(old))) == plan
    other = {**old, "method": old["method"] | {"fanout": 5}}
    with pytest.raises(UserError, match=r"^config\.toml: unknown setting 'fanout'"):
        Plan.from_tables(other)
    tables = plan_of("bgrl").tables()
    tables["method"]["fanout"] = 0  # it never had one
    with pytest.raises(UserError, match=r"^config\.toml: unknown setting 'fanout'"):
        Plan.from_tables(tables)


def test_products_are_rounded_where_a_step_leaves_nodes_out_and_32_bits_are_not_asked_for() -> None:
    assert plan_of(anchors=8, keys=8).rounds(GRAPH)
    assert not plan_of(anchors=8, keys=8, backend="chunked/fp32").rounds(GRAPH)
    assert not plan_of(anchors=40, keys=40).rounds(GRAPH)
    assert not plan_of().rounds(GRAPH)


def test_a_method_is_built_with_what_the_plan_says(tmp_path: Path) -> None:
    plan = plan_of(settings=SMALL | {"epochs": 7}, seed=5, backend="reference", anchors=9, keys=8)

    def heard(done: int, total: int) -> None: ...

    context = build(plan, GRAPH, tmp_path, heard).context
    assert (context.backend, context.seed, context.epochs) == ("reference", 5, 7)
    assert (context.cache, context.on_prepare) == (tmp_path, heard)
    assert context.sampling == plan.sampling
    other = plan_of(anchors=3, keys=3).sampling
    assert build(plan, GRAPH, sampling=other).context.sampling == other
    assert isinstance(build(plan, GRAPH), Grace)


def test_kinds_of_edges_are_refused_by_methods_that_do_not_look_at_them() -> None:
    data = planted(nodes=12)
    edges = data.edge_index.shape[1]
    data.update({"edge_parts": data.x.new_ones(1, edges), "directed": True})
    graph = Graph.from_data(data)
    assert graph.edge_kinds is not None
    for refuse in (check_plan, build):
        with pytest.raises(UserError, match="grace supports neither directed edges nor types"):
            refuse(plan_of(settings=SMALL), graph)
        refuse(plan_of("mux-hop", SMALL | {"hidden": 8}), graph)


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("grace", {"width": 10_000_001}, "width must be a whole number of at most 10,000,000"),
        ("grace", {"layers": 1001}, "layers must be a whole number of at most 1,000, got 1,001"),
        ("grace", {"layers": 10**31}, "got a longer number"),
        ("grace", {"projection": -1}, "projection must not be negative, got -1"),
        ("grace", {"width": 9_000_000}, "a table of width 9,000,000 would take"),
        ("grace", {"temperature": -0.5}, "temperature must be positive, got -0.5"),
    ],
)
def test_sizes_beyond_reason_are_refused(
    method: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        check_plan(plan_of(method, settings), GRAPH)


def test_sizes_within_reason_are_not() -> None:
    check_plan(plan_of(settings={"layers": 1000, "width": 64, "projection": 0}), GRAPH)
    check_sizes(plan_of("raw"), 1, 1)
    with pytest.raises(UserError, match="a table of width 256 would take"):  # a row for each node
        check_sizes(plan_of(settings={"width": 256}), 10**12, 1)
    with pytest.raises(UserError, match="a table of width 256 would take"):  # or feature
        check_sizes(plan_of(settings={"width": 256}), 1, 10**12)


def test_methods_are_found_by_name() -> None:
    assert all(find_method(name) is kind for name, kind in METHODS.items())


@pytest.mark.parametrize(
    ("hops", "weights"),
    [(1, (0.5, 1.0)), (2, (0.5, 0.5, 1.0)), (4, (0.5, 0.5, 0.5, 0.5, 1.0))],
)
def test_weights_of_a_presets_scales_follow_the_number_of_scales(
    hops: int, weights: tuple[float, ...]
) -> None:
    equal = (1 / (hops + 1),) * (hops + 1)
    for text in (hops, str(hops)):  # from Python, and from the command line
        given = {"hops": text, "scale_weights": equal}
        plan = Plan.make("mux-hop", "best", "citeseer", given)
        assert plan.settings.readout_weights == weights
    given = {"layers": hops, "scale_weights": equal}
    assert Plan.make("mux-gcl", "best", overrides=given).settings.readout_weights == weights
    own = {"hops": hops, "scale_weights": equal, "readout_weights": (1.0, 2.0)}
    assert Plan.make("mux-hop", "best", "citeseer", own).settings.readout_weights == (1.0, 2.0)


def test_the_last_scale_alone_needs_no_weights_of_the_others() -> None:
    plan = Plan.make("mux-hop", "best", "cora", {"readout": "last"})
    assert (plan.settings.readout, plan.settings.readout_weights) == ("last", ())
    method = build(plan, GRAPH)
    assert set(method.readout.scales) == {2}
    given = {"readout": "last", "readout_weights": (1.0, 1.0, 1.0)}
    both = Plan.make("mux-hop", "best", "cora", given)
    with pytest.raises(UserError, match="readout_weights are for readout all"):
        build(both, GRAPH)


@pytest.mark.parametrize(("method", "scales"), [("mux-hop", "hops"), ("mux-gcl", "layers")])
def test_weights_of_a_presets_contrasts_follow_the_number_of_scales(
    method: str, scales: str
) -> None:
    first = Plan.make(method, "best").settings.scale_weights[0]
    for count in (1, 3, 5):
        plan = Plan.make(method, "best", overrides={scales: str(count)})
        want = (first, *[(1 - first) / count] * count)
        assert plan.settings.scale_weights == pytest.approx(want)
        build(plan, GRAPH)
    same = Plan.make(method, "best", overrides={scales: 2})
    assert same.settings == Plan.make(method, "best").settings
    own = {scales: 1, "scale_weights": (0.1, 0.9)}
    assert Plan.make(method, "best", overrides=own).settings.scale_weights == (0.1, 0.9)
    with pytest.raises(UserError, match="for each of the 1001002 scales"):
        build(Plan.make(method, "best", overrides={scales: 1_001_001}), GRAPH)


@pytest.mark.parametrize("method", ["mux-hop", "mux-gcl"])
def test_the_last_scale_alone_has_no_features_beside_it_unless_they_are_asked_for(
    method: str,
) -> None:
    for preset in ("best", "auto"):
        usual = Plan.make(method, preset, overrides={"readout": "all"}, graph=GRAPH)
        assert usual.settings.readout_features > 0
        last = {"readout": "last"}
        plan = Plan.make(method, preset, overrides=last, graph=GRAPH)
        assert (plan.settings.readout_features, plan.settings.readout_raw) == (0.0, 0.0)
        assert not any(choice.key.startswith("readout") for choice in plan.choices)
        asked = Plan.make(method, preset, overrides={**last, "readout_raw": 0.5}, graph=GRAPH)
        assert (asked.settings.readout_features, asked.settings.readout_raw) == (0.0, 0.5)


def test_a_file_of_settings_is_taken_as_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("hops = 2\nreadout_weights = [0.7, 1.0]\n")
    plan = Plan.make("mux-hop", str(file))
    assert plan.settings.readout_weights == (0.7, 1.0)  # what is wrong is said, not mended
    with pytest.raises(UserError, match="one number for each of the 3 scales"):
        build(plan, GRAPH)
    file.write_text("hops = 1\nscale_weights = [0.5, 0.5]\nreadout_weights = '0.5,1'\n")
    three = {"hops": 2, "scale_weights": (0.5, 0.25, 0.25)}
    assert Plan.make("mux-hop", str(file), "cora", three).settings.readout_weights == (
        0.5,
        0.5,
        1.0,
    )
    file.write_text("readout_weights = 1.0\n")
    with pytest.raises(UserError, match="readout_weights must be numbers separated by commas"):
        Plan.make("mux-hop", str(file), "cora", three)


def test_a_number_of_hops_that_no_memory_holds_is_refused_before_weights_are_made() -> None:
    assert len(_weights_for({"hops": 10**9}, (1.0, 2.0))) == MOST_LAYERS


def test_weights_that_auto_picked_and_hops_changed_are_told_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("muxgcl.runs.auto.agreement", lambda graph, hops: (0.0, 1.0))
    given = {"hops": 3, "scale_weights": (0.25,) * 4}
    plan = Plan.make("mux-hop", "auto", overrides=given, graph=GRAPH)
    assert plan.settings.readout_weights == (0.1, 0.1, 0.3, 1.0)
    told = {choice.key: choice.value for choice in plan.choices}
    assert told["readout_weights"] == plan.settings.readout_weights
