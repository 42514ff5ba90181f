"""Where a graph comes from: a dataset's name, a user's files, or an object in memory."""

import json
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from muxgcl.app.options import LoadOptions
from muxgcl.errors import UserError
from muxgcl.graph import Graph, graph_fingerprint
from muxgcl.io import DATASETS, open_dataset
from muxgcl.io.files import write_atomically, write_text
from muxgcl.io.load import Encoding, Loaded, load
from muxgcl.io.nodes import classes, joined_labels
from muxgcl.io.roles import NodeColumns
from muxgcl.io.sources import read_nodes
from muxgcl.runs import scoring
from muxgcl.runs.folder import Run
from muxgcl.runs.settings import unknown_name
from muxgcl.tensors import Tensors

FLAGS = {
    "source_column": "--source",
    "target_column": "--target",
    "weight_column": "--weight",
    "edge_type_column": "--edge-type",
    "scale": "--no-scale",
}


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
        return Path(self.graph).resolve().stem if isinstance(self.graph, str | Path) else "graph"

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
                flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
                raise UserError(
                    f"{what}: {name} ({flag}) is for a graph that is read from files or from memory"
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
    """The graph that a run was trained on, from where it came or as given; it must be the same.

    Labels may be given anew: they have no part in training.
    """
    tables = run.config()
    options = options or LoadOptions()
    if graph is not None:
        source = Source(graph, replace(options, labels=None))
    elif "graph" in tables.get("source", {}):
        source = Source.from_table(tables["source"], options.data_root)
    else:
        raise UserError(
            f"{run.config_file} does not say where the graph came from: it was in memory, "
            "give it again"
        )
    loaded = source.open()
    tensors = Graph.from_data(loaded.tensors)
    before = tables.get("data", {}).get("fingerprint")
    if before not in (None, graph_fingerprint(tensors)):
        raise UserError(f"the graph that {run.path} was trained on has changed since")
    return loaded if options.labels is None else relabelled(loaded, options), tensors


def relabelled(loaded: Loaded, options: LoadOptions) -> Loaded:
    """The same graph with labels of another table, joined by id; nodes without one have none."""
    columns = NodeColumns(options.id_column, options.label_column, features=False)
    table = read_nodes(options.labels, "the labels", columns, options.header)
    ids = loaded.ids if loaded.ids.dtype.kind in "iu" else loaded.ids.tolist()
    return with_labels(loaded, *classes(joined_labels(table, ids, "the graph")))


def with_labels(loaded: Loaded, y: NDArray[np.int64], names: list[str] | None) -> Loaded:
    """The same graph with these classes, -1 for none."""
    tensors = copy(loaded.tensors)
    tensors.y = torch.from_numpy(y)
    return replace(loaded, tensors=tensors, label_names=names)


def save_nodes(run: Run, loaded: Loaded) -> None:
    """Labels, edges and other columns of the nodes, for the report."""
    # the prefix keeps a user's names apart from ours and from savez's own arguments
    arrays: dict[str, Any] = {
        f"column:{name}": np.asarray(values) for name, values in loaded.columns.items()
    }
    arrays["edge_index"] = loaded.tensors.edge_index.cpu().numpy().astype(np.int32)
    y = scoring.labels_of(loaded.tensors)
    if y is not None:
        arrays["label"] = y
        if loaded.label_names is not None:
            arrays["label_names"] = np.asarray(loaded.label_names)
    write_atomically(run.nodes_file, lambda file: np.savez_compressed(file, **arrays))


def save_encoding(run: Run, loaded: Loaded) -> None:
    """How columns became features, so that a later graph's become the same ones."""
    if loaded.encoding.numbers or loaded.encoding.categories:
        write_text(run.encoding_file, json.dumps(loaded.encoding.as_dict()) + "\n")


def saved_encoding(run: Run) -> Encoding | None:
    """What `save_encoding` wrote, or None for a benchmark graph."""
    return run.encoding()
