"""What a search may change, for each method: settings and the values to draw from.

`START` holds hand-made candidates that every search begins with; `{}` is the preset as it is.
"""

from typing import Any

Space = dict[str, list[Any]]
Candidate = dict[str, Any]

SMALL = ("cora", "citeseer")
_SCALES = {
    1: [(1.0, 0.0), (0.5, 0.5)],
    2: [
        (1.0, 0.0, 0.0),
        (0.8, 0.1, 0.1),
        (0.5, 0.25, 0.25),
        (0.6, 0.4, 0.0),
        (0.34, 0.33, 0.33),
        (0.2, 0.2, 0.6),
        (0.25, 0.5, 0.25),
    ],
    3: [(1.0, 0.0, 0.0, 0.0), (0.5, 0.2, 0.15, 0.15), (0.25, 0.25, 0.25, 0.25)],
    4: [(1.0, 0.0, 0.0, 0.0, 0.0), (0.5, 0.15, 0.15, 0.1, 0.1), (0.2, 0.2, 0.2, 0.2, 0.2)],
}


def scale_weights(hops: int) -> list[tuple[float, ...]]:
    """Weights of the contrast that fit so many hops."""
    return _SCALES[hops]


def mux_hop(dataset: str) -> Space:
    """MUX-GCL over hops."""
    small = dataset in SMALL
    return {
        "epochs": [60, 100, 150, 200, 300] if small else [600, 900, 1200],
        "lr": [2e-4, 3e-4, 5e-4, 1e-3] if small else [5e-4, 1e-3, 2e-3],
        "weight_decay": [0.0, 1e-3, 1e-2, 1e-1],
        "hops": [1, 2, 2, 2, 3, 4],
        "depth": [1, 2, 2, 2, 3],
        "convolutions": [0, 0, 1, 1, 2] if small else [0, 0, 0, 1],
        "hidden": [512, 1024, 2048],
        "width": [512, 1024, 2048],
        "norm": ["layer", "layer", "layer", "batch"],
        "zero_bias": [False, True, True],
        "row_normalize": [True, False],
        "drop_features": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
        "dropout": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
        "drop_edges": [(p, p) for p in (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)],
        "projection": [256, 512],
        "projection_out": [128, 256],
        "temperature": [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7],
        "anchors": ["last", "all"],
        "affinity": ["deepwalk", "deepwalk", "deepwalk", "none"],
        "likelihood": ["half", "half", "clamp"],
        "ema": [0.0, 0.0, 0.99, 0.995],
    }


def mux_gcl(dataset: str) -> Space:
    """The paper's method, network and propagation in one."""
    small = dataset in SMALL
    return {
        "epochs": [100, 150, 250, 400, 700] if small else [400, 700, 1000, 1500],
        "lr": [2e-4, 5e-4, 1e-3, 2e-3],
        "weight_decay": [0.0, 1e-5, 1e-4, 1e-3],
        "width": [256, 512, 1024],
        "projection": [128, 256, 512],
        "projection_out": [64, 128, 256],
        "activation": ["relu", "prelu", "rrelu"],
        "drop_edges": [(0.2, 0.4), (0.3, 0.5), (0.5, 0.6), (0.6, 0.7), (0.2, 0.0), (0.8, 0.8)],
        "mask_features": [(0.0, 0.0), (0.1, 0.1), (0.3, 0.4), (0.5, 0.5), (0.6, 0.7)],
        "temperature": [0.2, 0.3, 0.4, 0.5, 0.7, 1.0],
        "scale_weights": _SCALES[2] + [(0.0, 0.0, 1.0), (0.2, 0.6, 0.2)],
        "affinity": ["deepwalk", "deepwalk", "vgae", "none"],
        "likelihood": ["half", "clamp"],
    }


