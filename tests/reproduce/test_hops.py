"""`hops`: one training read out in several ways, committees, controls, unseen graphs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reproduce_cases import FACTS, fill, result_of
from torch import Tensor
from torch_geometric.data import Data

from muxgcl.errors import UserError
from muxgcl.evaluate import cluster, development_hash, holdout, report_half
from muxgcl.graph import Graph
from muxgcl.io import open_dataset, planted
from muxgcl.methods import METHODS, Method
from muxgcl.nn.projector import unit_rows
from muxgcl.nn.readout import Readout
from muxgcl.reproduce import readouts
from muxgcl.reproduce.artefacts import ARTEFACTS, Scope, plan
from muxgcl.reproduce.check import BEFORE, doubts
from muxgcl.reproduce.hops import (
    FIRST_SEED,
    HOP_PARTS,
    SPLIT_SEED,
    Hops,
    members_of,
)
from muxgcl.reproduce.job import BLOCKS, COMMITTEE, LEFT_OUT, READOUTS, SAMPLED, Job, settings_hash
from muxgcl.reproduce.numbers import device
from muxgcl.reproduce.readouts import scores_of, with_features
from muxgcl.reproduce.records import (
    Found,
    Line,
    Record,
    RecordStore,
    _stated,
    digest,
    fault_of,
    make_record,
)
from muxgcl.reproduce.render import Rendered, render
from muxgcl.reproduce.runner import Runner
from muxgcl.reproduce.shown import MARKS, mark, marks_told
from muxgcl.reproduce.typeset import Table
from muxgcl.runs.auto import BENCHMARKS, of_sample, settings_for
from muxgcl.runs.committee import side_by_side
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan
from muxgcl.runs.settings import TrainConfig, preset, searches, source, split_settings

RECORDS = Path(__file__).parents[2] / "records"
SCOPE = Scope(datasets=("cora",), seeds=2, splits=2, epochs=2, parts=("main", "auto"))


def tiny(name: str, root: Path | None) -> Data:
    return planted(nodes=60, classes=3, features=12, seed=len(name))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> RecordStore:
    """Main and auto on a tiny graph, in one go."""
    store = RecordStore(tmp_path_factory.mktemp("hops") / "records")
    told: list[str] = []
    runner = Runner(store=store, device="cpu", open_graph=tiny)
    runner.on_failure = lambda job, reason: told.append(reason)
    outcome = runner.run(plan(["hops"], SCOPE))
    assert not told, told[0]
    assert len(outcome.recorded) == len(plan(["hops"], SCOPE)) == 1 + 2 + 1 + 2
    return store


def record_of(store: RecordStore, job: Job) -> Record:
    record = Found(store.lines()).get(job)
    assert record is not None
    return record


def embedding(job: Job) -> Any:
    return fit(job.plan(), Graph.from_data(tiny("cora", None))).embed().numpy()


def test_each_readout_is_scored_from_one_training(real: RecordStore) -> None:
    job = SCOPE.hops.trained("mux-hop", "cora")[1]
    result, y = record_of(real, job)["result"], tiny("cora", None).y.numpy()
    assert set(result["tables"]) == {"preset", "last", "all"}
    assert result["development"] == development_hash(y)
    without = {"readout_features": 0.0, "readout_raw": 0.0}
    weights: dict[str, dict[str, object]] = {
        "preset": {},
        "last": {"readout": "last", "readout_weights": (), **without},
        "all": without,
    }
    for name, change in weights.items():
        asked = replace(job.plan(), settings=replace(job.plan().settings, **change))
        z = fit(asked, Graph.from_data(tiny("cora", None))).embed().numpy()
        want = holdout(z, y, count=2, seed=SPLIT_SEED)
        assert result["tables"][name]["accuracy"] == pytest.approx(want.accuracies, abs=1e-4)
    groups = cluster(embedding(job), np.where(report_half(y), y, -1), clusters=3, repeats=2, seed=0)
    assert result["tables"]["preset"]["nmi"] == pytest.approx(groups.nmi_scores, abs=1e-4)
    everywhere = cluster(embedding(job), y, repeats=2, seed=0)
    assert result["tables"]["preset"]["ari_everywhere"] == pytest.approx(
        everywhere.ari_scores, abs=1e-4
    )


def test_a_committee_is_the_probe_of_its_members_side_by_side(real: RecordStore) -> None:
    (job,) = SCOPE.hops.committee("cora")
    assert members_of(job) == SCOPE.hops.trained("mux-hop", "cora")
    z = np.concatenate([embedding(member) for member in members_of(job)], 1)
    want = holdout(z, tiny("cora", None).y.numpy(), count=2, seed=SPLIT_SEED)
    record = record_of(real, job)
    assert record["result"]["tables"]["preset"]["accuracy"] == pytest.approx(
        want.accuracies, abs=1e-4
    )
    assert record["members"] == 2
    times = [record_of(real, member)["seconds"] for member in members_of(job)]
    assert record["seconds"] == pytest.approx(sum(times))


FEATURES = replace(SCOPE, methods=("cca-ssg",), parts=("baselines", "features"))


def hand_made(z: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Unit rows of z, half of those of A^2 X, half of those of X; the tiny graph of this file."""
    data = tiny("cora", None)
    a = np.eye(60)
    a[tuple(data.edge_index.numpy())] = 1
    a /= np.sqrt(np.outer(a.sum(1), a.sum(1)))
    x = data.x.numpy().astype(np.float64)
    tables = (z, a @ a @ x, x)
    own, spread, plain = (t / (np.linalg.norm(t, axis=1)[:, None] + 1e-12) for t in tables)
    return np.hstack([own, 0.5 * spread, 0.5 * plain])


