"""`NodeEmbedder.fit`: choose settings, estimate cost, train, embed."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from muxgcl.app.arguments import OnEpoch, RandomState, as_graph, draw_seed, sizes_of
from muxgcl.app.budget import Budget, budget, samples_by_default
from muxgcl.app.estimator_folder import Trained
from muxgcl.app.start_or_resume import graph_facts
from muxgcl.graph import Graph
from muxgcl.kernels.ring import Workers
from muxgcl.runs.committee import fit_members, with_output
from muxgcl.runs.distributed import agree, all_succeed, callers_workers, from_first
from muxgcl.runs.embedding import collapse_warning
from muxgcl.runs.environment import limit_threads
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan, find_method


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked of an embedder; `NodeEmbedder` describes each."""

    method: str
    preset: str
    overrides: dict[str, Any]
    members: int
    output_width: int | None
    sample: int | tuple[int, int] | None
    device: str
    backend: str
    random_state: RandomState
    verbose: bool
    on_epoch: OnEpoch | None


def learn(graph: Any, wanted: Wanted) -> Trained:
    """Train on whatever `load` takes or returns; in a process group, all of it together."""
    limit_threads()
    workers = callers_workers()
    first = workers is None or workers.rank == 0
    seed = from_first(workers, lambda: draw_seed(wanted.random_state))
    with all_succeed(workers):
        loaded, prepared, encoding = as_graph(graph)
        plan = _plan(wanted, prepared, seed)
    if workers is not None:
        agree(workers, plan)
    found = from_first(workers, lambda: _budget(wanted, plan, prepared, workers))
    *sampled, estimate = found.notes or ("",)
    if samples_by_default(plan):
        estimate = "\n".join(found.notes)
    elif first and sampled:
        warnings.warn("; ".join(sampled), stacklevel=3)
    from muxgcl.app.screen import fit_progress  # loads rich

    epochs: list[Epoch] = []
    shown = fit_progress(plan.train.epochs, wanted.verbose and first, estimate)
    with shown as (tell, on_prepare):

        def on_block(block: list[Epoch]) -> None:
            epochs.extend(block)
            tell(block)
            if wanted.on_epoch is not None:
                for epoch in block:
                    wanted.on_epoch(epoch)

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


def _plan(wanted: Wanted, graph: Graph, seed: int) -> Plan:
    anchors, keys = sizes_of(wanted.sample)
    plan = Plan.make(
        wanted.method,
        wanted.preset,
        overrides=wanted.overrides,
        graph=graph,
        seed=seed,
        device=wanted.device,
        backend=wanted.backend,
        members=wanted.members,
        output_width=wanted.output_width,
        anchors=anchors,
        keys=keys,
    )
    return with_output(plan, graph)


def _budget(wanted: Wanted, plan: Plan, graph: Graph, workers: Workers | None) -> Budget:
    return budget(
        plan,
        graph,
        exact=wanted.sample == 0,
        given=wanted.overrides,
        workers=1 if workers is None else workers.world,
        way_out="sample=0",
    )
