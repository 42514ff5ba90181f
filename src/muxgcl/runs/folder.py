"""A run on disk: what was asked, what happened, what came out. Files are whole or absent."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.graph import fingerprint
from muxgcl.io.encode import Encoding
from muxgcl.io.files import (
    LOCK,
    append_lines,
    json_lines,
    locked,
    remove_leftovers,
    sync,
    write_atomically,
    write_text,
)
from muxgcl.io.safety import check_file, check_size, parsing
from muxgcl.io.save import check_numbers
from muxgcl.io.schema import plain, read_json, read_lines, read_toml
from muxgcl.runs import contents
from muxgcl.runs.settings import to_toml
from muxgcl.shapes import Array

FILES = (
    "config.toml",  # first: a clearing goes from the last to the first
    "metrics.jsonl",
    "checkpoint.safetensors",
    "output.safetensors",
    "observed.jsonl",
    "embeddings.npz",
    "embedded.npz",
    "nodes.npz",
    "graph.safetensors",
    "encoding.json",
    "scores.json",
    "diagnostics.json",
    "clusters.csv",
    "links.csv",
    "predictions.csv",
    "report.html",
)
OF_MEMBERS = ("member-*.jsonl", "member-*.safetensors")  # metrics and checkpoints past the first
CURVES = "tensorboard"  # a folder of events
OURS = frozenset({"method", "preset", "seed"})  # one of these is in the table [run] of every run
CHECKSUM = "sha256"  # of a checkpoint's tensors and facts, among its facts


class Run:
    """One run folder; `locked` holds it against a second writer.

    Args:
        path: the folder.
        member: whose metrics and checkpoint these are, where several seeds are side by side; all
            other files are shared.
    """

    def __init__(self, path: Path, member: int = 0) -> None:
        self.path, self.member = path, member
        self.config_file = path / "config.toml"
        self.metrics_file = path / (f"member-{member}.jsonl" if member else "metrics.jsonl")
        weights = f"member-{member}.safetensors" if member else "checkpoint.safetensors"
        self.checkpoint_file = path / weights
        self.output_file = path / "output.safetensors"
        self.observed_file = path / "observed.jsonl"
        self.embeddings_file = path / "embeddings.npz"
        self.nodes_file = path / "nodes.npz"
        self.graph_file = path / "graph.safetensors"
        self.scores_file = path / "scores.json"
        self.diagnostics_file = path / "diagnostics.json"
        self.encoding_file = path / "encoding.json"
        self.report_file = path / "report.html"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder: a second process that wants to write it gets one clear line.

        What a killed process left half-written is removed.
        """
        with locked(self.path / LOCK):
            remove_leftovers(self.path)
            yield

    def clear(self) -> None:
        """Remove what an earlier run left here, and nothing else; config.toml, its mark, last.

        Links are removed, never what they point to.
        """
        curves = self.path / CURVES
        for file in () if curves.is_symlink() else curves.glob("events.out.tfevents.*"):
            file.unlink(missing_ok=True)
        for pattern in OF_MEMBERS:
            for file in self.path.glob(pattern):
                file.unlink(missing_ok=True)
        for name in reversed(FILES):
            (self.path / name).unlink(missing_ok=True)

    def foreign_entry(self) -> str | None:
        """A file or folder that no run has written: without a config.toml of ours, any is."""
        if self.exists:
            return None if self._is_ours() else self.config_file.name
        names = (file.name for file in self.path.iterdir()) if self.path.is_dir() else ()
        return next((name for name in sorted(names) if not name.startswith(".")), None)

    def _is_ours(self) -> bool:
        """Whether config.toml is a run's; a damaged one is if it begins as ours do."""
        check_size(str(self.config_file), self.config_file.stat().st_size)
        with parsing(self.config_file, None):
            content = self.config_file.read_bytes()
        try:
            run = tomllib.loads(content.decode()).get("run")
        except (ValueError, RecursionError):
            return content.startswith(b"[run]\n")
        return isinstance(run, dict) and not OURS.isdisjoint(run)

    # settings -----------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether a run was begun here."""
        with parsing(self.config_file, None):  # a folder that may not be looked into
            return self.config_file.is_file()

    def write_config(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        """All settings, versions, seed and commit; text that no file can hold is refused here."""
        write_text(self.config_file, self.config_text(tables))

    def config_text(self, tables: Mapping[str, Mapping[str, Any]]) -> str:
        """What `write_config` writes."""
        for title, table in tables.items():
            plain(dict(table), f"{self.config_file}: {title}")
        return to_toml(tables)

    def start(self, config: str) -> None:
        """Put the settings of a new run in the place of all that an earlier one left.

        They are on the disk before anything is removed, and get their name last.
        """
        content = config.encode()
        write_atomically(
            self.config_file, lambda file: file.write(content), before_rename=self.clear
        )

    def config(self) -> dict[str, dict[str, Any]]:
        """What `write_config` wrote."""
        if not self.exists:
            raise self._no_run()
        tables = read_toml(self.config_file, contents.CONFIG)
        if "run" not in tables:
            raise UserError(f"{self.config_file} is not of a run: it has no table [run]")
        return tables

    def _no_run(self) -> UserError:
        if not self.path.exists():
            return UserError(f"there is no folder {self.path}")
        return UserError(f"{self.path} is not a run folder: it has no config.toml")

    # progress -----------------------------------------------------------------------------------

    def keep_metrics(self, epochs: int) -> list[dict[str, Any]]:
        """Drop lines past `epochs`: they belong to work that the checkpoint does not have."""
        lines = self.metrics_until(epochs)
        write_text(self.metrics_file, json_lines(lines))
        return lines

    def metrics_until(self, epochs: int) -> list[dict[str, Any]]:
        """Lines up to an epoch; all must be in the log: what is lost cannot be trained again."""
        lines = [line for line in self.metrics() if line["epoch"] <= epochs]
        seen = {line["epoch"] for line in lines}
        if len(seen) < epochs:
            first = next(epoch for epoch in range(1, epochs + 1) if epoch not in seen)
            raise UserError(
                f"{self.metrics_file} has no line for epoch {first}, but the checkpoint is at "
                f"epoch {epochs}: --overwrite starts again"
            )
        return lines

    def log(self, lines: list[dict[str, Any]]) -> None:
        """Append one line an epoch."""
        append_lines(self.metrics_file, lines)

    def metrics(self) -> list[dict[str, Any]]:
        """The lines written so far, one an epoch."""
        lines = read_lines(self.metrics_file, contents.METRICS)
        for at, (one, two) in enumerate(pairwise(lines), start=2):
            if two["epoch"] <= one["epoch"]:
                raise UserError(
                    f"{self.metrics_file}, line {at}: epoch must be more than {one['epoch']}, "
                    f"got {two['epoch']}"
                )
        return lines

    def log_observed(self, epoch: int, accuracies: Sequence[float], split_seed: int) -> None:
        """Append what protocol `paper` saw of an epoch."""
        line = {"epoch": epoch, "split_seed": split_seed, "accuracy": list(accuracies)}
        append_lines(self.observed_file, [line])

    def observed(self, epochs: int, split_seed: int) -> dict[int, tuple[float, ...]]:
        """What it has seen up to that epoch, on splits of that seed; other lines are dropped."""
        lines = [
            line
            for line in read_lines(self.observed_file, contents.OBSERVED)
            if line["epoch"] <= epochs and line["split_seed"] == split_seed
        ]
        write_text(self.observed_file, json_lines(lines))
        return {line["epoch"]: tuple(line["accuracy"]) for line in lines}

    # checkpoint ---------------------------------------------------------------------------------

    def save_checkpoint(self, tensors: Mapping[str, Tensor], **facts: Any) -> None:
        """Weights, optimizer and generator state, with plain facts such as the epoch.

        The file carries a checksum of all of it. What the log says of these epochs reaches the disk
        first: a checkpoint is never ahead of metrics.jsonl.
        """
        sync(self.metrics_file)
        ready: dict[str, Tensor] = {}
        for name, tensor in tensors.items():
            alone = tensor.detach().cpu().contiguous()
            shared = any(alone.data_ptr() == other.data_ptr() for other in ready.values())
            ready[name] = alone.clone() if shared else alone  # safetensors takes no tensor twice
        content = _tensors(ready, facts)
        write_atomically(self.checkpoint_file, lambda file: file.write(content))

    def checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What `save_checkpoint` wrote, to the bit: tensors and facts."""
        path = self.checkpoint_file
        if not path.is_file():
            of = f" of member {self.member + 1}" if self.member else ""
            raise UserError(f"{self.path} has no checkpoint{of}")
        tensors, facts = _read_tensors(path)
        contents.FACTS(facts, str(path))
        return tensors, facts

    def save_output_map(self, columns: Tensor | None) -> None:
        """The map from what is read out to the columns of the embedding; none: all are kept."""
        if columns is None:
            self.output_file.unlink(missing_ok=True)
            return
        content = _tensors({"map": columns.detach().cpu().contiguous()}, {})
        write_atomically(self.output_file, lambda file: file.write(content))

    def output_map(self) -> Tensor:
        """What `save_output_map` wrote."""
        if not self.output_file.is_file():
            raise UserError(f"{self.path} has no map to its output_width yet: --resume goes on")
        found = _read_tensors(self.output_file)[0].get("map")
        good = found is not None and found.ndim == 2 and found.dtype == torch.float32
        if found is None or not good or not found.isfinite().all():
            raise UserError(f"{self.output_file} is damaged: map must be a matrix of numbers")
        return found

    # results ------------------------------------------------------------------------------------

    def save_embeddings(self, ids: Array, embedding: Tensor) -> None:
        """Node ids and their embeddings."""
        table = embedding.detach().cpu().float().numpy()
        check_numbers(self.embeddings_file, table)
        write_atomically(self.embeddings_file, lambda file: np.savez(file, id=ids, embedding=table))

    def embeddings(self) -> tuple[Array, Array]:
        """Node ids and their embeddings."""
        if not self.embeddings_file.exists():
            raise UserError(f"{self.path} has no embeddings yet") if self.exists else self._no_run()
        return contents.read_embeddings(self.embeddings_file)

    def nodes(self) -> dict[str, Array]:
        """Labels, names of classes, edges and `column:NAME` of the nodes; what there is of them."""
        return contents.read_nodes(self.nodes_file) if self.nodes_file.exists() else {}

    def labels(self) -> Array | None:
        """One class a node, -1 for none; None where no node has a label."""
        return self.nodes().get("label")

    def save_graph(self, tensors: Mapping[str, Tensor], **facts: Any) -> None:
        """The graph that was trained on, in the order of the embeddings, with a checksum."""
        content = _tensors(tensors, facts)
        write_atomically(self.graph_file, lambda file: file.write(content))

    def graph(self, nodes: int) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """What `save_graph` wrote of so many nodes; None where the graph was not kept."""
        if not self.graph_file.is_file():
            return None
        tensors, facts = _read_tensors(self.graph_file)
        contents.check_graph(self.graph_file, tensors, facts, nodes)
        return tensors, facts

    def save_scores(self, scores: Mapping[str, Any], *, other_labels: bool = False) -> None:
        """Scores, added to those of earlier evaluations; of other labels, in place of them."""
        before = self.scores()
        if other_labels:
            before = {name: part for name, part in before.items() if name == "link"}
        write_text(self.scores_file, json.dumps({**before, **scores}, indent=2) + "\n")

    def scores(self) -> dict[str, Any]:
        """The scores so far."""
        if not self.scores_file.exists():
            return {}
        return dict(read_json(self.scores_file, contents.scores))

    def diagnostics(self) -> dict[str, Any]:
        """Histograms, times and memory; what there is of them."""
        file = self.diagnostics_file
        return dict(read_json(file, contents.DIAGNOSTICS)) if file.exists() else {}

    def encoding(self) -> Encoding | None:
        """How columns became features, or None for a benchmark graph."""
        file = self.encoding_file
        if not file.exists():
            return None
        return Encoding.from_dict(read_json(file, contents.ENCODING))


def _tensors(content: Mapping[str, Tensor], facts: Mapping[str, Any]) -> bytes:
    """Tensors and facts as a safetensors file, with a checksum of both among the facts."""
    metadata = {name: json.dumps(value) for name, value in facts.items()}
    metadata[CHECKSUM] = fingerprint(content, facts)
    return save(dict(content), metadata)


def _read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `_tensors` made, to the bit."""
    check_file(path)
    with parsing(path, None):
        path.open("rb").close()  # safetensors says of any file that it cannot open: it is not there
    with parsing(path, None), safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = dict(file.metadata() or {})
        written = metadata.pop(CHECKSUM, None)
        facts = {name: json.loads(value) for name, value in metadata.items()}
        if written is None:
            raise UserError(f"{path} is not a file of muxgcl: it has no checksum")
        if written != fingerprint(tensors, facts):
            raise UserError(f"{path} is damaged: its content does not match its checksum")
    return tensors, facts
