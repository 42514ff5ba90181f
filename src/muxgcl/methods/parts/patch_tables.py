"""Where patches lie in the graph, for methods whose contrast spares negatives that are near."""

from torch import Tensor

from muxgcl.affinity import AffinityConfig, patches
from muxgcl.graph import Graph
from muxgcl.kernels import resolve
from muxgcl.methods.base import Context


def patch_tables(
    graph: Graph, cfg: AffinityConfig, last: int, context: Context
) -> list[Tensor] | None:
    """One unit table a scale, 0 to `last`, as the contrast reads them; None without an affinity.

    The fused kernel reads 16 bits.
    """
    if cfg.affinity == "none":
        return None
    tables = patches(
        graph, cfg, last, seed=context.seed, cache=context.cache, on_step=context.on_prepare
    )
    fused = resolve(context.backend, cuda=graph.device.type == "cuda") == "fused"
    return [table.half() for table in tables] if fused else tables