def test_features_beside_an_embedding_are_blocks_of_unit_rows() -> None:
    z = torch.randn(60, 5, generator=torch.Generator().manual_seed(0))
    found = with_features(z, Graph.from_data(tiny("cora", None)))
    np.testing.assert_allclose(found.numpy(), hand_made(z.numpy()), atol=1e-6)


@pytest.mark.parametrize("dataset", BENCHMARKS)
def test_other_methods_have_the_features_that_mux_hop_has(dataset: str) -> None:
    ours = preset("mux-hop", "best", dataset)
    names = ("hops", "readout_features", "readout_raw")
    assert [ours[name] for name in names] == [*BLOCKS.values()]


def test_one_training_is_scored_with_and_without_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counted(plan: Plan, *given: Any, **named: Any) -> Any:
        asked.append(plan.seed)
        return fit(plan, *given, **named)

    monkeypatch.setattr(readouts, "fit", counted)
    alone, (job, _) = RecordStore(tmp_path / "alone"), SCOPE.hops.beside("cca-ssg", "cora")
    Runner(store=alone, device="cpu", open_graph=tiny).run([job])
    assert len(asked) == 1
    both = RecordStore(tmp_path / "both")
    outcome = Runner(store=both, device="cpu", open_graph=tiny).run(plan(["hops"], FEATURES))
    assert len(outcome.recorded) == 4  # two seeds, each read out as set and with features
    assert len(asked) == 1 + 2
    (first,) = members_of(job)
    assert first == FEATURES.hops.trained("cca-ssg", "cora")[0]
    tables = record_of(both, job)["result"]["tables"]
    assert tables == record_of(alone, job)["result"]["tables"]
    plain = record_of(both, first)["result"]["tables"]
    assert tables["preset"]["accuracy"] == plain["preset"]["accuracy"]
    z, y = embedding(first), tiny("cora", None).y.numpy()
    want = holdout(hand_made(z), y, count=2, seed=SPLIT_SEED)
    assert tables["features"]["accuracy"] == pytest.approx(want.accuracies, abs=1e-4)


def test_a_record_with_features_says_which() -> None:
    job = Hops().beside("cca-ssg", "cora")[0]
    record = make_record(job, result_of(job), **FACTS)
    assert (record["blocks"], fault_of(record, "hops")) == (BLOCKS, "")
    other = {**record, "blocks": BLOCKS | {"raw": 1.0}}
    other["digest"] = digest(other)
    assert "do not match their hash" in fault_of(other, "hops")
    other["hash"] = settings_hash(_stated(other))
    other["digest"] = digest(other)
    (doubt,) = doubts([Line("hops.jsonl", 1, other, fault_of(other, "hops"))])
    assert doubt.endswith("stale: raw was 1.0 and is now 0.5")


def named(rendered: Rendered, name: str) -> Table:
    (table,) = (table for table in rendered.tables if table.name == name)
    return table


def cells(rendered: Rendered, name: str) -> dict[str, str]:
    """The first graph's."""
    return {row[0]: row[1] for row in named(rendered, name).rows}


