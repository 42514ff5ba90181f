"""How the walk over all pairs is divided: block sizes, and which program gets which tiles.

The table holds the fastest of those tried on an H200 (`benchmarks/tune_kernels.py`); where a chip
has less shared memory, or weights are wide, `choose` makes a block smaller.
"""

import math
from typing import Literal, NamedTuple

import torch

from muxgcl.errors import UserError

Precision = Literal["fp16", "bf16", "tf32", "fp32"]
SMS = 132  # of an H200
SHARED_MEMORY = 224 << 10  # bytes beside its registers that a program may use, less some change
START = 10  # tiles that a program could do in the time it takes to start and to write its part
MOST_PARTS = 16


class Block(NamedTuple):
    """How much of the matrix a program works on at a time, and with what."""

    rows: int  # it owns
    cols: int  # nodes it meets at a time, in each of the `shared` views
    shared: int  # views that share a tile of weights, where there are as many
    warps: int
    stages: int  # tiles that are on their way into shared memory at a time

    def memory(self, width: int, rank: int) -> int:
        """Numbers in shared memory: own rows of embedding and weight, and `stages` tiles."""
        tile = self.cols * (self.shared * width + rank)
        return self.rows * (width + rank) + self.stages * tile


# by precision, then by width of the rows (padded): the first width that is enough
Table = dict[str, dict[int, Block]]
FORWARD: Table = {  # serves the backward pass too
    "half": {
        128: Block(rows=128, cols=64, shared=2, warps=8, stages=3),
        256: Block(rows=128, cols=32, shared=2, warps=8, stages=3),
        512: Block(rows=64, cols=32, shared=1, warps=8, stages=2),
        1024: Block(rows=32, cols=32, shared=1, warps=8, stages=2),
    },
    "tf32": {
        128: Block(rows=128, cols=32, shared=1, warps=8, stages=2),
        256: Block(rows=32, cols=32, shared=2, warps=4, stages=2),
        512: Block(rows=16, cols=32, shared=1, warps=8, stages=2),
        1024: Block(rows=16, cols=16, shared=1, warps=8, stages=2),
    },
    "fp32": {
        128: Block(rows=32, cols=32, shared=1, warps=8, stages=2),
        512: Block(rows=16, cols=32, shared=1, warps=8, stages=2),
        1024: Block(rows=16, cols=16, shared=1, warps=8, stages=2),
    },
}
SUMS: Table = FORWARD | {  # where sums alone are wanted, without pulls
    "half": FORWARD["half"] | {512: Block(rows=64, cols=64, shared=1, warps=8, stages=2)}
}


def chip(device: torch.device) -> tuple[int, int]:
    """SMs and bytes of shared memory: the table was made for an H200, others may have less."""
    if device.type != "cuda":
        return SMS, SHARED_MEMORY
    found = torch.cuda.get_device_properties(device)
    memory = getattr(found, "shared_memory_per_block_optin", SHARED_MEMORY)
    return found.multi_processor_count, min(memory, SHARED_MEMORY)


def choose(
    blocks: Table,
    dtype: torch.dtype,
    precision: Precision,
    width: int,
    rank: int,
    memory: int = SHARED_MEMORY,
) -> Block:
    """The table's block, made smaller where its tiles would not fit into shared memory."""
    sizes = blocks[precision if dtype == torch.float32 else "half"]
    block = sizes[min(size for size in sizes if size >= width)]
    while block.memory(width, rank) * dtype.itemsize > memory:
        if block.stages > 2:
            block = block._replace(stages=2)
        elif block.cols > 16:
            block = block._replace(cols=block.cols // 2)
        elif block.rows > 16:
            block = block._replace(rows=block.rows // 2)
        elif block.shared > 1:
            block = block._replace(shared=1)
        else:
            raise UserError(
                f"rows of {width} and {rank} numbers do not fit into this GPU's shared memory "
                f"({memory >> 10} KiB); use backend chunked"
            )
    return block


def split(blocks: int, tiles: int, sms: int = SMS) -> int:
    """Among how many programs a block's tiles are divided: the least time in whole waves."""

    def time(parts: int) -> float:
        return math.ceil(blocks * parts / sms) * (tiles / parts + START)

    return min(range(1, min(tiles, MOST_PARTS) + 1), key=time)
