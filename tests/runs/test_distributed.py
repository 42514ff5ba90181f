"""Many workers against one process: the same loss, gradients, training and checkpoints."""

import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import worker_cases as cases
from cli_cases import TINY, ask, command_line, write_files
from torch.distributed import TCPStore
from torch.testing import assert_close
from worker_cases import GRAPH, together
from worker_commands import FAST, MORE

from muxgcl.errors import UserError
from muxgcl.estimators import NodeEmbedder
from muxgcl.kernels import negative_sum
from muxgcl.kernels.ring import LostWorker, Workers, bounds, pack, unpack
from muxgcl.runs.distributed import joined, speaks
from muxgcl.runs.folder import Run

WORLDS = [1, 2, 3, 4]
# mp.spawn and Gloo leave a socket or two to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def test_shares_differ_by_one_at_most_and_leave_nothing_out() -> None:
    for count in (4, 5, 11, 100):
        for world in WORLDS:
            shares = [bounds(count, rank, world) for rank in range(world)]
            assert [a for a, _ in shares] == [0, *(b for _, b in shares[:-1])]
            assert shares[-1][1] == count
            sizes = [b - a for a, b in shares]
            assert max(sizes) - min(sizes) <= 1


def files(folder: Path) -> list[str]:
    """The words for the graph of `write_files`."""
    return [str(folder / "edges.csv"), "--features", str(folder / "nodes.csv")]


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Where workers worked, and what each of them found; they are started once."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all processes that test
    folder /= "workers"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not (folder / "done").exists():
            words = ["train", *files(write_files(folder)), *FAST, "--device", "cpu"]
            assert command_line([*words, "--out", str(folder / "one")]) == 0
            together(folder, str(folder))
            (folder / "done").touch()
    found = [torch.load(folder / f"{k}.pt", weights_only=True) for k in range(cases.WORLD)]
    return folder, found


@pytest.mark.parametrize("world", WORLDS)
def test_the_ring_finds_the_loss_and_the_gradients_of_one_process(found: Any, world: int) -> None:
    check_contrasts([worker[f"contrasts {world}"] for worker in found[1][:world]])


@pytest.mark.parametrize("world", WORLDS)
def test_ten_steps_together_are_ten_steps_alone(found: Any, world: int, alone: Any) -> None:
    """Losses and weights are those of one process, and the same on all workers."""
    for name, want in alone.items():
        steps = [worker[f"steps {world}"][name] for worker in found[1][:world]]
        for got in steps:
            assert_close(got["losses"], want["losses"], rtol=1e-4, atol=1e-5)
            assert_close(got["weights"], want["weights"], rtol=1e-3, atol=1e-4)
        first, last = steps[0]["weights"], steps[-1]["weights"]
        assert all(torch.equal(first[key], last[key]) for key in first)


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    """Ten steps of one process."""
    return {name: cases.trained(None, made) for name, made in cases.PLANS.items()}


def check_contrasts(found: list[Any]) -> None:
    """Shares of loss and gradients add up to what one process finds."""
    for name in found[0]:
        total = [torch.stack(parts).sum(0) for parts in zip(*(f[name] for f in found), strict=True)]
        if name == "16 bits":
            want = cases.loss_and_gradients(None, 13, weighted=True)
            assert_close(total, want, rtol=2e-3, atol=2e-4)
            continue
        n, weighted, backend = name.split()
        want = cases.loss_and_gradients(None, int(n), weighted=weighted == "True", backend=backend)
        assert_close(total, want)


def test_a_run_stopped_on_two_workers_goes_on_with_three_and_with_one(
    found: Any, alone: Any
) -> None:
    folder, workers = found
    want = alone["mux-gcl"]
    assert [worker["stopped"] for worker in workers] == [
        *["stopped after epoch 4 of 10"] * 2,
        *[None] * 2,
    ]
    assert Run(folder / "stopped").checkpoint()[1]["epoch"] == 4
    one = cases.trained(None, cases.plan(), str(folder / "stopped"))
    for got in (*(worker["gone on"] for worker in workers[:3]), one):
        assert_close(got["losses"], want["losses"][4:], rtol=1e-4, atol=1e-5)
        assert_close(got["weights"], want["weights"], rtol=1e-3, atol=1e-4)
    for name in ("run", "stopped"):
        assert [line["epoch"] for line in Run(folder / name).metrics()] == [*range(1, 11)]


