"""Workers, as `torchrun` starts them: they meet, wait for each other, agree, and fail together.

Gloo joins CPUs, NCCL GPUs. What they train together is in `divided.py`.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from muxgcl.errors import UserError, reason_of
from muxgcl.kernels.ring import LostWorker, Workers
from muxgcl.runs.environment import pick_device

TIMEOUT = 600.0  # seconds that a worker waits for the others, at the start and later
LONGEST = 30 * 86400.0  # that it may be asked to
BEAT = 1.0  # seconds after which worker 0 tells those that wait for it that it is at work
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # as torchrun sets them
TOLD = "muxgcl/lost"  # set in the launcher's store by the worker that tells of a lost one
T = TypeVar("T")
_met = False  # whether this process has met the other workers


def launched() -> bool:
    """Whether this process is one of several workers."""
    return dist.is_initialized() or (
        all(name in os.environ for name in VARIABLES) and os.environ["WORLD_SIZE"] != "1"
    )


def silent() -> bool:
    """Whether another worker speaks for this one: until they meet, one on its own machine."""
    if not launched():
        return False
    rank = os.environ.get("RANK", "0")
    if not _met:
        rank = os.environ.get("LOCAL_RANK", rank)
    return rank.isdigit() and int(rank) > 0


def callers_workers() -> Workers | None:
    """The workers of the process group that the caller made; None where there is none."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return None
    return Workers(dist.get_rank(), dist.get_world_size())


@contextmanager
def joined(device: str = "auto", *, timeout: float = TIMEOUT) -> Iterator[Workers | None]:
    """The workers that this process belongs to; None where it works alone.

    In a process group that the caller made, that one is used and left as it is.
    """
    global _met
    if not launched():
        yield None
        return
    if dist.is_initialized():
        _met = True
        yield callers_workers()
        return
    rank, world = (_number(name) for name in ("RANK", "WORLD_SIZE"))
    on_gpu = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
    if not 0 < timeout <= LONGEST:
        raise UserError(
            f"timeout must be above 0 and at most {LONGEST:,.0f} seconds, got {timeout:g}"
        )
    if on_gpu:
        torch.cuda.set_device(pick_device(place(device)))
    try:
        dist.init_process_group(
            "nccl" if on_gpu else "gloo",
            rank=rank,
            world_size=world,
            timeout=timedelta(seconds=timeout),
        )
        dist.barrier()
    except (RuntimeError, ValueError) as error:  # torch's errors of networks are RuntimeErrors
        raise UserError(_why(error, rank, world, timeout)) from None
    _met = True
    try:
        yield Workers(rank, world)
    finally:
        with suppress(RuntimeError):  # the others may be gone
            dist.destroy_process_group()


def place(device: str) -> str:
    """The device of this worker: of several GPUs, each worker of a machine has its own."""
    if device in ("auto", "cuda") and torch.cuda.is_available():
        return f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"
    return device


def _number(name: str) -> int:
    try:
        return int(os.environ[name])
    except ValueError:
        raise UserError(f"{name} must be a whole number, got {os.environ[name]!r}") from None


def _why(error: Exception, rank: int, world: int, timeout: float) -> str:
    """What kept the workers from meeting, in one line."""
    reason = reason_of(error)
    where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    if "EADDRINUSE" in reason or "address already in use" in reason.lower():
        return f"{where} is taken by another program: name another port with --master-port"
    if "timed out" in reason.lower() or "timeout" in reason.lower():
        who = f"not all of the {world} workers came to {where}"
        if rank > 0 and "connect" in reason.lower():
            who = f"worker 0 did not answer at {where}"
        return f"{who} within {timeout:.0f} s (--timeout waits longer)"
    return f"the {world} workers could not meet at {where}: {reason[:160]}"


def speaks(wait: float = 2.0) -> bool:
    """Whether this worker tells that another was lost: the first one, or else one of the others."""
    if not all(name in os.environ for name in VARIABLES):
        return not silent()
    address, port = os.environ["MASTER_ADDR"], _number("MASTER_PORT")
    patience = timedelta(seconds=wait)
    try:
        store = dist.TCPStore(  # type: ignore[attr-defined]
            address, port, is_master=False, timeout=patience, wait_for_workers=False
        )
        until = time.monotonic() + wait
        while silent() and time.monotonic() < until:
            if store.check([TOLD]):
                return False
            time.sleep(wait / 20)
        return int(store.add(TOLD, 1)) == 1
    except RuntimeError:  # the store went with the lost one
        return True


