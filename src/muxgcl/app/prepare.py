"""What all seeds of a run share: the graph, the settings and their estimated cost."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muxgcl.app.budget import Budget, budget
from muxgcl.app.log import check_log
from muxgcl.app.observer import Observer
from muxgcl.app.options import LoadOptions, RunOptions
from muxgcl.app.source import Source
from muxgcl.app.start_or_resume import check_free
from muxgcl.errors import UserError
from muxgcl.evaluate import development_hash
from muxgcl.graph import Graph, fingerprint
from muxgcl.io.load import Loaded
from muxgcl.kernels.ring import Workers
from muxgcl.runs.committee import with_output
from muxgcl.runs.distributed import all_succeed, from_first, same
from muxgcl.runs.divided import agree
from muxgcl.runs.fit import reporting_interrupts
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import Judging, check_scoring, labels_of, too_few_to_score
from muxgcl.shapes import Array
from muxgcl.tensors import Tensors


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What all seeds of a run share."""

    options: RunOptions
    source: Source
    loaded: Loaded
    judging: Judging  # what the run is scored by
    graph: Graph
    budget: Budget
    observer: Observer
    workers: Workers | None = None
    unscored: tuple[str, ...] = ()  # notes on what will not be scored

    @property
    def plan(self) -> Plan:
        """What is trained, and how."""
        return self.budget.plan

    @property
    def labels(self) -> Array | None:
        """One class a node, where they are to be used."""
        return labels_of(self.judging.data) if self.options.score else None

    @property
    def notes(self) -> list[str]:
        """What was done to the data, what `auto` picked and why, what is missing, the estimate."""
        notes = [*self.loaded.notes]
        notes += map(str, self.plan.choices)
        if warning := _searched_elsewhere(self.plan.preset, self.labels):
            notes.append(warning)
        if self.options.score and labels_of(self.loaded.tensors) is None:
            notes.append(
                "no labels, so nothing is classified (--labels or --label-column names them)"
            )
        return [*notes, *self.unscored, *self.budget.notes]

    def folder(self, plan: Plan, *, several: bool = False) -> Path:
        """Where a run is kept; by default under a name that says what it is."""
        return _folder(self.options, self.source, plan.seed, several=several)


def _folder(options: RunOptions, source: Source, seed: int, *, several: bool) -> Path:
    if options.out is not None:
        out = Path(options.out)
        return out / f"seed{seed}" if several else out
    preset = Path(options.preset or source.preset).stem  # it may be a file
    return Path("runs") / f"{source.dataset}-{options.method}-{preset}-seed{seed}"


def _folders(options: RunOptions, source: Source, seeds: int) -> list[Path]:
    """One for each seed; no two runs share a member."""
    return [
        _folder(options, source, options.seed + k * options.members, several=seeds > 1)
        for k in range(seeds)
    ]


def prepare(
    graph: Any,
    options: RunOptions,
    load: LoadOptions | None,
    observer: Observer | None,
    *,
    workers: Workers | None = None,
    seeds: int = 1,
    always: bool = False,
) -> Job:
    """Load the graph, choose settings and estimate their cost; nothing is written.

    A folder that may not be written is refused first. `always` is for an estimate alone.
    """
    observer, load = observer or Observer(), load or LoadOptions()
    for given, kind in ((options, RunOptions), (load, LoadOptions)):
        if not isinstance(given, kind):
            raise UserError(f"expected {kind.__name__}(...), got {type(given).__name__}")
    source = Source(graph, load)
    if workers is not None:
        asked = {"--dry-run": always, "--seeds": seeds}
        same(workers, {name: fingerprint({}, {name: value}) for name, value in asked.items()})
    observer.phase("loading")
    with all_succeed(workers):
        check_log(options.log)
        if not always and (workers is None or workers.rank == 0):
            for folder in _folders(options, source, seeds):
                check_free(Run(folder), resume=options.resume, overwrite=options.overwrite)
        with reporting_interrupts("loading", resumable=False):
            loaded = source.open()
            tensors = Graph.from_data(loaded.tensors)
        plan = _plan(options, source, tensors, workers)
        scored, unscored = loaded.tensors, list[str]()
        if options.score:
            scored, unscored = _scored(options, loaded.tensors)
            unscored += check_scoring(
                scored, options.protocols, options.splits, controls=options.controls
            )
        labelled = options.score and labels_of(scored) is not None
        judging = Judging(
            scored,
            options.protocols or ("holdout",),
            options.splits,
            options.split_seed,
            controls=labelled and options.controls is not False,
            report=options.score and options.report,
        )
    if workers is not None:
        agree(workers, plan)

    def affordable() -> Budget:
        if options.resume and Run(_folders(options, source, seeds)[0]).exists:
            return Budget(plan)
        with reporting_interrupts("estimating", resumable=False):
            return budget(
                plan,
                tensors,
                exact=options.exact,
                always=always,
                scores=judging if labelled else None,
                given=options.overrides,
                on_measure=lambda: observer.phase("estimating"),
                workers=1 if workers is None else workers.world,
            )

    found = from_first(workers, affordable)
    notes = tuple(unscored)
    return Job(options, source, loaded, judging, tensors, found, observer, workers, notes)


def _scored(options: RunOptions, data: Tensors) -> tuple[Tensors, list[str]]:
    """The graph without labels that are too few to score, and a note on them.

    What is asked for is not left out: `check_scoring` refuses it.
    """
    if options.protocols or options.controls or (reason := too_few_to_score(data)) is None:
        return data, []
    return Tensors(**{name: data[name] for name in data.keys() - {"y"}}), [f"not scored: {reason}"]


def _plan(options: RunOptions, source: Source, graph: Graph, workers: Workers | None) -> Plan:
    """What is to be trained, before it is known what that takes."""
    plan = Plan.make(
        options.method,
        options.preset or source.preset,
        source.dataset,
        options.overrides,
        graph=graph,
        seed=options.seed,
        device=options.device,
        backend=options.backend,
        capture=options.capture,
        members=options.members,
        output_width=options.output_width,
        anchors=options.anchors,
        keys=options.negatives,
    )
    plan = with_output(plan, graph)
    if plan.members > 1 and "paper" in (options.protocols or ()):
        raise UserError(
            "protocol paper looks at the epochs of one training, not of several members"
        )
    if plan.members > 1 and workers is not None:
        raise UserError("members are trained by one process each: start them without torchrun")
    return plan


def _searched_elsewhere(preset: str, labels: Array | None) -> str | None:
    """A warning where settings were searched by labels of another development half.

    `muxgcl tune` writes the hash of the half that its search read into the file of settings.
    """
    if labels is None or not preset.endswith(".toml"):
        return None
    searched = tomllib.loads(Path(preset).read_text(encoding="utf-8")).get("development")
    if searched is None or searched == development_hash(labels):
        return None
    return (
        f"{preset} was searched on another graph, or on this one with other labels or another "
        "order of its nodes; if it is the same graph, the search may have read labels of test nodes"
    )
