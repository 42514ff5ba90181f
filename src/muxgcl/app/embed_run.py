"""Embed by a finished run: a graph that it has not seen, new nodes of its own, or its own again."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from muxgcl.app.graph_facts import check_kinds, check_made
from muxgcl.app.new_nodes import columns_of_run, grown
from muxgcl.app.observer import Observer
from muxgcl.app.options import Folder, LoadOptions
from muxgcl.app.source import flag_of, graph_of_run, source_like
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.safety import how_many
from muxgcl.io.save import check_format, save_blocks, save_table
from muxgcl.runs.committee import restore_members
from muxgcl.runs.embedding import collapse_warning, gathered
from muxgcl.runs.environment import pick_device
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan
from muxgcl.shapes import Array


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """Node ids and their embeddings, and the file they were written to."""

    ids: Array
    table: Array | None  # None where it was to be written alone
    path: Path | None
    width: int


def embed(
    run: Folder,
    graph: Any = None,
    *,
    new_nodes: Any = None,
    new_edges: Any = None,
    load: LoadOptions | None = None,
    out: Folder | None = None,
    device: str = "auto",
    keep: bool = True,
    observer: Observer | None = None,
) -> Embedded:
    """Embed a graph that a run has not seen, or new nodes of its own; else the run's embeddings.

    Args:
        run: a run folder.
        graph: whatever `muxgcl.load` takes, with the features that the run was trained on. With
            `new_nodes`, the run's graph, where the folder does not keep it and its files are gone.
        new_nodes: a table of nodes that the run's graph lacks, with the same columns: they alone
            are embedded.
        new_edges: an edge list of their links; a node needs none.
        load: columns and files of that graph, or of the new nodes and edges.
        out: a file to write, in the format that its ending names (`muxgcl.io.save.save_table`);
            none by default.
        device: where to compute.
        keep: False to write `out` block by block without holding all rows in memory.
        observer: called at every event; none by default.

    Example:
        >>> load = LoadOptions(features="nodes.csv", label_column="topic")
        >>> found = embed("runs/mine", "edges.csv", load=load, out="z.csv")
        >>> found.table.shape
        (60, 48)
    """
    trained, load, observer = Run(Path(run)), load or LoadOptions(), observer or Observer()
    tables = trained.config()
    path = None if out is None else Path(out)
    if path is not None:
        check_format(path)
    if new_edges is not None and new_nodes is None:
        raise UserError("new edges are links of new nodes: name the table of these (--new-nodes)")
    if graph is None and new_nodes is None and (extra := list(load.given())):
        flag = flag_of(extra[0])
        raise UserError(f"{flag} belongs to a new graph, but no graph is named after {run}")
    if graph is None and new_nodes is None and trained.embeddings_file.is_file():
        ids, table = trained.embeddings()
        blocks: Iterable[Array] = [table]
    else:
        observer.phase("loading")
        tensors, ids, notes = _graph_to_embed(trained, graph, new_nodes, new_edges, load)
        wanted = tables.get("data", {}).get("features")
        if wanted is None:
            raise UserError(f"{trained.config_file}: data.features is missing")
        if tensors.num_features != wanted:
            check_made(trained)
            raise UserError(
                f"{run} was trained on {how_many(wanted, 'feature')}, this graph has "
                f"{tensors.num_features}"
            )
        check_kinds(tables.get("data", {}), tensors)
        tensors = tensors.to(pick_device(device))
        committee = restore_members(trained, Plan.from_tables(tables, device=device), tensors)
        blocks = _with_notes_at_the_end(committee.embed_blocks(tensors), [*notes], observer)
        if new_nodes is not None:  # they come last
            whole = gathered(map(torch.from_numpy, blocks), tensors.num_nodes)
            blocks = [whole[-len(ids) :].numpy()]
    if path is not None and not keep:
        return Embedded(ids, None, path, save_blocks(path, ids, blocks))
    table = gathered(map(torch.from_numpy, blocks), len(ids)).numpy()
    if path is not None:
        save_table(path, ids, table)
    return Embedded(ids, table, path, table.shape[1])


def _graph_to_embed(
    run: Run, graph: Any, new_nodes: Any, new_edges: Any, load: LoadOptions
) -> tuple[Graph, Array, list[str]]:
    """The graph, the ids of the nodes that are asked for, which come last, and what to say of it.

    It is the run's graph with new nodes behind it, another graph, or, for a run that was stopped
    before its end, the graph that it was trained on.
    """
    tables = run.config()
    if new_nodes is not None:
        check_made(run)
        alone = LoadOptions(data_root=load.data_root)
        own, _ = graph_of_run(run, graph, alone if graph is None else load)
        of_new = load if graph is None else replace(load, features=None, labels=None)
        found = grown(own, new_nodes, new_edges, columns_of_run(tables, of_new, new_edges))
        return Graph.from_data(found.tensors), found.ids, found.notes
    if graph is None:
        loaded, tensors = graph_of_run(run, options=load)
        return tensors, loaded.ids, loaded.notes
    loaded = source_like(tables, graph, load).open(run.encoding())
    return Graph.from_data(loaded.tensors), loaded.ids, loaded.notes


def _with_notes_at_the_end(
    blocks: Iterable[Tensor], notes: Iterable[str], observer: Observer
) -> Iterator[Array]:
    """The blocks as arrays; after the last one the notes, and a warning if all rows are alike."""
    first, warning = None, None
    for block in blocks:
        start = first is None
        first = block[:1] if first is None else first
        seen = collapse_warning(torch.cat([first, block]) if not start else block)
        warning = seen if start or seen is None else warning
        yield block.numpy()
    for note in notes if warning is None else [warning, *notes]:
        observer.note(note)
