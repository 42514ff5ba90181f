"""Records: one JSON line a measurement, appended whole, checked on reading, never changed."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muxgcl.errors import UserError
from muxgcl.io import schema
from muxgcl.io.files import LOCK, append_lines, locked, parsed
from muxgcl.io.safety import parsing
from muxgcl.reproduce.job import (
    BESIDE,
    COMMITTEE,
    CONTROLS,
    FILES,
    KINDS,
    READOUTS,
    SCORES,
    Job,
    canonical,
    settings_hash,
)

SCHEMA = 2  # 1: `holdout` counted test nodes of both halves, which is `holdout-all` now
NAMES = tuple(dict.fromkeys(FILES.values()))
OPTIONAL = ("anchors", "blocks")  # what only some measurements depend on

Record = dict[str, Any]

NUMBER = (int, float)
FIELDS: dict[str, Any] = {
    "schema": int,
    "kind": str,
    "method": str,
    "variant": str,
    "dataset": str,
    "preset": str,
    "protocol": str,
    "optimistic": bool,
    "seed": int,
    "splits": int,
    "split_seed": int,
    "repeats": int,
    "epochs": (int, type(None)),
    "train": dict,
    "settings": dict,
    "hash": str,
    "result": dict,
    "epoch_ms": NUMBER,
    "peak_mib": NUMBER,
    "seconds": NUMBER,
    "device": str,
    "backend": str,
    "versions": dict,
    "commit": str,
    "digest": str,
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file of records; `fault` says why it cannot be used, or is empty."""

    file: str
    number: int
    record: Record
    fault: str = ""

    @property
    def place(self) -> str:
        """Where it stands, and what it is about."""
        names = ("method", "variant", "dataset", "protocol", "seed")
        about = " ".join(f"{self.record[n]}" for n in names if n in self.record)
        return f"{self.file}:{self.number}{f' ({about})' if about else ''}"


class RecordStore:
    """The files of records in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        """The file of that name."""
        return self.folder / f"{name}.jsonl"

    def lines(self) -> list[Line]:
        """Every line of every file; a last line that a kill cut short is as if never written."""
        return [line for name in NAMES for line in self._lines(name)]

    def _lines(self, name: str) -> Iterator[Line]:
        path = self.path(name)
        with parsing(path, None):
            *whole, rest = path.read_bytes().split(b"\n") if path.exists() else [b""]
        if rest and parsed(rest) is not None:
            whole.append(rest)  # whole, but for its line break
        for number, text in enumerate(whole, start=1):
            record = parsed(text)
            if record is None:
                yield Line(path.name, number, {}, "malformed: not a JSON object")
            else:
                fault = fault_of(record, name)
                yield Line(path.name, number, record if fault else as_today(record), fault)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the folder: a second process that wants to write gets one clear line."""
        return locked(self.folder / LOCK)

    def append(self, name: str, record: Record) -> None:
        """Add a line with one write; what a kill left behind of an earlier one is cut off."""
        append_lines(self.path(name), [record], sync=True)


class Found:
    """The sound records of a folder, by the job that each answers."""

    def __init__(self, lines: Iterable[Line]) -> None:
        sound = [line.record for line in lines if not line.fault]
        self._by_key = {(record["hash"], record["seed"]): record for record in sound}

    def get(self, job: Job) -> Record | None:
        """The record of a job; one made with other settings does not count."""
        return self._by_key.get((job.hash, job.seed))

    def of(self, jobs: Iterable[Job]) -> list[Record]:
        """The records of those jobs that have one."""
        return [record for job in jobs if (record := self.get(job)) is not None]


def make_record(job: Job, result: Mapping[str, Any], **facts: Any) -> Record:
    """A record of a job, with the hash of its settings and a digest of the whole."""
    fields = {name: getattr(job, name) for name in job.__dataclass_fields__}
    record = {
        "schema": SCHEMA,
        **fields,
        "optimistic": job.protocol == "paper",
        **{n: v for n, v in job.identity().items() if n in (*OPTIONAL, "train", "settings")},
        "hash": job.hash,
        "result": dict(result),
        **facts,
    }
    return {**record, "digest": digest(record)}


