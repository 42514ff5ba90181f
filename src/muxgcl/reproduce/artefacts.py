"""Which measurements each table and figure needs, and in which order they are worth making."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from muxgcl.errors import UserError, unknown_name
from muxgcl.io import DATASETS
from muxgcl.methods import METHODS
from muxgcl.reproduce.hops import BASELINES, HOP_PARTS, OURS, Hops, part_of
from muxgcl.reproduce.job import (
    BOUNDS,
    REPEATS,
    SCORES,
    SIMILARITIES,
    SOFT_NEGATIVES,
    VARIANTS,
    Job,
)
from muxgcl.reproduce.paper import LABELS, TABLE1, TABLE2, TABLE3, TABLE4
from muxgcl.runs.auto import BENCHMARKS

PAPER = (  # its tables and figures
    "table1",
    "table2",
    "table3",
    "table4",
    "table5",
    "figure1",
    "figure3",
    "proposition",
)
ARTEFACTS = ("hops", *PAPER)
COLUMNS = {  # the datasets that the paper shows, or that we do
    "hops": BENCHMARKS,
    "table1": BENCHMARKS,
    "table2": BENCHMARKS,
    "table3": ("cora", "pubmed", "photo"),
    "table4": ("cora", "citeseer", "photo"),
    "table5": BENCHMARKS,
    "figure1": ("cora", "citeseer", "photo"),
    "figure3": ("cora", "citeseer", "photo"),
    "proposition": ("cora", "citeseer", "photo"),
}
CLUSTERED = ("photo", "computers")  # Table II's; ours are clustered everywhere
CONTROLS = ("raw", "random-gcn", "sgc")
UNSEEDED = ("raw", "sgc")  # nothing random in them: one seed says it all
CHIEF = ("mux-gcl", "grace")
LOOKS = {"figure1": SIMILARITIES, "figure3": SOFT_NEGATIVES, "proposition": BOUNDS}
LOOKED_AT = (("grace", "full"), ("mux-gcl", "full"), ("mux-gcl", "literal"))
PARTS = (*TABLE4, "script")  # rows of Table IV, the last one ours
POINTS = 10  # of training at which the theory is looked at
SMALL = 10_000  # nodes, below which protocol `paper` is soon done


MOST = 10_000  # seeds, or splits


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """How much of each table and figure is wanted."""

    datasets: tuple[str, ...] | None = None  # the paper's by default
    methods: tuple[str, ...] | None = None  # all by default
    seeds: int = 5
    chief_seeds: int | None = None  # of mux-gcl, grace and mux-hop, where more are wanted
    splits: int = 20
    epochs: int | None = None  # instead of the preset's
    protocol: str = "holdout"  # or "holdout-all"
    parts: tuple[str, ...] = tuple(HOP_PARTS)  # of `hops`

    def __post_init__(self) -> None:
        for what, names, known in (
            ("dataset", self.datasets, DATASETS),
            ("method", self.methods, METHODS),
            ("part of hops", self.parts, HOP_PARTS),
        ):
            for name in names or ():
                if name not in known:
                    raise UserError(unknown_name(what, name, known))
        counts = [self.seeds, self.splits, *([self.chief_seeds] if self.chief_seeds else [])]
        if not all(1 <= count <= MOST for count in counts):
            raise UserError(
                f"seeds and splits must be from 1 to {MOST:,}, got {' and '.join(map(str, counts))}"
            )

    def columns(self, artefact: str) -> tuple[str, ...]:
        """The datasets of a table or figure."""
        return self.datasets or COLUMNS[artefact]

    @property
    def hops(self) -> Hops:
        """How much of `hops` is wanted."""
        return Hops(
            seeds=self.seeds,
            own_seeds=max(self.seeds, self.chief_seeds or 0),
            splits=self.splits,
            epochs=self.epochs,
            methods=self.methods,
        )

    @property
    def told_seeds(self) -> str:
        """How many, for a note under a table."""
        if self.chief_seeds is None or self.chief_seeds <= self.seeds:
            return f"{self.seeds} seeds"
        names = " and ".join(LABELS[name] for name in CHIEF)
        return f"{self.seeds} seeds ({self.chief_seeds} for {names})"

    def seeds_of(self, method: str, variant: str, protocol: str) -> int:
        """How many trainings a method has."""
        if method in UNSEEDED:
            return 1
        more = method in CHIEF and variant == "full" and protocol == "holdout"
        return max(self.seeds, self.chief_seeds or 0) if more else self.seeds

    def has(self, method: str) -> bool:
        """Whether this method can be run and is wanted."""
        return method in METHODS and (self.methods is None or method in self.methods)

    def rows(self, artefact: str) -> list[str]:
        """The methods of a table: controls first, then the paper's order."""
        return [n for n in _rows(artefact) if self.methods is None or n in self.methods]

    def scored(
        self, method: str, dataset: str, variant: str = "full", protocol: str | None = None
    ) -> list[Job]:
        """One job for each seed; a variant that changes nothing is the full method."""
        if not self.has(method):
            return []
        protocol = protocol or self.protocol
        fixed = protocol != "paper"  # splits that all methods share
        asked = Job(method=method, dataset=dataset, epochs=self.epochs, variant=variant)
        variant = asked.simplified().variant
        clustered = method in CHIEF or dataset in CLUSTERED
        return [
            Job(
                method=method,
                dataset=dataset,
                variant=variant,
                protocol=protocol,
                seed=seed,
                splits=self.splits if fixed else 3,
                split_seed=0 if fixed else seed,
                repeats=REPEATS if clustered and fixed and variant == "full" else 0,
                epochs=self.epochs,
            )
            for seed in range(self.seeds_of(method, variant, protocol))
        ]

    def looked_at(self, kind: str, method: str, dataset: str, variant: str = "full") -> list[Job]:
        """The job of one figure on one dataset: a single seed shows a distribution."""
        job = Job(kind=kind, method=method, dataset=dataset, variant=variant, epochs=self.epochs)
        return [job] if self.has(method) else []


