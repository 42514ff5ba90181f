"""Embedders with scikit-learn's manners: `__init__` stores, `fit` learns, `transform` embeds."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from muxgcl.errors import UserError
from muxgcl.experiment import embed, fit
from muxgcl.graph import Graph
from muxgcl.load import Encoding, load
from muxgcl.plan import Plan

Array = np.ndarray[Any, Any]


class NodeEmbedder(TransformerMixin, BaseEstimator):
    """Any method of the registry as an estimator.

    Args:
        method: one of `muxgcl.METHODS`.
        preset: where settings start: "best", "paper", "quick" or "auto".
        params: settings that differ from the preset, such as `{"width": 256}`.
        epochs: how long to train; the preset's length by default.
        lr: learning rate; the preset's by default.
        device: "auto", "cpu", "cuda" or "cuda:N".
        backend: how to compute the contrast; "auto" takes the fused kernel where it runs.
        random_state: the seed of everything random.

    After `fit`: `model_` (the trained method), `embedding_` (of the training graph, [n, d]),
    `encoding_` (how columns became features), `n_features_in_`, `loss_`, `epoch_ms_`.

    Example:
        >>> from muxgcl.datasets import planted
        >>> embedder = NodeEmbedder("grace", preset="quick", params={"width": 8}, epochs=2)
        >>> embedder.fit_transform(planted(nodes=40)).shape
        (40, 8)
    """

    def __init__(
        self,
        method: str = "mux-gcl",
        *,
        preset: str = "auto",
        params: dict[str, Any] | None = None,
        epochs: int | None = None,
        lr: float | None = None,
        device: str = "auto",
        backend: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.method = method
        self.preset = preset
        self.params = params
        self.epochs = epochs
        self.lr = lr
        self.device = device
        self.backend = backend
        self.random_state = random_state

    def fit(self, graph: Any, y: None = None) -> Self:
        """Train on one graph (PyG `Data`, a pair of edge_index and x, or whatever `load` takes).

        Labels are never read. Columns of numbers are scaled as `load` does, here and, by the same
        shift and scale, in `transform`; a `Graph` is taken as it is.
        """
        prepared, self.encoding_ = as_graph(graph)
        given = {"epochs": self.epochs, "lr": self.lr}
        overrides = {**(self.params or {}), **{k: v for k, v in given.items() if v is not None}}
        plan = Plan.make(
            self.method,
            self.preset,
            overrides=overrides,
            graph=prepared,
            seed=self.random_state,
            device=self.device,
            backend=self.backend,
        )
        fitted = fit(plan, prepared)
        self.model_ = fitted.method
        self.embedding_: Array = fitted.embed().numpy()
        self.n_features_in_ = prepared.num_features
        self.loss_, self.epoch_ms_ = fitted.loss, fitted.epoch_ms
        return self

    def transform(self, graph: Any) -> Array:
        """Embed a graph with the same features, seen or unseen."""
        check_is_fitted(self)
        prepared, _ = as_graph(graph, self.encoding_)
        if prepared.num_features != self.n_features_in_:
            raise UserError(
                f"trained on {self.n_features_in_} features, this graph has {prepared.num_features}"
            )
        device = next((p.device for p in self.model_.parameters()), prepared.device)
        return np.asarray(embed(self.model_, prepared.to(device)).numpy())

    def fit_transform(self, graph: Any, y: None = None, **fit_params: Any) -> Array:
        """Train on one graph and embed it."""
        return self.fit(graph).embedding_


class MuxGCL(NodeEmbedder):
    """MUX-GCL as an estimator; the same arguments as `NodeEmbedder`, without `method`.

    Example:
        >>> from muxgcl.datasets import planted
        >>> MuxGCL(epochs=2, params={"width": 8}).fit_transform(planted(nodes=40)).shape
        (40, 8)
    """

    def __init__(
        self,
        *,
        preset: str = "auto",
        params: dict[str, Any] | None = None,
        epochs: int | None = None,
        lr: float | None = None,
        device: str = "auto",
        backend: str = "auto",
        random_state: int = 0,
    ) -> None:
        super().__init__(
            "mux-gcl",
            preset=preset,
            params=params,
            epochs=epochs,
            lr=lr,
            device=device,
            backend=backend,
            random_state=random_state,
        )


def as_graph(graph: Any, encoding: Encoding | None = None) -> tuple[Graph, Encoding | None]:
    """Whatever `load` takes, with how its columns became features; a prepared graph stays."""
    if isinstance(graph, Graph):
        return graph, None
    loaded = load(graph, encoding=encoding)
    return Graph.from_data(loaded.tensors), loaded.encoding
