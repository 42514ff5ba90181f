"""Which measurements are planned, in which order, and what names them."""

import tomllib
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from itertools import groupby

import pytest

from muxgcl.errors import UserError
from muxgcl.io import DATASETS
from muxgcl.reproduce.artefacts import (
    ARTEFACTS,
    CHIEF,
    CONTROLS,
    PAPER,
    Scope,
    needed,
    plan,
    trainings,
)
from muxgcl.reproduce.job import Job
from muxgcl.reproduce.paper import LABELS, TABLE1, TABLE2, TABLE3, TABLE4, TABLE5


def test_the_paper_is_quoted_as_printed() -> None:
    assert TABLE1["mux-gcl"]["computers"].text == "90.7±0.1"
    assert TABLE1["raw"]["pubmed"].mean == 84.8
    assert TABLE2["dmon"].keys() == {"photo/nmi", "computers/nmi"}
    assert TABLE3["vgae"]["photo"].text == "93.89±0.10"
    assert TABLE4["pae"]["photo"].plain == "93.34"
    assert TABLE5["homogcl"]["cora"].mean == 1.09


def test_every_row_of_a_table_is_a_method_with_a_label_and_settings_for_five_graphs() -> None:
    shown = {name for table in ("table1", "table2", "table5") for name in Scope().rows(table)}
    assert shown == set(LABELS)
    for name in shown:
        presets = tomllib.loads(
            files("muxgcl.runs.presets").joinpath(f"{name}.toml").read_text("utf-8")
        )
        published = presets.get("paper", presets.get("best", {}))
        assert {"cora", "citeseer", "pubmed", "photo", "computers"} < set(published), name


def test_the_ablation_needs_every_variant_on_every_seed() -> None:
    jobs = needed("table4", Scope())
    assert Counter(job.variant for job in jobs) == dict.fromkeys([*TABLE4, "script"], 3 * 5)
    assert {job.dataset for job in jobs} == {"cora", "citeseer", "photo"}


def test_variants_change_what_they_are_named_after_and_nothing_else() -> None:
    settings = {v: Job(method="mux-gcl", dataset="cora", variant=v).plan().settings for v in TABLE4}
    full = settings["full"]
    assert full.affinity != "none"
    assert sum(weight > 0 for weight in full.scale_weights) == 3
    for variant, last_only, without in (
        ("neither", True, True),
        ("pae", True, False),
        ("mpc", False, True),
    ):
        weights = (0.0, 0.0, 1.0) if last_only else full.scale_weights
        assert settings[variant].scale_weights == weights
        assert settings[variant].affinity == ("none" if without else full.affinity)
        assert settings[variant].width == full.width


def test_the_scripts_defaults_are_scale_zero_alone_in_its_own_direction() -> None:
    full, script = (
        Job(method="mux-gcl", dataset="cora", variant=v).plan().settings for v in ("full", "script")
    )
    assert script.scale_weights == (1.0, 0.0, 0.0)
    assert (script.direction, script.pooling, script.likelihood) == ("released", "residual", "half")
    own = {name: getattr(full, name) for name in ("scale_weights", "direction", "pooling")}
    assert replace(script, **own) == full


def test_the_full_method_is_run_once_for_all_tables() -> None:
    scope = Scope(datasets=("cora",))
    full = scope.scored("mux-gcl", "cora")
    assert scope.scored("mux-gcl", "cora", "node2vec") == full  # its own affinity is of walks
    assert set(full) <= set(needed("table1", scope)) & set(needed("table4", scope))


def test_no_measurement_is_planned_twice() -> None:
    jobs = plan(ARTEFACTS, Scope())
    assert len({(job.hash, job.seed) for job in jobs}) == len(jobs)


