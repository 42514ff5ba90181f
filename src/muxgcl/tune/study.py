"""A search on disk: what was tried and what came of it. Killed at any moment, it can go on.

A file of one's own is held by one process. A storage (`tune/shared.py`) is many workers'.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muxgcl.errors import UserError
from muxgcl.io.files import locked
from muxgcl.io.safety import parsing
from muxgcl.io.schema import (
    Check,
    fields,
    list_of,
    number,
    plain,
    read_lines,
    table_of,
    text,
    whole,
)
from muxgcl.tune.sample import EXACT, FACT
from muxgcl.tune.space import Point, Range, Space, Values

try:
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution
    from optuna.exceptions import StorageInternalError
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna.trial import TrialState
except ImportError as missing:
    raise UserError("tune needs Optuna: pip install optuna") from missing

Place = Path | str  # where a study is: a file, or the address of a database
NAME = "muxgcl"
START = "start"  # marks the trial of the first point
AGAIN = "again"  # of which lost trial this one has the point
OPENING = b'{"op_code":'  # of every line of Optuna's journal
WRITTEN = (0, 2, 3, 4, 5, 6, 8, 9)  # Optuna's codes of what a search of ours does


@dataclass(frozen=True, slots=True)
class Tried:
    """One trial that ended: its figures, or why there are none."""

    number: int  # from 1
    point: Point
    figures: dict[str, float]
    failure: str | None
    accuracies: list[list[float]] = field(default_factory=list)  # by seed and split, by labels

    @property
    def value(self) -> float:
        """What settings are chosen by: the first figure."""
        return next(iter(self.figures.values()))


class Study:
    """Asks Optuna for points and tells it what came of them.

    What is asked for depends on the trials that ended alone. So one that was cut short is done
    again, and a search with pauses is the same as one without.
    """

    def __init__(self, path: Place, study: Any, space: Space, start: Point) -> None:
        self.path, self.study, self.space = path, study, space
        self.start = {name: _stored(value) for name, value in start.items()}
        self.distributions = {name: _distribution(values) for name, values in space.items()}
        _ = self.tried  # a trial that was tampered with is named before anything is written
        self._check_queue()

    def fail_unfinished(self) -> None:
        """Trials that were cut short end as failed; only who holds the study can know of them."""
        with writing(self.path):
            for trial in self.study.get_trials(states=[TrialState.RUNNING]):
                self.study.tell(trial.number, state=TrialState.FAIL)

    @property
    def tried(self) -> list[Tried]:
        """Every trial that ended, in order, that of the start first."""
        with parsing(self.path, None):
            ended = sorted(
                self.study.get_trials(states=[TrialState.COMPLETE, TrialState.FAIL]),
                key=lambda trial: (START not in trial.user_attrs, trial.number),
            )
            return [
                self._tried(number, trial) for number, trial in enumerate(filter(counts, ended), 1)
            ]

    def _tried(self, at: int, trial: Any) -> Tried:
        """One trial, once its figures and its point are known to be such."""
        place = f"{self.path}: trial {at}"
        figures, failure = trial.user_attrs.get("figures", {}), trial.user_attrs.get("failure")
        table_of(number())(figures, f"{place}, figures")
        if failure is not None:
            text(failure, f"{place}, failure")
        if failure is None and [trial.value] != list(figures.values())[:1]:
            raise UserError(f"{place}: its value is {trial.value}, but its figures are {figures}")
        if absent := set(self.space) ^ set(trial.params):
            raise UserError(f"{place} is not in the space that is searched: {min(absent, key=str)}")
        point = {name: _meant(self.space[name], value) for name, value in trial.params.items()}
        accuracies = trial.user_attrs.get("accuracies", [])
        list_of(list_of(number(0, 100)))(accuracies, f"{place}, accuracies")
        return Tried(at, point, figures, failure, accuracies)

    def _check_queue(self) -> None:
        """Points that wait to be tried, or are being tried, lie in the space that is searched."""
        for trial in self.study.get_trials(deepcopy=False):
            if trial.state not in (TrialState.WAITING, TrialState.RUNNING):
                continue
            place = f"{self.path}: trial {trial.number + 1} of the queue"
            wanted = trial.system_attrs.get("fixed_params", {})
            table_of(plain)(wanted, f"{place}, fixed_params")
            for name in self.space.keys() & wanted.keys():
                values = self.space[name]
                if isinstance(values, Range):
                    number(values.low, values.high)(wanted[name], f"{place}, {name}")
                elif wanted[name] not in (known := [_stored(value) for value in values]):
                    raise UserError(f"{place}: {name} must be one of {known}, got {wanted[name]!r}")
            if AGAIN in trial.user_attrs:
                whole(0, trial.number)(trial.user_attrs[AGAIN], f"{place}, {AGAIN}")

    def ask(self, trials: int) -> tuple[Any, Point] | None:
        """A trial to report to, and the point to try; None once so many have ended."""
        done = len(self.tried)
        if done >= trials:
            return None
        self.study.sampler = optuna.samplers.TPESampler(seed=done)
        with writing(self.path):
            if not done and not self.study.get_trials(states=[TrialState.WAITING]):
                self.study.enqueue_trial(self.start)
            return self.drawn()

    def drawn(self) -> tuple[Any, Point]:
        """The next trial, and the point to try."""
        trial = self.study.ask(self.distributions)
        return trial, {name: _meant(self.space[name], v) for name, v in trial.params.items()}

    def tell(
        self, trial: Any, figures: Mapping[str, float], accuracies: Sequence[Sequence[float]] = ()
    ) -> None:
        """A trial ended well; its first figure is maximised."""
        with writing(self.path):
            if accuracies:
                trial.set_user_attr("accuracies", accuracies)
            trial.set_user_attr("figures", dict(figures))
            self.study.tell(trial, next(iter(figures.values())))

    def tell_failure(self, trial: Any, reason: str) -> None:
        """A trial came to nothing."""
        with writing(self.path):
            trial.set_user_attr("failure", reason)
            self.study.tell(trial, state=TrialState.FAIL)


@contextmanager
def writing(place: Place) -> Iterator[None]:
    """Turn a fault of the disk, or of a database, into one line."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {place}: {error.strerror or error}") from error
    except StorageInternalError as error:
        raise UserError(f"cannot write {place}: {first_line(error.__cause__ or error)}") from error


