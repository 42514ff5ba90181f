"""An estimate of a run before it begins, and whether its contrast is sampled to stay within it."""

import json
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muxgcl.graph import Graph
from muxgcl.io.schema import list_of, whole
from muxgcl.runs import cost
from muxgcl.runs.auto import of_sample
from muxgcl.runs.cost import Cost
from muxgcl.runs.environment import pick_device
from muxgcl.runs.plan import Plan, check_plan, find_method
from muxgcl.runs.rates import Rates, calibrate
from muxgcl.runs.scoring import Judging
from muxgcl.runs.trial import measured
from muxgcl.runs.work import COUNTED

LARGE_FOR_GPU = 100_000  # nodes, below which a GPU is done before its kernels could be timed


@dataclass(frozen=True, slots=True)
class Budget:
    """A plan with its sampling decided, and its estimated cost."""

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
            "scoring_seconds": None if found is None else round(found.scores, 1),
            "gib": None if found is None else round(found.bytes / cost.GIB, 2),
        }


def budget(
    plan: Plan,
    graph: Graph,
    *,
    exact: bool = False,
    always: bool = False,
    given: Collection[str] = (),
    scores: Judging | None = None,
    on_measure: Callable[[], None] | None = None,
    workers: int = 1,
    way_out: str = "--exact",
) -> Budget:
    """Estimate a run, and sample its contrast where the exact training would take too long.

    Nothing is measured where a training is short, or where there is no cost model of its method.
    A sample that was asked for stays as it is, and so do the settings and the sample of a .toml
    file. On a GPU preset `auto` alone samples unasked.

    Args:
        plan: what is to be trained.
        graph: on which.
        exact: contrast all nodes with all, however long it takes.
        always: estimate short trainings too.
        given: settings that were asked for; a sample changes others alone.
        scores: what is to be scored afterwards.
        on_measure: called before this machine's speed is measured, which takes a second or two.
        workers: processes that train together.
        way_out: what to ask for to have all nodes contrasted.
    """
    notes: list[str] = []
    if plan.preset.endswith(".toml"):
        table = tomllib.loads(Path(plan.preset).read_text(encoding="utf-8"))
        given = {*given, *table}
        if "sample" in table and not exact and not plan.sampling:
            plan = _as_tuned(plan, table["sample"])
            exact = not plan.sampling
            if plan.anchors is not None:
                notes = [f"each step contrasts {plan.anchors:,} nodes, as {plan.preset} says"]
    if plan.method not in COUNTED:
        return Budget(plan, notes=tuple(notes))
    on_gpu = pick_device(plan.device).type == "cuda"
    short = graph.num_nodes < LARGE_FOR_GPU if on_gpu else cost.quick(plan, graph)
    if short and not always:
        return Budget(plan, notes=tuple(notes))
    check_plan(plan, graph)  # before anything is measured
    if on_measure is not None:
        on_measure()
    rates = replace(calibrate(plan, graph), workers=workers)
    as_asked = exact or plan.sampling or not find_method(plan.method).samples
    if as_asked or (on_gpu and plan.preset != "auto"):
        found = cost.estimate(plan, graph, rates)
        cost.check_memory(plan, graph, found, rates)
        if not on_gpu:
            seconds = cost.estimate(plan, graph, measured(rates, plan, graph)).seconds
            found = replace(found, seconds=seconds)
    else:
        asked = plan
        plan, found, notes = _sampled(asked, graph, rates, given, way_out)
        cost.check_memory(plan, graph, found, rates)
        if not on_gpu:
            tried = measured(rates, plan, graph)
            if tried != rates:
                plan, found, notes = _sampled(asked, graph, tried, given, way_out)
    if scores is not None:
        found = cost.with_scores(found, plan, graph, scores)
        cost.check_scores(found, plan, graph, scores)
    return Budget(plan, found, (*notes, str(found)))


def _as_tuned(plan: Plan, sample: Any) -> Plan:
    """The plan with the sample that a file of settings holds: anchors and negatives, 0 for all."""
    list_of(whole(0), 2)(sample, f"{plan.preset}: sample")
    anchors, keys = sample
    return replace(plan, anchors=anchors or None, keys=keys or None)


def _sampled(
    plan: Plan, graph: Graph, rates: Rates, given: Collection[str], way_out: str
) -> tuple[Plan, Cost, list[str]]:
    """The plan with a sample where it needs one, its cost, and notes on both."""
    brief = samples_by_default(plan)
    chosen = cost.choose_sampling(plan, graph, rates, brief=brief)
    if chosen.sampling.anchors is None:
        return plan, chosen.cost, []
    reason, notes = chosen.reason, []
    if changes := sampled_settings(plan, given):
        plan = replace(plan, settings=replace(plan.settings, **changes))
        chosen = cost.choose_sampling(plan, graph, rates, exact=False, brief=brief)
        told = ", ".join(f"{key} = {json.dumps(value)}" for key, value in changes.items())
        notes = [f"settings that suit a sample: {told}"]
    size = chosen.sampling.anchors
    why = f"each step contrasts {size:,} nodes: {reason} ({way_out} contrasts all of them)"
    plan = replace(plan, anchors=size, keys=chosen.sampling.keys)
    return plan, chosen.cost, [why, *notes]


def samples_by_default(plan: Plan) -> bool:
    """Whether a sample is what this plan is meant to have, but for the shortest trainings."""
    return plan.method == "mux-hop" and pick_device(plan.device).type == "cpu"


def sampled_settings(plan: Plan, given: Collection[str] = ()) -> dict[str, Any]:
    """What comes with a sample that nobody asked for; settings that were asked for stay."""
    wanted = of_sample(plan.method, plan.preset)
    now = {key: getattr(plan.settings, key) for key in wanted}
    if wanted:
        wanted["hidden"] = min(wanted["hidden"], now["hidden"])
    return {key: value for key, value in wanted.items() if key not in given and value != now[key]}