def test_the_table_has_what_features_add_and_what_is_left_of_the_lead(tmp_path: Path) -> None:
    """Made-up records: features add a point, a training on another device an eighth."""
    scope = Scope(datasets=("cora",), seeds=5, splits=6, methods=("cca-ssg", "mux-hop"))
    rendered = render("hops", fill(tmp_path, plan(["hops"], scope)), scope)
    features = named(rendered, "hops-features")
    rows = cells(rendered, "hops") | cells(rendered, "hops-features")
    assert rows["CCA-SSG"] == "83.75 ± 0.94 ‡"
    assert rows["CCA-SSG and features"] == "84.88 ± 0.94 ‡"
    assert "GGD and features" not in rows  # was not measured
    assert rows["CCA-SSG: features add"] == "+1.00 [+1.00, +1.00]*"
    assert rows["MUX-GCL over hops minus CCA-SSG and features"] == "+2.88 [+2.88, +2.88]*"
    assert rows["CCA-SSG without features, minus its row above"] == "+0.12 [+0.12, +0.12]*"
    assert len(features.rows) == 3
    assert "Trained for these rows on: test device." in features.notes[0]
    assert "which have the same seeds: they differ for CCA-SSG (Cora)." in features.notes[0]


def test_members_of_unit_rows_are_probed_alike_with_and_without_a_length_of_their_own() -> None:
    data = tiny("cora", None)
    y, chance = data.y.numpy(), torch.Generator().manual_seed(0)
    noise = torch.randn(3, *data.x.shape, generator=chance)
    members = [unit_rows(data.x + one) for one in noise]
    lengths = 0.5 + torch.rand(60, 1, generator=chance)  # shorter where a block of a row is zero
    found = side_by_side([lengths * member for member in members])
    want = torch.cat([lengths * member for member in members], 1)
    asked = (y, 10, SPLIT_SEED, "preset")
    assert scores_of(found.numpy(), *asked) == scores_of(want.numpy(), *asked)


def test_a_readout_that_fails_leaves_the_method_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.from_data(tiny("cora", None))
    fitted = fit(SCOPE.hops.trained("mux-hop", "cora")[0].plan(), graph)
    before = fitted.method.readout
    assert isinstance(before, Readout)
    whole = readouts.embed

    def fail(method: Method, graph: Graph) -> Tensor:
        if method.readout is not before:
            raise UserError("no memory")
        return whole(method, graph)

    monkeypatch.setattr(readouts, "embed", fail)
    with pytest.raises(UserError, match="no memory"):
        readouts.readouts(fitted.method, graph, several=True)
    assert fitted.method.readout is before


def test_members_that_were_recorded_before_are_trained_again_for_the_committee(
    real: RecordStore, tmp_path: Path
) -> None:
    (job,) = SCOPE.hops.committee("cora")
    alone = RecordStore(tmp_path)
    outcome = Runner(store=alone, device="cpu", open_graph=tiny).run([job])
    assert outcome.recorded == [job]
    assert record_of(alone, job)["result"] == record_of(real, job)["result"]


def test_a_second_run_finds_nothing_to_do(real: RecordStore) -> None:
    runner = Runner(store=real, device="cpu", open_graph=tiny)
    assert runner.missing(plan(["hops"], SCOPE)) == []
    more = replace(SCOPE, seeds=3)  # another committee
    kinds = [job.kind for job in runner.missing(plan(["hops"], more))]
    assert sorted(kinds) == [COMMITTEE, READOUTS, READOUTS]  # full and `auto`


def test_records_are_sound_but_for_the_half_of_a_planted_graph(real: RecordStore) -> None:
    assert all("judged on another half" in doubt for doubt in doubts(real.lines()))


def test_the_probe_in_one_batch_gives_the_scores_of_the_other() -> None:
    data = planted(nodes=120, classes=3, features=10, seed=3)
    x, y = data.x, data.y.numpy()
    given = (y, 4, 1, "x")
    one, two = (scores_of(x.numpy(), *given, device=device) for device in (None, "cpu"))
    for measure, values in one["tables"]["x"].items():
        assert two["tables"]["x"][measure] == pytest.approx(values, abs=1e-9)


def test_seeds_and_splits_are_of_no_search_and_no_other_table() -> None:
    jobs = plan(["hops"], Scope())
    assert {job.split_seed for job in jobs} == {SPLIT_SEED}
    assert {job.protocol for job in jobs} == {"holdout"}
    others = plan([name for name in ARTEFACTS if name != "hops"], Scope())
    assert SPLIT_SEED not in {job.split_seed for job in others}
    assert not {job.seed for job in jobs} & {job.seed for job in others}
    assert min(job.seed for job in jobs) == FIRST_SEED > 404


