"""Controls of a run: what needs no training, scored like the method, on the same splits."""

from collections.abc import Iterator, Sequence
from typing import Any

from muxgcl.evaluate import nodes_in
from muxgcl.evaluate.controls import MAJORITY, UNTRAINED, each_feature_control, majority
from muxgcl.graph import Graph
from muxgcl.runs.embedding import embed_blocks, gathered, picked_rows
from muxgcl.runs.environment import gpu_of, pick_device
from muxgcl.runs.plan import Plan, build, find_method
from muxgcl.runs.scipy_tables import features_table, scipy_rows
from muxgcl.runs.scoring import labels_hash, labels_of, probe_dict, score, splits_of
from muxgcl.seeding import seeded
from muxgcl.shapes import Array
from muxgcl.tensors import AnyData

LARGE = 30_000_000  # numbers in a table; on a larger one k-means and twenty probes take minutes
LARGE_SPLITS = 5  # for such a table: enough to pair with the method's first ones
CLUSTERINGS = 1  # each the tightest of several starts: enough for a control


def score_controls(
    plan: Plan,
    graph: Graph,
    data: AnyData,
    protocols: Sequence[str] = ("holdout",),
    *,
    splits: int = 20,
    split_seed: int = 0,
    clusters: bool = True,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each control's name and its scores by protocol, one after the other.

    Of features that are large, only what the probes look at is made.
    """
    y = labels_of(data)
    if y is None:
        return
    protocols = [name for name in protocols if name != "paper"]  # that one looks at epochs
    asked = {name: splits_of(data, name, splits, split_seed) for name in protocols}
    rows = None
    if asked and graph.num_nodes * graph.num_features > LARGE:
        rows = nodes_in(part for parts in asked.values() for part in parts[:LARGE_SPLITS])
    for name, table in each_control(plan, graph, rows):
        large = rows is not None or table.shape[0] * table.shape[1] > LARGE
        found, _ = score(
            table,
            data,
            protocols,
            splits=min(splits, LARGE_SPLITS) if large else splits,
            split_seed=split_seed,
            clusterings=CLUSTERINGS if clusters and not large else 0,
            rows=rows,
            device=gpu_of(plan.device),
        )
        del table  # before the next is made
        yield name, found
    mark = labels_hash(y)
    yield (
        MAJORITY,
        {name: probe_dict(majority(y, parts), split_seed, mark) for name, parts in asked.items()},
    )


def control_tables(plan: Plan, graph: Graph) -> dict[str, Any]:
    """Features, propagated features and, for a method that is trained, its untrained encoder."""
    return dict(each_control(plan, graph))


def each_control(plan: Plan, graph: Graph, rows: Array | None = None) -> Iterator[tuple[str, Any]]:
    """The tables of `control_tables` one by one, each made when it is asked for.

    Of all nodes, or of those of `rows`.
    """
    propagation = scipy_rows(graph.adjacency.propagation().matrix)
    yield from each_feature_control(features_table(graph.features), propagation, rows)
    if find_method(plan.method).trainable:
        yield UNTRAINED, untrained(plan, graph, rows)


def untrained(plan: Plan, graph: Graph, rows: Array | None = None) -> Array:
    """The embedding by the weights that training begins with."""
    there = graph.to(pick_device(plan.device))
    with seeded(plan.seed, there.device):
        blocks, count = embed_blocks(build(plan, there), there), there.num_nodes
        if rows is not None:
            blocks, count = picked_rows(blocks, rows), len(rows)
        return gathered(blocks, count).numpy()
