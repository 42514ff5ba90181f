r"""Figure 3: what turns GRACE's objective into MUX-GCL's, pair by pair.

$$T_{D,ij}^{Lk} = \psi_{D,ij}^{Lk} - \psi_{D,ij}^{LL} + \log\omega_{ij}^{Lk}, \qquad
\psi_{D,ij}^{Lk} = \theta(u_i^{(L)}, v_j^{(k)}) - \theta(u_i^{(L)}, v_i^{(k)})$$

and $T_S$ with $u_j^{(k)}$ in the place of $v_j^{(k)}$ in the first cosine. As printed, $\psi$ holds
the cosine $\theta$ itself, not divided by the temperature as it is in the objective; both are
measured.

Mind the sign. The objective is $-\log(1 + \sum_j \omega_{ij} (e^{\psi_S} + e^{\psi_D}))$, so a pair
with $T > 0$ adds more to the sum than it does in GRACE's and makes the objective *smaller*. The
paper finds $T > 0$ and concludes the opposite; what its proposition needs is $T < 0$.
"""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from muxgcl.graph import Graph
from muxgcl.methods.mux_gcl import MuxGcl
from muxgcl.runs.diagnostics import random_pairs
from muxgcl.shapes import Nodes

BINS = 60
Pairs = Float[Tensor, " pairs"]


def projected(method: MuxGcl, graph: Graph) -> tuple[dict[int, Nodes], dict[int, Nodes]]:
    """Unit rows of two fresh views at every scale, as the objective sees them."""
    one, two = (
        {k: method.projector(nodes) for k, nodes in method.encoder(view(graph)).items()}
        for view in method.views
    )
    return one, two


def soft_negatives(method: MuxGcl, graph: Graph) -> dict[str, dict[str, Any]]:
    """Both quantities at each scale, as printed and with the temperature, on random pairs."""
    one, two = projected(method, graph)
    i, j = random_pairs(graph.num_nodes, graph.device)
    psi = {
        (name, k): pull(one, two, others, k, i, j)
        for k in one
        for name, others in (("D", two), ("S", one))
    }
    found: dict[str, dict[str, Any]] = {}
    for (name, k), values in psi.items():
        change, log_weight = values - psi[name, max(one)], _log_weight(method, k, i, j)
        for reading, by in (("printed", 1.0), ("tempered", method.cfg.temperature)):
            found[f"{name}{k} {reading}"] = describe(change / by + log_weight)
    return found


def pull(
    one: Mapping[int, Nodes],
    two: Mapping[int, Nodes],
    others: Mapping[int, Nodes],
    k: int,
    i: Tensor,
    j: Tensor,
) -> Pairs:
    r"""$\psi_{ij}^{Lk}$: a negative's cosine less the positive's; `others` holds the negatives."""
    anchor = one[max(one)]
    positive = (anchor * two[k]).sum(1)
    return (anchor[i] * others[k][j]).sum(1) - positive[i]


def _log_weight(method: MuxGcl, k: int, i: Tensor, j: Tensor) -> Pairs:
    if method.patches is None:
        return torch.zeros(len(i), device=i.device)
    cosine = (method.patches[-1][i] * method.patches[k][j]).sum(1)
    return method.contrast.line(cosine).log()


def describe(values: Pairs) -> dict[str, Any]:
    """A distribution: Gaussian fit, share above zero, 95 % interval, distance from the fit.

    A negative of weight 0 has no logarithm: it counts as below zero and is left out of the rest.
    """
    finite = values[values.isfinite()].double().cpu().sort().values
    mean, std = float(finite.mean()), float(finite.std())
    ranks = torch.arange(1, len(finite) + 1) / len(finite)
    fitted = torch.special.ndtr((finite - mean) / max(std, 1e-12))
    low, high, least, most = torch.quantile(
        finite, finite.new_tensor([0.025, 0.975, 0.0005, 0.9995])
    ).tolist()
    edges = torch.linspace(least, max(most, least + 1e-6), BINS + 1, dtype=torch.float64)
    return {
        "mean": mean,
        "std": std,
        "above_zero": float((values > 0).double().mean()),
        "low": low,
        "high": high,
        "distance": float((ranks - fitted).abs().max()),  # Kolmogorov and Smirnov's
        "edges": edges.tolist(),
        "counts": torch.histogram(finite, edges).hist.int().tolist(),
    }