def test_mistakes_are_one_line_on_every_worker(found: Any) -> None:
    for worker in found[1][:3]:
        told = worker["mistakes"]
        assert told["graph"] == "worker 2 has other graph than worker 0"
        for name in ("settings", "seed", "backend", "members", "other anchors", "other keys"):
            assert told[name] == "worker 2 has other settings than worker 0"
        assert told["method"].startswith("homogcl cannot be divided among workers; these can: mux")
        assert told["anchors"] == "there are 3 workers for 2 anchors: start fewer"
        assert told["nodes"] == "there are 3 workers for 2 nodes: start fewer"
        assert told["fine"] == "trained"


def test_statistics_are_those_of_the_first_worker_and_other_weights_are_told(found: Any) -> None:
    one, two = (worker["other tables"] for worker in found[1][:2])
    assert torch.equal(one["buffers"], two["buffers"])
    for worker in (one, two):
        assert worker["parameters"] == "worker 1 has other weights than worker 0"


def test_a_worker_that_dies_in_an_epoch_ends_the_run_with_its_last_checkpoint(
    found: Any, alone: Any
) -> None:
    run = found[0] / "dies"
    for rank in range(cases.WORLD - 1):
        told = (run / f"told-{rank}").read_text()
        assert told.startswith("a worker was lost or does not answer (")
        assert ".cc:" not in told
    assert Run(run).checkpoint()[1]["epoch"] == 4
    got = cases.trained(None, cases.plan("grace"), str(run))
    assert_close(got["weights"], alone["grace"]["weights"], rtol=1e-3, atol=1e-4)


def test_sixteen_bits_on_the_wire_cost_the_gradients_of_many_nodes_their_last_digits_alone(
    found: Any,
) -> None:
    anchor, keys = cases.many_rows()
    keys.requires_grad_()
    sums = negative_sum(anchor, keys, temperature=0.5, backend="chunked")
    match = (((anchor * keys).sum(1) - 1) / 0.5).exp()
    (sent,) = torch.autograd.grad(sums, keys, (1 / (len(keys) * (match + sums))).detach())
    exact, rounded = (
        torch.cat(t) for t in zip(*(w["sixteen bits"] for w in found[1][:3]), strict=True)
    )
    assert (rounded - exact).norm() < 4 * 2**-11 * sent.norm()
    assert (rounded - exact).norm() > 0  # it was sent in 16 bits


@pytest.mark.parametrize("size", [1.0, 1e-9, 3e7, 0.0])
def test_a_table_of_any_size_keeps_eleven_bits(size: float) -> None:
    table = size * torch.randn(50, 8)
    packed, factor = pack(table, torch.float16)
    assert packed.dtype == torch.float16
    assert_close(unpack(packed, factor, torch.float32), table, rtol=2**-11, atol=size * 2**-24)
    assert pack(table, torch.float32)[0] is table


def test_an_error_of_one_worker_is_told_once_and_ends_all(found: Any) -> None:
    one, two = (worker["commands"]["unreadable"] for worker in found[1][:2])
    assert one[0] == two[0] == 2
    assert re.fullmatch(r"muxgcl: worker 1: .*edges-1\.csv.*\n", one[1])
    assert two[1] == ""


def test_the_first_worker_alone_speaks(found: Any) -> None:
    one, two = (worker["commands"] for worker in found[1][:2])
    assert one["trained"][0] == 0
    assert two["trained"] == (0, "")
    assert one["again"][0] == 2
    assert one["again"][1].count("holds a run already") == 1
    assert two["again"] == (2, "")
    assert (found[0] / "command" / "embeddings.npz").exists()


