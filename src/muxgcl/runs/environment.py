"""What is recorded beside a figure: device, versions, commit, time and peak memory."""

import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from muxgcl.errors import UserError

PACKAGES = ("muxgcl", "torch", "torch-geometric", "numpy", "scipy", "scikit-learn", "triton")
MIB = 2**20


def pick_device(name: str) -> torch.device:
    """`auto` takes a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}") from None
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(f"there is no {name} here: {torch.cuda.device_count()} CUDA devices found")
    return device


def gpu_of(name: str) -> str | None:
    """The GPU that work on this device may use too, if it is one and is there."""
    if name == "cpu" or not torch.cuda.is_available():
        return None
    device = pick_device(name)
    return str(device) if device.type == "cuda" else None


def limit_threads() -> None:
    """No more threads than cores that this process may use: more would wait for each other."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
        with suppress(OSError, ValueError):  # what a container may use, where it is limited
            quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
            cores = min(cores, max(1, round(int(quota) / int(period))))
        if torch.get_num_threads() > cores:
            torch.set_num_threads(cores)


def device_name(device: torch.device) -> str:
    """The chip's name, and the number of cores in use for a CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"{model}, {torch.get_num_threads()} threads"


def human_time(seconds: float) -> str:
    """A time in a unit that suits it."""
    if seconds < 0.9995:  # which rounds to 1000 ms
        return f"{1000 * seconds:.3g} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def versions() -> dict[str, str]:
    """Python's and the packages' versions."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit of this source tree: $MUXGCL_COMMIT, else what git says, else "unknown".

    An installed package has none: git would tell of the project that the environment lies in.
    """
    if given := os.environ.get("MUXGCL_COMMIT"):
        return given
    root = Path(__file__).resolve().parents[3]  # src/muxgcl/runs lies in it
    if not (root / ".git").exists():
        return "unknown"
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()


@dataclass(slots=True)
class PeakMemory:
    """The most memory held inside the block, above what was held at its start."""

    mib: float = 0.0


@contextmanager
def peak_memory(device: torch.device) -> Iterator[PeakMemory]:
    """Measure a block's peak: the allocator's on a GPU, resident memory on a CPU."""
    peak = PeakMemory()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        start = torch.cuda.memory_allocated(device)
    else:
        start = _reset_resident_peak()
    try:
        yield peak
    finally:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            top = torch.cuda.max_memory_allocated(device)
        else:
            top = _resident("VmHWM")
        peak.mib = max(0.0, (top - start) / MIB)


def _reset_resident_peak() -> int:
    """Linux forgets a process's peak on request; elsewhere the peak is the whole process's."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _resident("VmRSS")


def _resident(field: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(field))) * 1024
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
