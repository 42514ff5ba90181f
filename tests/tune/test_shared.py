"""One search of several workers: they come, die and come back; nothing is lost or done twice."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.io.load import load
from muxgcl.runs.loop import Epoch, NonFiniteLoss
from muxgcl.runs.plan import Plan
from muxgcl.tune import shared, tune
from muxgcl.tune.study import Study

WORKER = Path(__file__).parent / "workers.py"
GRAPH = Graph.from_data(load(planted(nodes=60, seed=3)).data)
FIXED = {"width": 8, "hidden": 8, "affinity": "none"}
SERVERS = [
    *(Path(found).parent for found in [shutil.which("initdb")] if found),
    *sorted(Path("/usr/lib/postgresql").glob("*/bin")),
]


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """A server of our own, on a socket in a folder of its own."""
    pytest.importorskip("psycopg2", reason="needs a driver: pip install psycopg2-binary")
    if not SERVERS:
        pytest.skip("no PostgreSQL server is installed (initdb is not there)")
    user: dict[str, Any] = {}
    folder = Path(tempfile.mkdtemp(prefix="postgresql"))
    if os.getuid() == 0:  # the server does not run as root
        nobody = pwd.getpwnam("nobody")
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)

    def call(program: str, *words: str) -> None:
        done = subprocess.run(
            [str(SERVERS[0] / program), "-D", str(folder / "data"), *words],
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=60,
            check=False,
            **user,
        )
        if done.returncode:
            pytest.skip(f"PostgreSQL does not start here: {done.stderr.strip()[:200]}")

    call("initdb", "--username", "tester", "--auth", "trust", "--no-sync")
    settings = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
    call("pg_ctl", "-w", "-l", str(folder / "log"), "-o", settings, "start")
    yield f"postgresql+psycopg2://tester@/postgres?host={folder}"
    call("pg_ctl", "-w", "-m", "immediate", "stop")
    shutil.rmtree(folder)


@pytest.fixture(params=["journal", "sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql"))
    return str(tmp_path / "j") if request.param == "journal" else f"sqlite:///{tmp_path}/s.db"


class Hill:
    """A measure without training: highest at temperature 0.7."""

    figures = ("height",)
    words = "height"
    mark = "hill"

    def __init__(self, fails: int | None = None) -> None:
        self.plans: list[Plan] = []
        self.fails = fails

    def __call__(self, plan: Plan, **_: Any) -> dict[str, float]:
        self.plans.append(plan)
        if len(self.plans) == self.fails:
            raise NonFiniteLoss(Epoch(3, {"loss": float("nan")}, 0.0))
        return {"height": -abs(plan.settings.temperature - 0.7)}


def search(storage: str, measure: Any, trials: int, **changes: Any) -> Any:
    how: dict[str, Any] = {"fixed": FIXED, "device": "cpu", **changes}
    return tune(GRAPH, measure, "search", storage=storage, trials=trials, **how)


def start(storage: str, log: Path, trials: int, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(WORKER), storage, str(log), str(trials), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def lines(log: Path, what: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [line for line in found if line["what"] == what]


def test_a_killed_workers_trial_is_done_by_another_and_no_trial_twice(
    storage: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    dying = start(storage, log, 6, "hang")
    for _ in range(600):
        if lines(log, "begin"):
            break
        time.sleep(0.1)
    dying.send_signal(signal.SIGKILL)
    dying.communicate()
    others = [start(storage, log, 6) for _ in range(2)]
    told = [json.loads(worker.communicate(timeout=120)[0]) for worker in others]
    begun, ended = lines(log, "begin"), lines(log, "end")
    assert told[0] == told[1]  # all agree on how many, and on the best
    assert told[0][0] == len(ended) == 6
    assert told[0][2] == 1  # the start is the first, whoever did it in the end
    assert max(Counter(line["point"] for line in ended).values()) == 1
    lost = begun[0]
    assert lost["who"] == dying.pid
    assert lost["point"] in {line["point"] for line in ended}  # its point was not lost
    assert len(begun) == 7


def test_a_study_is_joined_and_only_what_is_missing_is_added(storage: str, tmp_path: Path) -> None:
    hills = Hill(fails=2), Hill(), Hill()
    name = f"{tmp_path.name}-joined"
    before, after, again = (
        tune(GRAPH, hill, name, storage=storage, trials=trials, fixed=FIXED, device="cpu")
        for hill, trials in zip(hills, (3, 5, 4), strict=True)
    )
    assert [len(hill.plans) for hill in hills] == [3, 2, 0]
    assert [t.point for t in after.tried][:3] == [t.point for t in before.tried]
    assert before.tried[1].failure is not None
    assert again.best == after.best
    assert before.auto.number == 1


def test_a_worker_that_is_stopped_gives_its_trial_back_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "GRACE", 1e9)  # nobody waits for signs of life

    class Stopped(Hill):
        def __call__(self, plan: Plan, **_: Any) -> dict[str, float]:
            super().__call__(plan)
            raise KeyboardInterrupt

    first, second = Stopped(), Hill()
    with pytest.raises(KeyboardInterrupt):
        search(str(tmp_path / "j"), first, 2)
    found = search(str(tmp_path / "j"), second, 2)
    assert second.plans[0] == first.plans[0]
    assert len(found.tried) == len(second.plans) == 2


def test_a_result_that_comes_too_late_does_not_count(tmp_path: Path) -> None:
    """The trial was given to another worker meanwhile: its result is the one that is kept."""
    storage = str(tmp_path / "j")

    class Slow(Hill):
        def __call__(self, plan: Plan, **_: Any) -> dict[str, float]:
            if not self.plans:
                with shared.open_shared(storage, "search", *OPENED) as other:
                    trials = other.study.study.get_trials()
                    running = [t for t in trials if t.state == TrialState.RUNNING]
                    other._give_back(running[0])
            return super().__call__(plan)

    seen: list[Any] = []
    real = shared.open_shared
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "muxgcl.tune.search.open_shared", lambda *a: (seen.append(a[2:]), real(*a))[1]
        )
        search(str(tmp_path / "first"), Hill(), 1)
    OPENED = seen[0]
    slow = Slow()
    found = search(storage, slow, 2)
    assert len(found.tried) == 2
    assert len(slow.plans) == 3
    assert slow.plans[0] == slow.plans[1]


def test_a_point_that_two_workers_put_back_is_tried_once(tmp_path: Path) -> None:
    storage = str(tmp_path / "j")

    class Doubled(Hill):
        def __call__(self, plan: Plan, **_: Any) -> dict[str, float]:
            if not self.plans:
                study = optuna.load_study(storage=shared._open(storage)[1], study_name="search")
                (lost,) = study.get_trials(states=[TrialState.RUNNING])
                for _ in range(2):
                    shared.Shared(types.SimpleNamespace(study=study))._give_back(lost)
            return super().__call__(plan)

    doubled = Doubled()
    found = search(storage, doubled, 3)
    tried = [plan.settings for plan in doubled.plans]
    assert tried[0] == tried[1]  # the first result came too late
    assert len(found.tried) == 3
    assert len(doubled.plans) == 4
    assert tried.count(tried[0]) == 2


def worker_of(study: optuna.Study) -> shared.Shared:
    return shared.Shared(types.SimpleNamespace(study=study))  # type: ignore[arg-type]


def states(study: optuna.Study) -> list[str]:
    return [trial.state.name for trial in study.trials]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_claims_to_the_last_trial_the_first_is_good_whoever_looks_first(
    order: tuple[int, int],
) -> None:
    study = optuna.create_study()
    claims = [study.ask(), study.ask()]
    found = {k: worker_of(study)._is_mine(claims[k], 1) for k in order}
    assert found == {0: True, 1: False}
    assert states(study) == ["RUNNING", "FAIL"]  # nobody waits for the point of the second


def test_a_start_that_found_no_room_goes_back_into_the_queue() -> None:
    study = optuna.create_study()
    study.ask()
    study.enqueue_trial({"x": 0.25}, user_attrs={shared.START: True})
    assert not worker_of(study)._is_mine(study.ask(), 1)
    assert states(study) == ["RUNNING", "FAIL", "WAITING"]
    assert study.trials[2].user_attrs == {shared.AGAIN: 1, shared.START: True}


def test_a_lost_point_comes_before_one_that_was_drawn_after_it() -> None:
    study = optuna.create_study()
    study.ask()
    worker_of(study)._give_back(study.trials[0])
    study.add_trial(optuna.trial.create_trial(state=TrialState.RUNNING))  # as fast as the queue
    assert not worker_of(study)._is_mine(types.SimpleNamespace(number=2), 1)
    assert worker_of(study)._is_mine(study.ask(), 1)
    assert states(study) == ["FAIL", "RUNNING", "FAIL"]


def test_a_worker_that_counted_as_dead_has_no_claim() -> None:
    study = optuna.create_study()
    trial = study.ask()
    study.tell(trial, state=TrialState.FAIL)
    assert not worker_of(study)._is_mine(trial, 1)


def test_a_point_of_a_worker_that_died_before_reading_it_is_kept_whole() -> None:
    study = optuna.create_study()
    study.enqueue_trial({"x": 0.25, "y": 0.5})
    lost = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
    worker_of(study)._give_back(study.trials[lost.number])
    both = dict.fromkeys("xy", optuna.distributions.FloatDistribution(0, 1))
    assert study.ask(both).params == {"x": 0.25, "y": 0.5}


def test_workers_that_disagree_are_refused(tmp_path: Path) -> None:
    search(str(tmp_path / "j"), Hill(), 1)
    with pytest.raises(
        UserError,
        match=r"another set of fixed settings \(affinity = 'none', .* asks for .*epochs = 3",
    ):
        search(str(tmp_path / "j"), Hill(), 2, fixed=FIXED | {"epochs": 3})


def test_a_worker_that_loses_a_trial_while_it_draws_it_draws_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, lost = Study.drawn, []

    def slow(study: Study) -> Any:
        trial, point = drawn(study)
        if not lost:
            lost.append(trial.number)
            study.study.tell(trial.number, state=TrialState.FAIL)  # by another worker
            trial.set_user_attr("late", 1)
        return trial, point

    monkeypatch.setattr(Study, "drawn", slow)
    assert len(search(str(tmp_path / "j"), Hill(), 2).tried) == 2
    assert lost
