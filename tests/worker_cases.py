"""What each of several workers does in tests: functions that a fresh process can import."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor
from torch.nn.functional import normalize

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import PairWeight, contrast
from muxgcl.kernels.ring import Workers
from muxgcl.runs import divided
from muxgcl.runs.fit import Ready, fit, make_ready, train
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan
from muxgcl.tensors import Tensors


def small_graph(nodes: int, seed: int) -> Graph:
    """A random graph, made without PyG, which takes every worker seconds to load."""
    chance = torch.Generator().manual_seed(seed)
    x = torch.rand(nodes, 12, generator=chance)
    edges = torch.randint(nodes, (2, 3 * nodes), generator=chance)
    return Graph.from_data(Tensors(x=x, edge_index=edges))


GRAPH = small_graph(61, seed=1)  # no multiple of 2, 3 or 4
WORLD = 4
T = TypeVar("T")


def together(folder: Path, *arguments: Any) -> None:
    """Let `WORLD` workers do everything; each keeps what it found in a file. One dies in the end.

    They are started once: to import torch takes each of them seconds.
    """
    process = mp.get_context("spawn").Process
    crew = [process(target=everything, args=(k, str(folder), *arguments)) for k in range(WORLD)]
    for worker in crew:
        worker.start()
    left = {worker.sentinel: k for k, worker in enumerate(crew)}
    while left:
        for ended in wait([*left]):
            if not Path(folder, f"{left.pop(ended)}.pt").exists():  # it failed: others would wait
                for worker in crew:
                    worker.terminate()


@contextmanager
def group(rank: int, world: int, folder: str, name: str) -> Iterator[Workers]:
    """A process group of so many workers, this one among them."""
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/{name}",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=240),
    )
    yield Workers(rank, world)
    dist.barrier()
    dist.destroy_process_group()


def first(workers: Workers, count: int, work: Callable[..., T], *arguments: Any) -> T | None:
    """What the first so many of the workers find in a group of their own, None on the others."""
    group = dist.new_group(range(count))
    found = None
    if workers.rank < count:
        found = work(replace(workers, world=count, group=group), *arguments)
    dist.barrier()
    return found


def tables(n: int) -> list[Tensor]:
    """Anchors and keys of two views, and the tables of weights; the same on every worker."""
    chance = torch.Generator().manual_seed(n)
    shapes = [(2 * n, 6), (2 * n, 6), (n, 4), (n, 4)]
    return [
        normalize(torch.randn(*shape, generator=chance, dtype=torch.float64), dim=1)
        for shape in shapes
    ]


def loss_and_gradients(
    workers: Workers | None, n: int, *, weighted: bool, backend: str = "chunked"
) -> list[Tensor]:
    """Share of the loss, and the whole tables' gradients from this worker's rows."""
    anchor, keys, rows, cols = tables(n)
    leaves = [anchor.requires_grad_(), keys.requires_grad_()]
    shard = None if workers is None else workers.draw(n)
    take = (lambda t: t) if shard is None else shard.take
    weight = PairWeight(take(rows), take(cols)) if weighted else None
    loss = 0.7 * contrast(
        *map(take, leaves),
        weight,
        temperature=0.3,
        nodes=None if shard else n,
        backend=backend,
        sample=shard,
    )
    return [loss.detach(), *torch.autograd.grad(loss, leaves)]


def contrasts(workers: Workers) -> dict[str, list[Tensor]]:
    """The contrast of tables of several sizes, in several ways."""
    found = {}
    for n in (4, 13, 16):
        for weighted in (False, True):
            for backend in ("reference", "chunked"):
                how = {"weighted": weighted, "backend": backend}
                found[f"{n} {weighted} {backend}"] = loss_and_gradients(workers, n, **how)
    wire = replace(workers, wire=torch.float16)
    found["16 bits"] = loss_and_gradients(wire, 13, weighted=True)
    return found


def many_rows() -> tuple[Tensor, Tensor]:
    """Anchors and keys of many nodes in one view, in 32 bits."""
    chance = torch.Generator().manual_seed(1)
    one, two = (normalize(torch.randn(5001, 32, generator=chance), dim=1) for _ in range(2))
    return one, two


def sixteen_bits(workers: Workers) -> list[Tensor]:
    """The gradient of this worker's keys, sent round in 32 bits and in 16."""
    found = []
    for wire in (None, torch.float16):
        anchor, keys = many_rows()
        shard = replace(workers, wire=wire).draw(len(keys))
        near, far = shard.take(anchor), shard.take(keys).requires_grad_()
        loss = contrast(near, far, temperature=0.5, backend="chunked", sample=shard)
        found += torch.autograd.grad(loss, far)
    return found


def plan(method: str = "mux-gcl", epochs: int = 10, **changes: Any) -> Plan:
    names = ("anchors", "keys", "seed")
    rest = {name: changes.pop(name) for name in names if name in changes}
    values = {"width": 8, "projection": 8, "epochs": epochs, "lr": 1e-2, **changes}
    if method.startswith("mux"):
        values |= {"affinity_epochs": 1}
    if method == "mux-hop":  # with entries that are dropped inside the network
        values |= {"hidden": 12, "projection_out": 8, "dropout": 0.4, "ema": 0.9}
    preset = "best" if method == "mux-hop" else "quick"
    rest |= {"backend": "chunked/fp32"}  # rounded products would differ by their order
    return Plan.make(method, preset, overrides=values, device="cpu", **rest)


def trained(workers: Workers | None, made: Plan, run: str | None = None) -> dict[str, Any]:
    """The weights and losses of a whole training; the first worker alone has the run folder."""
    losses: list[float] = []
    folder = Run(Path(run)) if run and (workers is None or workers.rank == 0) else None
    fitted = fit(
        made,
        GRAPH,
        run=folder,
        resume=True,
        on_block=lambda block: losses.extend(epoch.loss for epoch in block),
        workers=workers,
    )
    return {"losses": losses, "weights": dict(fitted.method.state_dict())}


