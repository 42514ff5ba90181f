"""The search: one trial after another, the first with the settings of preset `auto`."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from muxgcl.errors import UserError, reason_of
from muxgcl.evaluate import Verdict, summarise, verdict
from muxgcl.evaluate.verdict import DEVELOPMENT
from muxgcl.graph import Graph, graph_fingerprint
from muxgcl.runs.embedding import NonFiniteEmbedding
from muxgcl.runs.fit import make_ready
from muxgcl.runs.loop import NonFiniteLoss
from muxgcl.runs.plan import Plan, find_method
from muxgcl.tune.measure import Accuracies, ByLabels, Measure, OnBlock, digest
from muxgcl.tune.sample import FACT, Sample
from muxgcl.tune.shared import Shared, open_shared, shared_begun_with
from muxgcl.tune.space import Point, point_of, settings_of, space_of
from muxgcl.tune.study import Study, Tried, begun_with, check_facts, open_study

# takes the first plan, and whether its sample is decided; returns it with the sample it needs
Afford = Callable[[Plan, bool], Plan]
# a trial that ends like this is recorded as failed, and the search goes on
FAILURES = (NonFiniteLoss, NonFiniteEmbedding, torch.OutOfMemoryError)


@dataclass(frozen=True, slots=True)
class Outcome:
    """All trials of a study and the settings of the best."""

    tried: list[Tried]
    best: Tried
    settings: dict[str, Any]  # of training and method, all of them
    method: str
    controls: dict[str, list[float]] = field(default_factory=dict)  # by labels: by name and split
    no_controls: str | None = None  # why they could not be scored
    sample: Sample = field(default_factory=Sample)  # that all trials share

    @property
    def scores(self) -> dict[str, Any]:
        """Accuracy of the best trial, over all seeds and splits, and of the controls; by labels."""
        every = [value for values in self.best.accuracies for value in values]
        return self._scores(every) if every else {}

    def _scores(self, own: list[float]) -> dict[str, Any]:
        """As a run keeps them."""
        controls = {name: _part(values) for name, values in self.controls.items()}
        return {**_part(own), "controls": controls}

    @property
    def verdict(self) -> Verdict | None:
        """Whether training paid, with the best trial's settings; None without labels."""
        seeds = [self._scores(values) for values in self.best.accuracies]
        found = verdict(self.method, seeds, self.settings)
        if found is None:
            return None
        chosen = f"settings were chosen on these splits, from {len(self.tried)} trials"
        return replace(found, sentence=f"{found.sentence}; {chosen}, so this is optimistic")

    @property
    def auto(self) -> Tried:
        """The first trial: the settings of preset `auto`."""
        return self.tried[0]