def signa(dataset: str) -> Space:
    """SIGNA."""
    small = dataset in SMALL
    return {
        "epochs": [100, 200, 300, 500] if small else [300, 500, 1000],
        "lr": [1e-4, 2e-4, 5e-4, 1e-3],
        "weight_decay": [0.0, 1e-4, 1e-2],
        "width": [256, 512, 1024],
        "projection": [128, 256, 512],
        "convolve": [True, True, False],
        "dropout": [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
        "mask_neighbors": [0.0, 0.2, 0.3, 0.4, 0.6, 0.8, 0.95],
        "row_normalize": [True, False],
    }


def sgrl(dataset: str) -> Space:
    """SGRL."""
    small = dataset in SMALL
    return {
        "epochs": [100, 200, 300, 500] if small else [300, 500, 700],
        "lr": [1e-5, 5e-5, 1e-4, 5e-4, 1e-3],
        "weight_decay": [0.0, 1e-5, 1e-4, 1e-3],
        "width": [512, 1024, 2048],
        "hops": [0, 1, 2, 3, 4],
        "momentum": [0.9, 0.95, 0.99, 0.996],
        "lowest_loss": [True, False],
        "row_normalize": [True, False],
    }


def ns4gc(dataset: str) -> Space:
    """NS4GC."""
    return {
        "epochs": [50, 100, 200, 400],
        "lr": [2e-4, 5e-4, 1e-3, 2e-3],
        "weight_decay": [0.0, 1e-5, 1e-4],
        "layers": [1, 2, 2],
        "hidden": [256, 512],
        "width": [64, 128, 256, 512, 1024],
        "activation": ["selu", "relu", "prelu"],
        "drop_edges": [(0.2, 0.4), (0.3, 0.3), (0.5, 0.6), (0.6, 0.8), (0.2, 0.6)],
        "mask_features": [(0.0, 0.1), (0.2, 0.2), (0.3, 0.4), (0.5, 0.5), (0.6, 0.6)],
        "threshold": [0.2, 0.4, 0.5, 0.6, 0.8],
        "temperature": [0.05, 0.1, 0.2, 0.5],
        "neighbors": [0.5, 1.0, 2.0],
        "others": [0.5, 1.0, 2.0],
        "row_normalize": [True, False],
    }


def cca_ssg(dataset: str) -> Space:
    """CCA-SSG."""
    return {
        "epochs": [20, 50, 100, 200],
        "lr": [2e-4, 5e-4, 1e-3, 2e-3],
        "weight_decay": [0.0, 1e-5, 1e-4],
        "layers": [1, 2, 2],
        "width": [256, 512, 1024, 2048],
        "activation": ["relu", "prelu"],
        "drop_edges": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8],
        "mask_features": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        "decorrelation": [1e-4, 3e-4, 5e-4, 1e-3, 2e-3],
        "row_normalize": [True, False],
    }


def ggd(dataset: str) -> Space:
    """GGD."""
    return {
        "epochs": [100, 200, 500, 1000],
        "lr": [1e-4, 3e-4, 5e-4, 1e-3, 2e-3],
        "weight_decay": [0.0, 1e-5, 1e-4],
        "width": [256, 512, 1024, 1536],
        "mask_features": [0.0, 0.1, 0.2, 0.3, 0.5],
        "hops": [0, 1, 2, 3, 5, 10],
        "slope_each": [True, False],
        "lowest_loss": [True, False],
        "row_normalize": [True, False],
    }


def sfa(dataset: str) -> Space:
    """SFA: GRACE's settings, and whether rows are divided."""
    small = dataset in SMALL
    return {
        "epochs": [50, 100, 200, 400] if small else [200, 500, 1000],
        "lr": [1e-4, 5e-4, 1e-3],
        "weight_decay": [0.0, 1e-5],
        "width": [128, 256, 512],
        "projection": [64, 256, 512],
        "activation": ["relu", "prelu", "rrelu"],
        "drop_edges": [(0.2, 0.4), (0.3, 0.5), (0.5, 0.5), (0.6, 0.6), (0.0, 0.1), (0.2, 0.0)],
        "mask_features": [(0.1, 0.1), (0.2, 0.2), (0.3, 0.4), (0.5, 0.5), (0.3, 0.2)],
        "temperature": [0.2, 0.3, 0.4, 0.7, 1.0],
        "power_steps": [1],
        "row_normalize": [True, False],
    }


def dmon(dataset: str) -> Space:
    """DMoN: the authors' one setting, but for the rate and the rows of features."""
    return {
        "epochs": [1000],
        "lr": [1e-3, 3e-3, 1e-2],
        "row_normalize": [True, False],
    }


def bgrl(dataset: str) -> Space:
    """BGRL."""
    return {
        "epochs": [100, 200, 500, 1000],
        "lr": [1e-4, 5e-4, 1e-3],
        "weight_decay": [1e-5],
        "widths": [(512, 256)],
        "drop_edges": [(0.2, 0.4), (0.3, 0.3), (0.5, 0.5), (0.6, 0.6)],
        "mask_features": [(0.2, 0.2), (0.3, 0.4), (0.5, 0.5), (0.6, 0.4)],
        "momentum": [0.8, 0.9, 0.99],
        "warm_up": [0.1],
        "batch_norm_momentum": [0.01],
        "row_normalize": [True, False],
    }


