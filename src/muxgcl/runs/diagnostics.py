"""Histograms that explain a trained method: how far positives stand out, how negatives are weighed.

Figure 1 of the paper shows similarities of positive and of negative pairs across layers; the second
kind shows the weights that patch affinity estimation gives to negatives.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from muxgcl.graph import Graph
from muxgcl.losses.multiscale import WEIGHTS, Line
from muxgcl.methods.grace import Grace
from muxgcl.methods.mux_gcl import MuxGcl
from muxgcl.methods.mux_hop import MuxHop
from muxgcl.runs.fit import Fitted
from muxgcl.seeding import seeded
from muxgcl.shapes import Nodes

BINS = 60
PAIRS = 50_000  # negatives drawn for a histogram
ROWS = 4096  # of them gathered at once
LARGE = 15_000  # nodes, beyond which a sample of so many is looked at:
SAMPLE = 8192


def diagnose(fitted: Fitted, seed: int = 0) -> dict[str, Any]:
    """What a report draws beside the scores; empty for methods without scales."""
    method = fitted.method
    if not isinstance(method, MuxHop | MuxGcl | Grace):
        return {}
    with seeded(seed, fitted.graph.device), torch.no_grad():
        one, two = views_of(method, fitted.graph)
        found: dict[str, Any] = {"similarities": similarities(one, two)}
        if isinstance(method, MuxHop | MuxGcl) and method.patches is not None:
            line = WEIGHTS[method.cfg.likelihood]
            found["affinity_weights"] = affinity_weights(method.patches, line)
    return found


def views_of(method: MuxHop | MuxGcl | Grace, graph: Graph) -> list[Mapping[int, Nodes]]:
    """Every scale of two fresh views."""
    if isinstance(method, MuxHop):
        some = None
        if graph.num_nodes > LARGE:
            some = torch.rand(graph.num_nodes, device=graph.device).topk(SAMPLE).indices
        both = [scale.chunk(2) for scale in method.scales(graph, some)]  # one view below the other
        return [{k: pair[side] for k, pair in enumerate(both)} for side in (0, 1)]
    return [method.encoder(view(graph)) for view in method.views]


def similarities(one: Mapping[int, Nodes], two: Mapping[int, Nodes]) -> dict[str, Any]:
    """Cosines of pairs (layer m of one view, layer n of the other), positive and negative."""
    edges = torch.linspace(-1, 1, BINS + 1)
    one, two = ({k: normalize(z, dim=1) for k, z in view.items()} for view in (one, two))
    found = {}
    for m, u in one.items():
        for n, v in two.items():
            i, j = random_pairs(len(u), u.device)
            positive, negative = (u * v).sum(1), products(u, v, i, j)
            found[f"u{m}-v{n}"] = {
                "edges": edges.tolist(),
                "positive": histogram(positive),
                "negative": histogram(negative),
                "auc": separation(positive, negative),
            }
    return found


def affinity_weights(patches: list[Tensor], line: Line) -> dict[str, Any]:
    """How much negatives weigh at each scale: 1 as in GRACE, 0 as if absent."""
    edges = torch.linspace(0, line.most, BINS + 1)
    i, j = random_pairs(len(patches[0]), patches[0].device)
    found = {}
    for k, table in enumerate(patches):
        weight = line(products(patches[-1], table, i, j)).cpu()
        found[f"scale {k}"] = {
            "edges": edges.tolist(),
            "counts": torch.histogram(weight, edges).hist.tolist(),
            "mean": float(weight.mean()),
        }
    return found


def random_pairs(nodes: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Pairs of different nodes."""
    i = torch.randint(nodes, (PAIRS,), device=device)
    step = torch.randint(1, max(nodes, 2), (PAIRS,), device=device)
    return i, (i + step) % nodes


def products(u: Tensor, v: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """Products of row i of one table and row j of the other, a cache of rows at a time."""
    parts = zip(i.split(ROWS), j.split(ROWS), strict=True)
    return torch.cat([(u[a].float() * v[b].float()).sum(1) for a, b in parts])


def histogram(cosines: Tensor) -> list[float]:
    """Counts in equal bins from -1 to 1."""
    edges = torch.linspace(-1, 1, BINS + 1)
    return torch.histogram(cosines.float().clamp(-1, 1).cpu(), edges).hist.tolist()


def separation(positive: Tensor, negative: Tensor) -> float:
    """How often a positive pair is more similar than a negative one (the area under the ROC)."""
    ordered = negative.sort().values
    below = torch.searchsorted(ordered, positive)
    up_to = torch.searchsorted(ordered, positive, right=True)
    return float((below + up_to).float().mean() / 2 / len(ordered))
