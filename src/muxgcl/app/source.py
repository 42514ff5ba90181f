"""Where a graph comes from: a dataset's name, a user's files, or an object in memory."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.app.folder_graph import kept_graph, with_kept_labels, with_labels
from muxgcl.app.graph_facts import check_made, other_graph
from muxgcl.app.options import LoadOptions
from muxgcl.errors import UserError, unknown_name
from muxgcl.graph import Graph, graph_fingerprint
from muxgcl.io import DATASETS, open_dataset
from muxgcl.io.ids import from_array
from muxgcl.io.leaks import label_leaks
from muxgcl.io.load import Encoding, Loaded, load
from muxgcl.io.nodes import (
    NodeTable,
    about_classes,
    about_order,
    classes,
    joined_labels,
    no_numbers,
)
from muxgcl.io.roles import NodeColumns
from muxgcl.io.sources import read_nodes
from muxgcl.io.text_files import without_gz
from muxgcl.runs.folder import Run
from muxgcl.tensors import Tensors

FLAGS = {  # of options that are not called like theirs
    "source_column": "--source",
    "target_column": "--target",
    "weight_column": "--weight",
    "edge_type_column": "--edge-type",
    "scale": "--no-scale",
}


def flag_of(name: str) -> str:
    """The flag of the command line that sets an option of `LoadOptions`."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


@dataclass(frozen=True, slots=True)
class Source:
    """What was asked for, so that a run folder can open its graph again."""

    graph: Any  # a name, a path, or what `load` takes or returns
    options: LoadOptions = field(default_factory=LoadOptions)

    @property
    def is_dataset(self) -> bool:
        """Whether the graph is one of `muxgcl datasets`."""
        return isinstance(self.graph, str) and self.graph in DATASETS

    @property
    def dataset(self) -> str:
        """The name that presets and records know the graph by."""
        if self.is_dataset:
            return str(self.graph)
        if not isinstance(self.graph, str | Path):
            return "graph"
        return without_gz(Path(self.graph).resolve()).stem

    @property
    def preset(self) -> str:
        """The preset where none is asked for."""
        return "best" if self.is_dataset else "auto"

    def open(self, encoding: Encoding | None = None) -> Loaded:
        """Load the graph; with an earlier graph's encoding its columns become the same features."""
        given = self.options.given()
        if self.is_dataset or isinstance(self.graph, Loaded | Graph):
            what = f"{self.graph} is a dataset" if self.is_dataset else "this graph is loaded"
            if given:
                name = next(iter(given))
                raise UserError(
                    f"{what}: {name} ({flag_of(name)}) is for a graph that is read from files or "
                    "from memory"
                )
            if isinstance(self.graph, Loaded):
                return self.graph
            if isinstance(self.graph, Graph):
                raise UserError("expected a graph that load takes or returns, got a Graph")
            return known(open_dataset(self.graph, self.options.data_root))
        if isinstance(self.graph, str | Path):
            path = Path(self.graph)
            if not path.exists():
                looks_like_path = "/" in str(self.graph) or path.suffix
                raise UserError(
                    f"{self.graph}: no such file or folder"
                    if looks_like_path
                    else unknown_name("dataset (and no such file)", str(self.graph), DATASETS)
                )
            return load(path, encoding=encoding, **given)
        return load(self.graph, encoding=encoding, **given)

    def table(self) -> dict[str, Any] | None:
        """For config.toml; paths are made absolute. None where the graph is no file."""
        values = [self.graph, self.options.features, self.options.labels]
        if not all(value is None or isinstance(value, str | Path) for value in values):
            return None
        found: dict[str, Any] = asdict(self.options)
        for name in ("data_root", "features", "labels"):
            if found[name] is not None:
                found[name] = str(Path(found[name]).resolve())
        for name in ("include", "exclude"):
            if isinstance(found[name], str):
                found[name] = [found[name]]
        graph = str(self.graph) if self.is_dataset else str(Path(self.graph).resolve())
        return {"graph": graph, **found}

    @classmethod
    def from_table(cls, table: dict[str, Any], data_root: Path | None = None) -> "Source":
        """What `table` wrote."""
        names = {f.name for f in fields(LoadOptions)}
        if unknown := sorted(set(table) - names - {"graph"}):
            raise UserError(f"config.toml: source.{unknown[0]} is not known")
        if "graph" not in table:
            raise UserError("config.toml: source.graph is missing")
        values = {name: value for name, value in table.items() if name in names}
        for name in ("data_root", "features", "labels"):
            if name in values:
                values[name] = Path(values[name])
        if data_root is not None:
            values["data_root"] = data_root
        return cls(table["graph"], LoadOptions(**values))


