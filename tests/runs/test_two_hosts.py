"""Two hosts in one torchrun job: two network namespaces with a cable between them.

A namespace has interfaces, addresses and ports of its own, so nothing is reached by accident
through localhost. Making one takes privileges; where they are missing the test is skipped.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cli_cases import TINY, command_line
from torch.testing import assert_close

SUBNET = "10.77.0"
PORT = 29507
TRAIN = ["--method", "grace", *TINY, "--device", "cpu", "--epochs", "3", "--quiet"]


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """The names of two namespaces that can reach each other, and nothing else."""
    if shutil.which("ip") is None:
        pytest.skip("network namespaces need the program ip (iproute2)")
    names = [f"muxgcl-{os.getpid()}-{k}" for k in (1, 2)]
    ends = [f"mux{os.getpid()}{k}"[-15:] for k in "ab"]

    def ip(*words: str) -> None:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            reason = done.stderr.strip().splitlines() or ["no reason given"]
            pytest.skip(f"network namespaces are not allowed here: {reason[0]}")

    made = []
    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for k, (name, end) in enumerate(zip(names, ends, strict=True), start=1):
            ip("link", "set", end, "netns", name)
            ip("-n", name, "addr", "add", f"{SUBNET}.{k}/24", "dev", end)
            ip("-n", name, "link", "set", end, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False)


def start(host: str, rank: int, folder: Path, own: list[str]) -> "subprocess.Popen[str]":
    """One host's part of the job."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"]
    launch += ["--nproc-per-node", "1", "--node-rank", str(rank)]
    launch += ["--master-addr", f"{SUBNET}.1", "--master-port", str(PORT)]
    end = f"mux{os.getpid()}{'ab'[rank]}"[-15:]
    words = ["-m", "muxgcl", "train", *own, *TRAIN, "--out", "two"]
    return subprocess.Popen(
        ["ip", "netns", "exec", host, *launch, *words],
        cwd=folder,
        env={**os.environ, "GLOO_SOCKET_IFNAME": end, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_hosts_train_what_one_process_trains(
    hosts: list[str], own: list[str], tmp_path: Path
) -> None:
    jobs = [start(host, rank, tmp_path, own) for rank, host in enumerate(hosts)]
    told = [job.communicate(timeout=280)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], told
    assert command_line(["train", *own, *TRAIN, "--out", str(tmp_path / "one")]) == 0
    one, two = (np.load(tmp_path / name / "embeddings.npz") for name in ("one", "two"))
    assert_close(one["embedding"], two["embedding"], rtol=1e-2, atol=1e-3)
