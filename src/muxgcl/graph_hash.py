"""Short hashes that tell one graph, table or group of settings from another."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from muxgcl.graph import Graph


def fingerprint(tensors: Mapping[str, Tensor], settings: Mapping[str, Any]) -> str:
    """A hash of tensors (with dtype and shape) and plain settings."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        array = tensor.detach().cpu().contiguous().numpy()
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()[:24]


def tensors_of(graph: Graph) -> dict[str, Tensor]:
    """All that a graph consists of."""
    adjacency = graph.adjacency
    found = {"rowptr": adjacency.rowptr, "col": adjacency.col, "weight": adjacency.weight}
    if isinstance(graph.features, Tensor):
        return found | {"features": graph.features}
    rows = graph.features.matrix
    return found | {
        "features rowptr": rows.rowptr,
        "features col": rows.col,
        "features value": rows.value,
        "features columns": torch.tensor(rows.columns),
    }


def of_graph(graph: Graph) -> str:
    """A hash of a graph: its edges, weights and features."""
    return fingerprint(tensors_of(graph), {})