def needed(artefact: str, scope: Scope) -> list[Job]:
    """Every measurement that a table or figure shows; `muxgcl bench methods` makes Table V's."""
    columns = scope.columns(artefact)
    if artefact == "hops":
        return scope.hops.needed(scope.parts, columns)
    jobs: list[Job] = []
    for dataset in columns:
        if artefact in ("table1", "table2"):
            shown = [
                name
                for name in scope.rows(artefact)
                if artefact == "table1" or dataset in CLUSTERED or name in CHIEF
            ]
            jobs += [job for name in shown for job in scope.scored(name, dataset)]
        if artefact == "table1":
            jobs += [job for name in CHIEF for job in scope.scored(name, dataset, protocol="paper")]
        if artefact in ("table3", "table4"):
            variants = tuple(TABLE3) if artefact == "table3" else PARTS
            jobs += [job for name in variants for job in scope.scored("mux-gcl", dataset, name)]
        if artefact in LOOKS:
            jobs += [
                job
                for method, variant in LOOKED_AT
                if artefact == "figure1" or method == "mux-gcl"
                for job in scope.looked_at(LOOKS[artefact], method, dataset, variant)
            ]
    return jobs


def equal_steps(epochs: int) -> list[int]:
    """The last epoch of each tenth of a training."""
    return [max(1, round(epochs * step / POINTS)) for step in range(1, POINTS + 1)]


def plan(artefacts: Iterable[str], scope: Scope) -> list[Job]:
    """What several tables and figures need, each measurement once, the most telling first.

    Row by row: all graphs of a method before the next one, short trainings first, so that what a
    time limit leaves is whole rows.
    """
    jobs = dict.fromkeys(job for artefact in artefacts for job in needed(artefact, scope))
    order, variants = list(METHODS), list(VARIANTS)
    return sorted(
        jobs,
        key=lambda job: (
            _tier(job, scope.seeds),
            _length(job.method, job.preset),
            order.index(job.method),
            variants.index(job.variant) if job.variant in variants else len(variants),
            job.members,
            DATASETS[job.dataset].nodes,
            job.kind,
            job.seed,
            job.protocol,
        ),
    )


def _tier(job: Job, seeds: int = MOST) -> int:
    """What needs no training; MUX-GCL, its variants and GRACE; the others; further seeds.

    Test-set selection on larger graphs comes last, parts of `hops` before all, one after the other.
    """
    if job.file == "hops":
        return part_of(job) - len(HOP_PARTS)
    if job.protocol == "paper" and DATASETS[job.dataset].nodes > SMALL:
        return 4
    if job.method in CONTROLS:
        return 0
    if job.seed >= seeds:
        return 3
    return 1 if job.method in CHIEF else 2


@cache
def _length(method: str, preset: str) -> int:
    """Epochs times nodes, over the paper's graphs."""
    return sum(
        Job(method=method, dataset=name, preset=preset).plan().train.epochs * DATASETS[name].nodes
        for name in BENCHMARKS
    )


def trainings(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs that one training can serve, side by side; the order of the first ones is kept."""
    groups: dict[tuple[object, ...], list[Job]] = {}
    for job in jobs:
        at_the_end = job.kind == SCORES
        settings = (job.method, job.dataset, job.variant, job.preset, job.epochs, job.seed)
        alone = job if job.file == "hops" else None
        groups.setdefault((_tier(job), at_the_end, *settings, alone), []).append(job)
    return list(groups.values())


def _rows(artefact: str) -> tuple[str, ...]:
    *others, ours = TABLE2 if artefact == "table2" else TABLE1
    others = [name for name in others if name not in CONTROLS]
    if artefact == "table2":
        return (*CONTROLS, *others, "grace", ours)
    others.append("dmon")  # of Table II; compared like the rest
    if artefact == "table5":
        newer = [name for name in BASELINES if name not in (*others, ours)]
        return (*others, *newer, ours, OURS)
    return (*CONTROLS, *others, ours)
