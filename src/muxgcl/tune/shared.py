"""One search of many workers, on any number of machines: Optuna's journal file or a database.

A worker claims a trial, trains, and reports. While it trains it writes a heartbeat every few
seconds. A trial whose heartbeat stops belongs to a worker that died: its point goes back into the
queue, and the next worker takes it. So nothing is lost, and nothing is counted twice: the
storage lets a trial end once, and only as many trials are claimed as were asked for.
"""

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from muxgcl.errors import UserError
from muxgcl.io.safety import parsing
from muxgcl.io.schema import whole
from muxgcl.tune.space import Point, Space
from muxgcl.tune.study import (
    AGAIN,
    START,
    Place,
    Study,
    Tried,
    check_facts,
    check_journal,
    counts,
    drop_half_a_line,
    facts_of,
    first_line,
    writing,
)

try:
    import optuna
    from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
    from optuna.study import StudyDirection
    from optuna.trial import TrialState
except ImportError as missing:
    raise UserError("tune needs Optuna: pip install optuna") from missing

BEAT = 10.0  # seconds between two heartbeats
GRACE = 90.0  # seconds without one, after which a worker counts as dead
WAIT = 10.0  # seconds, or up to twice as many, that the first worker has to queue the first point
LOOK = 2.0  # seconds between two looks at what the others do
ALIVE = "alive"  # the attribute of a trial that holds its heartbeat
CODES = 10  # the last of Optuna's codes of what a journal may say


class Shared:
    """A study that other workers work on at the same time."""

    def __init__(self, study: Study) -> None:
        self.study, self.seen = study, dict[int, tuple[Any, float]]()
        self.beat: threading.Event | None = None

    @property
    def tried(self) -> list[Tried]:
        """Every trial that ended, of all workers."""
        return self.study.tried

    def ask(self, trials: int) -> tuple[Any, Point] | None:
        """A trial of this worker's own; None once so many have ended.

        Where others are at the last trials this waits, and takes over from one that dies.
        """
        while True:
            with writing(self.study.path):
                found = self.study.study.get_trials(deepcopy=False)
                if sum(map(counts, found)) >= trials:
                    return None
                self._requeue_dead(found)
                taken = sum(counts(t) or t.state == TrialState.RUNNING for t in found)
                if taken < trials:
                    self.study.study.sampler = optuna.samplers.TPESampler(constant_liar=True)
                    try:
                        trial, point = self.study.drawn()
                    except UpdateFinishedTrialError:  # so slow that it counted as dead
                        continue
                    if self._is_mine(trial, trials):
                        self._begin_to_beat(trial)
                        return trial, point
            time.sleep(LOOK * random.uniform(0.5, 1.0))

    def _is_mine(self, trial: Any, trials: int) -> bool:
        """Whether there is room for a claim: another worker may have been as fast.

        Claims go by their number, so that of two that are made at once just one is good, and a
        point that waits to be tried again comes before one that was drawn after it. A trial gets
        its number once and never comes back to life, so there are never too many.
        """
        found = self.study.study.get_trials(deepcopy=False)
        mine = found[trial.number]
        if mine.state != TrialState.RUNNING:  # this worker was so slow that it counted as dead
            return False
        lost = mine.user_attrs.get(AGAIN)
        if lost is not None and found[lost].state == TrialState.RUNNING:  # is just being given back
            self._end_as_lost(lost)
            found = self.study.study.get_trials(deepcopy=False)
        if not _is_wanted(mine, found):
            self._end_as_lost(mine.number)
            return False
        if sum(_is_live(t, found) for t in found[: mine.number]) < trials:
            return True
        if {AGAIN, START} & mine.user_attrs.keys():
            self._give_back(mine)
        else:  # a point of its own making, which nobody needs
            self._end_as_lost(mine.number)
        return False

    def _requeue_dead(self, found: list[Any]) -> None:
        """Put the trials of workers whose heartbeat has stopped back into the queue."""
        now = time.monotonic()
        running = [t for t in found if t.state == TrialState.RUNNING]
        for trial in running:
            sign = trial.user_attrs.get(ALIVE)
            before, since = self.seen.get(trial.number, (object(), now))
            self.seen[trial.number] = (sign, now if sign != before else since)
            if now - self.seen[trial.number][1] > GRACE:
                self._give_back(trial)

    def _give_back(self, trial: Any) -> None:
        """Put a trial's point back into the queue, then end it as lost, which makes room for it.

        Two workers may do so at once: then its point is in the queue twice, and the worker that
        draws the second copy drops it.
        """
        marks = {AGAIN: trial.number} | ({START: True} if START in trial.user_attrs else {})
        wanted = trial.system_attrs.get(
            "fixed_params", {}
        )  # a worker that dies early has not read them all
        self.study.study.enqueue_trial(wanted | trial.params, user_attrs=marks)
        self._end_as_lost(trial.number)

    def _end_as_lost(self, number: int) -> None:
        with suppress(ValueError, UpdateFinishedTrialError):  # it has ended meanwhile
            self.study.study.tell(number, state=TrialState.FAIL)

    def _begin_to_beat(self, trial: Any) -> None:
        self.beat = stop = threading.Event()

        def work() -> None:
            count = missed = 0
            while not stop.wait(BEAT if count else 0):
                count += 1
                try:
                    trial.set_user_attr(ALIVE, f"{id(stop)} {count}")
                    missed = 0
                except Exception:  # the trial was given to another, or the storage is away
                    missed += 1
                    if missed > GRACE / BEAT:
                        return

        threading.Thread(target=work, daemon=True).start()

    def tell(
        self, trial: Any, figures: Mapping[str, float], accuracies: Sequence[Sequence[float]] = ()
    ) -> None:
        """A trial ended well; where another worker was given it, that one's result counts."""
        self._end()
        with writing(self.study.path), suppress(ValueError, UpdateFinishedTrialError):
            if accuracies:
                trial.set_user_attr("accuracies", accuracies)
            trial.set_user_attr("figures", dict(figures))
            self.study.study.tell(trial, next(iter(figures.values())))

    def tell_failure(self, trial: Any, reason: str) -> None:
        """A trial came to nothing."""
        self._end()
        with writing(self.study.path), suppress(ValueError, UpdateFinishedTrialError):
            trial.set_user_attr("failure", reason)
            self.study.study.tell(trial, state=TrialState.FAIL)

    def let_go(self, trial: Any) -> None:
        """This worker was stopped: another may have the trial at once."""
        self._end()
        with writing(self.study.path):
            found = self.study.study.get_trials(deepcopy=False)
            self._give_back(found[trial.number])

    def _end(self) -> None:
        if self.beat is not None:
            self.beat.set()


