"""What can be asked of a run, in Python and on the command line alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from muxgcl.errors import UserError
from muxgcl.kernels import Backend
from muxgcl.runs.loop import Capture
from muxgcl.runs.scoring import Protocol

Folder = Path | str  # a folder, or a file, as a user names it


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How a graph is read: `data_root`, and arguments of `muxgcl.load` under the same names.

    A named dataset, such as "cora", takes `data_root` alone.

    Example:
        >>> load = LoadOptions(features="nodes.csv", label_column="topic")
        >>> load.given()
        {'features': 'nodes.csv', 'label_column': 'topic'}
    """

    data_root: Path | None = None  # where datasets lie; else $MUXGCL_DATA, then the cache folder
    features: Any = None  # a file, or whatever `load` takes
    labels: Any = None
    label_column: str | None = None
    id_column: str | None = None
    source_column: str | None = None
    target_column: str | None = None
    weight_column: str | None = None
    edge_type_column: str | None = None  # for `mux-hop`
    directed: bool | None = None  # keep the directions of edges, for `mux-hop`
    header: bool | None = None
    include: str | tuple[str, ...] | None = None
    exclude: str | tuple[str, ...] | None = None
    structure: bool | None = None
    scale: bool | None = None  # False keeps all numbers of the features as they are

    def given(self) -> dict[str, Any]:
        """The options about files that were given, by name."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "data_root"}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to train, where to keep the run, and how to score it.

    Attributes:
        method: one of `muxgcl.METHODS`.
        preset: where settings start: "best" (the default for a named dataset), "auto" (the default
            for any other graph), "paper", "quick" or a .toml file of settings.
        settings: settings that differ from the preset, such as `{"width": 256}`.
        epochs: how long to train; the preset's length by default, that of the run with `resume`.
        seed: of everything random in the run.
        members: train this many seeds, from `seed` on, and put their embeddings side by side.
        output_width: columns of the embedding: what is read out is compressed by a linear map that
            is learned on the graph. 0: all columns; by default `mux-hop` has 1,024 a member.
        device: "auto", "cpu", "cuda" or "cuda:N".
        backend: how to compute the contrast; "auto" takes the fused kernel where it runs.
        capture: whether the training step is captured as a CUDA graph.
        anchors: size of the random sample of anchors in each step; all nodes by default.
        negatives: size of the sample that they are contrasted with; all nodes by default.
        exact: contrast all nodes with all others, however long it takes. Otherwise training on a
            CPU samples where that would take more than a minute (`mux-hop`) or eight (all others;
            twenty where the graph has more than 50,000 nodes).
        out: the run folder; under runs/ by default.
        resume: continue the run in the run folder; a larger `epochs` trains longer.
        overwrite: replace an existing run.
        score: False to train and embed only.
        protocols: how to classify; "holdout" by default, where there are labels.
        splits: how many random splits "holdout" takes.
        split_seed: of the splits, shared by all methods.
        controls: whether to score controls that need no training; by default where there are
            labels.
        report: whether to write report.html.
        log: also send the losses to "tensorboard", "mlflow" or "wandb".

    Example:
        >>> options = RunOptions(method="grace", settings={"width": 64}, epochs=100, seed=1)
        >>> options.overrides
        {'width': 64, 'epochs': 100}
    """

    method: str = "mux-hop"
    preset: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    epochs: int | None = None
    seed: int = 0
    members: int = 1
    output_width: int | None = None
    device: str = "auto"
    backend: Backend = "auto"
    capture: Capture = "auto"
    anchors: int | None = None
    negatives: int | None = None
    exact: bool = False
    out: Path | str | None = None
    resume: bool = False
    overwrite: bool = False
    score: bool = True
    protocols: tuple[Protocol, ...] | None = None
    splits: int = 20
    split_seed: int = 0
    controls: bool | None = None
    report: bool = True
    log: str | None = None

    def __post_init__(self) -> None:
        if self.resume and self.overwrite:
            raise UserError("resume goes on with a run, overwrite replaces it: ask for one of them")
        if self.exact and (self.anchors is not None or self.negatives is not None):
            raise UserError("exact contrasts all nodes, anchors and negatives some: ask for one")

    @property
    def overrides(self) -> dict[str, Any]:
        """Settings that differ from the preset, epochs among them."""
        epochs = {} if self.epochs is None else {"epochs": self.epochs}
        return {**self.settings, **epochs}
