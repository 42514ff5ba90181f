"""Where a graph comes from: a dataset's name or a user's files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.errors import UserError
from muxgcl.io import DATASETS, open_dataset
from muxgcl.io.files import write_text
from muxgcl.io.load import Encoding, Loaded, load
from muxgcl.runs.folder import Run
from muxgcl.runs.settings import unknown_name
from muxgcl.tensors import Tensors


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What was asked for, so that a run folder can open its graph again."""

    graph: str
    data_root: Path | None = None
    features: Path | None = None
    labels: Path | None = None
    label_column: str | None = None
    id_column: str | None = None
    source_column: str | None = None
    target_column: str | None = None
    weight_column: str | None = None
    header: bool | None = None

    @property
    def dataset(self) -> str:
        """The name that presets and records know the graph by."""
        return self.graph if self.graph in DATASETS else Path(self.graph).resolve().stem

    def open(self, encoding: Encoding | None = None) -> Loaded:
        """Load the graph; with an earlier graph's encoding its columns become the same features."""
        if self.graph in DATASETS:
            return known(open_dataset(self.graph, self.data_root))
        path = Path(self.graph)
        if not path.exists():
            looks_like_path = "/" in self.graph or path.suffix
            raise UserError(
                f"{self.graph}: no such file or folder"
                if looks_like_path
                else unknown_name("dataset (and no such file)", self.graph, DATASETS)
            )
        return load(
            path,
            features=self.features,
            labels=self.labels,
            label_column=self.label_column,
            id_column=self.id_column,
            source_column=self.source_column,
            target_column=self.target_column,
            weight_column=self.weight_column,
            header=self.header,
            encoding=encoding,
        )

    def table(self) -> dict[str, Any]:
        """For config.toml; paths are made absolute, so that a run can be moved."""
        found: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            found[name] = str(value.resolve()) if isinstance(value, Path) else value
        if self.graph not in DATASETS:
            found["graph"] = str(Path(self.graph).resolve())
        return found

    @classmethod
    def from_table(cls, table: dict[str, Any], data_root: Path | None = None) -> "Source":
        """What `table` wrote."""
        if unknown := sorted(set(table) - set(cls.__dataclass_fields__)):
            raise UserError(f"config.toml: source.{unknown[0]} is not known")
        if "graph" not in table:
            raise UserError("config.toml: source.graph is missing")
        paths = ("data_root", "features", "labels")
        values: dict[str, Any] = {k: Path(v) if k in paths else v for k, v in table.items()}
        if data_root is not None:
            values["data_root"] = data_root
        return cls(**values)


def known(tensors: Tensors) -> Loaded:
    """A benchmark graph as the loader returns a user's."""
    return Loaded(
        tensors=tensors,
        ids=np.arange(tensors.num_nodes),
        label_names=None,
        columns={},
        notes=[],
    )


def save_encoding(run: Run, loaded: Loaded) -> None:
    """How columns became features, so that a later graph's become the same ones."""
    if loaded.encoding.numbers or loaded.encoding.categories:
        write_text(run.path / "encoding.json", json.dumps(loaded.encoding.as_dict()) + "\n")


def saved_encoding(run: Run) -> Encoding | None:
    """What `save_encoding` wrote, or None for a benchmark graph."""
    return run.encoding()
