"""Embedders with scikit-learn's interface: `__init__` stores, `fit` learns, `transform` embeds."""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from muxgcl.app.arguments import OnEpoch, RandomState, as_graph, sample_of, sizes_of
from muxgcl.app.describe import report_runs
from muxgcl.app.estimator_fit import learn
from muxgcl.app.estimator_folder import Trained, load_trained, save_trained
from muxgcl.app.graph_facts import check_kinds
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.load import Encoding
from muxgcl.io.safety import how_many
from muxgcl.runs.plan import Plan
from muxgcl.shapes import Array

ARGUMENTS = {  # of embedders; all others are settings
    *("method", "preset", "params", "members", "output_width", "sample"),
    *("device", "backend", "random_state", "verbose", "on_epoch"),
}


class NodeEmbedder(  # type: ignore[call-arg]  # a keyword of scikit-learn's, which has no types
    TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Any method of the registry as an estimator.

    Args:
        method: one of `muxgcl.METHODS`.
        preset: where settings start: "auto", "best", "paper", "quick" or a .toml file of settings.
        params: settings that differ from the preset, such as `{"width": 256}`.
        epochs: how long to train; the preset's length by default.
        lr: learning rate; the preset's by default.
        members: train this many seeds and put their embeddings side by side.
        output_width: columns of the embedding: what is read out is compressed by a linear map that
            is learned in `fit`. 0: all columns; by default `mux-hop` has 1,024 a member.
        sample: how many nodes a step contrasts, or a pair: anchors and their negatives. 0: all of
            them, however long it takes. By default `mux-hop` samples on a CPU where all nodes would
            take more than a minute; others where they would take more than eight, with a warning.
        device: "auto", "cpu", "cuda" or "cuda:N".
        backend: how to compute the contrast; "auto" takes the fused kernel where it runs.
        random_state: the seed: an integer; numpy's, of which each `fit` draws one; None: a new one.
        verbose: whether `fit` shows how far it is: a bar on a terminal and in a notebook, elsewhere
            some ten lines of epoch and loss on standard error.
        on_epoch: called after every epoch with its number, loss, terms and seconds (`Epoch`); on a
            GPU for 25 of them at a time. An exception that it raises ends the training.

    After `fit`: `model_` (the trained method, of the first member), `committee_` (all members and
    the map to fewer columns), `embedding_` (of the training graph, [n, d]), `ids_` (of its rows),
    `encoding_` (how columns became features), `feature_names_in_` and `n_features_in_` (of these),
    `seed_` (what random_state came to), `loss_`, `epoch_ms_`, `trained_` (what `save` writes).

    Example:
        >>> from muxgcl.io import planted
        >>> embedder = NodeEmbedder("grace", preset="quick", params={"width": 8}, epochs=2)
        >>> embedder.fit_transform(planted(nodes=40)).shape
        (40, 8)
    """

    def __init__(
        self,
        method: str = "mux-hop",
        *,
        preset: str = "auto",
        params: dict[str, Any] | None = None,
        epochs: int | None = None,
        lr: float | None = None,
        members: int = 1,
        output_width: int | None = None,
        sample: int | tuple[int, int] | None = None,
        device: str = "auto",
        backend: str = "auto",
        random_state: RandomState = 0,
        verbose: bool = False,
        on_epoch: OnEpoch | None = None,
    ) -> None:
        self.method = method
        self.preset = preset
        self.params = params
        self.epochs = epochs
        self.lr = lr
        self.members = members
        self.output_width = output_width
        self.sample = sample
        self.device = device
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose
        self.on_epoch = on_epoch

    def fit(self, graph: Any, y: None = None) -> Self:
        """Train on one graph (PyG `Data`, a pair of edge_index and x, or whatever `load` takes).

        Labels are never read. Columns of numbers are scaled as `load` does, here and, by the same
        shift and scale, in `transform`. What `load` has returned, or a `Graph`, is taken as it is.

        In a process group of torch.distributed, all of its processes call this with the same graph
        and train together; each has the result. A method that cannot be divided is trained by each.
        """
        trained = learn(
            graph,
            self._plan,
            exact=self.sample == 0,
            given=self._overrides,
            random_state=self.random_state,
            verbose=self.verbose,
            on_epoch=self.on_epoch,
        )
        self._learned(trained)  # what is not finite leaves no trace in this estimator
        return self

    @property
    def _overrides(self) -> dict[str, Any]:
        """Settings that differ from the preset: those that are arguments, and `params`."""
        given = {k: v for k, v in self.get_params(deep=False).items() if k not in ARGUMENTS}
        return {**(self.params or {}), **{k: v for k, v in given.items() if v is not None}}

    def _plan(self, graph: Graph, seed: int) -> Plan:
        anchors, keys = sizes_of(self.sample)
        return Plan.make(
            self.method,
            self.preset,
            overrides=self._overrides,
            graph=graph,
            seed=seed,
            device=self.device,
            backend=self.backend,
            members=self.members,
            output_width=self.output_width,
            anchors=anchors,
            keys=keys,
        )

    def _learned(self, trained: Trained) -> None:
        """Take over what was learned, in `fit` or by an earlier run."""
        self.trained_, self.committee_ = trained, trained.committee
        self.model_, self.seed_ = trained.committee.methods[0], trained.plan.seed
        self.embedding_: Array = trained.embedding
        self.ids_: Array = trained.ids
        self.encoding_, self.n_features_in_ = trained.encoding, int(trained.data["features"])
        names = (trained.encoding or Encoding()).names(self.n_features_in_)
        self.feature_names_in_: Array = np.array(names, dtype=object)
        self.loss_, self.epoch_ms_ = trained.loss, trained.epoch_ms

    def transform(self, graph: Any) -> Any:
        """Embed a graph with the same features, seen or unseen: an array, or see `set_output`."""
        check_is_fitted(self)
        # what was fitted on a `Graph` has seen no scaling
        loaded, prepared, _ = as_graph(graph, self.encoding_, scale=self.encoding_ is not None)
        if prepared.num_features != self.n_features_in_:
            raise UserError(
                f"trained on {how_many(self.n_features_in_, 'feature')}, this graph has "
                f"{prepared.num_features}"
            )
        check_kinds(self.trained_.data, prepared)
        device = next((p.device for p in self.model_.parameters()), prepared.device)
        table = np.asarray(self.committee_.embed(prepared.to(device)).numpy())
        self.committee_.forget()
        return self._shown(table, np.arange(len(table)) if loaded is None else loaded.ids)

    def fit_transform(self, graph: Any, y: None = None, **fit_params: Any) -> Any:
        """Train on one graph and embed it: an array, or see `set_output`."""
        self.fit(graph)
        return self._shown(self.embedding_, self.ids_)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """A name for each column of the embedding: `muxgcl0`, `muxgcl1`, ..."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{at}" for at in range(self.embedding_.shape[1])], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """With "pandas", embeddings are frames whose index is the nodes' ids; "default": arrays."""
        if transform not in (None, "default", "pandas"):
            raise UserError(f"transform must be 'default' or 'pandas', got {transform!r}")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # which `clone` copies
        return self

    def _shown(self, table: Array, ids: Array) -> Any:
        own = getattr(self, "_sklearn_output_config", {})
        if own.get("transform", get_config()["transform_output"]) != "pandas":
            return table
        from pandas import DataFrame, Index

        return DataFrame(table, Index(ids, name="id"), self.get_feature_names_out())

    def save(self, folder: Path | str, graph: Any = None, *, overwrite: bool = False) -> None:
        """Write what was learned as a run folder, which `load` and the command line read.

        Args:
            folder: a new folder.
            graph: the training graph, to keep its labels and edges for a report.
            overwrite: replace a run that is there.
        """
        check_is_fitted(self)
        loaded = None if graph is None else as_graph(graph, self.encoding_)[0]
        save_trained(self.trained_, Path(folder), loaded, overwrite=overwrite)

    @classmethod
    def load(cls, folder: Path | str, *, device: str = "auto") -> Self:
        """The embedder that a run folder holds, of `save` or of `muxgcl run`, without its graph.

        Its `params` hold every setting of the run, so that `fit` trains the same way again.
        """
        trained = load_trained(Path(folder), device)
        plan = trained.plan
        found = cls(
            plan.method,
            params={**asdict(plan.train), **asdict(plan.settings)},
            members=plan.members,
            output_width=plan.output_width or 0,
            sample=sample_of(plan),
            device=device,
            backend=plan.backend,
            random_state=plan.seed,
        )
        found._learned(trained)
        return found

    def report(self, path: Path | str, graph: Any = None) -> Path:
        """Write a page about the training; with the training graph also about its nodes."""
        page = Path(path)
        with TemporaryDirectory() as folder:
            run = Path(folder) / (page.stem or "run")
            self.save(run, graph)
            return report_runs([run], out=page)


