"""Tables and figures from made-up records: golden files, and statistics against brute force.

After a change that is meant: `MUXGCL_GOLDEN=write pytest tests/reproduce/test_render.py`.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reproduce_cases import FACTS, LEVEL, SMALL, fill, record_of, result_of

from documents.claims import plain_words
from documents.theory_words import theory_words
from muxgcl.evaluate import paired_difference
from muxgcl.io.files import append_lines
from muxgcl.reproduce import numbers
from muxgcl.reproduce.artefacts import ARTEFACTS, Scope, plan
from muxgcl.reproduce.job import settings_of
from muxgcl.reproduce.paper import Printed
from muxgcl.reproduce.records import Found, RecordStore, make_record
from muxgcl.reproduce.render import render, told, write
from muxgcl.reproduce.shown import by_settings, collapsed
from muxgcl.reproduce.table5 import table5
from muxgcl.reproduce.typeset import Table, latex, markdown
from muxgcl.runs.auto import BENCHMARKS
from muxgcl.runs.plan import Plan

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RecordStore:
    filled = fill(tmp_path_factory.mktemp("records"))
    common = {"kind": "epoch", "precision": "fp32", "device": "test device"}
    rows = [
        {"nodes": n, "backend": b, "epoch_ms": ms, "peak_mib": mib, **common}
        for n, b, ms, mib in (
            (1000, "reference", 10.0, 100.0),
            (10_000, "reference", 1000.0, 10_000.0),
            (1000, "chunked", 20.0, 10.0),
            (10_000, "chunked", 2000.0, 100.0),
        )
    ]
    filled.path("engine").write_text("".join(json.dumps(row) + "\n" for row in rows))
    times = [time_of(m, d) for m in ("dgi", "grace", "mux-hop") for d in ("cora", "photo")]
    append_lines(filled.path("times"), times)
    return filled


def time_of(method: str, dataset: str, ms: float = 2.5, device: str = "one") -> dict[str, object]:
    """A row of `muxgcl bench methods`."""
    preset = "best" if method == "mux-hop" else "paper"
    settings = settings_of(Plan.make(method, preset, dataset))
    names = {"kind": "method", "method": method, "preset": preset, "dataset": dataset}
    measured = {"epoch_ms": ms, "quartiles_ms": [ms - 0.25, ms + 0.5], "peak_mib": 40.0}
    return {**names, **settings, **measured, "timed": 125, "warm_up": 25, "device": device}


@pytest.mark.parametrize("artefact", ARTEFACTS)
@pytest.mark.parametrize(("form", "ending"), [(markdown, "md"), (latex, "tex")])
def test_tables_are_as_in_the_golden_files(
    store: RecordStore, artefact: str, form: object, ending: str
) -> None:
    assert callable(form)
    text = "\n".join(form(table) for table in render(artefact, store, SMALL).tables)
    path = GOLDEN / f"{artefact}.{ending}"
    if os.environ.get("MUXGCL_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_cells_of_table5_that_were_measured_apart_are_named(tmp_path: Path) -> None:
    rows = [time_of("dgi", d) | {"commit": "33a72c3ff26d-dirty"} for d in BENCHMARKS]
    rows += [time_of("ggd", d) | {"commit": "d95c2c5"} for d in ("photo", "cora")]
    rows += [time_of("dgi", "cora", device="another") | {"commit": "d95c2c5"}]
    append_lines(tmp_path / "times.jsonl", rows)
    _, apart = table5(SMALL, tmp_path)[0].notes
    assert apart.startswith("Not measured in one call: at d95c2c5 GGD (Cora, Photo); the others ")
    assert apart.endswith(
        "at 33a72c3-dirty (`records/README.md` says what code a commit in -dirty was)."
    )
    append_lines(tmp_path / "one" / "times.jsonl", rows[:5])
    assert len(table5(SMALL, tmp_path / "one")[0].notes) == 1


def test_graphs_without_a_training_at_equal_settings_are_named(tmp_path: Path) -> None:
    jobs = [job for job in plan(("table1", "table4"), SMALL) if job.dataset == "cora"]
    store = fill(tmp_path, [*jobs, *plan(("table1",), SMALL)])
    note = render("table1", store, SMALL).tables[1].notes[1]
    assert "At MUX-GCL's settings for both (Table IV): Cora " in note
    assert note.endswith("Equal settings were not run on Photo.")


def test_every_table_and_figure_is_written(store: RecordStore, tmp_path: Path) -> None:
    names = set()
    for artefact in ARTEFACTS:
        rendered = render(artefact, store, SMALL)
        assert not rendered.missing
        names |= {path.name for path in write(rendered, tmp_path)}
    assert {f"{a}.{e}" for a in ARTEFACTS for e in ("md", "tex")} <= names
    drawn = {n for n in names if n.endswith((".png", ".svg"))}
    assert drawn == {
        f"{a}-{d}.{e}"
        for a in ("figure1", "figure3", "proposition")
        for d in ("cora", "photo", "cora-literal", "photo-literal")
        for e in ("png", "svg")
        if a != "figure1" or "literal" not in d  # which shows GRACE, without weights
    }
    assert all((tmp_path / name).stat().st_size > 1000 for name in drawn)


def test_without_records_everything_is_missing_and_nothing_breaks(tmp_path: Path) -> None:
    for artefact in ARTEFACTS:
        rendered = render(artefact, RecordStore(tmp_path), SMALL)
        assert rendered.missing or artefact == "table5"
        write(rendered, tmp_path / "out")
    assert told(render("table4", RecordStore(tmp_path), SMALL).missing) == [
        "mux-gcl neither, protocol `holdout`: cora (2), photo (2)",
        "mux-gcl pae, protocol `holdout`: cora (2), photo (2)",
        "mux-gcl mpc, protocol `holdout`: cora (2), photo (2)",
        "mux-gcl, protocol `holdout`: cora (2), photo (2)",
        "mux-gcl script, protocol `holdout`: cora (2), photo (2)",
    ]


def test_times_are_of_one_device_and_of_settings_that_the_preset_has(tmp_path: Path) -> None:
    stale = time_of("grace", "photo")
    stale["train"] = {**stale["train"], "epochs": 7}  # type: ignore[dict-item]
    rows = [
        time_of("dgi", "cora", 9.0),
        time_of("dgi", "cora", 4.0),  # measured again: the last counts
        time_of("dgi", "photo", 1.0, device="another"),
        time_of("grace", "cora", 0.123456),
        stale,
    ]
    append_lines(tmp_path / "times.jsonl", rows)
    main = render("table5", RecordStore(tmp_path), SMALL).tables[0]
    cells = {row[0]: row[2:] for row in main.rows}
    assert cells["DGI"] == ["4 (3.75, 4.5) ms, 40 MiB †", "—"]
    assert cells["GRACE"] == ["0.123 (-0.127, 0.623) ms, 40 MiB [200 ms] †", "— [50 ms]"]
    assert "on one one, one training at a time, at least 125 timed epochs" in main.notes[0]


def test_rows_that_were_trained_elsewhere_are_named(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    for method, device in (("mux-gcl", "one"), ("grace", "one"), ("dgi", "two"), ("raw", "two")):
        job = SMALL.scored(method, "cora")[0]
        store.append(job.file, record_of(job, device=device))
    notes = render("table1", store, SMALL).tables[0].notes
    assert notes[1:] == ["Trained on two, not on one: DGI (Cora)."]  # a control is not trained


def test_a_method_with_clusters_of_its_own_has_a_second_row(tmp_path: Path) -> None:
    scope = replace(SMALL, datasets=("photo",), methods=("dmon", "grace"))
    store = fill(tmp_path, [])
    for method in ("grace", "dmon"):
        for job in scope.scored(method, "photo"):
            result = result_of(replace(job, method="grace"))
            own = {"own_nmi": [0.75], "own_ari": [0.5]} if method == "dmon" else {}
            store.append(job.file, make_record(job, result | own, **FACTS))
    rows = {row[0]: row[1] for row in render("table2", store, scope).tables[0].rows}
    assert list(rows) == ["DMoN", "DMoN, its own clusters", "GRACE"]
    assert rows["DMoN, its own clusters"].startswith("0.750 ± 0.000 (")


def test_means_are_over_all_seeds_and_splits(store: RecordStore) -> None:
    found = Found(store.lines())
    got = numbers.summary(found.of(SMALL.scored("grace", "cora")))
    want = [LEVEL["grace"] + 0.25 * seed + 0.5 * split for seed in (0, 1) for split in (0, 1, 2)]
    assert got is not None
    assert got.mean == pytest.approx(np.mean(want))
    assert got.std == pytest.approx(np.std(want, ddof=1))
    assert got.n == 6


def test_differences_pair_only_what_both_have(tmp_path: Path) -> None:
    mux, grace = SMALL.scored("mux-gcl", "cora"), SMALL.scored("grace", "cora")
    found = Found(fill(tmp_path, [*mux, grace[1]]).lines())
    got = numbers.difference(found, mux, grace)
    (one,), (two,) = (numbers.scores(found.of([job])) for job in (mux[1], grace[1]))
    assert got == paired_difference(one, two)
    assert got is not None
    assert (got.mean, got.n) == (1.0, 3)
    assert numbers.difference(found, mux, grace[:1]) is None


def test_a_cell_marks_what_falls_short_by_more_than_a_point(store: RecordStore) -> None:
    seen = numbers.summary(Found(store.lines()).of(SMALL.scored("grace", "cora")))
    assert seen is not None  # 83.625 on the mean
    assert numbers.percent(seen, 6, Printed("84.75±0.1")).endswith("(84.75, -1.12 ▼)")
    assert numbers.percent(seen, 6, Printed("84.5±0.1")).endswith("(84.5, -0.88)")
    assert "n = 6" in numbers.percent(seen, 100, None)
    assert numbers.percent(None, 6, Printed("84.6±0.1")) == "— (84.6)"


def test_a_difference_has_a_star_only_where_zero_is_left_out() -> None:
    noise = np.random.default_rng(0).normal(size=(5, 20))
    none = np.zeros((5, 20))
    assert numbers.interval(paired_difference(noise + 1, none)).endswith("]*")
    assert numbers.interval(paired_difference(noise, none)).endswith("]")


def test_fewer_than_five_seeds_have_neither_interval_nor_star() -> None:
    one, two = np.full((4, 20), 3.0), np.zeros((4, 20))
    assert numbers.interval(paired_difference(one, two)) == "+3.00 (4 seeds)"
    assert numbers.interval(paired_difference(one[0], two[0])) == "+3.00 (1 seed)"


def test_what_rounds_to_zero_is_not_negative() -> None:
    assert [numbers.signed(x) for x in (-0.001, 0.0, -0.006)] == ["+0.00", "+0.00", "-0.01"]


def test_records_of_other_settings_are_not_shown(store: RecordStore) -> None:
    longer = Scope(datasets=("cora",), methods=("grace",), seeds=2, splits=3, epochs=7)
    assert len(render("table2", store, longer).missing) == 2


def test_a_record_of_another_protocol_is_not_shown(tmp_path: Path) -> None:
    old = replace(SMALL, protocol="holdout-all")
    store = fill(tmp_path, [*old.scored("mux-gcl", "cora"), *SMALL.scored("grace", "cora")])
    main, minus = render("table1", store, SMALL).tables[:2]
    cells = {row[0]: row[1:] for row in main.rows}
    assert cells["MUX-GCL"][0].startswith("—")
    assert not cells["GRACE"][0].startswith("—")
    assert minus.rows[0][1] == "—"


def test_a_training_that_collapsed_is_told_beside_the_table(tmp_path: Path) -> None:
    three = replace(SMALL, seeds=3)
    lines = list(fill(tmp_path, three.scored("dgi", "cora")).lines())
    assert collapsed(Found(lines), three, ["dgi"], ["cora"]) == []
    accuracy = lines[1].record["result"]["accuracy"]
    accuracy[:] = [27.0] * len(accuracy)
    (said,) = collapsed(Found(lines), three, ["dgi"], ["cora"])
    assert said.startswith("DGI on Cora: 1 of 3 trainings collapsed (accuracy 27.0; the median")


def test_a_lead_that_is_gone_at_equal_settings_is_said_to_be_the_settings(tmp_path: Path) -> None:
    five = replace(SMALL, seeds=5, splits=5)
    rows = (("mux-gcl", "full"), ("grace", "full"), ("mux-gcl", "neither"))
    jobs = [job for method, variant in rows for job in five.scored(method, "cora", variant)]
    lines = list(fill(tmp_path, jobs).lines())
    assert by_settings(Found(lines), five) == []  # a point at either settings
    for line in lines:
        if line.record["variant"] == "neither":
            accuracy = line.record["result"]["accuracy"]
            accuracy[:] = [x + 1.0 for x in accuracy]
    (said,) = by_settings(Found(lines), five)
    assert said.startswith("On Cora the difference is the settings: at equal ones it is +0.00")


def test_plain_words_sort_claims_by_what_the_records_say(
    store: RecordStore, tmp_path: Path
) -> None:
    holds, fails = plain_words(Found(store.lines()), SMALL)
    assert "more accurate than GRACE" not in holds + fails  # two seeds say nothing either way
    said = "T_D and T_S are positive as the paper says (Equation 5 by `{}`): Cora ({} to {} % of"
    assert said.format("half", 31, 31) in fails
    assert said.format("literal", 71, 71) in fails
    assert "L_GR < L_MUX through training (Equation 5 by `half`): Cora (10 of 10 points)" in holds
    assert "L_GR < L_MUX through training (Equation 5 by `literal`): Cora (6 of 10 points" in fails
    assert plain_words(Found([]), SMALL) == []
    five = replace(SMALL, seeds=5, splits=5)
    (tmp_path / "five").mkdir()
    holds, _ = plain_words(Found(fill(tmp_path / "five", plan(ARTEFACTS, five)).lines()), five)
    said = "more accurate than GRACE, each at its own settings, on the same seeds and splits: Cora"
    assert f"{said} (+1.00" in holds


def test_both_readings_of_equation_5_are_told_from_the_records(store: RecordStore) -> None:
    figure, proposition = theory_words(Found(store.lines()), SMALL)
    assert "by `half` Cora 31 to 31 %, Photo 31 to 31 %; by `literal` Cora 71 to 71 %" in figure
    assert "by `half` Cora +0.667 to +2.167 (above zero at 10 of 10)" in proposition
    assert "by `literal` Cora -0.083 to +1.417 (above zero at 6 of 10)" in proposition
    assert theory_words(Found([]), SMALL) == []


def test_latex_escapes_what_it_must() -> None:
    table = Table("t", "a_b & 5 %", ["", "x"], [["r", "-1.5 ± 2"]])
    text = latex(table)
    assert r"\caption{a\_b \& 5 \%}" in text
    assert r"r & $-$1.5 $\pm$ 2 \\" in text


def test_the_plan_of_made_up_records_is_complete(store: RecordStore) -> None:
    assert len(store.lines()) == len(plan(ARTEFACTS, SMALL))
