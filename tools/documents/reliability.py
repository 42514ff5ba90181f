"""What became of killed commands, full disks and changed files, for docs/reliability.md.

From the last lines of `records/kills.jsonl` (`make kills`) and `records/fuzz.jsonl` (`make fuzz`).
Of the fuzzer the largest record is named as well, where that is an earlier one.
"""

from pathlib import Path
from typing import Any

from muxgcl.io.schema import read_lines
from muxgcl.reproduce.typeset import Table, markdown

PAGE = Path("docs/reliability.md")
FAULTS = {
    "traceback": "tracebacks",
    "crash": "crashes",
    "slow": "over {limit_s} seconds",
    "memory": "over {gib:g} GiB",
    "wrong": "silently wrong",
}


def kills_table(record: dict[str, Any]) -> Table:
    """One row a command: how often it was stopped, and how often it did not end the same."""
    names = ("kills", "differ", "full_disks", "full_differ")
    rows = {**record["commands"], "all": {name: record[name] for name in names}}
    return Table(
        "kills",
        "Commands that were killed, or ran out of disk, and were run again",
        ["", "killed", "ended otherwise", "disk full", "ended otherwise"],
        [[command, *(f"{row[name]:,}" for name in names)] for command, row in rows.items()],
        [f"`records/kills.jsonl`, at commit {record['commit']}."],
    )


def fuzz_table(records: list[dict[str, Any]]) -> Table:
    """One row a kind of file: how many changed ones were refused, and how many still read."""
    record = records[-1]
    rows = [
        [
            target,
            f"{found['read'] + found['refused']:,}",
            f"{found['refused']:,}",
            f"{found['read']:,}",
            f"{found['slowest_s']:.2f}",
        ]
        for target, found in record["targets"].items()
    ]
    largest = max(records, key=lambda one: (one["mutations"], one is record))
    notes = [f"`records/fuzz.jsonl`, at commit {record['commit']}."]
    if largest is not record:
        notes.append(
            f"The largest run so far: {largest['mutations']:,} changes at commit "
            f"{largest['commit']}: {_faults(largest)}."
        )
    return Table(
        "fuzz",
        f"{record['mutations']:,} changed files and options: {_faults(record)}",
        ["", "changed", "refused", "read as something valid", "slowest, s"],
        rows,
        notes,
    )


def _faults(record: dict[str, Any]) -> str:
    facts = {**record, "gib": record["limit_bytes"] / 2**30}
    return ", ".join(f"{record[name]} {words.format(**facts)}" for name, words in FAULTS.items())


def blocks(root: Path) -> dict[Path, str]:
    """What stands between the markers of the page."""
    kills, fuzz = (read_lines(root / "records" / f"{name}.jsonl") for name in ("kills", "fuzz"))
    return {PAGE: "\n".join([markdown(kills_table(kills[-1])), markdown(fuzz_table(fuzz))])}