class MuxGCL(NodeEmbedder):
    """MUX-GCL as an estimator: over hops (`mux-hop`), or as published (`method="mux-gcl"`).

    The arguments are those of `NodeEmbedder`, and the settings of the two methods, which the page
    of methods and `muxgcl.methods.mux_hop.MuxHopConfig` describe; one that is None is the preset's.
    A setting that is an argument counts before the same one in `params`.

    Example:
        >>> from muxgcl.io import planted
        >>> MuxGCL(epochs=2, output_width=8).fit_transform(planted(nodes=40)).shape
        (40, 8)
    """

    def __init__(
        self,
        method: str = "mux-hop",
        *,
        preset: str = "auto",
        params: dict[str, Any] | None = None,
        epochs: int | None = None,
        lr: float | None = None,
        members: int = 1,
        output_width: int | None = None,
        sample: int | tuple[int, int] | None = None,
        device: str = "auto",
        backend: str = "auto",
        random_state: RandomState = 0,
        verbose: bool = False,
        on_epoch: OnEpoch | None = None,
        weight_decay: float | None = None,
        width: int | None = None,
        hidden: int | None = None,
        depth: int | None = None,
        layers: int | None = None,
        hops: int | None = None,
        convolutions: int | None = None,
        norm: str | None = None,
        activation: str | None = None,
        row_normalize: bool | None = None,
        drop_features: float | None = None,
        feature_dropout: str | None = None,
        mask_features: tuple[float, float] | None = None,
        drop_edges: tuple[float, float] | None = None,
        fanout: int | None = None,
        dropout: float | None = None,
        zero_bias: bool | None = None,
        projection: int | None = None,
        projection_out: int | None = None,
        temperature: float | None = None,
        scale_weights: tuple[float, ...] | None = None,
        anchors: str | None = None,
        direction: str | None = None,
        likelihood: str | None = None,
        ema: float | None = None,
        readout: str | None = None,
        readout_weights: tuple[float, ...] | None = None,
        readout_features: float | None = None,
        readout_raw: float | None = None,
        affinity: str | None = None,
        pooling: str | None = None,
        affinity_width: int | None = None,
        affinity_epochs: int | None = None,
        affinity_lr: float | None = None,
        walk_length: int | None = None,
        walk_context: int | None = None,
        walks_per_node: int | None = None,
        walk_p: float | None = None,
        walk_q: float | None = None,
        walk_negatives: float | None = None,
    ) -> None:
        super().__init__(
            method,
            preset=preset,
            params=params,
            epochs=epochs,
            lr=lr,
            members=members,
            output_width=output_width,
            sample=sample,
            device=device,
            backend=backend,
            random_state=random_state,
            verbose=verbose,
            on_epoch=on_epoch,
        )
        self.weight_decay, self.width, self.hidden = weight_decay, width, hidden
        self.depth, self.layers, self.hops, self.fanout = depth, layers, hops, fanout
        self.norm, self.activation, self.row_normalize = norm, activation, row_normalize
        self.drop_features, self.feature_dropout = drop_features, feature_dropout
        self.mask_features, self.drop_edges = mask_features, drop_edges
        self.dropout, self.zero_bias, self.convolutions = dropout, zero_bias, convolutions
        self.projection, self.projection_out = projection, projection_out
        self.temperature, self.scale_weights = temperature, scale_weights
        self.anchors, self.direction, self.likelihood, self.ema = (
            anchors,
            direction,
            likelihood,
            ema,
        )
        self.readout, self.readout_weights = readout, readout_weights
        self.readout_features, self.readout_raw = readout_features, readout_raw
        self.affinity, self.pooling, self.affinity_width = affinity, pooling, affinity_width
        self.affinity_epochs, self.affinity_lr = affinity_epochs, affinity_lr
        self.walk_length, self.walk_context = walk_length, walk_context
        self.walks_per_node, self.walk_negatives = walks_per_node, walk_negatives
        self.walk_p, self.walk_q = walk_p, walk_q