def test_parts_come_in_the_order_of_their_worth() -> None:
    jobs = plan(["hops"], Scope(datasets=("cora", "photo")))
    main = plan(["hops"], Scope(datasets=("cora", "photo"), parts=("main",)))
    assert jobs[: len(main)] == main
    assert main.index(Hops().committee("cora")[0]) > max(
        main.index(job) for job in Hops().trained("mux-hop", "cora")
    )
    assert len(jobs) == len(set(jobs))
    with pytest.raises(UserError, match="unknown part of hops 'mian'; did you mean main"):
        Scope(parts=("mian",))


def test_every_part_adds_jobs() -> None:
    sizes = [len(plan(["hops"], Scope(parts=(name,)))) for name in HOP_PARTS]
    assert min(sizes) > 0
    assert sum(sizes) == len(plan(["hops"], Scope()))


def test_unseen_settings_are_what_auto_gives_without_the_graph() -> None:
    graph = Graph.from_data(open_dataset("cora", None))
    sizes = graph.num_nodes, graph.num_features, len(graph.adjacency.col)
    given, _ = settings_for(*sizes, leave_out=["cora"])
    train, settings = split_settings(given, TrainConfig, METHODS["mux-hop"].Config)
    job = Hops().trained("mux-hop", "cora", LEFT_OUT)[0]
    assert (job.plan().train, job.plan().settings) == (train, settings)


@pytest.mark.parametrize(
    ("dataset", "size"),
    [("cora", 512), ("citeseer", 768), ("photo", 1024), ("computers", 1024), ("pubmed", 1024)],
)
def test_a_sample_has_a_quarter_of_the_nodes_and_its_own_unseen_settings(
    dataset: str, size: int
) -> None:
    exact, sampled = (Hops().trained("mux-hop", dataset, v)[0].plan() for v in (LEFT_OUT, SAMPLED))
    assert (sampled.anchors, sampled.keys) == (size, size)
    assert (exact.anchors, exact.keys) == (None, None)
    assert sampled.train == exact.train
    changes = of_sample("mux-hop", "auto")
    assert sampled.settings == replace(exact.settings, **changes)


def test_the_size_of_a_sample_is_part_of_what_a_record_answers() -> None:
    job = Hops().trained("mux-hop", "cora", SAMPLED)[0]
    record = make_record(job, result_of(job), **FACTS)
    assert (record["anchors"], fault_of(record, "hops")) == (512, "")
    other = {**record, "anchors": 1024}
    other["digest"] = digest(other)
    assert "do not match their hash" in fault_of(other, "hops")


def test_missing_rows_are_a_dash_and_said_to_be_not_run(tmp_path: Path) -> None:
    scope = Scope(datasets=("cora",), seeds=2, splits=3)
    jobs = plan(["hops"], replace(scope, parts=("main",)))
    rendered = render("hops", fill(tmp_path, jobs), scope)
    rows = cells(rendered, "hops")
    assert rows["MUX-GCL over hops"] == "86.62 ± 0.47 ‡"
    assert rows["MUX-GCL over hops, 2 seeds side by side"] == "87.00 ± 0.50 ‡"
    assert rows["A^2 X"] == "82.50 ± 0.50"
    assert rows["SIGNA"] == rows["MUX-GCL, all scales"] == "—"
    assert "—: not run" in named(rendered, "hops").notes[0]
    groups = cells(rendered, "hops-clustering")
    assert groups["MUX-GCL over hops"] == "0.562 / 0.312 ‡"
    assert groups["A^2 X"] == "0.562 / 0.312"
    assert groups["SIGNA"] == "—"
    changes = cells(rendered, "hops-ablation")
    assert changes["last scale alone read out"] == "+0.50 (2 seeds)"
    assert changes["without affinities"] == "—"
    assert changes["2 seeds side by side, minus each of them alone"] == "+0.38"
    unseen = cells(rendered, "hops-auto")
    assert unseen["best control"] == "82.50 (A^2 X)"
    assert unseen["`auto` minus `best`"] == "—"
    on_a_cpu = cells(rendered, "hops-everyday")
    assert on_a_cpu["nodes a step"] == "512"
    assert on_a_cpu["minus best control"] == on_a_cpu["minus `best`"] == "—"
    assert {job.method for job in rendered.missing} >= {"signa", "mux-gcl", "mux-hop"}


