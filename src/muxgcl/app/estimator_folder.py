"""What an estimator has learned, as a run folder: written, and read back."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from muxgcl.app.folder_graph import save_encoding, save_graph, save_nodes
from muxgcl.app.start_or_resume import refuse_foreign
from muxgcl.errors import UserError
from muxgcl.graph import Graph, graph_fingerprint
from muxgcl.io.encode import Encoding
from muxgcl.io.load import Loaded
from muxgcl.io.safety import check_size
from muxgcl.io.save import check_numbers
from muxgcl.runs.committee import Committee, restore_members
from muxgcl.runs.environment import pick_device
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch, method_state, settled_ms
from muxgcl.runs.plan import Plan, check_sizes, find_method
from muxgcl.shapes import Array
from muxgcl.tensors import Tensors


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """All that an estimator has learned, and from what."""

    plan: Plan
    committee: Committee
    ids: Array
    embedding: Array
    encoding: Encoding | None  # how columns became features
    data: dict[str, Any]  # facts of the training graph, for config.toml
    epochs: tuple[Epoch, ...] = ()  # of all members, one after the other

    @property
    def of_members(self) -> list[tuple[Epoch, ...]]:
        """The epochs of each member; none where nothing is trained."""
        starts = [at for at, epoch in enumerate(self.epochs) if epoch.number == 1]
        return [self.epochs[a:b] for a, b in pairwise([*starts, len(self.epochs)])]

    @property
    def loss(self) -> float | None:
        """That of the last epoch, the mean over members; None where nothing is trained."""
        losses = [own[-1].loss for own in self.of_members]
        return fmean(losses) if losses else None

    @property
    def epoch_ms(self) -> float:
        """The time of an epoch, the mean over members."""
        times = [settled_ms([epoch.seconds for epoch in own]) for own in self.of_members]
        return fmean(times) if times else 0.0


def save_trained(
    trained: Trained, folder: Path, loaded: Loaded | None = None, *, overwrite: bool = False
) -> None:
    """Write a run folder; with the training graph also what a report and new nodes need."""
    run, plan = Run(folder), trained.plan
    refuse_foreign(run)
    if run.exists and not overwrite:
        raise UserError(f"{folder} holds a run already: overwrite=True replaces it")
    if loaded is not None:
        given = graph_fingerprint(Graph.from_data(loaded.tensors))
        if given != trained.data["fingerprint"]:
            raise UserError("expected the graph that was trained on, got another one")
    check_numbers(run.embeddings_file, trained.embedding)
    config = run.config_text({**plan.tables(), "data": trained.data})
    with run.locked():
        run.start(config)
        epochs = trained.of_members
        for k, method in enumerate(trained.committee.methods):
            one = Run(folder, k)
            block = epochs[k] if epochs else ()
            one.log([epoch.line() for epoch in block])
            facts = {"epoch": len(block), "method": method.name, "seed": plan.seed + k}
            one.save_checkpoint(method_state(method), **facts)
        run.save_output_map(trained.committee.output)
        run.save_embeddings(trained.ids, torch.from_numpy(trained.embedding))
        save_encoding(run, trained.encoding)
        if loaded is not None:
            save_nodes(run, loaded)
            save_graph(run, loaded)


def load_trained(folder: Path, device: str = "auto") -> Trained:
    """What a run folder holds, ready to embed; its graph is not needed."""
    run = Run(folder)
    tables = run.config()
    plan, data = Plan.from_tables(tables, device=device), tables.get("data", {})
    if not find_method(plan.method).inductive:
        raise UserError(
            f"{plan.method} embeds no graph but its own: `muxgcl.embed` reads the rows of {folder}"
        )
    for name in ("nodes", "features"):
        if name not in data:
            raise UserError(f"{run.config_file}: data.{name} is missing")
    ids, embedding = run.embeddings()
    if len(ids) != data["nodes"]:
        raise UserError(
            f"{run.config_file}: data.nodes is {data['nodes']:,}, but there are {len(ids):,} "
            "embeddings"
        )
    lines = [line for k in range(plan.members) for line in Run(folder, k).metrics()]
    return Trained(
        plan=plan,
        committee=restore_members(run, plan, empty_graph(plan, len(ids), data["features"])),
        ids=ids,
        embedding=embedding,
        encoding=run.encoding(),
        data=data,
        epochs=tuple(
            Epoch(line["epoch"], line.get("terms", {}), line.get("ms", 0.0) / 1000)
            for line in lines
        ),
    )


def empty_graph(plan: Plan, nodes: int, features: int) -> Graph:
    """A graph of that size without edges and with features of zero: what a method is built for."""
    check_size(f"a graph of {nodes:,} nodes and {features:,} features", 16 * (nodes + features))
    check_sizes(plan, nodes, features)
    none = torch.zeros((2, 0), dtype=torch.long)
    x = torch.sparse_coo_tensor(none, torch.zeros(0), (nodes, features), check_invariants=False)
    return Graph.from_data(Tensors(x=x, edge_index=none)).to(pick_device(plan.device))
