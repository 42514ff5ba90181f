"""`hops`: which trainings tell what MUX-GCL over hops is worth, and in which order.

Seeds and splits are of no search and no other table, and test nodes are all of the report half.
Earlier settings and rules were scored there too, some on the same splits: docs/evaluation.md says
which.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from muxgcl.reproduce.job import (
    BESIDE,
    COMMITTEE,
    CONTROLS,
    LEFT_OUT,
    READOUTS,
    REPEATS,
    SAMPLED,
    Job,
)
from muxgcl.runs.auto import BENCHMARKS

OURS = "mux-hop"
# searches have seeds 400 to 404 and splits 4000, tables seeds 0 to 9 and splits 0, the first look
# (records/hops-first.jsonl) seeds 700 to 704 and splits 7000, earlier rules of `auto` those below
FIRST_SEED, SPLIT_SEED = 710, 7100
BASELINES = ("cca-ssg", "ns4gc", "sgrl", "ggd", "signa", "blnn", "mvgrl")
ABLATION, EXTRA = ("no-affinity", "no-multiplex"), ("inside", "no-dropout", "columns")
VARIANTS_OF = {"ablation": ABLATION, "extra": EXTRA}
UNSEEN = {"auto": LEFT_OUT, "everyday": SAMPLED}  # settings that do not know the graph
HOP_PARTS = {
    "main": "controls, `mux-hop` with settings `best`, the committee of its seeds",
    "auto": "`mux-hop` as `auto` sets it where it must not know the graph",
    "everyday": "the same with a sample of nodes a step, as on a CPU",
    "ablation": "without affinities; without the multiplex contrast",
    "mux-gcl": "MUX-GCL with settings `best`",
    "baselines": "other methods with settings `best`",
    "features": "the same with the features beside their embedding, as `mux-hop` has them",
    "extra": "the network inside the propagation; no dropout; whole columns dropped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hops:
    """How much of it is wanted."""

    seeds: int = 5
    own_seeds: int = 5  # of mux-hop itself
    splits: int = 20
    epochs: int | None = None
    methods: tuple[str, ...] | None = None

    def controls(self, dataset: str) -> list[Job]:
        """Features and propagated features: one job has them all."""
        return self._jobs("raw", dataset, "full", CONTROLS, 1)

    def trained(self, method: str, dataset: str, variant: str = "full") -> list[Job]:
        """One job for each seed; a variant that changes nothing is the full method."""
        if variant in (LEFT_OUT, SAMPLED) and dataset not in BENCHMARKS:
            return []
        seeds = self.own_seeds if (method, variant) == (OURS, "full") else self.seeds
        return self._jobs(method, dataset, variant, READOUTS, seeds)

    def beside(self, method: str, dataset: str) -> list[Job]:
        """The same trainings with the features beside the embedding."""
        return self._jobs(method, dataset, "full", BESIDE, self.seeds)

    def committee(self, dataset: str) -> list[Job]:
        """The seeds' embeddings side by side."""
        return self._jobs(OURS, dataset, "full", COMMITTEE, 1) if self.seeds > 1 else []

    def part(self, name: str, dataset: str) -> list[Job]:
        """What one part needs on one dataset."""
        if name == "main":
            ours = self.trained(OURS, dataset)
            return [*self.controls(dataset), *ours, *self.committee(dataset)]
        if name in UNSEEN:
            return self.trained(OURS, dataset, UNSEEN[name])
        if name in VARIANTS_OF:
            return [j for v in VARIANTS_OF[name] for j in self.trained(OURS, dataset, v)]
        if name == "features":
            return [job for method in BASELINES for job in self.beside(method, dataset)]
        methods = BASELINES if name == "baselines" else (name,)
        return [job for method in methods for job in self.trained(method, dataset)]

    def needed(self, parts: Iterable[str], datasets: Sequence[str]) -> list[Job]:
        """All jobs of some parts, part by part, each once."""
        found = (job for part in parts for dataset in datasets for job in self.part(part, dataset))
        return list(dict.fromkeys(found))

    def _jobs(self, method: str, dataset: str, variant: str, kind: str, seeds: int) -> list[Job]:
        if self.methods is not None and method not in self.methods:
            return []
        job = Job(
            kind=kind,
            method=method,
            dataset=dataset,
            variant=variant,
            preset="best",
            protocol="holdout",
            splits=self.splits,
            split_seed=SPLIT_SEED,
            epochs=self.epochs,
            members=self.seeds if kind == COMMITTEE else 1,
        ).simplified()
        repeats = REPEATS if job.variant == "full" and kind not in (COMMITTEE, BESIDE) else 0
        return [replace(job, seed=FIRST_SEED + k, repeats=repeats) for k in range(seeds)]


def members_of(job: Job) -> list[Job]:
    """The trainings that a committee, or one with features, consists of: what records them."""
    one = replace(job, kind=READOUTS, members=1, repeats=REPEATS)
    return [replace(one, seed=job.seed + k) for k in range(job.members)]


def part_of(job: Job) -> int:
    """The number of the part whose turn a job has: with features right after without."""
    unseen = {variant: part for part, variant in UNSEEN.items()}
    if job.variant in unseen:
        name = unseen[job.variant]
    elif job.variant != "full":
        name = next(part for part, variants in VARIANTS_OF.items() if job.variant in variants)
    else:
        name = {OURS: "main", "raw": "main", "mux-gcl": "mux-gcl"}.get(job.method, "baselines")
    return list(HOP_PARTS).index(name)
