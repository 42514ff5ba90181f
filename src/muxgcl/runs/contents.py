"""What each file of a run folder holds, field by field, and the one place where they are read.

Whatever comes out of here has the types that the rest of the code counts on. A file that was
damaged, cut short or written by hand is one line that names the file and the field.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.io.load import MASKS
from muxgcl.io.npz import Npz
from muxgcl.io.schema import (
    Check,
    fields,
    flag,
    list_of,
    number,
    plain,
    refuse,
    table_of,
    text,
    whole,
)
from muxgcl.shapes import Array

COLUMN = "column:"  # before a user's name in nodes.npz

LARGEST = 2**63 - 1  # that TOML and numpy can hold

_seed = _count = whole(0, LARGEST)
_positive = whole(1, LARGEST)
_settings = table_of(plain)

CONFIG = fields(
    {
        "run": fields(
            {
                **dict.fromkeys(("method", "dataset", "preset", "device", "backend"), text),
                **dict.fromkeys(("capture", "created", "commit", "command"), text),
                **dict.fromkeys(("device_used", "backend_used"), text),
                **dict.fromkeys(("members", "output_width", "anchors", "keys"), _positive),
                "seed": _seed,
            }
        ),
        "train": fields({"epochs": _count}),
        "method": _settings,
        "versions": table_of(text),
        "data": fields(
            {
                **dict.fromkeys(("nodes", "edges", "features", "classes"), _count),
                "fingerprint": text,
                "notes": list_of(text),
                "directed": flag,
                "edge_types": list_of(text),
            }
        ),
        "source": fields(
            {
                **dict.fromkeys(("header", "directed", "structure", "scale"), flag),
                **dict.fromkeys(("include", "exclude"), list_of(text)),
            },
            others=text,
        ),
    },
    others=_settings,
)
METRICS = fields(
    {
        "epoch": _positive,
        "loss": number(),
        "terms": table_of(number()),
        "ms": number(0),
    },
    "epoch",
    "loss",
)
OBSERVED = fields(
    {
        "epoch": _count,
        "split_seed": _count,
        "accuracy": list_of(number(0, 100)),
    },
    "epoch",
    "split_seed",
    "accuracy",
)
FACTS = fields({"epoch": _count, "method": text, "seed": _seed}, "epoch")  # of a checkpoint


def _scaling(value: Any, place: str) -> None:
    """A shift and a scale to divide by."""
    list_of(number(), 2)(value, place)
    if value[1] == 0:
        raise refuse(value, place, "a shift and a scale other than 0")


ENCODING = fields(
    {"numbers": table_of(_scaling), "categories": table_of(list_of(text)), "structure": flag},
    "numbers",
    "categories",
)


def scores(value: Any, place: str) -> None:
    """Scores by protocol and measure; a summary has a mean, and may have a spread and a count."""
    plain(value, place)
    fields({"controls": table_of(table_of(plain))})(value, place)
    _summaries(value, place)


_summary = fields({"mean": number(), "std": number(0), "n": _positive}, "mean")


def _per_split(value: Any, place: str) -> None:
    """Accuracies and the marks of splits and labels, by which a verdict pairs them."""
    fields({"accuracy": list_of(number(0, 100)), "labels": text})(value, place)
    if (seed := value.get("split_seed")) is not None:
        _seed(seed, f"{place}.split_seed")


def _summaries(value: Any, place: str) -> None:
    if isinstance(value, dict):
        if "mean" in value or "std" in value:
            _summary(value, place)
        if "per_split" in value:
            _per_split(value["per_split"], f"{place}.per_split")
        for key, inner in value.items():
            _summaries(inner, f"{place}{'.' if ': ' in place else ': '}{key}")


def _histogram(*counts: str) -> Check:
    """Counts between edges: one more edge than counts."""
    listed = list_of(number(0))
    known = {**dict.fromkeys(counts, listed), "edges": list_of(number()), "auc": number(0, 1)}

    def check(value: Any, place: str) -> None:
        if value == {}:  # nothing was counted
            return
        fields(known, "edges", *counts)(value, place)
        edges = value["edges"]
        for name in counts:
            if len(edges) != len(value[name]) + 1 or len(edges) < 2:
                raise refuse(len(value[name]), f"{place}.{name}", f"{len(edges) - 1} counts")
        if any(low >= high for low, high in pairwise(edges)):
            raise refuse(edges, f"{place}.edges", "ascending numbers")

    return check


def _confusion(value: Any, place: str) -> None:
    list_of(list_of(_count))(value, place)
    for at, row in enumerate(value):
        if len(row) != len(value):
            raise refuse(row, f"{place}[{at}]", f"a row of {len(value)} counts")


_amount = number(0)
DIAGNOSTICS = fields(
    {
        "similarities": table_of(_histogram("positive", "negative")),
        "affinity_weights": table_of(_histogram("counts")),
        "confusion": _confusion,
        "seconds": _amount,
        "epoch_ms": _amount,
        "peak_mib": _amount,
        "device": text,
        "backend": text,
    }
)


def read_embeddings(path: Path) -> tuple[Array, Array]:
    """Node ids and their embeddings: as many of one as of the other, all of them numbers."""
    with Npz.open(path, None) as arrays:
        ids, table = _ids(arrays, "id"), arrays.read("embedding")
    if table.ndim != 2 or table.dtype.kind != "f":
        raise _misfit(path, "embedding", "numbers of shape [nodes, width]", table)
    if len(ids) != len(table):
        raise UserError(f"{path}: {len(ids):,} ids, but {len(table):,} embeddings")
    if not np.isfinite(table).all():
        raise UserError(f"{path}: embedding must be finite, got NaN or infinity")
    return ids, table


def read_nodes(path: Path) -> dict[str, Array]:
    """Labels, edges and columns of the nodes, each of a shape that fits the others."""
    found: dict[str, Array] = {}
    with Npz.open(path, None) as arrays:
        for name in arrays.names:
            found[name] = arrays.read(name)
    for name, array in found.items():
        if name == "edge_index":
            good = array.ndim == 2 and array.shape[0] == 2 and array.dtype.kind in "iu"
            if not good:
                raise _misfit(path, name, "whole numbers of shape [2, edges]", array)
            continue
        kinds = {"label": "iu", "label_names": "U"}.get(name, "biufU")
        if array.ndim != 1 or array.dtype.kind not in kinds:
            raise _misfit(path, name, "a list of values", array)
    nodes = {n: len(a) for n, a in found.items() if n not in ("edge_index", "label_names")}
    for name, length in nodes.items():
        if length != max(nodes.values()):
            raise refuse(length, f"{path}: {name}", f"{max(nodes.values()):,} values, one a node")
    _check_labels(path, found)
    return found


_graph = fields(
    {"features": _count, "directed": flag, "edge_types": list_of(text)},
    "features",
)


def check_graph(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any], nodes: int) -> None:
    """A kept graph: each tensor has the type and shape that so many nodes ask for."""
    _graph(facts, str(path))
    features, edges = facts["features"], tensors.get("edge_index", torch.empty(0)).shape[-1]
    entries = tensors["x_value"].shape[0] if "x_value" in tensors else 0
    expected: dict[str, tuple[torch.dtype, list[int], int]] = {  # type, shape, and bound
        "edge_index": (torch.int64, [2, edges], nodes),
        "x": (torch.float32, [nodes, features], 0),
        "x_row": (torch.int64, [entries], nodes),
        "x_column": (torch.int64, [entries], features),
        "x_value": (torch.float32, [entries], 0),
        "edge_weight": (torch.float32, [edges], 0),
        "edge_parts": (torch.float32, [max(1, len(facts.get("edge_types", ()))), edges], 0),
        **dict.fromkeys(MASKS, (torch.bool, [nodes], 0)),
    }
    parts = ("x",) if "x" in tensors else ("x_row", "x_column", "x_value")
    if missing := [name for name in ("edge_index", *parts) if name not in tensors]:
        raise UserError(f"{path}: {missing[0]} is missing")
    for name, tensor in tensors.items():
        kind, shape, bound = expected.get(name, (None, [], 0))
        good = tensor.dtype == kind and [*tensor.shape] == shape
        if good and bound and tensor.numel():
            good = int(tensor.min()) >= 0 and int(tensor.max()) < bound
        if good and kind == torch.float32:
            good = bool(tensor.isfinite().all())
        if not good:
            raise UserError(f"{path}: {name} does not fit a graph of {nodes:,} nodes")


def _check_labels(path: Path, found: dict[str, Array]) -> None:
    """Classes are counted from 0: there are no more of them than nodes, or names."""
    label = found.get("label")
    if label is None or not label.size:
        return
    low, high = int(label.min()), int(label.max())
    most = len(found["label_names"]) if "label_names" in found else label.size
    if low < -1 or high >= most:
        raise refuse(high if low >= -1 else low, f"{path}: label", f"from -1 to {most - 1}")


def _ids(arrays: Npz, name: str) -> Array:
    ids = arrays.read(name)
    if ids.ndim != 1 or ids.dtype.kind not in "iuU":
        raise _misfit(arrays.path, name, "a list of whole numbers or of texts", ids)
    return ids


def _misfit(path: Path, name: str, expected: str, array: Array) -> UserError:
    return UserError(
        f"{path}: {name} must be {expected}, got {array.dtype} of shape {list(array.shape)}"
    )