def tune(
    graph: Graph,
    measure: Measure,
    study: Path | str,
    *,
    storage: str | None = None,
    method: str = "mux-hop",
    trials: int = 30,
    fixed: Mapping[str, Any] | None = None,
    anchors: int | None = None,
    negatives: int | None = None,
    exact: bool = False,
    afford: Afford | None = None,
    device: str = "auto",
    cache: Path | None = None,
    on_trial: Callable[[list[Tried]], None] | None = None,
    on_block: OnBlock | None = None,
) -> Outcome:
    """Search settings until a study has so many trials; those it has count.

    Args:
        graph: with all its edges.
        measure: what settings are chosen by; see `measure_of`.
        study: the file that holds the trials; it is continued if it is there. In a storage, the
            name of the study.
        storage: a database's address or a journal file, for many workers at a time; each of them
            calls this, and all get the same outcome.
        method: which method's settings to search.
        trials: how many trials the study is to have in the end.
        fixed: settings that are not searched.
        anchors: size of the sample of anchors in each step of every trial.
        negatives: size of the sample that they are contrasted with.
        exact: contrast all nodes with all others.
        afford: decides the sample of a study that begins, where none is asked for; all nodes are
            contrasted without it. A study goes on with the sample that it was begun with.
        device: where to train.
        cache: a folder for what is computed once a graph.
        on_trial: called with all trials so far, at the start and after each.
        on_block: called with each block of epochs.
    """
    if trials < 1:
        raise UserError(f"trials must be at least 1, got {trials}")
    if exact and (anchors is not None or negatives is not None):
        raise UserError("exact contrasts all nodes, anchors and negatives some: ask for one")
    kind, fixed, tell = find_method(method), dict(fixed or {}), on_trial or (lambda tried: None)

    def plan_at(point: Point, sample: Sample) -> Plan:
        return Plan.make(
            method,
            "auto",
            overrides={**sample.settings, **settings_of(kind, point, fixed)},
            graph=graph,
            device=device,
            anchors=sample.anchors,
            keys=sample.negatives,
        )

    facts = {
        "graph": graph_fingerprint(graph),
        "method": method,
        "measure": measure.figures[0],
        "choice of seeds and splits": measure.mark,
    }

    def begun() -> Sample | None:
        """The sample of the study, if there is one already."""
        if storage is None:
            found = begun_with(Path(study))
        else:
            found = shared_begun_with(storage, str(study))
        if found is None:
            return None
        check_facts(str(study), found, facts, "--study names another one")
        return Sample.from_facts(found, str(study))

    wanted = Sample(anchors, negatives)
    make_ready(plan_at({}, wanted), graph)  # finds what is wrong before the study is written
    sample = wanted if exact or not wanted.is_exact else begun()
    first = plan_at({}, sample or wanted)
    if afford is not None:
        affordable = afford(first, sample is not None)
        if sample is None:  # another worker may have begun the study meanwhile
            sample = begun() or Sample.between(first, affordable)
    sample = sample or wanted
    auto = _settings(plan_at({}, sample))
    space = space_of(kind, auto, fixed)
    start = point_of(space, auto)
    facts |= {
        "set of fixed settings": str({key: auto[key] for key in sorted(fixed)}),
        "search space": digest(space),
        FACT: sample.to_fact(),
    }
    opened: AbstractContextManager[Study | Shared]
    if storage is None:
        opened = open_study(Path(study), facts, space, start)
    else:
        opened = open_shared(storage, str(study), facts, space, start)
    with opened as search:
        tell(search.tried)
        while (asked := search.ask(trials)) is not None:
            trial, point = asked
            try:
                figures, accuracies = _measured(measure, plan_at(point, sample), cache, on_block)
            except FAILURES as failure:
                search.tell_failure(trial, str(failure))
            except BaseException:
                if isinstance(search, Shared):
                    search.let_go(trial)
                raise
            else:
                search.tell(trial, figures, accuracies)
            tell(search.tried)
        tried = search.tried
    best = best_of(tried)
    if best is None:
        raise UserError(f"all {len(tried)} trials failed, the last one because {tried[-1].failure}")
    plan = plan_at(best.point, sample)
    return Outcome(tried, best, _settings(plan), method, *_controls(measure, plan), sample)


def _measured(
    measure: Measure, plan: Plan, cache: Path | None, on_block: OnBlock | None
) -> tuple[dict[str, float], Accuracies]:
    """The figures of a plan and, by labels, the accuracies that they are made of."""
    if not isinstance(measure, ByLabels):
        return measure(plan, cache=cache, on_block=on_block), []
    found = measure.accuracies(plan, cache=cache, on_block=on_block)
    return measure.mean(found), found


def _part(values: list[float]) -> dict[str, Any]:
    """Accuracies as a run keeps its scores."""
    return {
        DEVELOPMENT: {
            "accuracy": summarise(values).to_dict(),
            "per_split": {"accuracy": values},
        }
    }


def _controls(measure: Measure, plan: Plan) -> tuple[dict[str, list[float]], str | None]:
    """Scores of what needs no training, where labels judge, or why there are none.

    A failure there must not cost the search.
    """
    try:
        return (measure.controls(plan) if isinstance(measure, ByLabels) else {}), None
    except (UserError, MemoryError, RuntimeError, ValueError) as error:
        return {}, reason_of(error)


def best_of(tried: list[Tried]) -> Tried | None:
    """The trial with the largest first figure, the earliest of several; None if all failed."""
    well = [trial for trial in tried if trial.failure is None]
    return max(well, key=lambda trial: trial.value, default=None)


def _settings(plan: Plan) -> dict[str, Any]:
    return {**asdict(plan.train), **asdict(plan.settings)}
