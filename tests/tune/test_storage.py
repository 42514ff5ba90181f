"""The storage of a shared search: foreign, damaged or read-only, it is named and left alone."""

import json
import threading
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from test_shared import Hill, search

from muxgcl.errors import UserError
from muxgcl.runs.plan import Plan
from muxgcl.tune import shared


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("postgresql+nosuch://u:secret@h/d", "needs a driver|cannot open"),
        ("sqlite:////no/such/folder/s.db", "cannot open sqlite:////no/such/folder/s.db"),
        ("://", "--storage must be a database's address"),
        ("postgresql://u:secret@h:99x/d", "--storage must be a database's address"),
        ("/dev/zero", "/dev/zero is not a regular file"),
    ],
)
def test_a_storage_that_cannot_be_opened_is_one_line_without_the_password(
    storage: str, message: str
) -> None:
    with pytest.raises(UserError, match=message) as told:
        search(storage, Hill(), 1)
    assert "secret" not in str(told.value)
    assert "\n" not in str(told.value)


def test_a_study_of_someone_elses_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "WAIT", 0.0)
    url = f"sqlite:///{tmp_path}/s.db"
    optuna.create_study(storage=url, study_name="search")
    with pytest.raises(UserError, match="not one of muxgcl's"):
        search(url, Hill(), 1)


@pytest.mark.parametrize("content", ["hello", "hello\n", "[1]\n", '{"name": "mine"}\n'])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path, content: str) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(content)
    with pytest.raises(UserError, match=r"notes\.txt is not a study of muxgcl"):
        search(str(file), Hill(), 1)
    assert file.read_text() == content


def test_a_damaged_journal_is_named_with_its_line_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "j"
    search(str(file), Hill(), 2)
    lines = file.read_bytes().splitlines(keepends=True)
    lines[3] = b"{nonsense\n"
    file.write_bytes(b"".join(lines))
    with pytest.raises(UserError, match="j, line 4 is damaged"):
        search(str(file), Hill(), 3)
    assert file.read_bytes() == b"".join(lines)


class Stops(Hill):
    def __call__(self, plan: Plan, **_: Any) -> dict[str, float]:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fixed_params": {"temperature": 1e9}}, "temperature must be a finite number from"),
        ({"fixed_params": {"temperature": "x"}}, "temperature must be a finite number from"),
        ({"fixed_params": {"activation": "rrel"}}, "must be one of .* got "),
        ({"fixed_params": 5}, "fixed_params must be a table"),
        ({"again": 77}, "again must be a whole number from 0 to"),
        ({"again": "x"}, "again must be a whole number from 0 to"),
    ],
)
def test_a_point_of_the_queue_that_is_not_in_the_space_is_named(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    file = tmp_path / "j"
    how = {"method": "grace", "fixed": {"width": 8}}
    search(str(file), Hill(), 2, **how)
    with pytest.raises(KeyboardInterrupt):
        search(str(file), Stops(), 3, **how)
    found = [json.loads(line) for line in file.read_text().splitlines()]
    queued = max(at for at, line in enumerate(found) if "fixed_params" in json.dumps(line))
    for line in found[queued:]:
        for value in line.values():
            if isinstance(value, dict) and change.keys() & value.keys():
                value.update(change)
    file.write_text("".join(json.dumps(line) + "\n" for line in found))
    before = file.read_bytes()
    with pytest.raises(UserError, match=f"trial 4 of the queue.*{words}") as caught:
        search(str(file), Hill(), 3, **how)
    assert "\n" not in str(caught.value)
    assert file.read_bytes().startswith(before)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.999])
def test_a_journal_that_a_kill_or_a_full_disk_cut_short_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """Also amid the first lines, where the study has a name but no first point yet."""
    monkeypatch.setattr(shared, "WAIT", 0.0)
    monkeypatch.setattr(shared, "GRACE", 0.1)
    monkeypatch.setattr(shared, "LOOK", 0.1)
    file = tmp_path / "j"
    search(str(file), Hill(), 2)
    whole = file.read_bytes()
    for size in (len(whole) - 1, int(share * len(whole)), whole.index(b"\n") + 30):
        file.write_bytes(whole[:size])
        found = search(str(file), Hill(), 3)
        assert len(found.tried) == 3
        assert all(line.endswith(b"}\n") for line in file.read_bytes().splitlines(keepends=True))


def test_a_storage_that_is_away_for_a_moment_does_not_end_the_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared, "BEAT", 0.001)
    monkeypatch.setattr(shared, "GRACE", 0.003)
    signs, heard = list[str](), threading.Event()

    class Trial:
        def set_user_attr(self, name: str, sign: str) -> None:
            signs.append(sign)
            if len(signs) in (10, 14):
                raise StorageInternalError("locked")
            if len(signs) == 16:
                heard.set()

    worker = shared.Shared(None)  # type: ignore[arg-type]
    worker._begin_to_beat(Trial())
    assert heard.wait(60)
    worker._end()
    assert len({*signs}) == len(signs)  # each is another sign of life


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j.lock").symlink_to(tmp_path / "nothing")
    with pytest.raises(UserError, match=r"j\.lock is a link"):
        search(str(tmp_path / "j"), Hill(), 1)
    assert [file.name for file in tmp_path.iterdir()] == ["j.lock"]


def test_a_database_that_may_only_be_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    search(url, Hill(), 1)

    def refuse(self: Any, *given: Any, **named: Any) -> None:
        raise StorageInternalError("commit") from OSError("attempt to write a readonly database")

    monkeypatch.setattr(RDBStorage, "create_new_study", refuse)
    with pytest.raises(UserError, match=r"cannot write sqlite:.*readonly database"):
        search(url, Hill(), 2)
