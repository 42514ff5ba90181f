"""A training that is asked to stop, and what it keeps meanwhile."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_loop_wiring import Toy, trainer_of

from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.runs import checkpoint
from muxgcl.runs import fit as fitting
from muxgcl.runs.fit import Fitted, Stopped, fit, make_ready, train
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.from_data(planted(nodes=30, features=10))


def plan_of(epochs: int) -> Plan:
    settings = {"width": 4, "projection": 4, "epochs": epochs}
    return Plan.make("grace", "quick", overrides=settings, device="cpu")


@pytest.fixture
def handlers() -> Iterator[None]:
    """What was there before is there after, whatever a test leaves."""
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_insists(
    number: signal.Signals, handlers: None
) -> None:
    told: list[int] = []
    before = signal.getsignal(number)
    with fitting._stop_requests(True, told.append) as stop:
        assert stop.number is None
        signal.raise_signal(number)
        assert (stop.number, told) == (number, [number])
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        assert told == [number]
    assert signal.getsignal(number) == before
    with fitting._stop_requests(True, None) as stop:
        signal.raise_signal(number)  # nobody needs to be told
        assert stop.number == number


def test_nobody_listens_unasked_or_in_another_thread(handlers: None) -> None:
    before = signal.getsignal(signal.SIGINT)
    with fitting._stop_requests(False, None):
        assert signal.getsignal(signal.SIGINT) == before
    found: list[Any] = []

    def elsewhere() -> None:
        with fitting._stop_requests(True, None) as stop:
            found.append(stop.number)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [None]


def test_a_stop_is_resumable_and_of_ctrl_c_unless_said_otherwise() -> None:
    stop = Stopped("stopped")
    assert (stop.number, stop.resumable) == (signal.SIGINT, True)


def stop_at(number: int, kind: signal.Signals = signal.SIGTERM) -> Any:
    def look(block: list[Epoch]) -> None:
        if block[-1].number == number:
            signal.raise_signal(kind)

    return look


def test_a_stop_keeps_the_epoch_and_one_in_the_last_epoch_ends_before_scores(
    graph: Graph, tmp_path: Path, handlers: None
) -> None:
    run, plan, told = Run(tmp_path), plan_of(epochs=4), []
    with pytest.raises(Stopped, match="stopped after epoch 2 of 4") as stop:
        train(make_ready(plan, graph), run=run, on_block=stop_at(2), on_stop=told.append)
    assert (stop.value.number, told) == (signal.SIGTERM, [signal.SIGTERM])
    assert run.checkpoint()[1] == {"epoch": 2, "method": "grace", "seed": 0}
    with pytest.raises(Stopped, match="stopped after epoch 4 of 4"):
        train(make_ready(plan, graph), run=run, resume=True, on_block=stop_at(4))
    assert run.checkpoint()[1]["epoch"] == 4
    assert isinstance(train(make_ready(plan, graph), run=run, resume=True), Fitted)


def test_without_a_folder_nobody_listens_to_signals(graph: Graph, handlers: None) -> None:
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    fit(plan_of(epochs=3), graph, on_block=stop_at(2))
    assert heard == [signal.SIGTERM]


def test_a_checkpoint_is_written_every_few_seconds_once_an_epoch_and_never_with_nan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    trainer, run = trainer_of(Toy(), epochs=9), Run(tmp_path)
    writer = checkpoint.CheckpointWriter(trainer, run, seed=0)
    saved: list[int] = []
    real = run.save_checkpoint

    def save(tensors: Any, **facts: Any) -> None:
        saved.append(facts["epoch"])
        real(tensors, **facts)

    monkeypatch.setattr(run, "save_checkpoint", save)
    writer.save()
    assert saved == []  # nothing was trained
    blocks = trainer.blocks()
    for now[0], want in (
        (5.0, []),
        (10.0, []),
        (10.5, [3]),
        (20.0, [3]),
        (20.6, [3, 5]),
        (30.6, [3, 5]),
    ):
        writer.keep(next(blocks))
        assert saved == want
    writer.save()
    assert saved == [3, 5, 6]
    writer.save()
    assert saved == [3, 5, 6]
    assert [line["epoch"] for line in run.metrics()] == [1, 2, 3, 4, 5, 6]
    next(trainer.blocks())
    trainer.optimizer.slots[0]["moment"][0] = float("nan")
    writer.save()
    assert saved == [3, 5, 6]
    checkpoint.CheckpointWriter(trainer, None, seed=0).keep(
        []
    )  # without a folder there is nothing to keep
    checkpoint.CheckpointWriter(trainer, None, seed=0).save()
