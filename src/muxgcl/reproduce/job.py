"""One measurement that a table or a figure needs, and the hash that names it.

Two measurements with the same hash and seed are the same measurement, whichever table asked.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, Self

from muxgcl.io import DATASETS
from muxgcl.runs.auto import of_sample, settings_for
from muxgcl.runs.cost import share_of
from muxgcl.runs.plan import Plan, find_method
from muxgcl.runs.settings import TrainConfig, split_settings

SCORES, SIMILARITIES, SOFT_NEGATIVES, BOUNDS, READOUTS, COMMITTEE, CONTROLS, BESIDE = KINDS = (
    "scores",  # a trained method, judged by a protocol
    "similarities",  # Figure 1
    "soft-negatives",  # Figure 3
    "bounds",  # the proposition
    "readouts",  # `hops`: one training, read out in several ways
    "committee",  # `hops`: trainings of several seeds, side by side
    "controls",  # `hops`: features and propagated features
    "with-features",  # `hops`: one training, with and without `BLOCKS` beside its embedding
)
LEFT_OUT = "auto"  # the variant with the settings that `auto` has when it must not know the graph
SAMPLED = "sampled"  # the same with a sample of nodes a step, as on a CPU
LARGEST_SAMPLE = 1024  # that any two cores are done with in minutes
WALKS = ("node2vec", "deepwalk")
REPEATS = 2  # of k-means, a training seed
# beside an embedding: unit rows of A^hops X and of X, by the weights that mux-hop gives them
BLOCKS = {"hops": 2, "propagated": 0.5, "raw": 0.5}

Overrides = dict[str, Any]


def _last_scale_only(cfg: Any) -> Overrides:
    return {"scale_weights": (*[0.0] * (len(cfg.scale_weights) - 1), 1.0)}


def _first_scale_only(cfg: Any) -> Overrides:
    return {"scale_weights": (1.0, *[0.0] * (len(cfg.scale_weights) - 1))}


def _last_against_last(cfg: Any) -> Overrides:
    return _last_scale_only(cfg) | {"anchors": "last"}


def _affinity(name: str) -> Overrides:
    """Another affinity, with the length and rate that it has by default."""
    return {"affinity": name, "affinity_epochs": None, "affinity_lr": None}


# settings that came after the first records: at these values a record does not state them
LATER = {
    "readout": "last",
    "readout_weights": [],
    "readout_features": 0.0,
    "readout_raw": 0.0,
    "zero_bias": False,
    "fanout": 0,
    "side_by_side": False,
    "feature_dropout": "entries",
}
# what a variant changes in its method's settings
VARIANTS: dict[str, Callable[[Any], Overrides]] = {
    "full": lambda cfg: {},
    "neither": lambda cfg: _last_scale_only(cfg) | {"affinity": "none"},
    "pae": _last_scale_only,
    "mpc": lambda cfg: {"affinity": "none"},
    "literal": lambda cfg: {"likelihood": "literal"},
    "script": lambda cfg: _first_scale_only(cfg) | {"direction": "released", "pooling": "residual"},
    "node2vec": lambda cfg: {} if cfg.affinity in WALKS else _affinity("node2vec"),
    "vgae": lambda cfg: {} if cfg.affinity == "vgae" else _affinity("vgae"),
    "no-affinity": lambda cfg: {"affinity": "none"},
    "no-multiplex": _last_against_last,
    "inside": lambda cfg: {"convolutions": cfg.depth},
    "no-dropout": lambda cfg: {"drop_features": 0.0, "dropout": 0.0},
    "columns": lambda cfg: {"feature_dropout": "columns"},
}
FILES = {  # where a variant's scores, or another kind of measurement, are kept
    "full": "table1",
    "node2vec": "table3",
    "vgae": "table3",
    "neither": "table4",
    "pae": "table4",
    "mpc": "table4",
    "script": "table4",
    SIMILARITIES: "figure1",
    SOFT_NEGATIVES: "figure3",
    BOUNDS: "proposition",
    READOUTS: "hops",
    COMMITTEE: "hops",
    CONTROLS: "hops",
    BESIDE: "hops",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One method, one graph, one seed, and what is looked at."""

    kind: str = SCORES
    method: str
    dataset: str
    variant: str = "full"
    preset: str = "paper"
    protocol: str = "none"  # "holdout", "holdout-all" or "paper" for scores
    seed: int = 0
    splits: int = 0
    split_seed: int = 0
    repeats: int = 0  # of k-means
    epochs: int | None = None  # instead of the preset's
    members: int = 1  # of a committee: this seed and those that follow

    @property
    def file(self) -> str:
        """The file of records that it belongs in."""
        return FILES[self.variant if self.kind == SCORES else self.kind]

    @property
    def what(self) -> str:
        """Method, variant and what is looked at."""
        variant = "" if self.variant == "full" else f" {self.variant}"
        kind = self.protocol if self.kind == SCORES else self.kind
        return (
            f"{self.method}{variant} {kind if self.members == 1 else f'{kind} of {self.members}'}"
        )

    @property
    def title(self) -> str:
        """What a person calls it."""
        return f"{self.what} {self.dataset} seed {self.seed}"

    def plan(self) -> Plan:
        """What to train, with settings as the code has them now."""
        found = _plan(self.method, self.preset, self.dataset, self.variant, self.epochs)
        return replace(found, seed=self.seed)

    def simplified(self) -> Self:
        """The full method's job, where the variant changes no setting."""
        full = replace(self, variant="full")
        return full if settings_of(full.plan()) == settings_of(self.plan()) else self

    def identity(self) -> dict[str, Any]:
        """All that the outcome depends on, apart from the seed."""
        plan = self.plan()
        names = ("kind", "method", "dataset", "preset", "protocol", "splits", "split_seed")
        several = {} if self.members == 1 else {"members": self.members}
        sampled = {} if plan.anchors is None else {"anchors": plan.anchors}
        beside = {"blocks": BLOCKS} if self.kind == BESIDE else {}
        found = {name: getattr(self, name) for name in names}
        return found | several | sampled | beside | settings_of(plan)

    @property
    def hash(self) -> str:
        """The hash of the settings."""
        return settings_hash(self.identity())

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The job that a record answers."""
        found = {field.name: record[field.name] for field in fields(cls) if field.name in record}
        return cls(**found)


def settings_of(plan: Plan) -> dict[str, Any]:
    """Training's and the method's settings, as JSON has them and as records state them."""
    tables = json.loads(canonical({"train": asdict(plan.train), "settings": asdict(plan.settings)}))
    return {name: stated(table) for name, table in tables.items()}


def stated(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings, as JSON has them, without later ones that change nothing."""
    return {k: v for k, v in settings.items() if k not in LATER or v != LATER[k]}


def settings_hash(identity: Mapping[str, Any]) -> str:
    """sha256 of the canonical JSON."""
    return hashlib.sha256(canonical(identity)).hexdigest()


def canonical(value: Any) -> bytes:
    """JSON with one spelling for each value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


@cache
def _plan(method: str, preset: str, dataset: str, variant: str, epochs: int | None) -> Plan:
    own = {} if epochs is None else {"epochs": epochs}
    if variant in (LEFT_OUT, SAMPLED):
        nodes, features = DATASETS[dataset].nodes, DATASETS[dataset].features
        start, _ = settings_for(nodes, features, 2 * nodes, leave_out=[dataset])
        size = None
        if variant == SAMPLED:
            start |= of_sample(method, "auto")
            size = min(LARGEST_SAMPLE, share_of(nodes))
        train, settings = split_settings(start | own, TrainConfig, find_method(method).Config)
        return Plan(
            method=method,
            preset="auto",
            dataset=dataset,
            train=train,
            settings=settings,
            anchors=size,
            keys=size,
        )
    plan = Plan.make(method, preset, dataset, own)
    changes = VARIANTS[variant](plan.settings)
    return Plan.make(method, preset, dataset, own | changes) if changes else plan
