"""What can be checked of the records that no table of scores asks for; every doubt is one line.

A line must be JSON. Where it has a digest, its content must match; where it says which labels it
read, they must be those of the half that it names; where it is the time of a preset, the preset
must still have these settings. Nothing more is known of times, kernels and widths: a figure changed
by hand in such a line is not noticed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from muxgcl.io.files import parsed
from muxgcl.reproduce.check import HALVES, search_files
from muxgcl.reproduce.records import NAMES, digest
from muxgcl.reproduce.table5 import TIMES, is_current

READ = ("development", "report")  # which half's labels a line may say that it read


def other_files(folder: Path) -> list[Path]:
    """Files of records that are neither a table's nor a search's."""
    known = {folder / f"{name}.jsonl" for name in NAMES} | set(search_files(folder))
    return sorted(path for path in folder.glob("*.jsonl") if path not in known)


def other_doubts(folder: Path) -> Iterator[str]:
    """Lines that are damaged, were changed, or read labels of another half than they say."""
    for path in other_files(folder):
        for number, text in enumerate(path.read_bytes().splitlines(), start=1):
            if reason := _fault(parsed(text), path.name):
                yield f"{path.name}:{number}: {reason}"


def _fault(row: dict[str, Any] | None, file: str) -> str:
    if row is None:
        return "malformed: not a JSON object"
    if "digest" in row and row["digest"] != digest(row):
        return "tampered: its content does not match its digest"
    if "labels" in row:
        if row["labels"] not in READ:
            return f"labels is {row['labels']!r}, expected {' or '.join(READ)}"
        half, dataset = row.get("development"), row.get("dataset")
        if not isinstance(half, str) or half != HALVES.get(str(dataset), half):
            return f"read labels of another half of {dataset}: development is {half!r}"
    if file == TIMES and not is_current(row):
        return "stale: its preset has other settings now"
    return ""
