"""What can be checked of the records that no table of scores asks for; every doubt is one line.

Beside the code, a file must be known here, or nobody would look at what is in it: a search belongs
in `*search.jsonl`. A line must be JSON, and of a kind that its file is for. Where it has a digest,
its content must match; where it says which labels it read, they must be those of the half that it
names; where it is the time of a preset, the preset must still have these settings. Nothing more is
known of times, kernels and widths: a figure changed by hand in such a line is not noticed.
"""

from collections.abc import Iterator
from pathlib import Path

from muxgcl.io.files import parsed
from muxgcl.reproduce.check import fault_of_half, is_this_repositorys, search_files
from muxgcl.reproduce.job import COMMITTEE, CONTROLS, READOUTS, SCORES
from muxgcl.reproduce.records import NAMES, Record, digest
from muxgcl.reproduce.table5 import TIMES, is_current

READ = ("development", "report")  # which half's labels a line may say that it read
LINE_KINDS = {  # of the lines in each file
    "any-graph": ("any graph",),
    "coverage": ("coverage",),
    "earlier": (SCORES, READOUTS, "method"),
    "engine": ("epoch", "kernel"),
    "few-values": ("few values",),
    "fuzz": ("fuzz",),
    "hop-epoch": ("hop epoch",),
    "hops-first": (READOUTS, COMMITTEE, CONTROLS),
    "kills": ("kills",),
    "mutants": ("mutants",),
    "new-nodes": ("new-nodes",),
    "noise": ("noise", "agreement"),
    "parity": ("parity",),
    "presets": ("preset",),
    "ring": ("ring",),
    "rounded": ("sampled",),
    "run-time": ("run-time",),
    "sampled": ("sampled",),
    "scale": ("scale",),
    "small-kernels": ("small kernels",),
    "spmm": ("spmm",),
    "times": ("method",),
    "tuning": ("tuning",),
    "width": ("width",),
}


def other_files(folder: Path) -> list[Path]:
    """Files of records that are neither a table's nor a search's."""
    return [path for name in LINE_KINDS if (path := folder / f"{name}.jsonl").is_file()]


def unknown_files(folder: Path) -> list[Path]:
    """Files in the folder, or in one inside it, that may hold records and that nobody checks."""
    known = {folder / f"{name}.jsonl" for name in NAMES}
    known |= {*search_files(folder), *other_files(folder)}
    held = (path for path in folder.rglob("*") if "json" in path.suffix.lower())
    return sorted(path for path in held if path.is_file() and path not in known)


def other_doubts(folder: Path) -> Iterator[str]:
    """Lines that are damaged, were changed, or read labels of another half; unknown files."""
    for path in unknown_files(folder) if is_this_repositorys(folder) else []:
        yield (
            f"{path.relative_to(folder)}: no known file of records, so its lines are not checked; "
            "a search belongs in NAME-search.jsonl, in the folder itself"
        )
    for path in other_files(folder):
        for number, text in enumerate(path.read_bytes().splitlines(), start=1):
            if reason := _fault(parsed(text), path):
                yield f"{path.name}:{number}: {reason}"


def _fault(row: Record | None, path: Path) -> str:
    if row is None:
        return "malformed: not a JSON object"
    if row.get("kind") not in (kinds := LINE_KINDS[path.stem]):
        return f"malformed: kind is {row.get('kind')!r}, expected {' or '.join(kinds)}"
    if "digest" in row and row["digest"] != digest(row):
        return "tampered: its content does not match its digest"
    if "labels" in row:
        if row["labels"] not in READ:
            return f"labels is {row['labels']!r}, expected {' or '.join(READ)}"
        if reason := fault_of_half(row):
            return reason
    if path.name == TIMES and not is_current(row):
        return "stale: its preset has other settings now"
    return ""
