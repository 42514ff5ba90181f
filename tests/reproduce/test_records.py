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
from muxgcl.reproduce.check import HALVES, doubts
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


@pytest.mark.parametrize("name", HALVES)
def test_the_halves_of_the_records_are_those_of_the_graphs(name: str) -> None:
    shared = ROOT.resolve().parent / "shared" / "datasets"
    root = shared if shared.is_dir() else None
    if not at_hand(name, root):
        pytest.skip(f"{name} is not at hand")
    assert development_hash(open_dataset(name, root).y.numpy()) == HALVES[name]
