"""The speed of a training, from its own first steps.

`calibrate` times pieces alone. What lies between them (memory that is asked for, caches that are
cold, Python) shows in real steps only, so a CPU trains for a moment before the estimate is told.
"""

import time
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from statistics import median

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.runs.cost import autoencoder_seconds, epoch_seconds, rounds_of_walks
from muxgcl.runs.fit import make_ready
from muxgcl.runs.heap import reused_memory
from muxgcl.runs.loop import Trainer
from muxgcl.runs.plan import Plan
from muxgcl.runs.rates import Rates
from muxgcl.seeding import seeded

STEPS = 4  # the first pays for warming up and does not count
MOST_SECONDS = 8.0  # that a trial may be expected to take


def measured(rates: Rates, plan: Plan, graph: Graph) -> Rates:
    """The rates at which real steps of this plan take as long as they are counted to take.

    Nothing is measured where even a few steps would take long: the rates stay as they are.
    """
    walks = rounds_of_walks(plan)
    alone = replace(rates, workers=1)  # as the trial is
    expected = STEPS * epoch_seconds(plan, graph, alone)
    if walks:
        expected += graph.num_nodes / rates.walks
    elif getattr(plan.settings, "affinity", "none") == "vgae":
        expected += autoencoder_seconds(plan, graph, alone)
    if expected > MOST_SECONDS:
        return rates
    with suppress(UserError):  # the run itself will say it
        walking, step = _tried(plan, graph)
        rates = rates.slower(step / epoch_seconds(plan, graph, alone))
        if walks and walking:
            rates = replace(rates, walks=graph.num_nodes / walking)
    return rates


def _tried(plan: Plan, graph: Graph) -> tuple[float, float]:
    """Seconds of one round of walks, and of one step."""
    settings = plan.settings
    if rounds_of_walks(plan):
        settings = replace(settings, affinity_epochs=1, walks_per_node=1)
    elif getattr(settings, "affinity", "none") == "vgae":
        settings = replace(settings, affinity_epochs=1)
    train = replace(plan.train, epochs=max(STEPS, plan.train.epochs))
    once = replace(plan, settings=settings, train=train, members=1, output_width=None)
    done: list[float] = []
    ready = make_ready(once, graph, on_prepare=lambda step, steps: done.append(time.perf_counter()))
    with seeded(0, ready.graph.device), reused_memory(ready.graph.device):
        begin = time.perf_counter()
        ready.method.prepare(ready.graph)
        tf32, rounds = not plan.backend.endswith("/fp32"), plan.rounds(graph)
        trainer = Trainer(ready.method, ready.graph, train, capture="off", tf32=tf32, rounds=rounds)
        steps = [block[-1].seconds for block in islice(trainer.blocks(), STEPS)]
    return (done[-1] - begin if done else 0.0), median(steps[1:])
