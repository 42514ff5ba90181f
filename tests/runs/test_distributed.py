"""Many workers against one process: the same loss, gradients, training and checkpoints."""

import json
import os
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
from cli_cases import command_line
from torch.testing import assert_close
from worker_cases import GRAPH, together

from muxgcl.errors import UserError
from muxgcl.kernels.ring import Workers, bounds
from muxgcl.runs.distributed import joined
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
            together(folder, cases.everything, str(folder))
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
        assert told["settings"] == "worker 2 has other settings than worker 0"
        assert told["method"].startswith("homogcl cannot be divided among workers; these can: mux")
        assert told["anchors"] == "there are 3 workers for 2 anchors: start fewer"
        assert told["nodes"] == "there are 3 workers for 2 nodes: start fewer"
        assert told["fine"] == "trained"


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
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, value in environment(0, port).items():
        monkeypatch.setenv(name, value)
    told = r"not all of the 2 workers came to .* within 2 s"
    with pytest.raises(UserError, match=told), joined("cpu", timeout=2):
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


@pytest.mark.slow
def test_torchrun_brings_its_workers_together(tmp_path: Path) -> None:
    script = tmp_path / "join.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "from muxgcl.runs.distributed import joined, largest\n"
        "with joined('cpu') as workers:\n"
        "    assert largest(workers, workers.rank) == 1\n"
        f"    open(f'{tmp_path}/{{workers.rank}}-of-{{workers.world}}', 'w').close()\n"
    )
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "0-of-2").exists()
    assert (tmp_path / "1-of-2").exists()


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


@pytest.mark.slow
def test_a_run_under_torchrun_is_that_of_one_process_and_the_first_worker_alone_speaks(
    tmp_path: Path,
) -> None:
    words = ["run", "cora", "--method", "grace", "--preset", "quick", "--device", "cpu"]
    words += ["--epochs", "3", "--splits", "2", "--no-controls", "--no-report", "--json", "--quiet"]
    done = torchrun(tmp_path, *words, "--out", "two")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)  # one object: nobody else has written anything
    assert done.stderr.count("embeddings:") == 1
    assert command_line([*words, "--out", str(tmp_path / "one")]) == 0
    one, two = (np.load(tmp_path / name / "embeddings.npz") for name in ("one", "two"))
    assert_close(one["embedding"], two["embedding"], rtol=1e-2, atol=1e-3)
    assert found["epochs"] == 3
    again = torchrun(tmp_path, *words, "--out", "two")
    assert again.returncode != 0
    assert again.stderr.count("holds a run already") == 1
    assert again.stderr.count("muxgcl: ") == 1
