"""The sparse product of propagation on a GPU: rows whole, and cut into pieces of several sizes.

    python benchmarks/spmm.py cora computers --record records/spmm.jsonl

Microseconds a product, the least of seven rounds of thirty, replayed from a CUDA graph.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import torch

import muxgcl.kernels.pieces
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.files import append_lines
from muxgcl.kernels.capture import WARM_UP, recorded, run_on_side_stream
from muxgcl.kernels.spmm import spmm
from muxgcl.runs.environment import commit, device_name, versions

PRODUCTS, ROUNDS = 30, 7


def microseconds(*operands: Any) -> float:
    """Of one product."""
    device = torch.device("cuda")
    product = partial(spmm, *operands)
    run_on_side_stream(product, device, times=WARM_UP)
    play = recorded(lambda: [product() for _ in range(PRODUCTS)], device)
    times: list[float] = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        play()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / PRODUCTS)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--pieces", type=int, nargs="+", default=[64, 128, 256, 512])
    parser.add_argument("--widths", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    for name in args.datasets:
        adjacency = Graph.from_data(open_dataset(name, args.data_root)).to("cuda").adjacency
        rowptr, col = adjacency.rowptr, adjacency.col
        value = torch.rand(len(col), device="cuda")
        for width in args.widths:
            dense = torch.randn(adjacency.nodes, width, device="cuda")
            found = {"whole": microseconds(rowptr, col, value, dense)}
            for size in args.pieces:
                muxgcl.kernels.pieces.PIECE = size
                pieces = muxgcl.kernels.pieces.Pieces.of(rowptr)
                found[str(size)] = microseconds(rowptr, col, value, dense, pieces)
            row = {
                "kind": "spmm",
                "dataset": name,
                "rows": adjacency.nodes,
                "entries": len(col),
                "longest_row": int(rowptr.diff().max()),
                "width": width,
                "microseconds": {size: round(time, 2) for size, time in found.items()},
                "device": device_name(torch.device("cuda")),
                "versions": versions(),
                "commit": commit(),
            }
            append_lines(args.record, [row])
            print(name, width, row["microseconds"], flush=True)


if __name__ == "__main__":
    main()
