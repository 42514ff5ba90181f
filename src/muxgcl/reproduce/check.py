"""Are the records what the code would ask for today, and did searches read only labels they may?

Every doubt is one line. A search may read labels of the development half alone. Its record says
which labels it read (`labels`), which half that was (`development`, from
`muxgcl.evaluate.development_hash`) and the seed of its splits. `search.jsonl` is older than the
rule: its searches read labels of all nodes. It is kept as it was, and takes no further line.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from muxgcl.errors import UserError
from muxgcl.io.files import parsed
from muxgcl.reproduce.job import Job, settings_of
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
    half = record["result"].get("development")
    if half is not None and half != HALVES.get(record["dataset"], half):
        return f"judged on another half of {record['dataset']}'s labels: {half}"
    try:
        now = settings_of(Job.from_record(record).plan())
    except (UserError, LookupError, FileNotFoundError) as error:
        return f"stale: {error}"
    for table, values in now.items():
        before = record[table]
        for name in dict.fromkeys([*values, *before]):
            if (old := before.get(name, "absent")) != (new := values.get(name, "absent")):
                return f"stale: {name} was {old} and is now {new}"
    return ""


def search_doubts(folder: Path) -> Iterator[str]:
    """Records of searches that read, or may have read, labels outside the development half."""
    for path in search_files(folder):
        if path.name in BEFORE:
            if hashlib.sha256(path.read_bytes()).hexdigest() != BEFORE[path.name]:
                yield (
                    f"{path.name}: its searches read labels of all nodes, so it takes no new line "
                    "and none is changed; but it is not what it was"
                )
            continue
        for number, text in enumerate(path.read_bytes().splitlines(), start=1):
            if reason := _fault(parsed(text)):
                yield f"{path.name}:{number}: {reason}"


def search_files(folder: Path) -> list[Path]:
    """The files of a folder that hold searches."""
    return sorted(folder.glob("*search.jsonl"))


def _fault(row: dict[str, Any] | None) -> str:
    if row is None:
        return "malformed: not a JSON object"
    if "dataset" not in row:
        return "malformed: it names no dataset"
    read, half = row.get("labels"), row.get("development")
    if read != "development":
        return f"the search read labels outside the development half: labels is {read!r}"
    known = HALVES.get(row["dataset"], half)
    if not isinstance(half, str) or half != known:
        return (
            f"the search read labels outside the development half of {row['dataset']}: "
            f"development is {half!r}, expected {known!r}"
        )
    if not isinstance(row.get("split_seed"), int):
        return f"malformed: split_seed is {row.get('split_seed')!r}"
    return ""