@pytest.mark.parametrize("seeds", [2, 5])
def test_five_seeds_have_an_interval_and_two_have_none(tmp_path: Path, seeds: int) -> None:
    parts = ("main", "auto", "ablation", "everyday")
    scope = Scope(datasets=("cora",), splits=6, seeds=seeds, chief_seeds=seeds, parts=parts)
    rendered = render("hops", fill(tmp_path, plan(["hops"], scope)), scope)
    changes = cells(rendered, "hops-ablation")
    unseen = cells(rendered, "hops-auto")
    found = changes["without affinities"], unseen["`auto` minus `best`"]
    if seeds == 2:
        assert found == ("+0.25 (2 seeds)", "-0.12 (2 seeds)")
        assert unseen["`auto` minus best control"] == "+4.00 (2 seeds)"
    else:
        assert found == ("+0.25 [+0.25, +0.25]*", "-0.12 [-0.12, -0.12]*")
    on_a_cpu = cells(rendered, "hops-everyday")
    told = ("-0.38 (2 seeds)", "-0.38 [-0.38, -0.38]*")[seeds == 5]
    assert on_a_cpu["minus `best`"] == told
    assert "Measured on: test device." in named(rendered, "hops-everyday").notes[0]


def test_a_record_with_a_split_missing_is_malformed() -> None:
    (job,) = SCOPE.hops.committee("cora")
    result = result_of(job)
    assert fault_of(make_record(job, result, **FACTS), "hops") == ""
    assert "belongs in hops" in fault_of(make_record(job, result, **FACTS), "table1")
    result["tables"]["preset"]["accuracy"].pop()
    assert "not as many scores" in fault_of(make_record(job, result, **FACTS), "hops")


def test_several_seeds_side_by_side_are_held_against_these_very_seeds(tmp_path: Path) -> None:
    """Not against all that were trained: seeds of made-up records differ by a quarter point."""
    scope = Scope(datasets=("cora",), seeds=2, chief_seeds=6, splits=3, parts=("main",))
    rendered = render("hops", fill(tmp_path, plan(["hops"], scope)), scope)
    changes = cells(rendered, "hops-ablation")
    assert changes["2 seeds side by side, minus each of them alone"] == "+0.38"


def test_marks_say_whose_settings() -> None:
    assert mark("gae", "paper", "cora") == MARKS["official"] == ""
    assert mark("mux-gcl", "paper", "cora") == MARKS["mixed"]
    assert mark("grace", "paper", "photo") == mark("mux-hop", "best", "cora") == MARKS["ours"]
    assert "GAE and VGAE: those of MUX-GCL's authors" in marks_told(["vgae", "dgi", "gae"])
    assert "GAE" not in marks_told(["dgi"])


def test_no_settings_come_from_the_search_that_read_all_labels() -> None:
    for method in METHODS:
        for dataset in (*BENCHMARKS, "default"):
            assert not BEFORE.keys() & set(searches(method, "best", dataset))
    for method in Scope().rows("table1"):
        for dataset in BENCHMARKS:
            assert not BEFORE.keys() & set(searches(method, "paper", dataset))
    assert searches("mux-gcl", "best", "computers") == ("tuned-search.jsonl",)


@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed", "default"])
def test_settings_that_are_said_to_be_bgrls_are_bgrls(dataset: str) -> None:
    assert source("blnn", "paper", dataset) == "ours: as BGRL's, at temperature 1"
    mine, theirs = (preset(method, "paper", dataset) for method in ("blnn", "bgrl"))
    assert {key: mine[key] for key in theirs} == theirs


def test_the_note_says_what_was_chosen_on_the_development_half() -> None:
    scope = Scope(seeds=2, splits=3)
    note = render("hops", RecordStore(Path("nowhere")), scope).tables[0].notes[1]
    kept = "which was kept (beside each graph, after how many trainings): CCA-SSG (CiteSeer 130), "
    assert f"{kept}NS4GC (Cora 53, Photo 16, Computers 11), " in note
    chosen = note.split("Chosen on the development half: ")[1].split(";")[0]
    assert chosen.endswith("MUX-GCL, MUX-GCL over hops")
    assert "NS4GC (CiteSeer, PubMed)" in chosen
    assert "SIGNA (Cora, CiteSeer), " in chosen
    assert "SIGNA (PubMed 7, Photo 6, Computers 2). " in note
    for name in ("MVGRL", "BLNN"):
        assert name not in note


def test_one_thread_is_told_in_the_singular() -> None:
    assert device("AMD EPYC, 1 threads") == "AMD EPYC, 1 thread"
    assert device("AMD EPYC, 11 threads") == "AMD EPYC, 11 threads"


@pytest.mark.parametrize("dataset", BENCHMARKS)
def test_rows_say_what_is_read_out(dataset: str) -> None:
    ours, mux_gcl = (preset(method, "best", dataset) for method in ("mux-hop", "mux-gcl"))
    assert ours["readout"] == mux_gcl["readout"] == "all"
    assert min(ours["readout_features"], ours["readout_raw"], mux_gcl["readout_features"]) > 0


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
