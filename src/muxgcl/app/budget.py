"""What a run will take, told before it begins, and whether its contrast is sampled for that."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from muxgcl.graph import Graph
from muxgcl.runs import cost
from muxgcl.runs.cost import Cost
from muxgcl.runs.environment import pick_device
from muxgcl.runs.fit import make_ready
from muxgcl.runs.plan import Plan
from muxgcl.runs.work import COUNTED

LARGE_FOR_GPU = 100_000  # nodes, below which a GPU is done before its kernels could be timed


@dataclass(frozen=True, slots=True)
class Budget:
    """A plan with its sampling decided, and what it will take."""

    plan: Plan
    cost: Cost | None = None  # None where there is no estimate
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = self.cost
        return {
            "dataset": self.plan.dataset,
            "method": self.plan.method,
            "epochs": self.plan.train.epochs,
            "anchors": self.plan.anchors,
            "negatives": self.plan.keys,
            "seconds": None if found is None else round(found.seconds, 1),
            "gib": None if found is None else round(found.bytes / cost.GIB, 2),
        }


def budget(
    plan: Plan,
    graph: Graph,
    *,
    exact: bool = False,
    always: bool = False,
    on_measure: Callable[[], None] | None = None,
) -> Budget:
    """Estimate a training, and sample its contrast where the exact one would take too long.

    Nothing is measured where a training is over in a moment, or where nobody has counted what its
    method does. A sample that was asked for stays as it is. On a GPU preset `auto` alone samples
    unasked.

    Args:
        plan: what is to be trained.
        graph: on which.
        exact: contrast all nodes with all, however long it takes.
        always: estimate short trainings too.
        on_measure: is told before this machine's speed is measured, which takes a second or two.
    """
    if plan.method not in COUNTED:
        return Budget(plan)
    on_gpu = pick_device(plan.device).type == "cuda"
    short = graph.num_nodes < LARGE_FOR_GPU if on_gpu else cost.quick(plan, graph)
    if short and not always:
        return Budget(plan)
    make_ready(plan, graph)  # what is wrong with the plan is told before anything is measured
    if on_measure is not None:
        on_measure()
    rates = cost.calibrate(plan, graph)
    if exact or plan.sampling or (on_gpu and plan.preset != "auto"):
        found = cost.estimate(plan, graph, rates)
        cost.check_memory(plan, graph, found, rates)
        return Budget(plan, found, (str(found),))
    chosen = cost.choose_sampling(plan, graph, rates)
    size = chosen.sampling.anchors
    if size is None:
        return Budget(plan, chosen.cost, (str(chosen.cost),))
    why = f"each step contrasts {size:,} nodes: {chosen.reason} (--exact contrasts all of them)"
    plan = replace(plan, anchors=size, keys=chosen.sampling.keys)
    return Budget(plan, chosen.cost, (why, str(chosen.cost)))
