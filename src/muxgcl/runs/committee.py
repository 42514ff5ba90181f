r"""Several seeds side by side, and fewer columns: from trained members to one embedding.

A committee of K members is K trainings that differ in their seed alone. Its embedding is

$$Z = \tfrac{1}{\sqrt K} \big[\,\bar Z_1, \dots, \bar Z_K\,\big]$$

with unit rows $\bar Z_k$ of member k, so that every member weighs the same and a row has length 1.
One member alone is left as it is. The map of `compress.py` follows, where more is read out than the
embedding is to have.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean

import torch
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels.ring import Workers
from muxgcl.methods import Method
from muxgcl.nn.projector import unit_rows
from muxgcl.runs.checkpoint import restore
from muxgcl.runs.compress import Map, check_width, learn_map
from muxgcl.runs.embedding import embed, embed_blocks, gathered
from muxgcl.runs.fit import Fitted, Ready, fit
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan
from muxgcl.runs.work import COUNTED, embedding_width
from muxgcl.shapes import Scale

WIDTH = 1024  # columns of a member's embedding, unless another width is asked for


@dataclass(frozen=True, slots=True, eq=False)
class Committee:
    """All that embeds a graph: the members, and the map to fewer columns where there is one."""

    methods: tuple[Method, ...]
    output: Map | None = None

    def embed(self, graph: Graph) -> Tensor:
        """The embedding of every node of a graph, on the CPU."""
        return gathered(self.embed_blocks(graph), graph.num_nodes)

    def embed_blocks(self, graph: Graph) -> Iterator[Tensor]:
        """The embedding in blocks of rows, from the first node on."""
        for blocks in zip(*(embed_blocks(m, graph) for m in self.methods), strict=True):
            yield mapped(side_by_side(blocks), self.output)

    def forget(self) -> None:
        """Let go of the training graph."""
        for method in self.methods:
            method.forget()


def side_by_side(tables: Sequence[Tensor]) -> Scale:
    """Members' tables as one; a single one stays as it is."""
    if len(tables) == 1:
        return tables[0]
    return torch.cat([unit_rows(table) for table in tables], 1) / sqrt(len(tables))


def mapped(table: Scale, output: Map | None) -> Scale:
    """A table with fewer columns, or as it is."""
    if output is None:
        return table
    if len(output) != table.shape[1]:
        raise UserError(
            f"the map to fewer columns is for {len(output):,} columns, but {table.shape[1]:,} are "
            "read out: --resume learns it anew"
        )
    return table @ output


def fit_members(
    plan: Plan,
    graph: Graph,
    *,
    on_block: Callable[[list[Epoch]], None] | None = None,
    on_prepare: Callable[[int, int], None] | None = None,
    workers: Workers | None = None,
) -> tuple[Committee, Tensor, Fitted]:
    """Train every member, one after the other; the committee, its embedding, what training took."""
    members, tables = [], []
    for one in plan.of_members():
        members.append(fit(one, graph, on_block=on_block, on_prepare=on_prepare, workers=workers))
        tables.append(members[-1].embed())
        members[-1].method.forget()
    table = side_by_side(tables)
    output = output_map(plan, table, members[0].graph.device)
    committee = Committee(tuple(member.method for member in members), output)
    return committee, mapped(table, output), total_cost(members)


def output_map(plan: Plan, table: Scale, device: torch.device) -> Map | None:
    """The map to the plan's width, learned from what was read out of the training graph."""
    width = plan.output_width
    return None if width is None else learn_map(table, width, device)


def with_output(plan: Plan, graph: Graph) -> Plan:
    """The plan with the width of its embedding decided.

    None is `WIDTH` columns a member where `mux-hop` reads out more than those, which costs no more
    than 0.1 points of accuracy (records/width.jsonl); 0 is all that is read out.
    """
    if plan.output_width is not None:
        return replace(plan, output_width=plan.output_width or None)
    most = WIDTH * plan.members
    wide = plan.method == "mux-hop" and embedding_width(plan, graph) > most
    return replace(plan, output_width=most) if wide else plan


def check_output(plan: Plan, ready: Ready) -> None:
    """Refuse a width beyond what is read out, before anything is trained."""
    if plan.output_width is None or not ready.method.inductive:  # others embed once trained
        return
    if plan.method in COUNTED:
        columns = embedding_width(plan, ready.graph)
    else:
        columns = plan.members * embed(ready.method, ready.graph).shape[1]
    check_width(plan.output_width, columns)


def total_cost(members: Sequence[Fitted]) -> Fitted:
    """What the members took: times added up, the largest peak, the mean of losses and epochs."""
    first = members[0]
    if len(members) == 1:
        return first
    losses = [member.loss for member in members if member.loss is not None]
    return replace(
        first,
        loss=fmean(losses) if losses else None,
        epoch_ms=fmean(member.epoch_ms for member in members),
        peak_mib=max(member.peak_mib for member in members),
        seconds=sum(member.seconds for member in members),
    )


def restore_members(run: Run, plan: Plan, graph: Graph) -> Committee:
    """What a run folder's checkpoints hold, ready to embed `graph`."""
    methods = tuple(
        restore(Run(run.path, k), one, graph) for k, one in enumerate(plan.of_members())
    )
    if plan.output_width is None:
        return Committee(methods)
    output = run.output_map()
    if output.shape[1] != plan.output_width:
        raise UserError(
            f"{run.output_file} has {output.shape[1]:,} columns, but output_width is "
            f"{plan.output_width:,}: --resume learns it anew"
        )
    return Committee(methods, output)
