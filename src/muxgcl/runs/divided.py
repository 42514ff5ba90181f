"""One training that is divided among workers, who have met in `distributed.py`.

Every worker has the graph, the weights and the same random numbers, so all of them encode the same
views. The quadratic part, the contrast, is divided (`kernels/ring.py`). A worker's backward pass
therefore finds its share of every gradient; the shares are added up, and all take the same step.
The first worker alone writes, and a checkpoint holds no trace of how many there were.
"""

from dataclasses import asdict
from typing import Any, cast

import torch
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.graph import Graph, fingerprint, graph_fingerprint
from muxgcl.kernels.ring import Workers
from muxgcl.methods import METHODS, Method
from muxgcl.runs.distributed import (
    add_up,
    all_succeed,
    copy_from_first,
    from_first,
    largest,
    same,
    wait_for_first,
)
from muxgcl.runs.loop import Trainer
from muxgcl.runs.plan import Plan, methods_with

CHECK_EVERY = 50  # epochs between two looks at whether all workers have the same weights


def check(workers: Workers, plan: Plan, graph: Graph) -> None:
    """Find what cannot work before anything is trained."""
    agree(workers, plan)
    same(workers, {"graph": graph_fingerprint(graph)})
    kind = METHODS[plan.method]
    if not kind.divides:
        raise UserError(
            f"{plan.method} cannot be divided among workers; these can: {methods_with('divides')}"
        )
    nodes = min(plan.anchors or graph.num_nodes, graph.num_nodes)
    if workers.world > nodes:
        what = "anchors" if plan.anchors else "nodes"
        raise UserError(f"there are {workers.world} workers for {nodes} {what}: start fewer")


def agree(workers: Workers, plan: Plan) -> None:
    """Raise unless all workers have the same settings."""
    names = ("method", "seed", "members", "backend", "anchors", "keys")
    settings = {name: getattr(plan, name) for name in names}
    settings |= {"train": asdict(plan.train), "settings": asdict(plan.settings)}
    same(workers, {"settings": fingerprint({}, settings)})


def prepare(workers: Workers, method: Method, graph: Graph) -> None:
    """What depends on the graph alone. Affinities are worker 0's, which the others are sent."""
    with all_succeed(workers):
        if workers.rank == 0:
            try:
                method.prepare(graph)
            finally:
                largest(workers, 0)
        else:
            wait_for_first(workers)
    tables = from_first(workers, lambda: _forms(method))
    if workers.rank > 0 and not tables:
        method.prepare(graph)
    elif workers.rank > 0:
        cast(Any, method).patches = [
            torch.empty(shape, dtype=dtype, device=graph.device) for shape, dtype in tables
        ]
    for table in getattr(method, "patches", None) or ():
        copy_from_first(workers, table)


def _forms(method: Method) -> list[tuple[torch.Size, torch.dtype]]:
    """Shapes and types of a method's affinity tables."""
    return [(table.shape, table.dtype) for table in getattr(method, "patches", None) or ()]


def start_alike(workers: Workers, trainer: Trainer) -> None:
    """Give every worker the state of worker 0, which may come from a checkpoint."""
    state = {name: tensor.clone() for name, tensor in trainer.state().items()}
    epoch = torch.tensor(trainer.epoch)
    for tensor in (*(state[name] for name in sorted(state)), epoch):
        copy_from_first(workers, tensor)
    trainer.load(state, int(epoch))


def sum_up(workers: Workers, method: Method, terms: Tensor) -> Tensor:
    """Add up the workers' shares of all gradients, in place, and of the loss's terms."""
    grads = [p.grad for p in method.parameters() if p.grad is not None]
    flat = torch.cat([grad.flatten() for grad in grads] + [terms])
    add_up(workers, flat)
    shares = flat.split([grad.numel() for grad in grads] + [len(terms)])
    for grad, part in zip(grads, shares, strict=False):  # the last one is that of the terms
        grad.copy_(part.view_as(grad))
    whole: Tensor = shares[-1]
    return whole.clone()


def check_weights(workers: Workers, trainer: Trainer) -> None:
    """Raise, every so many epochs and after the last, unless all still have the same weights.

    Running statistics, which no step makes the same, become those of worker 0.
    """
    if trainer.epoch % CHECK_EVERY and trainer.epoch < trainer.cfg.epochs:
        return
    weights = {name for name, _ in trainer.method.named_parameters()}
    state = trainer.method.state_dict()
    same(workers, {"weights": fingerprint({k: t for k, t in state.items() if k in weights}, {})})
    for name, tensor in state.items():
        if name not in weights:
            copy_from_first(workers, tensor)