def digest(record: Mapping[str, Any]) -> str:
    """sha256 of everything else in the record."""
    content = {key: value for key, value in record.items() if key != "digest"}
    return hashlib.sha256(canonical(content)).hexdigest()


def fault_of(record: Record, file: str) -> str:
    """Why a record cannot be trusted, or nothing."""
    if record.get("schema") not in (1, SCHEMA):
        return f"malformed: schema {record.get('schema')!r}, expected 1 or {SCHEMA}"
    for name, kind in FIELDS.items():
        value = record.get(name)
        truth = isinstance(value, bool) and kind is not bool  # which Python takes for a number
        if name not in record or truth or not isinstance(value, kind):
            return f"malformed: {name} is {'missing' if name not in record else repr(value)}"
    try:
        schema.plain(record, file)
    except UserError as error:
        return f"malformed: {error}"
    if record["kind"] not in KINDS:
        return f"malformed: unknown kind {record['kind']!r}"
    if record["digest"] != digest(record):
        return "tampered: its content does not match its digest"
    if record["hash"] != settings_hash(_stated(record)):
        return "tampered: its settings do not match their hash"
    return _fault_of_result(record) or _fault_of_place(record, file)


def as_today(record: Record) -> Record:
    """A record by today's names: what schema 1 calls `holdout` is `holdout-all`."""
    if (record["schema"], record["protocol"]) != (1, "holdout"):
        return record
    record = {**record, "protocol": "holdout-all"}
    return {**record, "hash": settings_hash(_stated(record))}


def _stated(record: Record) -> Record:
    """What the hash of a record's settings is taken of."""
    names = ("kind", "method", "dataset", "preset", "protocol", "splits", "split_seed")
    several = {} if record.get("members", 1) == 1 else {"members": record["members"]}
    present = [name for name in OPTIONAL if name in record]
    return {name: record[name] for name in (*names, *present, "train", "settings")} | several


_scores = schema.list_of(schema.number())
_SCORES = schema.fields(
    {"accuracy": _scores, "nmi": _scores, "ari": _scores, "epochs": schema.table_of(_scores)}
)


def _fault_of_result(record: Record) -> str:
    result = record["result"]
    if record["kind"] in (READOUTS, COMMITTEE, CONTROLS, BESIDE):
        return _fault_of_tables(record)
    if record["kind"] != SCORES:
        return "" if result.get("points") else "malformed: it has no points of training"
    try:
        _SCORES(result, "result")
    except UserError as error:
        return f"malformed: {error}"
    if record["protocol"] == "paper":
        counts = {len(scores) for scores in result.get("epochs", {}).values()}
        good = counts == {record["splits"]}
    else:
        good = len(result.get("accuracy", ())) == record["splits"]
        good &= len(result.get("nmi", ())) == len(result.get("ari", ())) == record["repeats"]
        if good and record["schema"] > 1 and not isinstance(result.get("development"), str):
            return "malformed: it does not say which half of the labels it was judged on"
    return "" if good else "malformed: it has not as many scores as splits and repeats"


def _fault_of_tables(record: Record) -> str:
    tables = record["result"].get("tables") or {}
    if not tables or any(len(t.get("accuracy", ())) != record["splits"] for t in tables.values()):
        return "malformed: it has not as many scores as splits"
    if not isinstance(record["result"].get("development"), str):
        return "malformed: it does not say which half of the labels it was judged on"
    return ""


def _fault_of_place(record: Record, file: str) -> str:
    belongs = FILES.get(record["variant"] if record["kind"] == SCORES else record["kind"])
    return "" if belongs == file else f"malformed: it belongs in {belongs}.jsonl"
