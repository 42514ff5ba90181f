"""Are the records what the code would ask for today? Every doubt is one line."""

from collections.abc import Iterable, Iterator

from muxgcl.errors import UserError
from muxgcl.reproduce.job import Job, settings_of
from muxgcl.reproduce.records import Line, Record
from muxgcl.reproduce.searches import HALVES


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
