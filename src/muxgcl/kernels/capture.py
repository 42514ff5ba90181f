"""One piece of work many times over: on a GPU it is recorded once and then played back."""

from collections.abc import Callable
from functools import cache

import torch

WARM_UP = 3  # times that work is done before it is recorded, as CUDA's libraries want


def repeat(
    work: Callable[[], None],
    times: int,
    device: torch.device,
    after: Callable[[int], None] | None = None,
    *,
    capture: bool = True,
) -> None:
    """Do the work so many times; `after` is called with the number of times so far.

    What is captured must have static shapes and decide nothing on the host.
    """
    capture = capture and device.type == "cuda"
    replay = work
    for done in range(times):
        if capture and done < WARM_UP:
            run_on_side_stream(work, device)
        else:
            if capture and done == WARM_UP:
                replay = recorded(work, device)
            replay()
        if after is not None:
            after(done + 1)


def run_on_side_stream(work: Callable[[], object], device: torch.device, times: int = 1) -> None:
    """Run on a side stream; captured work must not depend on the default stream."""
    with torch.cuda.device(device):
        stream = _side_stream(torch.cuda.current_device())
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(times):
                work()
        torch.cuda.current_stream().wait_stream(stream)


@cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """One for all: every stream that multiplies matrices keeps 32 MiB of workspace for good."""
    return torch.cuda.Stream(device)


def recorded(work: Callable[[], object], device: torch.device) -> Callable[[], None]:
    """The work as one graph of kernels, to be played back; it is not done yet.

    With the device made the current one: a recording on another would see no kernel at all. On the
    stream of the warm-up: nodes of autograd that are still alive belong to it.
    """
    with torch.cuda.device(device):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=_side_stream(torch.cuda.current_device())):
            work()
        # torch resets the graph's random numbers on the recording's stream, and a playback that
        # overtakes the reset on a busy GPU would begin with numbers that were drawn before
        torch.cuda.synchronize()
    return graph.replay