def first_line(error: BaseException) -> str:
    """What a database's driver has to say, in one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def begun_with(path: Path) -> dict[str, str] | None:
    """What the study in a file was begun with; None where there is no study yet."""
    path = path.resolve()
    if not path.is_file():
        return None
    check_journal(path, {"op_code": _code, "study_id": whole(0, 0)})
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with parsing(path, None), writing(path):
        storage = JournalStorage(JournalFileBackend(str(path), lock_obj=_Held()))
        if NAME not in optuna.get_all_study_names(storage):
            return None
        return facts_of(optuna.load_study(storage=storage, study_name=NAME), path)


def facts_of(study: Any, place: Place) -> dict[str, str] | None:
    """The facts of a study, once they are known to be such; None before they are written."""
    found: dict[str, str] | None = study.user_attrs.get("facts")
    if found is not None:
        table_of(text)(found, f"{place}: facts")
    return found


@contextmanager
def open_study(path: Path, facts: Mapping[str, str], space: Space, start: Point) -> Iterator[Study]:
    """Begin or continue the study in a file, and hold it against a second process.

    Args:
        path: Optuna's journal: lines of JSON, one added for each thing that happens.
        facts: what two parts of one study must agree on.
        space: where to search.
        start: the first point to try.
    """
    path = path.resolve()  # a link of the user's own; a lock follows none
    with locked(path):
        check_journal(path, {"op_code": _code, "study_id": whole(0, 0)})
        drop_half_a_line(path)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with parsing(path, None):
            storage = JournalStorage(JournalFileBackend(str(path), lock_obj=_Held()))
            begun = NAME in optuna.get_all_study_names(storage)
        with writing(path):
            if not begun:
                optuna.create_study(storage=storage, study_name=NAME, direction="maximize")
            study = optuna.load_study(storage=storage, study_name=NAME)
            if "facts" not in study.user_attrs:
                study.set_user_attr("facts", dict(facts))
        check_facts(path, study.user_attrs["facts"], facts, "--study names another file")
        with parsing(path, None):
            search = Study(path, study, space, start)
        search.fail_unfinished()
        yield search


def check_facts(place: Place, before: Any, facts: Mapping[str, str], advice: str) -> None:
    """Refuse a study that was begun with something else."""
    table_of(text)(before, f"{place}: facts")
    before = {FACT: EXACT} | before
    if other := [name for name in facts if before.get(name) != facts[name]]:
        name = other[0]
        raise UserError(
            f"{place} was begun with another {name} ({_readable(before.get(name))}); this command "
            f"asks for {_readable(facts[name])}: {advice}"
        )


def _readable(fact: Any) -> str:
    """Fixed settings as they are typed (`epochs = 20`); other facts as they are."""
    found = str(fact)
    if found == "{}":
        return "none"
    return re.sub(r"'(\w+)': ", r"\1 = ", found[1:-1]) if found.startswith("{'") else found


def counts(trial: Any) -> bool:
    """Whether a trial has ended by itself: one that was cut short will be done again."""
    return trial.state == TrialState.COMPLETE or (
        trial.state == TrialState.FAIL and "failure" in trial.user_attrs
    )


def _code(value: Any, place: str) -> None:
    whole(0, max(WRITTEN))(value, place)
    if value not in WRITTEN:
        raise UserError(f"{place} must be one of {WRITTEN}, got {value}")


def check_journal(path: Path, known: Mapping[str, Check]) -> None:
    """Refuse a file that is no journal, or a damaged one, before anything is added to it."""
    if path.is_file():
        with parsing(path, None), path.open("rb") as file:
            start = file.read(len(OPENING))
        if not OPENING.startswith(start):
            raise UserError(f"{path} is not a study of muxgcl")
    read_lines(path, fields(known, "op_code"))


def drop_half_a_line(path: Path) -> None:
    """A kill or a full disk may leave the last line unfinished: what follows would be joined."""
    with writing(path), path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        if size and file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


class _Held:
    """The file is locked as a whole: Optuna's own lock would only outlive a kill."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None: ...


def _distribution(values: Values) -> Any:
    if isinstance(values, Range):
        return FloatDistribution(values.low, values.high, log=values.log)
    return CategoricalDistribution([_stored(value) for value in values])


def _stored(value: Any) -> Any:
    """As Optuna keeps it: it knows numbers and text only."""
    return json.dumps(value) if isinstance(value, tuple) else value


def _meant(values: Values, stored: Any) -> Any:
    if isinstance(values, Range):
        return values.short(stored)
    return next(value for value in values if _stored(value) == stored)
