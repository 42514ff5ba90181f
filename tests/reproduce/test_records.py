"""Records are whole or not there, and `--check` finds what is wrong with them."""

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reproduce_cases import SMALL, fill, record_of

from muxgcl.errors import UserError
from muxgcl.evaluate import development_hash
from muxgcl.io import at_hand, open_dataset
from muxgcl.reproduce import job as job_module
from muxgcl.reproduce.artefacts import ARTEFACTS, plan
from muxgcl.reproduce.check import HALVES, doubts, search_doubts
from muxgcl.reproduce.other_records import other_doubts
from muxgcl.reproduce.records import Found, RecordStore, digest
from muxgcl.runs.settings import preset

ROOT = Path(__file__).resolve().parents[2]
JOBS = plan(ARTEFACTS, SMALL)
GRACE = SMALL.scored("grace", "cora")


def lines_of(store: RecordStore, name: str = "table1") -> list[dict[str, Any]]:
    return [json.loads(line) for line in store.path(name).read_text().splitlines()]


def rewrite(store: RecordStore, records: list[dict[str, Any]], name: str = "table1") -> None:
    store.path(name).write_text("".join(json.dumps(record) + "\n" for record in records))


def test_what_is_appended_is_found_by_its_job(tmp_path: Path) -> None:
    store = fill(tmp_path)
    found = Found(store.lines())
    for job in JOBS:
        assert found.get(job) == record_of(job)
    assert list(doubts(store.lines())) == []


