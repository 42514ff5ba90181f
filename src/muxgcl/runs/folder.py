"""A run on disk: what was asked, what happened, what came out. Files are whole or absent."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.io.files import (
    LOCK,
    append_lines,
    json_lines,
    locked,
    read_lines,
    write_atomically,
    write_text,
)
from muxgcl.runs.settings import to_toml

FILES = (
    "config.toml",
    "metrics.jsonl",
    "checkpoint.safetensors",
    "observed.jsonl",
    "embeddings.npz",
    "embedded.npz",
    "nodes.npz",
    "encoding.json",
    "scores.json",
    "diagnostics.json",
    "clusters.csv",
    "report.html",
)
CURVES = "tensorboard"  # a folder of events


class Run:
    """One run folder; `locked` holds it against a second writer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "config.toml"
        self.metrics_file = path / "metrics.jsonl"
        self.checkpoint_file = path / "checkpoint.safetensors"
        self.observed_file = path / "observed.jsonl"
        self.embeddings_file = path / "embeddings.npz"
        self.nodes_file = path / "nodes.npz"
        self.scores_file = path / "scores.json"
        self.report_file = path / "report.html"

    def locked(self) -> AbstractContextManager[None]:
        """Hold the folder: a second process that wants to write it gets one clear line."""
        return locked(self.path / LOCK)

    def clear(self) -> None:
        """Remove what an earlier run left here, and nothing else."""
        for name in FILES:
            (self.path / name).unlink(missing_ok=True)
        for file in (self.path / CURVES).glob("events.out.tfevents.*"):
            file.unlink()

    def foreign(self) -> str | None:
        """A file or folder that no run has written, where no run was begun."""
        if self.exists:
            return None if self._is_ours() else self.config_file.name
        names = (file.name for file in self.path.iterdir()) if self.path.is_dir() else ()
        ours = (*FILES, CURVES)
        return next((n for n in sorted(names) if n not in ours and not n.startswith(".")), None)

    def _is_ours(self) -> bool:
        """Whether config.toml is a run's; a damaged one may be."""
        try:
            return "run" in tomllib.loads(self.config_file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            return True

    # settings -----------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether a run was begun here."""
        return self.config_file.is_file()

    def write_config(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        """All settings, versions, seed and commit."""
        write_text(self.config_file, to_toml(tables))

    def config(self) -> dict[str, dict[str, Any]]:
        """What `write_config` wrote."""
        if not self.exists:
            raise UserError(f"{self.path} is not a run folder: it has no config.toml")
        try:
            tables = tomllib.loads(self.config_file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{self.config_file} is damaged: {error}") from None
        if not isinstance(tables.get("run"), dict):
            raise UserError(f"{self.config_file} is not of a run: it has no table [run]")
        return tables

    # progress -----------------------------------------------------------------------------------

    def keep_metrics(self, epochs: int) -> None:
        """Drop lines past `epochs`: they belong to work that the checkpoint does not have."""
        lines = [line for line in self.metrics() if line["epoch"] <= epochs]
        write_text(self.metrics_file, json_lines(lines))

    def log(self, lines: list[dict[str, Any]]) -> None:
        """Append one line an epoch."""
        append_lines(self.metrics_file, lines)

    def metrics(self) -> list[dict[str, Any]]:
        """The lines written so far."""
        return read_lines(self.metrics_file)

    def log_observed(self, epoch: int, accuracies: Sequence[float], split_seed: int) -> None:
        """Append what protocol `paper` saw of an epoch."""
        line = {"epoch": epoch, "split_seed": split_seed, "accuracy": list(accuracies)}
        append_lines(self.observed_file, [line])

    def observed(self, epochs: int, split_seed: int) -> dict[int, tuple[float, ...]]:
        """What it has seen up to that epoch, on splits of that seed; other lines are dropped."""
        lines = [
            line
            for line in read_lines(self.observed_file)
            if line["epoch"] <= epochs and line["split_seed"] == split_seed
        ]
        write_text(self.observed_file, json_lines(lines))
        return {line["epoch"]: tuple(line["accuracy"]) for line in lines}

    # checkpoint ---------------------------------------------------------------------------------

    def save_checkpoint(self, tensors: Mapping[str, Tensor], **facts: Any) -> None:
        """Weights, optimizer and generator state, with plain facts such as the epoch."""
        ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        metadata = {name: json.dumps(value) for name, value in facts.items()}
        content = save(ready, metadata)
        write_atomically(self.checkpoint_file, lambda file: file.write(content))

    def checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What `save_checkpoint` wrote: tensors and facts."""
        if not self.checkpoint_file.is_file():
            raise UserError(f"{self.path} has no checkpoint")
        try:
            with safe_open(self.checkpoint_file, "pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                facts = {k: json.loads(v) for k, v in (file.metadata() or {}).items()}
        except (SafetensorError, OSError, ValueError) as error:
            raise UserError(f"{self.checkpoint_file} is damaged: {error}") from None
        if "epoch" not in facts:
            raise UserError(f"{self.checkpoint_file} is not a checkpoint of muxgcl")
        return tensors, facts

    # results ------------------------------------------------------------------------------------

    def save_embeddings(self, ids: np.ndarray[Any, np.dtype[Any]], embedding: Tensor) -> None:
        """Node ids and their embeddings."""
        table = embedding.detach().cpu().float().numpy()
        write_atomically(self.embeddings_file, lambda file: np.savez(file, id=ids, embedding=table))

    def embeddings(self) -> tuple[np.ndarray[Any, np.dtype[Any]], np.ndarray[Any, np.dtype[Any]]]:
        """Node ids and their embeddings."""
        try:
            with (
                self.embeddings_file.open("rb") as file,
                np.load(file, allow_pickle=False) as arrays,
            ):
                return arrays["id"], arrays["embedding"]
        except FileNotFoundError:
            raise UserError(f"{self.path} has no embeddings yet") from None
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise UserError(f"{self.embeddings_file} is damaged: {error}") from None

    def labels(self) -> np.ndarray[Any, np.dtype[Any]] | None:
        """One class a node, -1 for none; None where no node has a label."""
        if not self.nodes_file.is_file():
            return None
        try:
            with self.nodes_file.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                found: np.ndarray[Any, np.dtype[Any]] | None = arrays.get("label")
                return found
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            raise UserError(f"{self.nodes_file} is damaged: {error}") from None

    def save_scores(self, scores: Mapping[str, Any]) -> None:
        """Scores, added to those of earlier evaluations."""
        write_text(self.scores_file, json.dumps({**self.scores(), **scores}, indent=2) + "\n")

    def scores(self) -> dict[str, Any]:
        """The scores so far."""
        if not self.scores_file.is_file():
            return {}
        try:
            return dict(json.loads(self.scores_file.read_text(encoding="utf-8")))
        except ValueError as error:
            raise UserError(f"{self.scores_file} is damaged: {error}") from None
