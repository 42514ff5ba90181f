"""Try block sizes of the fused kernel: the figures behind the table in `kernels/blocks.py`.

    python benchmarks/tune_kernels.py --nodes 2708 --width 128 --out blocks.jsonl

Prints the five best for each direction, width and size; run it on the GPU that the table is for.
"""

import argparse
import itertools
from functools import partial
from pathlib import Path

import torch
from torch.nn.functional import normalize

from muxgcl.bench.clock import matmul_ceiling, milliseconds
from muxgcl.io.files import append_lines
from muxgcl.kernels import PairWeight, all_pairs, blocks, fused
from muxgcl.runs.environment import commit, device_name


def unit(n: int, d: int) -> torch.Tensor:
    return normalize(torch.randn(n, d, device="cuda"), dim=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[2708, 13752])
    parser.add_argument("--width", type=int, nargs="+", default=[128, 256])
    parser.add_argument("--rank", type=int, default=128)
    parser.add_argument("--precision", default="fp16")
    parser.add_argument("--views", type=int, default=2, help="stacked views of the anchors")
    parser.add_argument("--out", default=None)
    parser.add_argument("--rows", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--cols", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--shared", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--warps", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--stages", type=int, nargs="+", default=[2, 3])
    args = parser.parse_args()
    device = torch.device("cuda")
    ceiling = matmul_ceiling(device, args.precision)
    print(f"ceiling {ceiling:.0f} TFLOP/s ({args.precision})", flush=True)
    choices = list(itertools.product(args.rows, args.cols, args.shared, args.warps, args.stages))
    for width, n in itertools.product(args.width, args.nodes):
        weight = PairWeight(unit(n, args.rank), unit(n, args.rank))
        anchor, keys = unit(args.views * n, width), unit(2 * n, width)
        pairs = fused._pairs(anchor, keys, weight, 0.4, n, args.precision)
        factor = torch.rand(args.views * n, device=device).log2()
        walk_back = partial(pairs.backward, factor, logarithms=True)
        work = 2 * args.views * n * 2 * n * 2 * width + 2 * n * n * args.rank
        for direction in ("forward", "backward"):
            found = []
            for rows, cols, shared, warps, stages in choices:
                block = blocks.Block(rows, cols, shared, warps, stages)
                all_pairs.choose = lambda *_, block=block: block
                walk = pairs.forward if direction == "forward" else walk_back
                try:
                    ms = milliseconds(walk, device, 0.05)
                except Exception as error:  # a block that does not fit the chip is no candidate
                    print("no", block, str(error)[:80].replace("\n", " "), flush=True)
                    continue
                found.append((ms, block))
            found.sort(key=lambda pair: pair[0])
            for ms, block in found[:5]:
                share = work / ms / 1e9 / ceiling
                print(f"n {n} d {width} {direction} {ms:.4f} ms {share:.0%} {block}", flush=True)
            if args.out:
                facts = {"device": device_name(device), "commit": commit()}
                named = {"precision": args.precision, "rank": args.rank, "nodes": n, "width": width}
                rows = [
                    {"kind": "tuning", **named, "direction": direction, "ms": ms}
                    | block._asdict()
                    | facts
                    for ms, block in found
                ]
                append_lines(Path(args.out), rows)


if __name__ == "__main__":
    main()
