"""Records are whole or not there, and `--check` finds what is wrong with them."""

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from reproduce_cases import SMALL, fill, record_of

from muxgcl.errors import UserError
from muxgcl.reproduce import job as job_module
from muxgcl.reproduce.artefacts import ARTEFACTS, plan
from muxgcl.reproduce.check import doubts
from muxgcl.reproduce.records import Found, Shelf, digest
from muxgcl.runs.settings import preset

JOBS = plan(ARTEFACTS, SMALL)
GRACE = SMALL.scored("grace", "cora")


def lines_of(shelf: Shelf, name: str = "table1") -> list[dict[str, Any]]:
    return [json.loads(line) for line in shelf.path(name).read_text().splitlines()]


def rewrite(shelf: Shelf, records: list[dict[str, Any]], name: str = "table1") -> None:
    shelf.path(name).write_text("".join(json.dumps(record) + "\n" for record in records))


def test_what_is_appended_is_found_by_its_job(tmp_path: Path) -> None:
    shelf = fill(tmp_path)
    found = Found(shelf.lines())
    for job in JOBS:
        assert found.get(job) == record_of(job)
    assert list(doubts(shelf.lines())) == []


def test_a_line_cut_short_is_as_if_never_written(tmp_path: Path) -> None:
    shelf = fill(tmp_path, GRACE[:1])
    whole = shelf.path("table1").read_bytes()
    shelf.path("table1").write_bytes(whole + whole[: len(whole) // 2])
    assert len(shelf.lines()) == 1
    assert list(doubts(shelf.lines())) == []
    shelf.append("table1", record_of(GRACE[1]))
    assert [record["seed"] for record in lines_of(shelf)] == [0, 1]


def test_a_last_line_without_its_break_counts(tmp_path: Path) -> None:
    shelf = fill(tmp_path, GRACE[:1])
    shelf.path("table1").write_bytes(shelf.path("table1").read_bytes().rstrip(b"\n"))
    shelf.append("table1", record_of(GRACE[1]))
    assert [record["seed"] for record in lines_of(shelf)] == [0, 1]


def hold(folder: Path, held: Any, done: Any) -> None:
    with Shelf(folder).locked():
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
        Shelf(tmp_path).locked(),
    ):
        pass
    done.set()
    other.join()
    with Shelf(tmp_path).locked():  # free again
        pass


def test_a_changed_score_is_caught_and_not_used(tmp_path: Path) -> None:
    shelf = fill(tmp_path, GRACE)
    records = lines_of(shelf)
    records[1]["result"]["accuracy"][0] += 1
    rewrite(shelf, records)
    (doubt,) = doubts(shelf.lines())
    assert doubt.startswith("table1.jsonl:2 (grace full cora holdout 1): tampered")
    assert Found(shelf.lines()).get(GRACE[1]) is None


def test_a_changed_setting_is_caught_even_under_a_new_digest(tmp_path: Path) -> None:
    shelf = fill(tmp_path, GRACE)
    records = lines_of(shelf)
    records[0]["train"]["epochs"] += 1
    records[0]["digest"] = digest(records[0])
    rewrite(shelf, records)
    (doubt,) = doubts(shelf.lines())
    assert "tampered: its settings do not match their hash" in doubt


def test_a_changed_default_makes_records_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = fill(tmp_path, GRACE)

    def changed(method: str, name: str, dataset: str) -> dict[str, Any]:
        return preset(method, name, dataset) | {"temperature": 0.123}

    before = GRACE[0].plan().settings.temperature
    monkeypatch.setattr("muxgcl.runs.plan.preset", changed)
    job_module._plan.cache_clear()
    try:
        found = list(doubts(shelf.lines()))
        assert [f"stale: temperature was {before} and is now 0.123" in d for d in found] == [
            True
        ] * 2
        assert Found(shelf.lines()).get(GRACE[0]) is None  # it would be run again
    finally:
        monkeypatch.undo()
        job_module._plan.cache_clear()


def test_a_setting_that_is_new_makes_records_stale(tmp_path: Path) -> None:
    shelf = fill(tmp_path, [])
    record = record_of(GRACE[0])
    del record["settings"]["width"]
    record["hash"] = job_module.settings_hash(
        {name: record[name] for name in (*GRACE[0].identity(),)}
    )
    record["digest"] = digest(record)
    rewrite(shelf, [record])
    (doubt,) = doubts(shelf.lines())
    assert "stale: width was absent" in doubt


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"schema": 99}, "schema 99, expected 1"),
        ({"seed": "0"}, "seed is '0'"),
        ({"kind": "gossip"}, "unknown kind 'gossip'"),
        ({"splits": 4}, "do not match their hash"),
        ({"repeats": 1}, "not as many scores"),
        ({"variant": "mpc"}, "belongs in table4.jsonl"),
    ],
)
def test_malformed_records_are_named(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    shelf = fill(tmp_path, [])
    record = record_of(GRACE[0]) | change
    rewrite(shelf, [record | {"digest": digest(record)}])
    (doubt,) = doubts(shelf.lines())
    assert reason in doubt


def test_what_is_no_json_or_missing_a_field_is_named(tmp_path: Path) -> None:
    shelf = fill(tmp_path, [])
    record = record_of(GRACE[0])
    del record["device"]
    shelf.path("table1").write_text(f"oops\n[1]\n{json.dumps(record)}\n")
    first, second, third = doubts(shelf.lines())
    assert first == "table1.jsonl:1: malformed: not a JSON object"
    assert second == "table1.jsonl:2: malformed: not a JSON object"
    assert "device is missing" in third


def test_the_same_measurement_twice_is_named(tmp_path: Path) -> None:
    shelf = fill(tmp_path, [GRACE[0], GRACE[0]])
    (doubt,) = doubts(shelf.lines())
    assert "repeated: the same measurement as table1.jsonl:1" in doubt
