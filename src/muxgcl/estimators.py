"""Embedders with scikit-learn's manners: `__init__` stores, `fit` learns, `transform` embeds."""

import sys
import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.load import Encoding, Loaded, load
from muxgcl.runs.committee import fit_members
from muxgcl.runs.embedding import collapsed
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan

Array = np.ndarray[Any, np.dtype[Any]]
RandomState: TypeAlias = int | np.integer[Any] | np.random.RandomState | np.random.Generator | None


class NodeEmbedder(TransformerMixin, BaseEstimator):
    """Any method of the registry as an estimator.

    Args:
        method: one of `muxgcl.METHODS`.
        preset: where settings start: "auto", "best", "paper", "quick" or a .toml file of settings.
        params: settings that differ from the preset, such as `{"width": 256}`.
        epochs: how long to train; the preset's length by default.
        lr: learning rate; the preset's by default.
        members: train so many seeds, counted up, and put their rows side by side.
        output_width: columns of the embedding: what is read out is compressed by a linear map that
            is learned on the training graph; all columns by default.
        device: "auto", "cpu", "cuda" or "cuda:N".
        backend: how to compute the contrast; "auto" takes the fused kernel where it runs.
        random_state: the seed of everything random: an integer; a numpy `RandomState` or
            `Generator`, of which each `fit` draws one; or None for a fresh one.
        verbose: whether `fit` tells epoch and loss on standard error, some ten times in all.

    After `fit`: `model_` (the trained method, of the first member), `committee_` (all members and
    the map to fewer columns), `embedding_` (of the training graph, [n, d]), `encoding_` (how
    columns became features), `seed_` (what random_state came to), `n_features_in_`, `loss_`,
    `epoch_ms_`.

    Example:
        >>> from muxgcl.io import planted
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
        members: int = 1,
        output_width: int | None = None,
        device: str = "auto",
        backend: str = "auto",
        random_state: RandomState = 0,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.preset = preset
        self.params = params
        self.epochs = epochs
        self.lr = lr
        self.members = members
        self.output_width = output_width
        self.device = device
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, graph: Any, y: None = None) -> Self:
        """Train on one graph (PyG `Data`, a pair of edge_index and x, or whatever `load` takes).

        Labels are never read. Columns of numbers are scaled as `load` does, here and, by the same
        shift and scale, in `transform`. What `load` has returned, or a `Graph`, is taken as it is.
        """
        seed = draw_seed(self.random_state)
        prepared, encoding = as_graph(graph)
        given = {"epochs": self.epochs, "lr": self.lr}
        overrides = {**(self.params or {}), **{k: v for k, v in given.items() if v is not None}}
        plan = Plan.make(
            self.method,
            self.preset,
            overrides=overrides,
            graph=prepared,
            seed=seed,
            device=self.device,
            backend=self.backend,
            members=self.members,
            output_width=self.output_width,
        )
        on_block = progress_printer(plan.train.epochs) if self.verbose else None
        # members have forgotten the graph: a pickle is as small as the weights
        committee, embedding, fitted = fit_members(plan, prepared, on_block=on_block)
        if (told := collapsed(embedding)) is not None:
            warnings.warn(told, stacklevel=2)
        self.committee_ = committee  # what is not finite leaves no trace in this estimator
        self.model_, self.seed_, self.encoding_ = self.committee_.methods[0], seed, encoding
        self.embedding_: Array = embedding.numpy()
        self.n_features_in_ = prepared.num_features
        self.loss_, self.epoch_ms_ = fitted.loss, fitted.epoch_ms
        return self

    def transform(self, graph: Any) -> Array:
        """Embed a graph with the same features, seen or unseen."""
        check_is_fitted(self)
        # what was fitted on a `Graph` has seen no scaling
        prepared, _ = as_graph(graph, self.encoding_, scale=self.encoding_ is not None)
        if prepared.num_features != self.n_features_in_:
            raise UserError(
                f"trained on {self.n_features_in_} features, this graph has {prepared.num_features}"
            )
        device = next((p.device for p in self.model_.parameters()), prepared.device)
        table = np.asarray(self.committee_.embed(prepared.to(device)).numpy())
        self.committee_.forget()
        return table

    def fit_transform(self, graph: Any, y: None = None, **fit_params: Any) -> Array:
        """Train on one graph and embed it."""
        return self.fit(graph).embedding_


class MuxGCL(NodeEmbedder):
    """MUX-GCL as an estimator: over hops (`mux-hop`), or as published (`method="mux-gcl"`).

    The arguments are those of `NodeEmbedder`.

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
        device: str = "auto",
        backend: str = "auto",
        random_state: RandomState = 0,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            method,
            preset=preset,
            params=params,
            epochs=epochs,
            lr=lr,
            members=members,
            output_width=output_width,
            device=device,
            backend=backend,
            random_state=random_state,
            verbose=verbose,
        )


def as_graph(
    graph: Any, encoding: Encoding | None = None, *, scale: bool = True
) -> tuple[Graph, Encoding | None]:
    """Whatever `load` takes or returns, and how its columns became features; a `Graph` stays."""
    if isinstance(graph, Graph):
        if encoding is not None and encoding.changes:
            raise UserError(
                "columns were scaled or encoded in fit: expected a graph that load takes, "
                "got a Graph, whose features are as they are"
            )
        return graph, None
    if isinstance(graph, Loaded):
        if encoding not in (None, graph.encoding):
            raise UserError(
                "the columns of this graph became other features than those trained on; "
                "load it with encoding=embedder.encoding_"
            )
        return Graph.from_data(graph.tensors), graph.encoding
    loaded = load(graph, encoding=encoding, scale=scale)
    return Graph.from_data(loaded.tensors), loaded.encoding


def draw_seed(random_state: RandomState) -> int:
    """A seed from what scikit-learn's users pass."""
    if random_state is None:
        random_state = np.random.default_rng()  # seeded by the system
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    raise UserError(
        "random_state must be an integer, None, or a numpy RandomState or Generator, "
        f"got {type(random_state).__name__}"
    )


def progress_printer(epochs: int) -> Callable[[list[Epoch]], None]:
    """Tells the loss after every tenth of the epochs, and after the last."""
    tenth = -(-epochs // 10)

    def tell(block: list[Epoch]) -> None:
        for epoch in block:
            if epoch.number % tenth == 0 or epoch.number == epochs:
                print(f"epoch {epoch.number}/{epochs}: loss {epoch.loss:.4f}", file=sys.stderr)

    return tell