def source_like(tables: Mapping[str, Any], graph: Any, options: LoadOptions) -> Source:
    """Another graph for a run: its edges have the run's kinds, unless others are asked for."""
    if isinstance(graph, Loaded):
        return Source(graph, options)
    before = {**tables.get("data", {}), **tables.get("source", {})}
    directed, column = before.get("directed"), before.get("edge_type_column")
    return Source(
        graph,
        replace(
            options,
            directed=(directed or None) if options.directed is None else options.directed,
            edge_type_column=options.edge_type_column or column,
        ),
    )


def source_again(tables: Mapping[str, Any], graph: Any, options: LoadOptions) -> Source:
    """The run's own graph, given again: columns and files are the run's where none are named.

    A table of labels, and its columns, are no part of the graph.
    """
    if options.labels is not None:
        options = replace(options, labels=None, label_column=None)
    if not isinstance(graph, str | Path) or "graph" not in tables.get("source", {}):
        return source_like(tables, graph, options)
    own = Source.from_table(tables["source"], options.data_root).options
    if (again := Source(graph)).is_dataset:
        return replace(again, options=replace(options, data_root=own.data_root))
    if own.labels is not None and not Path(own.labels).exists():
        own = replace(own, labels=None, label_column=None)
    if Path(graph).is_dir():  # which brings its features
        own = replace(own, features=None)
    elif options.features is None and own.features is not None and not Path(own.features).exists():
        raise UserError(f"{own.features}, the run's features, is gone: --features names it anew")
    return Source(graph, replace(own, **options.given()))


def known(tensors: Tensors) -> Loaded:
    """A benchmark graph as the loader returns a user's."""
    return Loaded(
        tensors=tensors,
        ids=np.arange(tensors.num_nodes),
        label_names=None,
        columns={},
        notes=[],
    )


def graph_of_run(
    run: Run, graph: Any = None, options: LoadOptions | None = None
) -> tuple[Loaded, Graph]:
    """The graph that a run was trained on: as given, as its folder keeps it, or from its files.

    It must be the same to the bit. Labels may be given anew: they have no part in training.
    """
    tables, options = run.config(), options or LoadOptions()
    if graph is not None:
        loaded = source_again(tables, graph, options).open(run.encoding())
    elif (kept := kept_graph(run)) is not None:
        loaded = kept
    else:
        loaded = _own_source(run, tables, options).open()
    tensors = Graph.from_data(loaded.tensors)
    before = tables.get("data", {})
    if before.get("fingerprint") not in (None, graph_fingerprint(tensors)):
        check_made(run)
        which = f"{run.path} was trained on another graph than"
        raise UserError(
            f"{which} the one given: {other_graph(before, tensors)}"
            if graph is not None
            else f"{which} its files hold now: {other_graph(before, tensors)}; {_again(run)}"
        )
    if options.labels is not None:
        return relabelled(loaded, options), tensors
    if graph is None or "y" not in loaded.tensors:
        loaded = with_kept_labels(run, loaded)
    return loaded, tensors


def _again(run: Run) -> str:
    return f"give the graph again, as in `muxgcl evaluate {run.path} GRAPH --features FILE`"


def _own_source(run: Run, tables: Mapping[str, Any], options: LoadOptions) -> Source:
    """Where the run's graph came from."""
    if "graph" not in tables.get("source", {}):
        raise UserError(f"{run.path} keeps no graph, and its own was in memory: {_again(run)}")
    source = Source.from_table(tables["source"], options.data_root)
    files = [] if source.is_dataset else [source.graph]
    files += [file for file in (source.options.features, source.options.labels) if file is not None]
    if gone := [file for file in files if not Path(file).exists()]:
        raise UserError(f"{run.path} was trained on {gone[0]}, which is gone: {_again(run)}")
    return source


def relabelled(loaded: Loaded, options: LoadOptions) -> Loaded:
    """A graph with the labels of another table, joined by id; nodes without one have none."""
    columns = NodeColumns(options.id_column, options.label_column, features=False)
    table = read_nodes(options.labels, "the labels", columns, options.header)
    ids = from_array(loaded.ids)
    y, names = classes(joined_labels(table, ids, "the graph"))
    about = [*table.notes, *about_order(table, ids), *about_classes(table, y, names)]
    notes = [*loaded.notes, *about, *label_leaks(_features_of(loaded), y, names)]
    return replace(with_labels(loaded, y, names), notes=notes)


def _features_of(loaded: Loaded) -> NodeTable:
    """The columns that became features, as they were read."""
    encoding, columns = loaded.encoding, loaded.columns
    numbers = [name for name in encoding.numbers if name in columns]
    return NodeTable(
        name="the graph",
        ids=from_array(loaded.ids),
        numbers=np.stack([columns[name] for name in numbers], 1)
        if numbers
        else no_numbers(len(loaded.ids)),
        number_names=numbers,
        text={name: columns[name].tolist() for name in encoding.categories if name in columns},
    )
