"""`muxgcl reproduce` at the door: what it prints, and how it leaves."""

import json
from pathlib import Path

import pytest
from reproduce_cases import SMALL, fill

from muxgcl.cli import commands  # noqa: F401  (each module adds its commands)
from muxgcl.cli.app import run
from muxgcl.reproduce.check import HALVES
from muxgcl.reproduce.job import Job
from muxgcl.reproduce.runner import Outcome, Runner

GRACE = SMALL.scored("grace", "cora")
SCOPE = ["--datasets", "cora,photo", "--methods", "raw,sgc", "--methods", "dgi,grace,mux-gcl"]
SCOPE += ["--seeds", "2", "--splits", "3"]


def test_render_only_trains_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path / "records")
    where = ["--records", str(tmp_path / "records"), "--out", str(tmp_path / "out")]
    assert run(["reproduce", "all", "--render-only", "--json", *SCOPE, *where]) == 0
    out, err = capsys.readouterr()
    summary = json.loads(out)
    assert (summary["missing"], summary["recorded"]) == (0, 0)
    assert all(Path(file).is_file() for file in summary["files"])
    assert "MUX-GCL minus GRACE" in err


def test_without_records_nothing_is_shown_or_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", "table4", "--render-only"]) == 2
    said = "muxgcl: no records in ./records (--records names the folder)\n"
    assert capsys.readouterr().err == said
    (tmp_path / "empty").mkdir()
    assert run(["reproduce", "table4", "--render-only", "--records", str(tmp_path / "empty")]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_what_is_missing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path / "records", GRACE)
    where = ["--records", str(tmp_path / "records"), "--out", str(tmp_path / "out")]
    only = ["--datasets", "cora", "--methods", "grace", "--seeds", "3", "--splits", "3"]
    assert run(["reproduce", "table1", "--render-only", *only, *where]) == 0
    err = capsys.readouterr().err
    assert "missing: grace, protocol `holdout`: cora (1)" in err
    assert "missing: grace, protocol `paper`: cora (3)" in err


def test_check_passes_sound_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path, GRACE)
    assert run(["reproduce", "--check", "--records", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "2 records, and no doubt: 2 of tables and figures have the settings" in said
    assert "Nothing was trained again, and a digest that was made anew is not noticed" in said


def test_check_names_each_bad_record_and_counts_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = fill(tmp_path, GRACE).path("table1")
    path.write_text(path.read_text().replace('"accuracy": [83', '"accuracy": [93'))
    assert run(["reproduce", "--check", "--records", str(tmp_path), "--json"]) == 2
    out, err = capsys.readouterr()
    assert err.count("tampered") == 2
    assert err.splitlines()[-1] == "muxgcl: 2 of 2 records are stale, repeated or damaged"
    assert len(json.loads(out)["doubts"]) == 2


def test_check_refuses_a_search_that_read_labels_of_test_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path, GRACE)
    row = {"dataset": "cora", "labels": "development", "development": HALVES["cora"]}
    row |= {"settings": {}, "split_seed": 1000, "seed": 400}
    file = tmp_path / "hop-search.jsonl"
    file.write_text(json.dumps(row) + "\n")
    assert run(["reproduce", "--check", "--records", str(tmp_path)]) == 0
    assert "3 records" in capsys.readouterr().err
    file.write_text(json.dumps(row | {"labels": "all"}) + "\n")
    assert run(["reproduce", "--check", "--records", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "hop-search.jsonl:1: the search read labels outside the development half" in err


def test_the_records_of_this_repository_are_sound(capsys: pytest.CaptureFixture[str]) -> None:
    records = Path(__file__).resolve().parents[2] / "records"
    assert run(["reproduce", "--check", "--records", str(records)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "expected one of hops, table1"),
        (["hops", "--parts", "mian"], "unknown part of hops 'mian'; did you mean main"),
        (["table6"], "table6"),
        (["table1", "--datasets", "coral"], "unknown dataset 'coral'; did you mean cora?"),
        (["table1", "--methods", "grac"], "unknown method 'grac'; did you mean grace"),
        (["table1", "--seeds", "0"], "from 1 to 10,000"),
        (["table1", "--jobs", "-1"], "--jobs"),
        (["table1", "--device", "tpu"], "device must be"),
    ],
)
def test_mistakes_are_one_line_and_status_two(
    words: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = ["--records", str(tmp_path / "r"), "--out", str(tmp_path / "o")]
    assert run(["reproduce", *words, *folders]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("muxgcl: ")
    assert reason in last


def test_each_shard_runs_its_own_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[list[Job]] = []
    monkeypatch.setattr(Runner, "run", lambda self, given: jobs.append(given) or Outcome())
    where = ["--records", str(tmp_path / "records"), "--out", str(tmp_path / "out")]
    only = ["--datasets", "cora", "--methods", "raw,grace", "--seeds", "2", "--splits", "3"]
    for shard in ([], ["--shard", "1/2"], ["--shard", "2/2"]):
        assert run(["reproduce", "table1", *shard, *only, *where]) == 0
    every, first, second = jobs
    assert sorted(first + second, key=str) == sorted(every, key=str)
    assert first
    assert second
    capsys.readouterr()
    assert run(["reproduce", "table1", "--shard", "3/2", *only, *where]) == 2
    assert "a shard is i/n with i from 1 to n" in capsys.readouterr().err
