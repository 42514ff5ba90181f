"""`NodeEmbedder.fit`: choose settings, estimate cost, train, embed."""

import warnings
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from muxgcl.app.arguments import OnEpoch, RandomState, as_graph, draw_seed
from muxgcl.app.budget import Budget, budget, samples_by_default
from muxgcl.app.estimator_folder import Trained
from muxgcl.app.graph_facts import graph_facts
from muxgcl.graph import Graph
from muxgcl.runs.committee import fit_members, with_output
from muxgcl.runs.distributed import all_succeed, callers_workers, from_first
from muxgcl.runs.divided import agree
from muxgcl.runs.embedding import collapse_warning
from muxgcl.runs.environment import limit_threads
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan, find_method


def learn(
    graph: Any,
    make_plan: Callable[[Graph, int], Plan],
    *,
    exact: bool,
    given: Collection[str],
    random_state: RandomState,
    verbose: bool,
    on_epoch: OnEpoch | None,
) -> Trained:
    """Train on whatever `load` takes or returns; in a process group, all of it together.

    `make_plan` takes the graph and a seed. `budget` describes `exact` and `given`, `NodeEmbedder`
    the rest.
    """
    limit_threads()
    workers = callers_workers()
    first = workers is None or workers.rank == 0
    seed = from_first(workers, lambda: draw_seed(random_state))
    with all_succeed(workers):
        loaded, prepared, encoding = as_graph(graph)
        plan = with_output(make_plan(prepared, seed), prepared)
    if workers is not None:
        agree(workers, plan)

    def affordable() -> Budget:
        return budget(
            plan,
            prepared,
            exact=exact,
            given=given,
            workers=1 if workers is None else workers.world,
            way_out="sample=0",
        )

    found = from_first(workers, affordable)
    *sampled, estimate = found.notes or ("",)
    if samples_by_default(plan):
        estimate = "\n".join(found.notes)
    elif first and sampled:
        warnings.warn("; ".join(sampled), stacklevel=3)
    from muxgcl.app.screen import fit_progress  # loads rich

    epochs: list[Epoch] = []
    shown = fit_progress(plan.train.epochs, verbose and first, estimate)
    with shown as (tell, on_prepare):

        def on_block(block: list[Epoch]) -> None:
            epochs.extend(block)
            tell(block)
            if on_epoch is not None:
                for epoch in block:
                    on_epoch(epoch)

        # members have forgotten the graph: a pickle is as small as the weights
        committee, embedding, _ = fit_members(
            found.plan,
            prepared,
            on_block=on_block,
            on_prepare=on_prepare,
            workers=workers if find_method(plan.method).divides else None,
        )
    if (message := collapse_warning(embedding)) is not None:
        warnings.warn(message, stacklevel=3)
    ids = np.arange(prepared.num_nodes) if loaded is None else loaded.ids
    facts = graph_facts(prepared, () if loaded is None else loaded.notes)
    came = found.plan, committee, ids, embedding.numpy(), encoding, facts
    return Trained(*came, tuple(epochs))
