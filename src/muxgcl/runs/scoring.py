"""From embeddings and labels to the scores that a run keeps."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from muxgcl.errors import UserError
from muxgcl.evaluate import (
    ClusteringResult,
    ProbeResult,
    Split,
    check_parts,
    cluster,
    holdout_splits,
    probe,
    public_splits,
    reindexed,
    subsampled,
)
from muxgcl.evaluate.development import report_labels
from muxgcl.evaluate.probe import COUNTED, STRENGTHS
from muxgcl.evaluate.splits import FEWEST
from muxgcl.io.load import MASKS
from muxgcl.io.safety import check_size, how_many
from muxgcl.shapes import Array
from muxgcl.tensors import AnyData

Protocol = Literal["holdout", "holdout-all", "public", "paper"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
MOST_SPLITS = 10_000
PROBE_WIDTH = 512  # of an embedding, as far as memory is reckoned before there is one
REPEATS = 5  # independent runs of k-means


@dataclass(frozen=True, slots=True, eq=False)
class Judging:
    """What a run is scored by."""

    data: AnyData  # the graph, with labels and maybe masks
    protocols: Sequence[str] = ("holdout",)
    splits: int = 20  # random ones of `holdout`
    split_seed: int = 0
    controls: bool = True  # whether controls are scored, too
    report: bool = False  # and a page is made of it


def labels_of(data: AnyData) -> Array | None:
    """One class a node, -1 for none; None where no node has a label."""
    y = data.y if "y" in data else None
    if y is None or not bool((y >= 0).any()):
        return None
    return np.asarray(y.cpu().numpy()).astype(np.int64).ravel()


def too_few_to_score(data: AnyData) -> str | None:
    """Why protocol `holdout` has nothing to say of a graph's labels; None where it has."""
    y = labels_of(data)
    if y is None:
        return None
    if (labelled := int((y >= 0).sum())) < FEWEST:
        return f"{how_many(labelled, 'node has', 'nodes have')} a label, expected at least {FEWEST}"
    return "all labels are the same" if len(np.unique(y[y >= 0])) < 2 else None


def check_scoring(
    data: AnyData, protocols: Sequence[str] | None, splits: int, *, controls: bool | None = None
) -> list[str]:
    """Find what cannot be scored before anything is trained; the notes say what will be left out.

    Args:
        data: the graph.
        protocols: those asked for; None is `holdout` where there are labels.
        splits: how many random splits.
        controls: whether controls were asked for; None is where there are labels.
    """
    if splits < 1:
        raise UserError(f"splits must be at least 1, got {splits}")
    if splits > MOST_SPLITS:
        raise UserError(
            f"splits must be at most {MOST_SPLITS:,} (20 are enough for most questions), "
            f"got {splits:,}"
        )
    y = labels_of(data)
    if y is not None:
        notes = _check_classes(y)
        for protocol in protocols or ("holdout",):
            whole = _whole_splits(data, "holdout-all" if protocol == "paper" else protocol, 1, 0)
            check_parts(whole)
            notes += _about_sample(whole[0], protocol)
        return notes
    if protocols or controls:
        asked = f"protocol {protocols[0]}" if protocols else "a score of the controls"
        raise UserError(
            f"{asked} needs labels, and this graph has none: name a file of them with --labels, "
            "or their column with --label-column"
        )
    return []


def _about_sample(split: Split, protocol: str) -> list[str]:
    """How many nodes a probe looks at, where that is not all of them."""
    sizes = [[len(part) for part in (s.train, s.val, s.test)] for s in (split, subsampled(split))]
    if sizes[0] == sizes[1] or protocol == "paper":
        return []
    shown = " + ".join(f"{few:,} of {all_:,}" for all_, few in zip(*sizes, strict=True))
    return [f"protocol {protocol} looks at a sample of the nodes: train, val, test {shown}"]


