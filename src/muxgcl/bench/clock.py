"""Medians of repeated calls, on a CPU by the clock and on a GPU by its own events."""

import time
from collections.abc import Callable
from statistics import median

import torch

from muxgcl.kernels.capture import WARM_UP, recorded, run_on_side_stream
from muxgcl.seeding import seeded

GROUP = 5.0  # milliseconds of calls that a GPU is timed over at once: it never waits for the host


def milliseconds(call: Callable[[], object], device: torch.device, budget: float = 2.0) -> float:
    """Median time of a call within about `budget` seconds, after warming up."""
    once = min(_timed(call, device, 1) for _ in range(3))
    group = max(1, int(GROUP / once)) if device.type == "cuda" else 1
    repeats = max(3, min(100, int(1000 * budget / max(once * group, 1e-3))))
    return median(_timed(call, device, group) for _ in range(repeats))


def _timed(call: Callable[[], object], device: torch.device, group: int) -> float:
    """Time of one call, measured over `group` of them."""
    if device.type != "cuda":
        begin = time.perf_counter()
        call()
        return 1000 * (time.perf_counter() - begin)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(group):
        call()
    end.record()
    torch.cuda.synchronize(device)
    return float(start.elapsed_time(end)) / group


def captured(call: Callable[[], object], device: torch.device) -> Callable[[], object]:
    """The same call as a CUDA graph: what a captured training step pays for it."""
    run_on_side_stream(call, device, times=WARM_UP)
    return recorded(call, device)


def matmul_ceiling(device: torch.device, precision: str) -> float:
    """TFLOP/s of a large library product on random data, in the same run."""
    size = 8192 if device.type == "cuda" else 2048
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
    with seeded(0, device):
        a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    try:
        return 2 * size**3 / milliseconds(lambda: a @ b, device, 0.5) / 1e9
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