def test_what_matters_most_comes_first_and_small_graphs_before_large() -> None:
    jobs = plan(PAPER, Scope())
    chief = [job for job in jobs if job.method in CHIEF and job.protocol != "paper"]
    last = max(jobs.index(job) for job in chief)
    others = [job for job in jobs if job.method not in (*CHIEF, *CONTROLS)]
    assert last < min(jobs.index(job) for job in others)
    for row in {(job.method, job.variant, job.kind) for job in chief}:
        same = [j for j in chief if (j.method, j.variant, j.kind) == row]
        sizes = [DATASETS[job.dataset].nodes for job in same]
        assert sizes == sorted(sizes)


def test_a_time_limit_leaves_whole_rows_and_short_trainings_come_first() -> None:
    jobs = [job for job in plan(["table1"], Scope(chief_seeds=7)) if job.protocol == "holdout"]
    rows = [key for key, _ in groupby(jobs, key=lambda job: (job.method, job.seed >= 5))]
    assert len(rows) == len(set(rows))  # all graphs and seeds of a method are neighbours
    assert rows[-2:] == [("grace", True), ("mux-gcl", True)]  # further seeds come last
    assert {name for name, _ in rows[:3]} == set(CONTROLS)
    others = [name for name, more in rows if name not in (*CONTROLS, *CHIEF)]
    assert others.index("gae") < others.index("gca") < others.index("bgrl") == len(others) - 1


def test_more_seeds_are_for_the_chief_methods_as_they_are_alone() -> None:
    scope = Scope(chief_seeds=10)
    counts = {name: len(scope.scored(name, "cora")) for name in ("grace", "mux-gcl", "dgi", "raw")}
    assert counts == {"grace": 10, "mux-gcl": 10, "dgi": 5, "raw": 1}
    assert len(scope.scored("mux-gcl", "cora", "neither")) == 5
    assert len(scope.scored("mux-gcl", "cora", protocol="paper")) == 5
    assert len(scope.hops.trained("mux-hop", "cora")) == 10
    assert scope.hops.committee("cora") == Scope().hops.committee("cora")


def test_seeds_of_one_method_on_one_graph_follow_each_other() -> None:
    jobs = [job for job in plan(PAPER, Scope()) if job.protocol == "holdout"]
    runs = [key for key, _ in groupby(jobs, key=lambda j: (j.method, j.variant, j.dataset))]
    assert len(runs) == len(set(runs))


def test_one_training_serves_both_protocols_and_another_one_every_look_on_the_way() -> None:
    scope = Scope(datasets=("cora",), methods=("mux-gcl",), seeds=2)
    groups = trainings(plan(["table1", "figure1", "figure3", "proposition"], scope))
    seen = [{(job.kind, job.protocol, job.variant) for job in group} for group in groups]
    scores = {("scores", "holdout", "full"), ("scores", "paper", "full")}
    assert seen.count(scores) == 2
    for variant in ("full", "literal"):
        kinds = ("similarities", "soft-negatives", "bounds")
        assert {(kind, "none", variant) for kind in kinds} in seen
    assert len(seen) == 4


def test_controls_without_chance_are_run_once() -> None:
    counts = Counter(job.method for job in needed("table1", Scope(datasets=("cora",))))
    assert (counts["raw"], counts["sgc"], counts["random-gcn"]) == (1, 1, 5)


def test_the_hash_knows_settings_and_protocol_but_not_the_seed() -> None:
    base = {"method": "grace", "dataset": "cora", "protocol": "holdout", "splits": 20}
    job = Job(**base)
    assert Job(**base, seed=3).hash == job.hash
    for change in (
        {"epochs": 7},
        {"dataset": "citeseer"},
        {"splits": 10},
        {"protocol": "paper"},
        {"split_seed": 1},
        {"method": "dgi"},
    ):
        assert Job(**(base | change)).hash != job.hash, change


def test_unknown_names_are_told() -> None:
    with pytest.raises(UserError, match="unknown dataset 'coral'; did you mean cora"):
        Scope(datasets=("coral",))
    with pytest.raises(UserError, match="unknown method"):
        Scope(methods=("gracee",))
    with pytest.raises(UserError, match="from 1 to 10,000, got 0"):
        Scope(seeds=0)
