r"""Proposition 1, $\mathcal L_{GR} < \mathcal L_{MUX} < I(X; U, V)$, measured through training.

The objectives are log-likelihoods, to be maximised: what training minimises, with the sign turned.
The information itself cannot be measured; InfoNCE bounds it from below (van den Oord et al. 2018,
<https://arxiv.org/abs/1807.03748>) and never exceeds $\log N$:

$$I_{NCE}(U^{(L)}, V^{(k)}) = \log N + \frac1N \sum_i \log
    \frac{e^{\theta(u_i, v_i)/\tau}}{\sum_j e^{\theta(u_i, v_j)/\tau}}$$
"""

import math
from collections.abc import Mapping, Sequence

import torch

from muxgcl.graph import Graph
from muxgcl.kernels import contrast
from muxgcl.losses.multiscale import MultiplexPatchContrast
from muxgcl.methods import total
from muxgcl.methods.mux_gcl import MuxGcl
from muxgcl.reproduce.soft_negatives import projected
from muxgcl.shapes import Nodes


def bounds(method: MuxGcl, graph: Graph) -> dict[str, float]:
    """Both objectives and the InfoNCE estimate on the same two views."""
    one, two = projected(method, graph)
    both = {k: torch.cat([one[k], two[k]]) for k in one}
    scale_weights, temperature = method.cfg.scale_weights, method.cfg.temperature
    backend = method.context.backend
    last_only = [0.0] * (len(scale_weights) - 1) + [1.0]
    grace = MultiplexPatchContrast(last_only, temperature, backend=backend)
    hard = MultiplexPatchContrast(scale_weights, temperature, backend=backend)

    def nce(anchor: Nodes, sample: Nodes) -> float:
        loss = contrast(anchor, sample, temperature=temperature, backend=backend)
        return math.log(graph.num_nodes) - float(loss)

    last = max(one)
    estimates = {k: (nce(one[last], two[k]) + nce(two[last], one[k])) / 2 for k in one}
    return {
        "l_gr": -float(total(grace(both))),
        "l_mpc": -float(total(hard(both))),  # all scales, every negative in full
        "l_mux": -float(total(method.contrast(both, method.patches))),
        "i_nce": sum(weight * estimates[k] for k, weight in enumerate(scale_weights)),
        "log_n": math.log(graph.num_nodes),
    }


def sentence(points: Sequence[Mapping[str, float]], where: str) -> str:
    """Where the claimed order holds, in plain words."""
    held = [f"{point['epoch']:g}" for point in points if point["l_gr"] < point["l_mux"]]
    below = sum(point["l_mux"] < point["i_nce"] for point in points)
    if len(held) == len(points):
        lower = f"at all {len(points)} points of training"
    else:
        which = f" (epochs {', '.join(held)})" if held else ""
        lower = f"at {len(held)} of {len(points)} points of training{which}"
    text = f"{where}: L_GR < L_MUX holds {lower}; L_MUX < I_NCE holds at {below} of {len(points)}"
    if all(point["l_mux"] < 0 for point in points):
        text += ", which says little: the logarithm of a share is below zero, information is not"
    return f"{text}."
