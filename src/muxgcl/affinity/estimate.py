"""Patch affinity estimation (PAE): one unit table a scale, whose cosines say how near patches lie.

Computed once before training, kept on disk, never differentiated. A node without neighbours lies
nowhere: its row is zero at every scale, so its cosine with any patch is 0, neither near nor far.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from muxgcl.affinity.autoencoder import vgae
from muxgcl.affinity.config import AffinityConfig
from muxgcl.affinity.pooling import pool
from muxgcl.affinity.skipgram import skip_gram
from muxgcl.errors import UserError
from muxgcl.graph import Graph, fingerprint, tensors_of
from muxgcl.io.files import write_atomically
from muxgcl.seeding import seeded

RECIPE = 1  # raised when the same settings come to mean another table


def patches(
    graph: Graph,
    cfg: AffinityConfig,
    layers: int,
    *,
    seed: int,
    cache: Path | None,
    on_step: Callable[[int, int], None] | None = None,
) -> list[Tensor]:
    """Unit tables of where patches lie, scales 0 to `layers`.

    Args:
        graph: whose patches.
        cfg: which embedding, and how it is pooled.
        layers: how many hops the largest patch has.
        seed: the one source of chance; the caller's is left alone.
        cache: a folder that keeps the embedding for the next time, or None.
        on_step: called after each training step with the steps done and their total.
    """
    settings = cfg.embedding_settings()
    file = None
    if cache is not None:
        made_from = settings | {"seed": seed, "device": graph.device.type, "recipe": RECIPE}
        name = fingerprint(tensors_of(graph), made_from)
        file = cache / f"{cfg.affinity}-{name}.safetensors"
    nodes = None if file is None else load_table(file)
    if nodes is None:
        with seeded(seed, graph.device), torch.enable_grad():
            train = vgae if cfg.affinity == "vgae" else skip_gram
            nodes = train(graph, **settings, on_step=on_step)
        if file is not None:
            with suppress(UserError):  # a cache that cannot be written costs time, not the run
                store_table(file, nodes)
    nodes = nodes.to(graph.device)
    linked = graph.adjacency.rowptr.diff() > 1  # every node has a loop
    return pool(nodes.where(linked[:, None], 0), graph.adjacency, layers, cfg.pooling)


def load_table(path: Path) -> Tensor | None:
    """What `store_table` wrote; None if there is nothing, or not exactly what was written."""
    try:
        with safe_open(path, "pt") as file:
            table, written = file.get_tensor("table"), (file.metadata() or {}).get("sha256")
    except (OSError, SafetensorError):
        return None
    return table if written == fingerprint({"table": table}, {}) else None


def store_table(path: Path, table: Tensor) -> None:
    """Write the table with a checksum; the file appears whole or not at all."""
    table = table.cpu().contiguous()
    content = save({"table": table}, {"sha256": fingerprint({"table": table}, {})})
    write_atomically(path, lambda file: file.write(content))
