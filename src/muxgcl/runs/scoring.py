"""From embeddings and labels to the scores that a run keeps, controls beside them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.evaluate import (
    ProbeResult,
    Split,
    cluster,
    holdout,
    holdout_splits,
    propagated_features,
    public,
    public_splits,
    raw_features,
)
from muxgcl.evaluate.probe import COUNTED, STRENGTHS
from muxgcl.graph import Graph
from muxgcl.io.safety import check_size
from muxgcl.runs.environment import pick_device
from muxgcl.runs.fit import embed
from muxgcl.runs.plan import Plan, build
from muxgcl.seeding import seeded
from muxgcl.tensors import AnyData

Array = np.ndarray[Any, np.dtype[Any]]
PROTOCOLS = ("holdout", "public", "paper")
MOST_SPLITS = 10_000
PROBE_WIDTH = 512  # of an embedding, as far as memory is reckoned before there is one
MASKS = ("train_mask", "val_mask", "test_mask")


def labels_of(data: AnyData) -> Array | None:
    """One class a node, -1 for none; None where no node has a label."""
    y = data.y if "y" in data else None
    if y is None or not bool((y >= 0).any()):
        return None
    return np.asarray(y.cpu().numpy()).astype(np.int64).ravel()


def check_scoring(data: AnyData, protocols: Sequence[str], splits: int) -> list[str]:
    """Find what cannot be scored before anything is trained; the notes say what will be left out.

    A probe has one row of weights for each class, at each of its strengths.
    """
    if splits < 1:
        raise UserError(f"splits must be at least 1, got {splits}")
    if splits > MOST_SPLITS:
        raise UserError(
            f"splits must be at most {MOST_SPLITS:,} (20 are enough for most questions), "
            f"got {splits:,}"
        )
    y = labels_of(data)
    notes = []
    if y is not None:
        classes, labelled = len(np.unique(y[y >= 0])), int((y >= 0).sum())
        if classes > COUNTED and 2 * classes > labelled:
            raise UserError(
                f"{classes:,} classes among {labelled:,} labelled nodes cannot be learned: "
                "is the column of labels one of ids? --label-column names another"
            )
        learned = min(classes, max(1, labelled // 10))
        check_size("the probe of so many classes", 8 * len(STRENGTHS) * learned * PROBE_WIDTH)
        if classes > COUNTED:
            notes.append(f"{classes:,} classes: confusions are counted of the first {COUNTED}")
    if y is not None and {"holdout", "paper"} & set(protocols):
        holdout_splits(y, 1, 0)
    if y is not None and "public" in protocols:
        _public_splits(data, y)
    return notes


def _public_splits(data: AnyData, y: Array) -> list[Split]:
    masks = (data[name].cpu().numpy() if name in data else None for name in MASKS)
    return public_splits(y, *masks)


def classify(
    z: Any, data: AnyData, protocol: str = "holdout", *, splits: int = 20, split_seed: int = 0
) -> ProbeResult:
    """The linear probe under a protocol that needs the final embedding only."""
    y = labels_of(data)
    if y is None:
        raise UserError("this graph has no labels, so there is nothing to classify")
    if protocol == "holdout":
        return holdout(z, y, count=splits, seed=split_seed)
    if protocol == "public":
        return public(z, y, _public_splits(data, y))
    raise UserError(
        f"protocol {protocol} looks at epochs of training: ask for it in `run` or `train`"
        if protocol == "paper"
        else f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}"
    )


def score(
    z: Array,
    data: AnyData,
    protocols: Sequence[str] = ("holdout",),
    *,
    splits: int = 20,
    split_seed: int = 0,
    clusters: bool = True,
) -> tuple[dict[str, Any], Array | None]:
    """All scores of one embedding, and the confusion matrix of the first protocol."""
    scores: dict[str, Any] = {}
    confusion = None
    for protocol in protocols:
        if protocol == "paper":
            continue  # gathered while training
        result = classify(z, data, protocol, splits=splits, split_seed=split_seed)
        scores[protocol] = {**result.to_dict(), "per_split": result.to_record()}
        confusion = result.confusion if confusion is None else confusion
    y = labels_of(data)
    if clusters and y is not None:
        scores["clustering"] = cluster(z, y, seed=split_seed).to_dict()
    return scores, confusion


def controls(
    plan: Plan, graph: Graph, data: AnyData, *, splits: int = 20, split_seed: int = 0
) -> dict[str, Any]:
    """What needs no training, under `holdout`: features, untrained encoder, propagation."""
    x = _table(data.x)
    weight = data.edge_weight.cpu().numpy() if "edge_weight" in data else None
    there = graph.to(pick_device(plan.device))
    with seeded(plan.seed, there.device):
        untrained = embed(build(plan, there), there).numpy()
    tables = {
        "raw": raw_features(x),
        "untrained": untrained,
        "propagation": propagated_features(x, data.edge_index.cpu().numpy(), weight),
    }
    found = {}
    for name, table in tables.items():
        result = classify(table, data, splits=splits, split_seed=split_seed)
        found[name] = {**result.to_dict(), "per_split": result.to_record()}
    return found


def plain(scores: dict[str, Any]) -> dict[str, Any]:
    """Scores for `--json`: summaries, without the list of splits."""
    return {
        name: plain(values) if isinstance(values, dict) else values
        for name, values in scores.items()
        if name != "per_split"
    }


def _table(x: Tensor) -> Any:
    if x.layout == x.new_empty(0).layout:
        return x.cpu().numpy()
    entries = x.to_sparse_coo().coalesce()
    row, col = entries.indices().cpu().numpy()
    return sparse.csr_array((entries.values().cpu().numpy(), (row, col)), shape=tuple(x.shape))
