"""Memory that is freed inside serves again, and goes back to the system afterwards.

Each measurement has a process of its own: what earlier tests freed would serve here too.
"""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from muxgcl.runs import heap
from muxgcl.runs.heap import reused_memory

CPU = torch.device("cpu")
SOURCE = Path(heap.__file__).parents[2]
COMMON = """
import resource
from pathlib import Path

import torch
from muxgcl.runs.heap import reused_memory

NUMBERS, CPU, META = 24 << 20, torch.device("cpu"), torch.device("meta")  # 96 MiB

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def faults(device):  # pages that the system hands out for a table, after others of its size
    with reused_memory(device):
        for _ in range(30):  # glibc first keeps seven fragments of a size, each in the way
            torch.ones(NUMBERS)
        before = pages()
        torch.ones(NUMBERS)
        return pages() - before

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
"""
glibc = pytest.mark.skipif(
    heap._glibc() is None or not sys.platform.startswith("linux"),
    reason="the C library is not glibc",
)


def holds(claim: str) -> None:
    """Run it in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", COMMON + claim],
        env={"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@glibc
def test_a_table_takes_the_place_of_one_that_was_freed() -> None:
    holds(
        "usual, reused = faults(META), faults(CPU)\nassert reused < 0.05 * usual, (reused, usual)"
    )


@glibc
def test_what_was_kept_is_given_back() -> None:
    holds("""
with reused_memory(CPU):
    torch.ones(NUMBERS)
    inside = resident()
assert resident() < inside - 3 * NUMBERS, (resident(), inside)
""")


@glibc
def test_what_is_freed_later_can_be_given_back_as_well() -> None:
    holds("""
from muxgcl.runs.heap import give_back
with reused_memory(CPU):
    many = [torch.ones(1 << 18) for _ in range(200)]  # 200 MiB, below a block that stays
    last = torch.ones(1 << 18)
del many
before = resident()
give_back()
assert resident() < before - (150 << 20), (resident(), before)
""")


@glibc
def test_it_is_given_back_after_an_error_too() -> None:
    holds("""
try:
    with reused_memory(CPU):
        torch.ones(NUMBERS)
        inside = resident()
        raise ValueError
except ValueError:
    assert resident() < inside - 3 * NUMBERS, (resident(), inside)
""")


def test_nothing_is_done_where_the_library_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_glibc", lambda: None)
    with reused_memory(CPU):
        assert torch.ones(3).sum() == 3