def _check_classes(y: Array) -> list[str]:
    """Refuse more classes than can be learned: a probe has a row of weights for each of them."""
    classes, labelled = len(np.unique(y[y >= 0])), int((y >= 0).sum())
    if classes > COUNTED and 2 * classes > labelled:
        raise UserError(
            f"{classes:,} classes among {labelled:,} labelled nodes cannot be learned: "
            "is the column of labels one of ids? --label-column names another"
        )
    learned = min(classes, max(1, labelled // 10))
    check_size("the probe of so many classes", 8 * len(STRENGTHS) * learned * PROBE_WIDTH)
    if classes <= COUNTED:
        return []
    return [f"{classes:,} classes: confusions are counted of the first {COUNTED}"]


def splits_of(data: AnyData, protocol: str, count: int, seed: int) -> list[Split]:
    """The splits of a protocol that needs the final embedding only; of a large graph, a sample."""
    return [subsampled(split) for split in _whole_splits(data, protocol, count, seed)]


def _whole_splits(data: AnyData, protocol: str, count: int, seed: int) -> list[Split]:
    y = labels_of(data)
    if y is None:
        raise UserError("this graph has no labels, so there is nothing to classify")
    if protocol in ("holdout", "holdout-all"):
        return holdout_splits(y, count, seed, everywhere=protocol == "holdout-all")
    if protocol == "public":
        masks = (data[name].cpu().numpy() if name in data else None for name in MASKS)
        return public_splits(y, *masks)
    raise UserError(
        f"protocol {protocol} looks at epochs of training: ask for it in `run` or `train`"
        if protocol == "paper"
        else f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}"
    )


def score(
    z: Any,
    data: AnyData,
    protocols: Sequence[str] = ("holdout",),
    *,
    splits: int = 20,
    split_seed: int = 0,
    clusterings: int = REPEATS,
    rows: Array | None = None,
    device: str | None = None,
) -> tuple[dict[str, Any], Array | None]:
    """All scores of one embedding, and the confusion matrix of the first protocol.

    Args:
        z: embeddings or features [n, d], dense or scipy sparse.
        data: the graph, with labels and maybe masks.
        protocols: how to classify; `paper` is left out, which is gathered while training.
        splits: how many random splits `holdout` takes.
        split_seed: of the splits and of k-means.
        clusterings: independent runs of k-means; 0 for none.
        rows: the nodes that `z` has rows of, in ascending order; all by default.
        device: a GPU to classify on; the scores are the same.
    """
    scores: dict[str, Any] = {}
    confusion = None
    y = labels_of(data)
    if y is None:
        return scores, confusion
    labels = labels_hash(y)
    y = y if rows is None else y[rows]
    for protocol in protocols:
        if protocol == "paper":
            continue
        parts = splits_of(data, protocol, splits, split_seed)
        parts = parts if rows is None else [reindexed(part, rows) for part in parts]
        result = probe(z, y, parts, device=device)
        scores[protocol] = probe_dict(result, split_seed, labels)
        confusion = result.confusion if confusion is None else confusion
    if clusterings:
        found = cluster_scores(z, y, repeats=clusterings, seed=split_seed)
        scores["clustering"] = found.to_dict()
    return scores, confusion


def cluster_scores(
    z: Any, y: Array, *, clusters: int | None = None, repeats: int = 5, seed: int = 0
) -> ClusteringResult:
    """Cluster all nodes; compare those of the report half with their classes."""
    count = len(np.unique(y[y >= 0])) if clusters is None else clusters
    judged = report_labels(y)
    if not (judged >= 0).any():
        judged = y  # a single labelled node
    return cluster(z, judged, clusters=count, repeats=repeats, seed=seed)


def labels_hash(y: Array) -> str:
    """A mark of the labels, so that scores of other labels are never compared."""
    return hashlib.sha256(np.ascontiguousarray(y, dtype=np.int64).tobytes()).hexdigest()[:16]


def probe_dict(result: ProbeResult, split_seed: int, labels: str) -> dict[str, Any]:
    """A probe's summaries and every split by itself; seed and labels say which splits they are."""
    marks = {"split_seed": split_seed, "labels": labels}
    return {**result.to_dict(), "per_split": {**result.to_record(), **marks}}


def summaries(scores: dict[str, Any]) -> dict[str, Any]:
    """Scores for `--json`: means and spreads, without the list of splits."""
    return {
        name: summaries(values) if isinstance(values, dict) else values
        for name, values in scores.items()
        if name != "per_split"
    }