def everything(rank: int, folder: str, files: str) -> None:
    """All that several workers are tested with, one after the other."""
    torch.set_num_threads(1)
    os.environ["RANK"] = str(rank)  # who speaks
    found: dict[str, Any] = {}
    run, dies = Path(folder, "run"), Path(folder, "dies")
    with group(rank, WORLD, folder, "meet") as workers:
        for world in range(1, WORLD + 1):
            found[f"contrasts {world}"] = first(workers, world, contrasts)
            found[f"steps {world}"] = first(workers, world, steps)
        found["sixteen bits"] = first(workers, 3, sixteen_bits)
        found["mistakes"] = first(workers, 3, mistakes)
        found["other tables"] = first(workers, 2, other_tables)
        if rank == 0:
            run.mkdir()
            dies.mkdir()
        found["stopped"] = first(workers, 2, stopped_early, str(run), 4)
        if rank == 0:
            shutil.copytree(run, Path(folder, "stopped"))
        found["gone on"] = first(workers, 3, trained, plan(), str(run))
    if rank < 2:
        from worker_commands import all_commands

        with group(rank, 2, folder, "two") as workers:
            found["commands"] = all_commands(workers, folder, files)
    torch.save(found, Path(folder, f"{rank}.pt"))
    with group(rank, WORLD, folder, "again") as workers:
        killed(workers, str(dies))


def steps(workers: Workers) -> dict[str, Any]:
    """Ten steps of several methods."""
    return {name: trained(workers, made) for name, made in PLANS.items()}


PLANS = {
    "mux-gcl": plan(),
    "mux-hop": plan("mux-hop"),
    "grace": plan("grace"),
    "fanout": plan("grace", fanout=2),  # an exact contrast takes all neighbours, divided or not
    "sampled": plan(anchors=11, keys=20),
    "sampled hop": plan("mux-hop", anchors=11, keys=20),
    "square": plan("grace", anchors=12, keys=12),
    "one of two ends at keys": plan("grace", anchors=22, keys=11),
    "one of three ends at keys": plan("grace", anchors=33, keys=11),
}


def stopped_early(workers: Workers, run: str, epochs: int) -> str:
    """Train, and ask one worker, not the first, to stop."""
    import signal

    def ask(block: list[Any]) -> None:
        if block[-1].number == epochs and workers.rank == workers.world - 1:
            os.kill(os.getpid(), signal.SIGTERM)

    folder = Run(Path(run)) if workers.rank == 0 else None
    try:
        fit(plan(), GRAPH, run=folder, on_block=ask, workers=workers)
    except UserError as error:
        return str(error)
    return "trained"


def mistakes(workers: Workers) -> dict[str, str]:
    """What is told when something is wrong on the last worker, or on all of them."""
    last = workers.rank == workers.world - 1
    other = small_graph(61, seed=2) if last else GRAPH
    cases = {
        "graph": (plan(), other),
        "settings": (plan(width=12 if last else 8), GRAPH),
        "seed": (plan(seed=int(last)), GRAPH),
        "backend": (replace(plan(), backend="reference" if last else "chunked"), GRAPH),
        "members": (replace(plan(), members=2 if last else 1), GRAPH),
        "other anchors": (plan(anchors=12 if last else 11, keys=8), GRAPH),
        "other keys": (plan(anchors=11, keys=9 if last else 8), GRAPH),
        "method": (plan("homogcl"), GRAPH),
        "anchors": (plan(anchors=workers.world - 1, keys=8), GRAPH),
        "nodes": (plan(), small_graph(2, seed=1)),
        "fine": (plan(epochs=1), small_graph(3, seed=1)),
    }
    found = {}
    for name, (made, graph) in cases.items():
        try:
            fit(made, graph, workers=workers)
            found[name] = "trained"
        except UserError as error:
            found[name] = str(error)
    return found


def other_tables(workers: Workers) -> dict[str, Any]:
    """Trainings in which the last worker has other statistics or weights than the first."""
    found: dict[str, Any] = {}
    made = plan("mux-hop", epochs=3, norm="batch")
    divided.CHECK_EVERY, before = 2, divided.CHECK_EVERY
    for what in ("buffers", "parameters"):
        ready = make_ready(made, GRAPH, workers=workers)

        def change(block: list[Any], what: str = what, ready: Ready = ready) -> None:
            if workers.rank == workers.world - 1:
                for tensor in getattr(ready.method, what)():
                    if tensor.dim():
                        tensor.detach().add_(1e-3)

        try:
            found[what] = train(ready, on_block=change).embed()
        except UserError as error:
            found[what] = str(error)
    divided.CHECK_EVERY = before
    return found


def killed(workers: Workers, run: str) -> None:
    """The last worker dies in the middle of an epoch; what the others say."""
    if workers.rank == workers.world - 1:
        original = torch.Tensor.backward
        count = 0

        def die(self: Tensor, *rest: Any, **more: Any) -> None:
            nonlocal count
            count += 1
            if count == 5:
                sys.stdout.flush()
                os._exit(9)
            original(self, *rest, **more)

        torch.Tensor.backward = die  # type: ignore[method-assign]
    import muxgcl.runs.checkpoint as module

    module.CHECKPOINT_SECONDS = -1.0
    folder = Run(Path(run)) if workers.rank == 0 else None
    try:
        fit(plan("grace"), GRAPH, run=folder, workers=workers)
    except UserError as error:
        Path(run, f"told-{workers.rank}").write_text(str(error))
        os._exit(2)  # the group cannot be left in order any more
