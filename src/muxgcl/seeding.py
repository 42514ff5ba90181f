"""Random numbers: one seed for a piece of work, and dropout."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """One seed for everything inside, on the CPU and on this device; the rest is left alone."""
    device = torch.device(device)
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed every GPU
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def dropout(table: Float[Tensor, "*shape"], p: float) -> Float[Tensor, "*shape"]:
    """Each entry 0 with probability `p`, the others scaled up by 1 / (1 - p).

    A CPU draws its numbers one after the other, so one draw of 64 bits serves four entries there:
    `p` is rounded to a 65,536th.
    """
    if table.device.type != "cpu":
        return functional.dropout(table, p)
    draws = torch.empty(-(-table.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[: table.numel()].view(table.shape)  # -32,768 to 32,767
    return table.mul(bits >= round(p * 2**16) - 2**15).mul_(1 / (1 - p))
