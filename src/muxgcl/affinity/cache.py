"""A table on disk under a hash of what it was made from."""

from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from muxgcl.graph import fingerprint
from muxgcl.io.files import write_atomically


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
