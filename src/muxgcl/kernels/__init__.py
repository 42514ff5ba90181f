"""The one sum that is quadratic in the number of nodes, behind one interface.

`negative_sum`, `pair_sum` and `contrast` are defined in `reference.py`; `chunked.py` and `fused.py`
compute the same without ever holding an n x m matrix.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.kernels.pair_function import Exponential, LogGap, PairFunction, Sigmoid
from muxgcl.kernels.pair_weight import Ids, PairWeight
from muxgcl.kernels.sampling import ALL, Chooser, PerAnchor, Sample, Sampling, Selection, taken
from muxgcl.shapes import Candidates, Nodes, Scalar

# a backend's name, or "fused/tf32": with the precision of its products; "/fp32" keeps all products
# of a training step in full precision, those outside the contrast too
Backend = str
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
BACKENDS = (
    "auto",
    "reference",
    "reference/fp32",
    "chunked",
    "chunked/fp32",
    "fused",
    *(f"fused/{precision}" for precision in PRECISIONS),
)
COLD = 0.025  # a temperature below which all exponentials of a row may underflow in 32 bits


def resolve(backend: Backend, *, cuda: bool) -> Backend:
    """The backend that `auto` stands for: the fused kernel where it runs."""
    if backend not in BACKENDS:
        raise UserError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    if backend != "auto":
        return backend
    return "fused" if cuda else "chunked"


def check_temperature(temperature: float, backend: Backend) -> None:
    """Refuse a temperature at which the fused kernel would lose whole rows."""
    if backend.partition("/")[0] == "fused" and temperature < COLD:
        raise UserError(
            f"backend {backend} needs a temperature of at least {COLD}, got {temperature}: below "
            "it a row's exponentials underflow in 32 bits; backend chunked takes any"
        )


def negative_sum(
    anchor: Nodes,
    keys: Candidates,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: Ids = None,
    backend: Backend = "auto",
    sample: Sample | None = None,
) -> PerAnchor:
    """Sum over the other nodes' keys of `weight * exp((cosine - 1) / temperature)`.

    With a `sample`, all tables hold the rows of its nodes; the sums are those of its anchors,
    estimated from its keys.
    """
    functions = partial(_function, backend=resolve(backend, cuda=anchor.is_cuda))
    if sample is not None:
        return sample.negative_sum(functions, anchor, keys, weight, temperature=temperature)
    function = functions("negative_sum")
    return function(anchor, keys, weight, temperature=temperature, nodes=nodes)


def pair_sum(
    anchor: Nodes,
    keys: Candidates,
    function: PairFunction,
    *,
    nodes: Ids = None,
    backend: Backend = "auto",
    sample: Sample | None = None,
) -> PerAnchor:
    """Sum over the other nodes' keys of a function of the cosine.

    With a `sample`, all tables hold the rows of its nodes; the sums are those of its anchors,
    estimated from its keys.
    """
    functions = partial(_function, backend=resolve(backend, cuda=anchor.is_cuda))
    if sample is not None:
        return sample.pair_sum(functions, anchor, keys, function)
    return functions("pair_sum")(anchor, keys, function, nodes=nodes)


def contrast(
    anchor: Nodes,
    keys: Nodes,
    weight: PairWeight | None = None,
    *,
    temperature: float,
    nodes: int | None = None,
    backend: Backend = "auto",
    sample: Selection | None = None,
) -> Scalar:
    """Mean over the anchors of the InfoNCE loss with weighted negatives.

    The positive of an anchor is its own node in the next view of the keys. With a `sample`, all
    tables hold the rows of its nodes, and this is an estimate.
    """
    if backend == "auto" and temperature < COLD:
        backend = "chunked"
    check_temperature(temperature, backend)
    functions = partial(_function, backend=resolve(backend, cuda=anchor.is_cuda))
    if sample is not None:
        return sample.contrast(functions, anchor, keys, weight, temperature=temperature)
    function = functions("contrast")
    return function(anchor, keys, weight, temperature=temperature, nodes=nodes)


def _function(name: str, backend: Backend) -> Callable[..., Tensor]:
    module, _, precision = backend.partition("/")
    function = getattr(import_module(f"muxgcl.kernels.{module}"), name)  # Triton only when asked
    return partial(function, precision=precision) if module == "fused" and precision else function


__all__ = [
    "ALL",
    "BACKENDS",
    "PRECISIONS",
    "Backend",
    "Chooser",
    "Exponential",
    "LogGap",
    "PairFunction",
    "PairWeight",
    "PerAnchor",
    "Sample",
    "Sampling",
    "Selection",
    "Sigmoid",
    "check_temperature",
    "contrast",
    "negative_sum",
    "pair_sum",
    "resolve",
    "taken",
]
