"""What is missing is run, once; a killed runner goes on and repeats nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduce_cases import FACTS, SMALL, result_of
from sklearn.metrics import normalized_mutual_info_score
from torch_geometric.data import Data

from muxgcl.errors import UserError
from muxgcl.evaluate import PaperProtocol, cluster, development_hash, holdout, report_half
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.reproduce import runner as runner_module
from muxgcl.reproduce import workers
from muxgcl.reproduce.artefacts import ARTEFACTS, PAPER, Scope, plan
from muxgcl.reproduce.check import doubts
from muxgcl.reproduce.job import Job
from muxgcl.reproduce.readouts import Reader
from muxgcl.reproduce.records import Found, RecordStore
from muxgcl.reproduce.runner import Outcome, Runner
from muxgcl.reproduce.training import Pending, ready
from muxgcl.reproduce.workers import ScoringPool
from muxgcl.runs.fit import fit

ROOT = Path(__file__).resolve().parents[2]


def tiny(name: str, root: Path | None) -> Data:
    return planted(nodes=60, classes=3, features=16, seed=len(name))


def fake_runner(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch, before: Callable[[Job], None]
) -> Runner:
    """Trains nothing: each job has the result that `reproduce_cases` makes up."""

    def pretend(group: list[Job], *_: Any, **__: Any) -> list[Pending]:
        for job in group:
            before(job)
        return [Pending(job, FACTS, [ready(result_of(job))]) for job in group]

    def measured(self: Reader, job: Job, *_: Any) -> Pending:
        return pretend([job])[0]

    monkeypatch.setattr(Reader, "measure", measured)
    monkeypatch.setattr(runner_module, "train_and_score", pretend)
    monkeypatch.setattr(runner_module, "train_and_look", pretend)
    return Runner(store=store, device="cpu", open_graph=tiny)


def test_a_stopped_runner_goes_on_and_duplicates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, store, done = plan(ARTEFACTS, SMALL), RecordStore(tmp_path), []

    def stop_at_the_eighth(job: Job) -> None:
        done.append(job)
        if len(done) == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fake_runner(store, monkeypatch, stop_at_the_eighth).run(jobs)
    before = Found(store.lines()).of(jobs)
    assert 0 < len(before) < 8
    second = fake_runner(store, monkeypatch, lambda job: None).run(jobs)
    assert len(second.recorded) == len(jobs) - len(before)
    assert len(store.lines()) == len(Found(store.lines()).of(jobs)) == len(jobs)
    assert list(doubts(store.lines())) == []
    assert fake_runner(store, monkeypatch, stop_at_the_eighth).run(jobs) == Outcome()


def test_one_failure_costs_no_other_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, store, told = plan(["table1"], SMALL), RecordStore(tmp_path), []

    def fail(job: Job) -> None:
        if job.method == "dgi" and job.seed == 1:
            raise ZeroDivisionError("no")

    runner = fake_runner(store, monkeypatch, fail)
    runner.on_failure = lambda job, reason: told.append(reason)
    outcome = runner.run(jobs)
    assert {(job.method, job.seed) for job in outcome.failed} == {("dgi", 1)}
    assert set(outcome.failed.values()) == {"ZeroDivisionError: no"}
    assert all("Traceback" in reason for reason in told)  # a fault of ours is told in full
    assert len(outcome.recorded) == len(jobs) - len(outcome.failed)


def test_a_graph_that_is_not_there_is_asked_for_once(tmp_path: Path) -> None:
    asked = []

    def absent(name: str, root: Path | None) -> Data:
        asked.append(name)
        raise UserError(f"{name} is not at hand")

    jobs = Scope(datasets=("photo",), seeds=3).scored("grace", "photo")
    outcome = Runner(store=RecordStore(tmp_path), device="cpu", open_graph=absent).run(jobs)
    assert outcome.failed == dict.fromkeys(jobs, "photo is not at hand")
    assert asked == ["photo"]


def test_nothing_is_started_when_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = plan(["table4"], SMALL)
    runner = fake_runner(RecordStore(tmp_path), monkeypatch, lambda job: None)
    runner.time_limit = -1.0
    assert runner.run(jobs) == Outcome(left=jobs)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[RecordStore, Scope]:
    """MUX-GCL and GRACE on a tiny graph for a few epochs, every kind of measurement."""
    folder = tmp_path_factory.mktemp("real")
    scope = Scope(datasets=("photo",), methods=("mux-gcl", "grace"), seeds=2, splits=3, epochs=4)
    store = RecordStore(folder / "records")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        outcome = Runner(store=store, device="cpu", open_graph=tiny).run(plan(PAPER, scope))
    assert not outcome.failed
    return store, scope


def test_scores_are_those_of_the_trained_embedding(real: tuple[RecordStore, Scope]) -> None:
    store, scope = real
    _, job = scope.scored("grace", "photo")
    record = Found(store.lines()).get(job)
    assert record is not None
    data = tiny("photo", None)
    y = data.y.numpy()
    seen: dict[int, np.ndarray[Any, Any]] = {}
    plan_ = job.plan()
    fitted = fit(
        plan_,
        Graph.from_data(data).to("cpu"),
        observe=lambda epoch, z: seen.update({epoch: z.numpy().copy()}),
        observe_last=100,
    )
    z = fitted.embed().numpy()
    want = holdout(z, y, count=3, seed=0)
    assert record["result"]["accuracy"] == pytest.approx(want.accuracies, abs=1e-4)
    assert record["result"]["everywhere"] == pytest.approx(
        holdout(z, y, count=3, seed=0, everywhere=True).accuracies, abs=1e-4
    )
    assert record["result"]["development"] == development_hash(y)
    judged = np.where(report_half(y), y, -1)
    groups = cluster(z, judged, clusters=len(np.unique(y)), repeats=2, seed=0)
    assert record["result"]["nmi"] == pytest.approx(groups.nmi_scores, abs=1e-4)
    (_, paper) = scope.scored("grace", "photo", protocol="paper")
    optimistic = Found(store.lines()).get(paper)
    assert optimistic is not None
    assert optimistic["optimistic"]
    protocol = PaperProtocol(y, seed=1)
    for epoch, table in seen.items():
        scores = optimistic["result"]["epochs"][str(epoch)]
        assert scores == pytest.approx(protocol.observe(epoch, table), abs=1e-4)
    assert len(seen) == len(optimistic["result"]["epochs"]) == 4


def test_dmons_own_clusters_are_recorded_beside_k_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    store = RecordStore(tmp_path / "records")
    scope = Scope(datasets=("photo",), methods=("dmon",), seeds=1, splits=2, epochs=3)
    (job,) = scope.scored("dmon", "photo")
    assert not Runner(store=store, device="cpu", open_graph=tiny).run([job]).failed
    record = Found(store.lines()).get(job)
    assert record is not None
    data = tiny("photo", None)
    fitted = fit(job.plan(), Graph.from_data(data))
    groups = fitted.method.assignment(fitted.graph)
    assert groups is not None
    half = report_half(data.y.numpy())
    want = normalized_mutual_info_score(data.y.numpy()[half], groups.numpy()[half])
    assert record["result"]["own_nmi"] == [pytest.approx(want, abs=1e-4)]


def test_a_record_says_how_it_was_made(real: tuple[RecordStore, Scope]) -> None:
    store, scope = real
    (record,) = Found(store.lines()).of(scope.scored("mux-gcl", "photo", "mpc")[:1])
    assert record["settings"]["affinity"] == "none"
    assert record["train"]["epochs"] == 4
    assert record["epoch_ms"] > 0
    assert record["seconds"] > 0
    assert {"python", "torch"} <= set(record["versions"])
    assert record["device"]
    assert record["commit"]


def test_workers_change_nothing_but_the_time(
    real: tuple[RecordStore, Scope], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    store, scope = real
    jobs = [*scope.scored("grace", "photo"), *scope.scored("grace", "photo", protocol="paper")]
    beside = RecordStore(tmp_path / "records")
    outcome = Runner(store=beside, device="cpu", workers=2, open_graph=tiny).run(jobs)
    assert set(outcome.recorded) == set(jobs)
    one, two = Found(store.lines()), Found(beside.lines())
    for job in jobs:
        first, second = one.get(job), two.get(job)
        assert first is not None
        assert second is not None
        assert first["result"] == second["result"]


def test_a_killed_command_continues_and_duplicates_nothing(tmp_path: Path) -> None:
    records = tmp_path / "records"
    command = [sys.executable, "-m", "muxgcl", "reproduce", "table1", "--datasets", "cora"]
    command += ["--methods", "random-gcn", "--seeds", "4", "--splits", "1", "--device", "cpu"]
    command += ["--records", str(records), "--out", str(tmp_path / "out"), "--json"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    first = subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    file, begin = records / "table1.jsonl", time.monotonic()
    while not (file.is_file() and file.read_bytes().count(b"\n") >= 1):
        assert first.poll() is None, first.communicate()
        assert time.monotonic() - begin < 200
        time.sleep(0.005)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    kept = file.read_bytes()
    whole = kept.count(b"\n")
    assert 1 <= whole < 4
    with file.open("ab") as cut:  # as if the kill had come in the middle of a write
        cut.write(kept[:100])
    second = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    summary = json.loads(second.stdout.splitlines()[-1])
    assert summary["recorded"] == 4 - whole
    assert summary["missing"] == 0
    assert [json.loads(line)["seed"] for line in file.read_text().splitlines()] == [0, 1, 2, 3]
    assert file.read_bytes().startswith(kept)


def test_a_pool_divides_the_cores_that_this_process_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(workers, "ProcessPoolExecutor", lambda *given: made.append(given))
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # as a cluster may set it
    for count in (1, 2):
        ScoringPool(count)
    assert [given[-1] for given in made] == [(1,), (1,)]
    monkeypatch.setattr(workers, "cpu_count", lambda: 9)
    ScoringPool(2)
    assert made[-1][-1] == (4,)


def test_scoring_goes_on_without_workers_once_one_was_killed() -> None:
    with ScoringPool(1) as pool:
        lost = pool.submit(os._exit, 1)
        assert isinstance(lost.exception(timeout=60), BrokenExecutor)
        assert pool.submit(max, 3, 4).result(timeout=60) == 4
        assert pool.submit(max, 5, 4).result(timeout=60) == 5
