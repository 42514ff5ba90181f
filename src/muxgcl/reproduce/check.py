"""Are the records what the code would ask for today, and did searches read only labels they may?

Every doubt is one line. A search may read labels of the development half alone. Its record says
which labels it read (`labels`), which half that was (`development`, from
`muxgcl.evaluate.development_hash`), and the seeds of its splits and its training, which are those
of no table. `search.jsonl` is older than the rule: its searches read labels of all nodes. It is
kept as it was, and takes no further line.

The check believes what a record says. A digest that was made anew after a change, a line that was
deleted, and a changed score in a search are not noticed.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

from muxgcl.errors import UserError, unknown_name
from muxgcl.io import DATASETS
from muxgcl.io.files import parsed
from muxgcl.reproduce.job import Job
from muxgcl.reproduce.records import Line, Record

HALVES = {  # the development half of each graph, by its hash
    "cora": "15b24c331e3ea421",
    "citeseer": "184f372293c6898e",
    "pubmed": "2a8a34c8b6ce5925",
    "photo": "bc43ba196b7581a2",
    "computers": "a85c70422b84237a",
}
BEFORE = {  # files that are older than the rule, by the hash of what is in them
    "search.jsonl": "f02a96a7e5d9ade6e2420c9d72ba0ee14bbc69ba64beca49d5caaa972d258789",
}
SEEDS = {"split_seed": "splits", "seed": "training seed"}
TRIED = ("settings", "changes", "readout")  # one of them says what a search tried


def doubts(lines: Iterable[Line]) -> Iterator[str]:
    """Malformed, tampered, repeated and stale records, each named with its place."""
    seen: dict[tuple[str, int], Line] = {}
    for line in lines:
        reason = line.fault or _stale(line.record)
        if not line.fault:
            first = seen.setdefault((line.record["hash"], line.record["seed"]), line)
            if first is not line:
                reason = f"repeated: the same measurement as {first.file}:{first.number}"
        if reason:
            yield f"{line.place}: {reason}"


def _stale(record: Record) -> str:
    """What has changed in the code's settings, or in the halves, since the record was made."""
    if record["dataset"] not in DATASETS:
        return f"malformed: {unknown_name('dataset', record['dataset'], DATASETS)}"
    half = record["result"].get("development")
    if half is not None and half != HALVES.get(record["dataset"], half):
        return f"judged on another half of {record['dataset']}'s labels: {half}"
    try:
        now = Job.from_record(record).identity()
    except (UserError, LookupError, FileNotFoundError) as error:
        return f"stale: {error}"
    for table in ("blocks", "train", "settings"):
        values, before = now.get(table, {}), record.get(table, {})
        for name in dict.fromkeys([*values, *before]):
            if (old := before.get(name, "absent")) != (new := values.get(name, "absent")):
                return f"stale: {name} was {old} and is now {new}"
    return ""


def search_doubts(folder: Path, tables: Iterable[Line]) -> Iterator[str]:
    """Searches that read, or may have read, labels they must not, or that have gone.

    Args:
        folder: where the records are.
        tables: the lines of tables and figures, whose seeds no search may have.
    """
    sound = [line.record for line in tables if not line.fault]
    taken = {name: {record[name] for record in sound} for name in SEEDS}
    for path in search_files(folder):
        if path.name in BEFORE:
            if hashlib.sha256(path.read_bytes()).hexdigest() != BEFORE[path.name]:
                yield (
                    f"{path.name}: its searches read labels of all nodes, so it takes no new line "
                    "and none is changed; but it is not what it was"
                )
            continue
        for number, text in enumerate(path.read_bytes().splitlines(), start=1):
            if reason := _fault(parsed(text), taken):
                yield f"{path.name}:{number}: {reason}"
    if is_this_repositorys(folder):
        yield from _gone(folder)


def is_this_repositorys(folder: Path) -> bool:
    """Whether these are the records beside the code, not those of a user: they alone are so old."""
    return all((folder / name).is_file() for name in BEFORE)


def search_files(folder: Path) -> list[Path]:
    """The files of a folder that hold searches."""
    return sorted(folder.glob("*search.jsonl"))


def fault_of_half(row: Record) -> str:
    """Why a line that read labels of one half does not say truly which half that was."""
    dataset, half = row.get("dataset"), row.get("development")
    if dataset not in tuple(HALVES):
        return f"malformed: dataset is {dataset!r}, expected one of {', '.join(HALVES)}"
    if half != HALVES[dataset]:
        expected = f"development is {half!r}, expected {HALVES[dataset]!r}"
        return f"it read labels of another half of {dataset}: {expected}"
    return ""


def _fault(row: Record | None, taken: dict[str, set[int]]) -> str:
    if row is None:
        return "malformed: not a JSON object"
    if row.get("labels") != "development":
        found = f"labels is {row.get('labels')!r}"
        return f"the search read labels outside the development half: {found}"
    if reason := fault_of_half(row):
        return reason
    for name, what in SEEDS.items():
        if type(seed := row.get(name)) is not int:
            return f"malformed: {name} is {seed!r}, expected a whole number"
        if seed in taken[name]:
            return f"{name} is {seed}: the search has the {what} of a table"
    if not any(name in row for name in TRIED):
        return f"malformed: it does not say what was tried: expected {' or '.join(TRIED)}"
    return ""


def _gone(folder: Path) -> Iterator[str]:
    """Files of records that presets name as their source, and that are not there or are empty."""
    named: dict[str, list[str]] = defaultdict(list)
    for presets in sorted(files("muxgcl.runs.presets").iterdir(), key=lambda file: file.name):
        found = re.findall(r"records/([\w-]+\.jsonl)", presets.read_text(encoding="utf-8"))
        for name in dict.fromkeys(found):
            named[name].append(presets.name)
    for name, by in sorted(named.items()):
        path = folder / name
        if not path.is_file() or not path.read_bytes().strip():
            yield f"{name}: missing or empty, but presets come from it: {', '.join(by)}"
