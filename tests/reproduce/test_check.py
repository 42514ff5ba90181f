"""`--check` refuses searches that read labels they must not, and files that nobody looks at."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from reproduce_cases import SMALL, fill

from muxgcl.reproduce.check import HALVES, doubts, is_this_repositorys, search_doubts
from muxgcl.reproduce.job import settings_hash
from muxgcl.reproduce.other_records import LINE_KINDS, other_doubts, unknown_files
from muxgcl.reproduce.records import RecordStore, _stated, digest

ROOT = Path(__file__).resolve().parents[2]
GRACE = SMALL.scored("grace", "cora")
SEARCH = {
    "method": "mux-gcl",
    "dataset": "cora",
    "settings": {"width": 256},
    "labels": "development",
    "development": HALVES["cora"],
    "split_seed": 1000,
    "seed": 400,
    "accuracy": 85.0,
}


@pytest.mark.parametrize(
    ("tampered", "reason"),
    [
        ({"labels": "all"}, "read labels outside the development half: labels is 'all'"),
        ({"labels": None}, "read labels outside the development half: labels is None"),
        ({"development": HALVES["photo"]}, f"development is '{HALVES['photo']}'"),
        ({"development": None}, "it read labels of another half of cora: development is None"),
        ({"dataset": "own"}, "malformed: dataset is 'own', expected one of cora"),
        ({"dataset": ["cora"]}, "malformed: dataset is ['cora']"),
        ({"dataset": "photo"}, "it read labels of another half of photo"),
        ({"split_seed": None}, "malformed: split_seed is None, expected a whole number"),
        ({"split_seed": True}, "malformed: split_seed is True"),
        ({"seed": "400"}, "malformed: seed is '400', expected a whole number"),
    ],
)
def test_a_search_that_read_labels_outside_the_development_half_is_refused(
    tmp_path: Path, tampered: dict[str, Any], reason: str
) -> None:
    file = tmp_path / "hop-search.jsonl"
    file.write_text(json.dumps(SEARCH) + "\n" + json.dumps(SEARCH | tampered) + "\n")
    (doubt,) = search_doubts(tmp_path, [])
    assert doubt.startswith("hop-search.jsonl:2: ")
    assert reason in doubt


def test_a_search_says_what_was_tried(tmp_path: Path) -> None:
    blank = {key: value for key, value in SEARCH.items() if key != "settings"}
    (tmp_path / "hop-search.jsonl").write_text(json.dumps(blank) + "\n")
    (doubt,) = search_doubts(tmp_path, [])
    assert doubt.endswith("it does not say what was tried: expected settings or changes or readout")


def test_a_search_has_splits_and_seeds_that_no_table_has(tmp_path: Path) -> None:
    store = fill(tmp_path / "tables", GRACE[:1])
    (line,) = store.lines()
    assert line.record is not None
    for key, what in (("split_seed", "splits"), ("seed", "training seed")):
        taken = line.record[key]
        (tmp_path / "hop-search.jsonl").write_text(json.dumps(SEARCH | {key: taken}) + "\n")
        (doubt,) = search_doubts(tmp_path, store.lines())
        expected = f"{key} is {taken}: the search has the {what} of a table"
        assert doubt == f"hop-search.jsonl:1: {expected}"


def test_a_line_that_is_no_record_of_a_search_is_named(tmp_path: Path) -> None:
    file, bad = tmp_path / "hop-search.jsonl", {"labels": "all"}
    file.write_text(f"{{}}\n{{\n{json.dumps(SEARCH | bad)}\n")
    one, two, three = search_doubts(tmp_path, [])
    outside = "the search read labels outside the development half"
    assert one == f"hop-search.jsonl:1: {outside}: labels is None"
    assert two == "hop-search.jsonl:2: malformed: not a JSON object"
    assert three == f"hop-search.jsonl:3: {outside}: labels is 'all'"


def test_searches_older_than_the_rule_are_kept_as_they_were(tmp_path: Path) -> None:
    kept = ROOT / "records" / "search.jsonl"
    (tmp_path / "search.jsonl").write_bytes(kept.read_bytes())
    assert not [one for one in search_doubts(tmp_path, []) if one.startswith("search.jsonl")]
    with (tmp_path / "search.jsonl").open("a") as file:
        file.write(json.dumps(SEARCH) + "\n")
    first, *_ = search_doubts(tmp_path, [])
    assert first.startswith("search.jsonl: its searches read labels of all nodes")


def test_a_search_that_presets_come_from_may_not_go(tmp_path: Path) -> None:
    for path in (ROOT / "records").glob("*.jsonl"):
        shutil.copy(path, tmp_path)
    assert list(search_doubts(tmp_path, [])) == []
    (tmp_path / "hop-search.jsonl").unlink()
    (tmp_path / "tuned-search.jsonl").write_text("")
    hop, tuned = search_doubts(tmp_path, [])
    assert hop.startswith("hop-search.jsonl: missing or empty, but presets come from it: ")
    assert "mux-hop.toml" in hop
    assert tuned.startswith("tuned-search.jsonl: missing or empty")


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
        ({"dataset": "own"}, "malformed: dataset is 'own', expected one of cora"),
        ({"digest": "0" * 64}, "does not match its digest"),
        ({"kind": "search"}, "malformed: kind is 'search', expected width"),
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


@pytest.mark.parametrize("name", ["searched.jsonl", "more/hop-search.jsonl", "width.JSON"])
def test_a_file_that_nobody_checks_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "width.jsonl").write_text(json.dumps(WIDTH) + "\n")
    (tmp_path / "README.md").write_text("not a record")
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(SEARCH) + "\n")
    assert unknown_files(tmp_path) == [path]
    assert list(other_doubts(tmp_path)) == []  # a folder of one's own may hold anything
    shutil.copy(ROOT / "records" / "search.jsonl", tmp_path)
    (doubt,) = other_doubts(tmp_path)
    assert doubt.startswith(f"{name}: no known file of records, so its lines are not checked")


def test_a_time_of_other_settings_than_the_preset_has_is_stale(tmp_path: Path) -> None:
    lines = (ROOT / "records" / "times.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(lines[0])
    row["train"]["epochs"] += 1
    (tmp_path / "times.jsonl").write_text(f"{lines[0]}\n{json.dumps(row)}\n")
    (doubt,) = other_doubts(tmp_path)
    assert doubt == "times.jsonl:2: stale: its preset has other settings now"


def test_lines_of_a_table_that_are_no_records_hide_nothing_of_a_search(tmp_path: Path) -> None:
    store = fill(tmp_path / "tables", GRACE[:1])
    with store.path("table1").open("a") as file:
        file.write("{}\n")
    (tmp_path / "hop-search.jsonl").write_text(json.dumps(SEARCH | {"labels": "all"}) + "\n")
    (doubt,) = search_doubts(tmp_path, store.lines())
    assert "labels is 'all'" in doubt


def test_a_record_of_a_graph_that_is_none_is_malformed(tmp_path: Path) -> None:
    store = fill(tmp_path, GRACE[:1])
    (line,) = store.path("table1").read_text().splitlines()
    row = json.loads(line) | {"dataset": "corra"}
    row["hash"] = settings_hash(_stated(row))
    row["digest"] = digest(row)
    store.path("table1").write_text(json.dumps(row) + "\n")
    (doubt,) = doubts(store.lines())
    assert "malformed: unknown dataset 'corra'" in doubt


def test_our_own_records_leave_no_doubt() -> None:
    folder = ROOT / "records"
    assert is_this_repositorys(folder)
    assert list(other_doubts(folder)) == []
    assert list(search_doubts(folder, RecordStore(folder).lines())) == []
    assert unknown_files(folder) == []
    for name, kinds in LINE_KINDS.items():
        if (path := folder / f"{name}.jsonl").is_file():
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            assert {row["kind"] for row in rows} <= set(kinds)
