"""Memory that is freed inside serves again, and goes back to the system afterwards."""

import resource
import sys
from pathlib import Path

import pytest
import torch

from muxgcl.runs import heap
from muxgcl.runs.heap import reused_memory

NUMBERS = 24 << 20  # 96 MiB, more than glibc ever keeps by itself
CPU = torch.device("cpu")
glibc = pytest.mark.skipif(heap._glibc() is None, reason="the C library is not glibc")


def faults(device: torch.device) -> int:
    """Pages that the system had to hand out for a table, after others of its size."""
    with reused_memory(device):
        for _ in range(10):  # until there is a place for it
            torch.ones(NUMBERS)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.ones(NUMBERS)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@glibc
def test_a_table_takes_the_place_of_one_that_was_freed() -> None:
    assert faults(CPU) < 0.05 * faults(torch.device("meta"))  # the latter as glibc has it


@glibc
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_what_was_kept_is_given_back() -> None:
    with reused_memory(CPU):
        torch.ones(NUMBERS)
        inside = resident()
    assert resident() < inside - 3 * NUMBERS


@glibc
def test_it_is_given_back_after_an_error_too() -> None:
    with pytest.raises(ValueError, match="stopped"), reused_memory(CPU):
        raise ValueError("stopped")
    torch.ones(NUMBERS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(NUMBERS)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before > NUMBERS * 4 // (4 << 20)


def test_nothing_is_done_where_the_library_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_glibc", lambda: None)
    with reused_memory(CPU):
        assert torch.ones(3).sum() == 3
