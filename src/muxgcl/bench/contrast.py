"""One contrast, forward and backward, by every backend side by side."""

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import normalize

from muxgcl.bench.clock import captured, matmul_ceiling, milliseconds
from muxgcl.kernels import PairWeight, contrast
from muxgcl.runs.environment import commit, device_name, peak_memory, pick_device, versions
from muxgcl.runs.loop import fast_products
from muxgcl.seeding import seeded

DENSE_BYTES = 24 << 30  # a dense backend that would need more than this is left out
TEMPERATURE = 0.4


def bench_kernels(
    device: str = "auto",
    nodes: int = 2708,
    width: int = 128,
    rank: int = 128,
    precisions: tuple[str, ...] = (),
    on_row: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Time, peak memory and share of the matmul ceiling of the loss of one scale.

    Both views are stacked, as in training: 2n anchors against 2n keys, with soft negatives. Work is
    counted at its least: four products of width d for each pair (cosines twice, one product for
    each gradient) and two of width r for each pair of nodes.
    """
    place = pick_device(device)
    on_gpu = place.type == "cuda"
    precisions = precisions or (("fp16", "tf32") if on_gpu else ("fp32",))
    backends = ["reference", "chunked", *(f"fused/{p}" for p in precisions if on_gpu)]
    ceilings = {p: matmul_ceiling(place, p) for p in {*precisions, "tf32" if on_gpu else "fp32"}}
    with seeded(0, place):
        anchor, keys = (_unit(2 * nodes, width, place).requires_grad_() for _ in range(2))
        weight = PairWeight(_unit(nodes, rank, place), _unit(nodes, rank, place))
    work = 2 * (2 * nodes) ** 2 * 4 * width + 2 * nodes**2 * 2 * rank
    rows: list[dict[str, Any]] = []
    for backend in backends:
        if backend == "reference" and 40 * (2 * nodes) ** 2 > DENSE_BYTES:
            continue

        def step(backend: str = backend) -> None:
            loss = contrast(
                anchor, keys, weight, temperature=TEMPERATURE, nodes=nodes, backend=backend
            )
            torch.autograd.grad(loss, (anchor, keys))

        with fast_products():  # the dense backend too may round to TF32
            if on_gpu:
                step()  # what is compiled once is not counted
            gc.collect()
            with peak_memory(place) as peak:
                step()
            ms = milliseconds(captured(step, place) if on_gpu else step, place)
        name, _, precision = backend.partition("/")
        precision = precision or ("tf32" if on_gpu else "fp32")
        row = {
            "kind": "kernel",
            "backend": name,
            "precision": precision,
            "nodes": nodes,
            "width": width,
            "rank": rank,
            "ms": round(ms, 4),
            "peak_mib": round(peak.mib, 1),
            "tflops": round(work / ms / 1e9, 3),
            "share_of_ceiling": round(work / ms / 1e9 / ceilings[precision], 4),
            "ceiling_tflops": round(ceilings[precision], 1),
            "speedup": round(rows[0]["ms"] / ms, 2) if rows else 1.0,
            "device": device_name(place),
            "versions": versions(),
            "commit": commit(),
        }
        rows.append(row)
        if on_row is not None:
            on_row(row)
    return rows


def _unit(n: int, d: int, device: torch.device) -> torch.Tensor:
    return normalize(torch.randn(n, d, device=device), dim=1)