def test_a_run_of_one_process_goes_on_with_two_and_the_other_way_round(
    found: Any, tmp_path: Path
) -> None:
    folder, workers = found
    assert [worker["commands"]["gone on"][0] for worker in workers[:2]] == [0, 0]
    shutil.copytree(folder / "command", tmp_path / "two")
    words = ["train", *files(folder), *FAST, *MORE, "--device", "cpu"]
    assert command_line([*words, "--out", str(tmp_path / "two")]) == 0
    one, two = (np.load(at / "embeddings.npz") for at in (folder / "one", tmp_path / "two"))
    assert_close(one["embedding"], two["embedding"], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("name", ["seeds", "dry run"])
def test_workers_that_were_asked_for_other_things_are_told_apart(found: Any, name: str) -> None:
    one, two = (worker["commands"][name] for worker in found[1][:2])
    told = f"muxgcl: worker 1 has other --{name.replace(' ', '-')} than worker 0\n"
    assert (one, two) == ((2, told), (2, ""))


def test_run_trains_in_a_group_that_the_caller_made_and_the_first_has_the_embedding(
    found: Any,
) -> None:
    one, two = (worker["commands"]["run"] for worker in found[1][:2])
    assert one["loss"] == two["loss"]
    assert (one["shape"], two["shape"]) == ([60, 8], [0, 0])


@pytest.mark.parametrize("method", ["grace", "homogcl"])
def test_an_estimator_learns_the_same_in_all_processes_of_a_group(found: Any, method: str) -> None:
    learned = [worker["commands"]["estimator"][method] for worker in found[1][:2]]
    assert len({one["seed"] for one in learned}) == 1
    assert all(torch.equal(one["embedding"], learned[0]["embedding"]) for one in learned)
    alone = NodeEmbedder(
        method,
        preset="quick",
        params={"width": 8},
        epochs=2,
        device="cpu",
        random_state=learned[0]["seed"],
    )
    want = torch.tensor(alone.fit(GRAPH).embedding_)
    assert_close(learned[0]["embedding"], want, rtol=1e-3, atol=1e-4)


def test_estimators_with_other_settings_are_told_apart(found: Any) -> None:
    told = [worker["commands"]["estimator"]["other"] for worker in found[1][:2]]
    assert told == ["worker 1 has other settings than worker 0"] * 2


def test_the_first_worker_chooses_the_sample_for_all_of_them(found: Any) -> None:
    one, two = (worker["commands"]["budget"] for worker in found[1][:2])
    assert one == two
    assert one["anchors"] == 8
    assert one["notes"][-1].endswith(" on this CPU for each of 2 workers")


def test_the_first_worker_alone_trains_on_walks_and_the_others_are_sent_the_tables(
    found: Any,
) -> None:
    want = cases.trained(None, cases.plan(epochs=2))
    one, two = (worker["commands"]["affinities"] for worker in found[1][:2])
    assert one["beats"] > 0
    for got in (one, two):
        assert_close(got["weights"], want["weights"], rtol=1e-3, atol=1e-4)


def test_the_others_wait_for_the_first_worker_however_long_it_works(found: Any) -> None:
    assert [worker["commands"]["patience"] for worker in found[1][:2]] == [[60, 60], [0, 0]]


def test_the_benchmark_of_the_ring_leaves_a_record_of_three_ways(found: Any) -> None:
    (row,) = found[1][0]["commands"]["benchmark"]
    assert (row["workers"], row["nodes"]) == (2, 40)
    assert {way: len(times) for way, times in row["ms"].items()} == {
        "early": 2,
        "late": 2,
        "alone": 2,
    }
    assert row["sent_mib"] > 0
    assert row["commit"]


def test_one_worker_tells_of_a_lost_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def server() -> Any:
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        for name, value in environment(0, store.port).items():
            monkeypatch.setenv(name, value)
        return store

    def of(rank: int) -> bool:
        monkeypatch.setenv("RANK", str(rank))
        return speaks(wait=0.2)

    store = server()
    assert [of(rank) for rank in (0, 1, 2)] == [True, False, False]
    del store
    store = server()
    assert [of(rank) for rank in (2, 1)] == [True, False]  # the first one is the lost one
    del store


@pytest.mark.parametrize("resumable", [False, True])
def test_a_run_without_a_checkpoint_offers_none(
    resumable: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(*arguments: Any, **more: Any) -> None:
        error = LostWorker(
            "[/a/gloo/transport/tcp/pair.cc:538] Connection closed by peer [::1]:7. See"
        )
        error.resumable = resumable
        raise error

    monkeypatch.setattr("muxgcl.cli.run.run_app", lost)
    before = signal.getsignal(signal.SIGTERM)
    try:
        status, _, told = ask(capsys, "train", "cora")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert status == 2
    start = "muxgcl: a worker was lost or does not answer (Connection closed by peer [::1]:7); "
    assert told.startswith(start)
    assert told.count("\n") == 1
    assert ("--resume" in told) == resumable
    assert ("there is no checkpoint yet" in told) != resumable


def test_alone_there_are_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with joined("cpu") as workers:
        assert workers is None
    assert Workers(0, 1).draw(GRAPH.num_nodes) is None


def environment(rank: int, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def test_a_worker_that_never_comes_is_waited_for_and_then_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, value in environment(0, port).items():
        monkeypatch.setenv(name, value)
    status, _, told = ask(capsys, "train", "cora", "--device", "cpu", "--timeout", "2")
    assert status == 2
    assert re.fullmatch(
        r"muxgcl: not all of the 2 workers came to .* within 2 s \(--timeout waits longer\)\n", told
    )


def test_until_workers_meet_one_on_each_machine_speaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("muxgcl.runs.distributed._met", False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def told(rank: str, local: str, *words: str) -> str:
        names = {**environment(1, port), "RANK": rank, "LOCAL_RANK": local}
        for name, value in names.items():
            monkeypatch.setenv(name, value)
        status, _, found = ask(capsys, "train", "cora", "--device", "cpu", *words)
        assert status == 2
        return found

    missing = f"muxgcl: worker 0 did not answer at 127.0.0.1:{port} within 1 s"
    assert told("1", "0", "--timeout", "1") == f"{missing} (--timeout waits longer)\n"
    assert told("x", "0") == "muxgcl: RANK must be a whole number, got 'x'\n"
    assert "--anchor" in told("2", "0", "--anchor", "x")
    assert told("3", "1", "--anchor", "x") == ""


@pytest.mark.parametrize("timeout", [math.inf, math.nan, 1e20, 0.0])
def test_a_timeout_without_end_is_refused(timeout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(0, 1).items():
        monkeypatch.setenv(name, value)
    told = "timeout must be above 0 and at most 2,592,000 seconds"
    with pytest.raises(UserError, match=told), joined("cpu", timeout=timeout):
        pass


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(0, 1).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="there is no cuda here"), joined("cuda"):
        pass


def test_a_port_that_is_taken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for name, value in environment(0, taken.getsockname()[1]).items():
            monkeypatch.setenv(name, value)
        told = "is taken by another program"
        with pytest.raises(UserError, match=told), joined("cpu", timeout=2):
            pass


def torchrun(folder: Path, *words: str, workers: int = 2) -> subprocess.CompletedProcess[str]:
    """`muxgcl WORDS` on so many workers."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(workers)]
    return subprocess.run(
        [sys.executable, *launch, "-m", "muxgcl", *words],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        check=False,
    )


@pytest.mark.slow  # two hosts in one job are seldom skipped
def test_a_run_under_torchrun_is_that_of_one_process(own: list[str], tmp_path: Path) -> None:
    words = ["train", *own, "--method", "grace", *TINY, "--device", "cpu", "--epochs", "3"]
    done = torchrun(tmp_path, *words, "--out", "two", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)  # one object: nobody else has written anything
    assert done.stderr.count("embeddings:") == 1
    assert found["epochs"] == 3
    assert command_line([*words, "--quiet", "--out", str(tmp_path / "one")]) == 0
    one, two = (np.load(tmp_path / name / "embeddings.npz") for name in ("one", "two"))
    assert_close(one["embedding"], two["embedding"], rtol=1e-2, atol=1e-3)