def test_a_line_cut_short_is_as_if_never_written(tmp_path: Path) -> None:
    store = fill(tmp_path, GRACE[:1])
    whole = store.path("table1").read_bytes()
    store.path("table1").write_bytes(whole + whole[: len(whole) // 2])
    assert len(store.lines()) == 1
    assert list(doubts(store.lines())) == []
    store.append("table1", record_of(GRACE[1]))
    assert [record["seed"] for record in lines_of(store)] == [0, 1]


def test_a_last_line_without_its_break_counts(tmp_path: Path) -> None:
    store = fill(tmp_path, GRACE[:1])
    store.path("table1").write_bytes(store.path("table1").read_bytes().rstrip(b"\n"))
    store.append("table1", record_of(GRACE[1]))
    assert [record["seed"] for record in lines_of(store)] == [0, 1]


def hold(folder: Path, held: Any, done: Any) -> None:
    with RecordStore(folder).locked():
        held.set()
        done.wait(60)


def test_two_processes_do_not_write_at_once(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    held, done = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(tmp_path, held, done))
    other.start()
    assert held.wait(120)
    with (
        pytest.raises(UserError, match="being written by another process"),
        RecordStore(tmp_path).locked(),
    ):
        pass
    done.set()
    other.join()
    with RecordStore(tmp_path).locked():  # free again
        pass


def test_a_changed_score_is_caught_and_not_used(tmp_path: Path) -> None:
    store = fill(tmp_path, GRACE)
    records = lines_of(store)
    records[1]["result"]["accuracy"][0] += 1
    rewrite(store, records)
    (doubt,) = doubts(store.lines())
    assert doubt.startswith("table1.jsonl:2 (grace full cora holdout 1): tampered")
    assert Found(store.lines()).get(GRACE[1]) is None


def test_a_changed_setting_is_caught_even_under_a_new_digest(tmp_path: Path) -> None:
    store = fill(tmp_path, GRACE)
    records = lines_of(store)
    records[0]["train"]["epochs"] += 1
    records[0]["digest"] = digest(records[0])
    rewrite(store, records)
    (doubt,) = doubts(store.lines())
    assert "tampered: its settings do not match their hash" in doubt


def test_a_changed_default_makes_records_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = fill(tmp_path, GRACE)

    def changed(method: str, name: str, dataset: str) -> dict[str, Any]:
        return preset(method, name, dataset) | {"temperature": 0.123}

    before = GRACE[0].plan().settings.temperature
    monkeypatch.setattr("muxgcl.runs.plan.preset", changed)
    job_module._plan.cache_clear()
    try:
        found = list(doubts(store.lines()))
        assert [f"stale: temperature was {before} and is now 0.123" in d for d in found] == [
            True
        ] * 2
        assert Found(store.lines()).get(GRACE[0]) is None  # it would be run again
    finally:
        monkeypatch.undo()
        job_module._plan.cache_clear()


def test_a_setting_that_is_new_makes_records_stale(tmp_path: Path) -> None:
    store = fill(tmp_path, [])
    record = record_of(GRACE[0])
    del record["settings"]["width"]
    record["hash"] = job_module.settings_hash(
        {name: record[name] for name in (*GRACE[0].identity(),)}
    )
    record["digest"] = digest(record)
    rewrite(store, [record])
    (doubt,) = doubts(store.lines())
    assert "stale: width was absent" in doubt


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"schema": 99}, "schema 99, expected 1 or 2"),
        ({"seed": "0"}, "seed is '0'"),
        ({"kind": "gossip"}, "unknown kind 'gossip'"),
        ({"splits": 4}, "do not match their hash"),
        ({"repeats": 1}, "not as many scores"),
        ({"variant": "mpc"}, "belongs in table4.jsonl"),
    ],
)
def test_malformed_records_are_named(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    store = fill(tmp_path, [])
    record = record_of(GRACE[0]) | change
    rewrite(store, [record | {"digest": digest(record)}])
    (doubt,) = doubts(store.lines())
    assert reason in doubt


def test_what_is_no_json_or_missing_a_field_is_named(tmp_path: Path) -> None:
    store = fill(tmp_path, [])
    record = record_of(GRACE[0])
    del record["device"]
    store.path("table1").write_text(f"oops\n[1]\n{json.dumps(record)}\n")
    first, second, third = doubts(store.lines())
    assert first == "table1.jsonl:1: malformed: not a JSON object"
    assert second == "table1.jsonl:2: malformed: not a JSON object"
    assert "device is missing" in third


def test_the_same_measurement_twice_is_named(tmp_path: Path) -> None:
    store = fill(tmp_path, [GRACE[0], GRACE[0]])
    (doubt,) = doubts(store.lines())
    assert "repeated: the same measurement as table1.jsonl:1" in doubt


# which labels were read -----------------------------------------------------------------------


def before_the_halves(record: dict[str, Any]) -> dict[str, Any]:
    """A record as schema 1 had it."""
    old = {**record, "schema": 1, "result": dict(record["result"])}
    del old["result"]["development"], old["result"]["everywhere"]
    return {**old, "digest": digest(old)}


def test_an_old_record_counts_as_one_that_was_judged_on_both_halves(tmp_path: Path) -> None:
    everywhere = replace(SMALL, protocol="holdout-all").scored("grace", "cora")
    store = fill(tmp_path, GRACE)
    rewrite(store, [before_the_halves(record) for record in lines_of(store)])
    found = Found(store.lines())
    assert found.of(GRACE) == []
    assert [record["seed"] for record in found.of(everywhere)] == [0, 1]
    assert list(doubts(store.lines())) == []


def test_a_new_record_must_say_which_half_it_was_judged_on(tmp_path: Path) -> None:
    store = fill(tmp_path, GRACE)
    records = lines_of(store)
    records[0]["result"]["development"] = "0123456789abcdef"
    del records[1]["result"]["development"]
    for record in records:
        record["digest"] = digest(record)
    rewrite(store, records)
    first, second = doubts(store.lines())
    assert "judged on another half of cora's labels: 0123456789abcdef" in first
    assert "does not say which half of the labels" in second


SEARCH = {
    "method": "mux-gcl",
    "dataset": "cora",
    "settings": {"width": 256},
    "labels": "development",
    "development": HALVES["cora"],
    "split_seed": 1000,
    "accuracy": 85.0,
}


@pytest.mark.parametrize(
    ("tampered", "reason"),
    [
        ({"labels": "all"}, "read labels outside the development half: labels is 'all'"),
        ({"labels": None}, "read labels outside the development half: labels is None"),
        ({"development": HALVES["photo"]}, f"development is '{HALVES['photo']}'"),
        ({"development": None, "dataset": "own"}, "development is None"),
        ({"split_seed": None}, "split_seed is None"),
        ({"dataset": "photo"}, "outside the development half of photo"),
    ],
)
def test_a_search_that_read_labels_outside_the_development_half_is_refused(
    tmp_path: Path, tampered: dict[str, Any], reason: str
) -> None:
    file = tmp_path / "hop-search.jsonl"
    file.write_text(json.dumps(SEARCH) + "\n" + json.dumps(SEARCH | tampered) + "\n")
    (doubt,) = search_doubts(tmp_path)
    assert doubt.startswith("hop-search.jsonl:2: ")
    assert reason in doubt


def test_a_line_that_is_no_record_of_a_search_is_named(tmp_path: Path) -> None:
    file, bad = tmp_path / "hop-search.jsonl", {"labels": "all"}
    file.write_text(f"{{}}\n{{\n{json.dumps(SEARCH | bad)}\n")
    one, two, three = search_doubts(tmp_path)
    assert one == "hop-search.jsonl:1: malformed: it names no dataset"
    assert two == "hop-search.jsonl:2: malformed: not a JSON object"
    assert three.startswith("hop-search.jsonl:3: the search read labels outside")


def test_searches_older_than_the_rule_are_kept_as_they_were(tmp_path: Path) -> None:
    kept = ROOT / "records" / "search.jsonl"
    (tmp_path / "search.jsonl").write_bytes(kept.read_bytes())
    assert list(search_doubts(tmp_path)) == []
    with (tmp_path / "search.jsonl").open("a") as file:
        file.write(json.dumps(SEARCH) + "\n")
    (doubt,) = search_doubts(tmp_path)
    assert "read labels of all nodes" in doubt


WIDTH = {"kind": "width", "dataset": "cora", "labels": "development", "accuracy": [84.0]}
WIDTH |= {"development": HALVES["cora"]}


@pytest.mark.parametrize(
    ("tampered", "reason"),
    [
        ({"labels": "all"}, "labels is 'all', expected development or report"),
        ({"labels": None}, "labels is None"),
        ({"development": HALVES["photo"]}, "read labels of another half of cora"),
        ({"development": None}, "development is None"),
        ({"dataset": "photo"}, "read labels of another half of photo"),
        ({"digest": "0" * 64}, "does not match its digest"),
    ],
)
def test_every_line_that_says_which_labels_it_read_is_checked(
    tmp_path: Path, tampered: dict[str, Any], reason: str
) -> None:
    file = tmp_path / "width.jsonl"
    file.write_text(json.dumps(WIDTH) + "\n" + json.dumps(WIDTH | tampered) + "\n")
    (doubt,) = other_doubts(tmp_path)
    assert doubt.startswith("width.jsonl:2: ")
    assert reason in doubt


def test_a_damaged_line_of_any_other_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "engine.jsonl").write_text('{"kind": "epoch"}\n{"kind":\n')
    assert list(other_doubts(tmp_path)) == ["engine.jsonl:2: malformed: not a JSON object"]


def test_a_time_of_other_settings_than_the_preset_has_is_stale(tmp_path: Path) -> None:
    lines = (ROOT / "records" / "times.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(lines[0])
    row["train"]["epochs"] += 1
    (tmp_path / "times.jsonl").write_text(f"{lines[0]}\n{json.dumps(row)}\n")
    (doubt,) = other_doubts(tmp_path)
    assert doubt == "times.jsonl:2: stale: its preset has other settings now"


def test_our_own_records_leave_no_doubt() -> None:
    assert list(other_doubts(ROOT / "records")) == []
    assert list(search_doubts(ROOT / "records")) == []


@pytest.mark.parametrize("name", HALVES)
def test_the_halves_of_the_records_are_those_of_the_graphs(name: str) -> None:
    shared = ROOT.resolve().parent / "shared" / "datasets"
    root = shared if shared.is_dir() else None
    if not at_hand(name, root):
        pytest.skip(f"{name} is not at hand")
    assert development_hash(open_dataset(name, root).y.numpy()) == HALVES[name]