def gbt(dataset: str) -> Space:
    """G-BT."""
    return {
        "epochs": [50, 100, 200, 500],
        "lr": [1e-4, 5e-4, 1e-3],
        "weight_decay": [1e-5],
        "width": [256],
        "drop_edges": [0.3, 0.4, 0.5, 0.6],
        "mask_features": [0.1, 0.2, 0.3, 0.5],
        "warm_up": [0.1],
        "batch_norm_momentum": [0.01],
        "row_normalize": [True, False],
    }


def progcl(dataset: str) -> Space:
    """ProGCL: GRACE's settings, with the length, the switch and the centrality open."""
    return {
        "epochs": [100, 200, 300, 500],
        "centrality": ["none", "degree", "pagerank", "eigenvector"],
        "warm_up": [0.25, 0.5, 0.75],
        "mode": ["weight", "weight", "mix"],
    }


def deepwalk(dataset: str) -> Space:
    """DeepWalk: steps and walks."""
    return {
        "epochs": [1000, 2000, 4000],
        "lr": [0.01, 0.02, 0.05],
        "walk_length": [20, 40, 80],
        "walk_context": [5, 10],
    }


SPACES = {
    "mux-hop": mux_hop,
    "mux-gcl": mux_gcl,
    "signa": signa,
    "sgrl": sgrl,
    "ns4gc": ns4gc,
    "cca-ssg": cca_ssg,
    "ggd": ggd,
    "sfa": sfa,
    "dmon": dmon,
    "bgrl": bgrl,
    "gbt": gbt,
    "progcl": progcl,
    "deepwalk": deepwalk,
}

_GRACE_CORA: Candidate = {
    "epochs": 200,
    "lr": 5e-4,
    "weight_decay": 1e-5,
    "activation": "relu",
    "drop_edges": (0.2, 0.4),
    "mask_features": (0.3, 0.4),
    "power_steps": 1,
}
_GRACE_PHOTO: Candidate = {
    "epochs": 2000,
    "weight_decay": 1e-5,
    "width": 256,
    "projection": 64,
    "activation": "relu",
    "drop_edges": (0.3, 0.5),
    "mask_features": (0.1, 0.1),
    "temperature": 0.3,
    "power_steps": 1,
}
START: dict[str, dict[str, list[Candidate]]] = {
    "mux-hop": {
        "small": [
            {},
            {"zero_bias": True},
            {"norm": "batch"},
            {"zero_bias": True, "row_normalize": True},
            {"zero_bias": True, "epochs": 100},
            {"zero_bias": True, "temperature": 0.2},
            {"zero_bias": True, "temperature": 0.5},
            {"zero_bias": True, "drop_features": 0.7},
            {"zero_bias": True, "drop_edges": (0.7, 0.7)},
        ],
        "photo": [
            {"zero_bias": True},
            {"norm": "batch"},
            {"zero_bias": True, "temperature": 0.2},
            {"zero_bias": True, "drop_edges": (0.7, 0.7)},
            {"zero_bias": True, "row_normalize": False},
        ],
        "computers": [{"zero_bias": True}, {"zero_bias": True, "temperature": 0.2}],
        "pubmed": [{"zero_bias": True}, {"zero_bias": True, "temperature": 0.3}],
    },
    "mux-gcl": {  # the authors' settings, and shorter
        "small": [{}, {"width": 512, "projection": 512, "projection_out": 128}],
        "pubmed": [{}, {"epochs": 500}],
        "photo": [{}, {"epochs": 700}],
        "computers": [
            {"epochs": 1000},
            {"epochs": 1000, "lr": 2e-3},
            {"epochs": 700, "scale_weights": (0.8, 0.1, 0.1)},
            {"epochs": 1000, "projection": 256, "projection_out": 128},
            {"epochs": 1000, "width": 512, "projection": 512, "projection_out": 128},
            {"epochs": 700, "activation": "prelu", "drop_edges": (0.5, 0.6)},
        ],
    },
    "sfa": {  # GRACE's settings for the graph, a setting or two changed
        "cora": [
            {**_GRACE_CORA, "width": width, "projection": width, "temperature": temperature}
            for width in (128, 512)
            for temperature in (0.4, 0.7)
        ],
        "photo": [{**_GRACE_PHOTO, "lr": lr} for lr in (1e-3, 5e-4, 2.5e-4)],
    },
}


def start(method: str, dataset: str) -> list[Candidate]:
    """Candidates that a search begins with."""
    known = START.get(method, {})
    return known.get(dataset) or known.get("small" if dataset in SMALL else dataset, [{}])