def _is_wanted(trial: Any, found: list[Any]) -> bool:
    """Whether a trial's point is still to be tried: the lost one stays lost, no other has it."""
    lost = trial.user_attrs.get(AGAIN)
    if lost is None:
        return True
    same = [t for t in found if t.user_attrs.get(AGAIN) == lost and t.number < trial.number]
    return not same and found[lost].state == TrialState.FAIL and not counts(found[lost])


def _is_live(trial: Any, found: list[Any]) -> bool:
    """Whether a trial has come to something, or may still."""
    waits = trial.state == TrialState.WAITING and _is_wanted(trial, found)
    return counts(trial) or trial.state == TrialState.RUNNING or waits


class _Lock:
    """Optuna's lock; taking it cuts off half a line that a kill or a full disk has left."""

    def __init__(self, path: Path) -> None:
        self.path, self.lock = path, JournalFileOpenLock(str(path))

    def acquire(self) -> bool:
        self.lock.acquire()
        try:
            drop_half_a_line(self.path)
        except BaseException:
            self.release()
            raise
        return True

    def release(self) -> None:
        self.lock.release()


def shared_begun_with(storage: str, name: str) -> dict[str, str] | None:
    """What a study in a storage was begun with; None where nobody has begun it."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    place, opened = _open(storage)
    with parsing(place, None), writing(place):
        if name not in optuna.get_all_study_names(opened):
            return None
        study = optuna.load_study(study_name=name, storage=opened)
        return facts_of(study, place) if _has_facts(study, place) else None


@contextmanager
def open_shared(
    storage: str, name: str, facts: Mapping[str, str], space: Space, start: Point
) -> Iterator[Shared]:
    """Begin a study in a storage, or join it.

    Args:
        storage: the address of a database (`postgresql://...`, `sqlite:///...`), or the path of
            Optuna's journal file on a disk that all workers see.
        name: of the study; one storage holds many.
        facts: what all workers must agree on.
        space: where to search.
        start: the first point to try.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    place, opened = _open(storage)
    with parsing(place, None), writing(place):
        try:
            study = optuna.create_study(storage=opened, study_name=name, direction="maximize")
            begun = False
        except DuplicatedStudyError:
            study = optuna.load_study(storage=opened, study_name=name)
            begun = _has_facts(study, place)
        if not begun:
            if not study.get_trials(deepcopy=False):
                first = Study(place, study, space, start)
                study.enqueue_trial(first.start, user_attrs={START: True})
            study.set_user_attr("facts", dict(facts))
    advice = "the same graph and settings are needed, or another study (--study)"
    check_facts(place, study.user_attrs["facts"], facts, advice)
    with parsing(place, None):
        search = Shared(Study(place, study, space, start))
    yield search


def _has_facts(study: Any, place: Place) -> bool:
    """Whether somebody has begun this study: the facts are set last. False if that one died."""
    begin, wait = time.monotonic(), WAIT * random.uniform(1.0, 2.0)  # not all at once
    while "facts" not in study.user_attrs:
        if time.monotonic() - begin > wait:
            empty = all(START in trial.user_attrs for trial in study.get_trials(deepcopy=False))
            if empty and study.direction == StudyDirection.MAXIMIZE:
                return False
            raise UserError(f"{place} holds a study of this name that is not one of muxgcl's")
        time.sleep(0.1)
    return True


def _open(storage: str) -> tuple[Place, Any]:
    """The storage, and how to call it: without a password."""
    if "://" not in storage:
        path = Path(storage).resolve()
        if Path(f"{path}.lock").is_symlink():
            raise UserError(f"{path}.lock is a link; expected a file of Optuna's, or none")
        check_journal(path, {"op_code": whole(0, CODES)})
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            backend = JournalFileBackend(str(path), lock_obj=_Lock(path))
        with parsing(path, "Optuna's journal"):
            return path, JournalStorage(backend)
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    try:
        place = make_url(storage).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        raise UserError(
            "--storage must be a database's address such as postgresql://user@host/name, or the "
            "path of a file"
        ) from None
    try:
        return place, RDBStorage(storage, skip_compatibility_check=False)
    except ImportError as error:
        raise UserError(
            f"{place} needs a driver ({first_line(error)})"
            f"{': pip install psycopg2-binary' if place.startswith('postgresql') else ''}"
        ) from None
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        raise UserError(f"cannot open {place}: {first_line(error.__cause__ or error)}") from None
