"""A table on disk under a hash of what it was made from."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from muxgcl.graph import Graph
from muxgcl.runs import write_atomically


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


def load(path: Path) -> Tensor | None:
    """What `store` wrote; None if there is nothing, or not exactly what was written."""
    try:
        with safe_open(path, "pt") as file:
            table, written = file.get_tensor("table"), (file.metadata() or {}).get("sha256")
    except (OSError, SafetensorError):
        return None
    return table if written == fingerprint({"table": table}, {}) else None


def store(path: Path, table: Tensor) -> None:
    """Write the table with a checksum; the file appears whole or not at all."""
    table = table.cpu().contiguous()
    content = save({"table": table}, {"sha256": fingerprint({"table": table}, {})})
    write_atomically(path, lambda file: file.write(content))