@contextmanager
def all_succeed(workers: Workers | None) -> Iterator[None]:
    """What each worker does for itself; where one fails, all of them end with its words.

    Collective calls inside must be matched by all workers, even where one fails.
    """
    if workers is None:
        yield
        return
    mine: Exception | None = None
    try:
        yield
    except LostWorker:
        raise
    except Exception as error:
        mine = error
    message = None
    if mine is not None:
        message = str(mine) if isinstance(mine, UserError) else f"{type(mine).__name__}: {mine}"
    found: list[str | None] = [None] * workers.world
    _together(dist.all_gather_object, found, message, workers.group)
    if mine is not None:
        raise mine
    for rank, words in enumerate(found):
        if words is not None:
            raise UserError(f"worker {rank}: {words}")


@contextmanager
def first_alone(workers: Workers | None) -> Iterator[None]:
    """Worker 0 works, and the others wait for it, however long; where it fails, all of them end."""
    if workers is None:
        yield
        return
    with all_succeed(workers):
        if workers.rank > 0:
            yield
            wait_for_first(workers)
            return
        done = threading.Event()
        beat = threading.Thread(target=_beat, args=(workers, _device(workers), done), daemon=True)
        beat.start()
        try:
            yield
        finally:
            done.set()
            beat.join()
            largest(workers, 0)


def _beat(workers: Workers, device: torch.device, done: threading.Event) -> None:
    """Tell those that wait for worker 0 that it is at work, until it is done."""
    if device.type == "cuda":
        torch.cuda.set_device(device)  # every thread begins with the first GPU
    with suppress(LostWorker):  # what comes next tells
        while not done.wait(BEAT):
            largest(workers, 1)


def wait_for_first(workers: Workers) -> None:
    """Wait while worker 0 says that it is at work."""
    while largest(workers, 0):  # any of these may take as long as the group's timeout
        pass


def from_first(workers: Workers | None, work: Callable[[], T]) -> T:
    """What worker 0 finds, for all workers; where it fails, all of them end."""
    if workers is None:
        return work()
    found: list[T | None] = [None]
    with first_alone(workers):
        if workers.rank == 0:
            found[0] = work()
    _together(dist.broadcast_object_list, found, _first(workers), workers.group)
    assert found[0] is not None
    return found[0]


def same(workers: Workers, marks: Mapping[str, str]) -> None:
    """Raise unless all workers have the same marks; the error names the first that differs."""
    for what, mark in marks.items():
        mine = torch.tensor(list(mark.encode()), dtype=torch.uint8, device=_device(workers))
        found = [torch.empty_like(mine) for _ in range(workers.world)]
        _together(dist.all_gather, found, mine, workers.group)
        for rank, other in enumerate(found):
            if not torch.equal(other, found[0]):
                raise UserError(f"worker {rank} has other {what} than worker 0")


def beating(
    workers: Workers, on_prepare: Callable[[int, int], None] | None
) -> Callable[[int, int], None]:
    """Wrap worker 0's progress callback so that it also sends a heartbeat."""
    last = time.monotonic()

    def step(done: int, of: int) -> None:
        nonlocal last
        if on_prepare is not None:
            on_prepare(done, of)
        if time.monotonic() - last > BEAT:
            largest(workers, 1)
            last = time.monotonic()

    return step


def largest(workers: Workers, number: int) -> int:
    """The largest of the workers' numbers."""
    found = torch.tensor(number, device=_device(workers))
    _together(dist.all_reduce, found, dist.ReduceOp.MAX, workers.group)
    return int(found)


def copy_from_first(workers: Workers, tensor: Tensor) -> None:
    """Put worker 0's numbers into this tensor of every worker."""
    there = tensor.to(_device(workers))
    _together(dist.broadcast, there, _first(workers), workers.group)
    tensor.copy_(there)


def add_up(workers: Workers, table: Tensor) -> None:
    """Put the sum over all workers into this tensor of each."""
    _together(dist.all_reduce, table, group=workers.group)


def _together(work: Callable[..., object], *arguments: object, **more: object) -> None:
    """Something that all workers do; where one is gone, the error says so."""
    try:
        work(*arguments, **more)
    except RuntimeError as error:
        raise LostWorker(error) from None


def _first(workers: Workers) -> int:
    return 0 if workers.group is None else dist.get_global_rank(workers.group, 0)


def _device(workers: Workers) -> torch.device:
    on_gpu = dist.get_backend(workers.group) == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
