"""The one sum that is quadratic in the number of nodes, behind one door.

`negative_sum` and `contrast` are defined in `reference.py`; `chunked.py` and `fused.py` compute the
same without ever holding an n x m matrix.
"""

from importlib import import_module
from types import ModuleType
from typing import Literal, get_args

from muxgcl.errors import UserError
from muxgcl.kernels.pair_weight import Ids, PairWeight
from muxgcl.shapes import Candidates, Nodes, PerNode, Scalar

Backend = Literal["auto", "reference", "chunked", "fused"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)


def resolve(backend: Backend, *, cuda: bool, weight: PairWeight | None = None) -> Backend:
    """The backend that `auto` stands for: the fused kernel where it runs."""
    if backend not in BACKENDS:
        raise UserError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    if backend != "auto":
        return backend
    return "fused" if cuda and (weight is None or weight.curve is None) else "chunked"


def negative_sum(
    anchor: Nodes,
    keys: Candidates,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: Ids = None,
    backend: Backend = "auto",
) -> PerNode:
    """Sum over the other nodes' keys of `weight * exp((cosine - 1) / temperature)`."""
    module = _module(resolve(backend, cuda=anchor.is_cuda, weight=weight))
    return module.negative_sum(anchor, keys, weight, temperature=temperature, nodes=nodes)


def contrast(
    anchor: Nodes,
    positive: Nodes,
    keys: Candidates,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: Ids = None,
    backend: Backend = "auto",
) -> Scalar:
    """Mean over the anchors of the InfoNCE loss with weighted negatives."""
    module = _module(resolve(backend, cuda=anchor.is_cuda, weight=weight))
    return module.contrast(anchor, positive, keys, weight, temperature=temperature, nodes=nodes)


def _module(backend: Backend) -> ModuleType:
    return import_module(f"muxgcl.kernels.{backend}")  # Triton loads only when asked for


__all__ = ["BACKENDS", "Backend", "Ids", "PairWeight", "contrast", "negative_sum", "resolve"]
