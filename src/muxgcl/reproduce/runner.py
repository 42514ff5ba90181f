"""Make what is missing: train, score, append a line; a killed runner goes on where it stood."""

import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import open_dataset
from muxgcl.io.named import cache_root
from muxgcl.reproduce.artefacts import trainings
from muxgcl.reproduce.job import BESIDE, COMMITTEE, SCORES, Job
from muxgcl.reproduce.readouts import Reader
from muxgcl.reproduce.records import Found, Record, RecordStore
from muxgcl.reproduce.training import Pending, train_and_look, train_and_score
from muxgcl.reproduce.workers import ScoringPool
from muxgcl.runs.environment import pick_device
from muxgcl.runs.scoring import labels_of
from muxgcl.shapes import Array
from muxgcl.tensors import AnyData


@dataclass(slots=True)
class Outcome:
    """What became of the jobs that were missing."""

    recorded: list[Job] = field(default_factory=list)
    failed: dict[Job, str] = field(default_factory=dict)
    left: list[Job] = field(default_factory=list)  # time was up


@dataclass(slots=True, kw_only=True)
class Runner:
    """Where and how to run."""

    store: RecordStore
    device: str = "auto"
    workers: int = 0  # processes that score beside the training; none: after it, in this one
    time_limit: float | None = None  # seconds after which nothing new is started
    data_root: Path | None = None
    open_graph: Callable[[str, Path | None], AnyData] = open_dataset
    on_record: Callable[[Job, Record], None] | None = None
    on_failure: Callable[[Job, str], None] | None = None
    _graphs: dict[str, tuple[Graph, Array]] = field(default_factory=dict)
    _unopened: dict[str, UserError] = field(default_factory=dict)

    def missing(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs without a record."""
        found = Found(self.store.lines())
        return [job for job in jobs if found.get(job) is None]

    def run(self, jobs: Sequence[Job]) -> Outcome:
        """Run what is missing, in order, and append each result as soon as it is there."""
        outcome, begin = Outcome(), time.monotonic()
        pick_device(self.device)  # a wrong name is refused before anything is opened
        with self.store.locked():
            groups = trainings(self.missing(jobs))
            with ScoringPool(self.workers) as pool, TemporaryDirectory() as scratch:
                pending: list[Pending] = []

                def collect() -> None:
                    for one in [p for p in pending if p.done]:
                        pending.remove(one)
                        self._keep(one, outcome)

                # affinities are made within the time that is recorded, then shared by variants
                reader = Reader(pool, device=self.device, cache=Path(scratch), meanwhile=collect)
                for group in groups:
                    if group[0].kind in (COMMITTEE, BESIDE):
                        reader.expect(group[0])
                for group in groups:
                    if self.time_limit is not None and time.monotonic() - begin > self.time_limit:
                        outcome.left += group
                        continue
                    try:
                        pending += self._train(group, pool, reader, collect)
                    except Exception as error:  # one method's fault must not cost the others
                        self._fail(group, error, outcome)
                    collect()
                while pending:
                    wait(
                        {f for p in pending for f in p.pieces if not f.done()},
                        None,
                        FIRST_COMPLETED,
                    )
                    collect()
        return outcome

    def _train(
        self,
        group: list[Job],
        pool: ScoringPool,
        reader: Reader,
        collect: Callable[[], None],
    ) -> list[Pending]:
        graph, labels = self._graph(group[0].dataset)
        if group[0].file == "hops":
            return [reader.measure(job, graph, labels) for job in group]
        how: dict[str, Any] = {"device": self.device, "cache": cache_folder(), "meanwhile": collect}
        if group[0].kind != SCORES:
            return train_and_look(group, graph, **how)
        return train_and_score(group, graph, labels, pool, **how)

    def _graph(self, name: str) -> tuple[Graph, Array]:
        """A graph on its device, opened once; one that cannot be opened is not tried again."""
        if name in self._unopened:
            raise self._unopened[name]
        if name not in self._graphs:
            try:
                data = self.open_graph(name, self.data_root)
            except UserError as error:
                self._unopened[name] = error
                raise
            labels = labels_of(data)
            if labels is None:
                raise UserError(f"{name} has no labels, so there is nothing to score")
            self._graphs[name] = Graph.from_data(data).to(pick_device(self.device)), labels
        return self._graphs[name]

    def _keep(self, pending: Pending, outcome: Outcome) -> None:
        try:
            record = pending.record()
        except Exception as error:
            self._fail([pending.job], error, outcome)
            return
        self.store.append(pending.job.file, record)
        outcome.recorded.append(pending.job)
        if self.on_record is not None:
            self.on_record(pending.job, record)

    def _fail(self, group: list[Job], error: Exception, outcome: Outcome) -> None:
        """Name what failed and go on; a fault of ours is shown with its traceback."""
        known = isinstance(error, UserError)
        reason = str(error) if known else "".join(traceback.format_exception(error)).strip()
        for job in group:
            outcome.failed[job] = reason.splitlines()[-1]
        if self.on_failure is not None:
            self.on_failure(group[0], reason)


def cache_folder() -> Path:
    """Where affinities are kept between runs: they depend on the graph and their settings alone."""
    return cache_root() / "muxgcl" / "affinity"
