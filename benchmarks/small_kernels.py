"""Do the two small kernels earn their place? Unit rows and a bias, ours against plain torch.

    python benchmarks/small_kernels.py --record records/small-kernels.jsonl

First each alone, forward and backward in one CUDA graph, as a captured step pays for it; then whole
epochs of MUX-GCL with ours and with torch's in its place. A ratio above 1 says that ours is faster.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn.functional import normalize

from muxgcl.bench.clock import captured, milliseconds
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.files import append_lines
from muxgcl.nn.bias import add_bias
from muxgcl.nn.projector import ZERO, unit_rows
from muxgcl.runs.environment import commit, device_name, pick_device, versions
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan

ROUNDS = 3  # of whole trainings; the fastest counts
BIAS_USERS = ("muxgcl.nn.gcn.add_bias", "muxgcl.nn.projector.add_bias")


def plain_unit_rows(nodes: Tensor) -> Tensor:
    """What `unit_rows` computes, in torch's operations."""
    length = nodes.norm(dim=1, keepdim=True)
    return nodes / length.clamp(min=ZERO) * (length > ZERO)


def plain_bias(table: Tensor, bias: Tensor) -> Tensor:
    return table + bias


def microseconds(function: Callable[..., Tensor], inputs: list[Tensor]) -> float:
    """Forward and backward. Leaves are multiplied first: a bias is added in place."""
    device = inputs[0].device
    leaves = [x.clone().requires_grad_() for x in inputs]
    upstream = torch.randn_like(inputs[0])

    def call() -> None:
        out = function(leaves[0] * 1.0, *leaves[1:])
        torch.autograd.grad(out, leaves, upstream)

    step = captured(call, device) if device.type == "cuda" else call
    return 1000 * milliseconds(step, device)


def epoch_milliseconds(plan: Plan, graph: Graph, *, bias: bool, unit: bool) -> float:
    """Of MUX-GCL, with ours (True) or torch's in the place of either."""
    swaps = {name: plain_bias for name in BIAS_USERS if not bias}
    if not unit:
        swaps["muxgcl.nn.projector.unit_rows"] = plain_unit_rows
    patches = [patch(name, function) for name, function in swaps.items()]
    for one in patches:
        one.start()
    try:
        return min(fit(plan, graph).epoch_ms for _ in range(ROUNDS))
    finally:
        for one in patches:
            one.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="*", default=["cora", "citeseer"])
    parser.add_argument("--rows", type=int, nargs="+", default=[2 * 2708, 6 * 2708, 2 * 19717])
    parser.add_argument("--widths", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    device = pick_device(args.device)
    facts = {"device": device_name(device), "versions": versions(), "commit": commit()}

    def keep(what: str, ours: float, torch_s: dict[str, float], **more: object) -> None:
        times = {"ours": ours, **torch_s}
        row = {"kind": "small kernels", "what": what, **more}
        row |= {"times": {name: round(time, 3) for name, time in times.items()}}
        row |= {"ratio": {name: round(time / ours, 3) for name, time in torch_s.items()}}
        append_lines(args.record, [row | facts])
        print(what, more, row["times"], row["ratio"], flush=True)

    for rows in args.rows:
        for width in args.widths:
            nodes = torch.randn(rows, width, device=device)
            bias = torch.randn(width, device=device)
            shape = {"unit": "us", "rows": rows, "width": width}
            others = {
                "torch": microseconds(plain_unit_rows, [nodes]),
                "normalize": microseconds(normalize, [nodes]),
            }
            keep("unit rows", microseconds(unit_rows, [nodes]), others, **shape)
            others = {"torch": microseconds(plain_bias, [nodes, bias])}
            keep("bias", microseconds(add_bias, [nodes, bias]), others, **shape)
    for name in args.datasets:
        graph = Graph.from_data(open_dataset(name, args.data_root))
        settings = {"epochs": args.epochs, "affinity": "none"}
        plan = Plan.make("mux-gcl", "best", name, settings, graph=graph, device=args.device)
        ours = epoch_milliseconds(plan, graph, bias=True, unit=True)
        others = {
            "torch's bias": epoch_milliseconds(plan, graph, bias=False, unit=True),
            "torch's unit rows": epoch_milliseconds(plan, graph, bias=True, unit=False),
            "torch's both": epoch_milliseconds(plan, graph, bias=False, unit=False),
        }
        keep("epoch", ours, others, unit="ms", dataset=name)


if __name__ == "__main__":
    main()
