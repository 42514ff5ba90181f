"""How often intervals cover, for docs/evaluation.md, from `records/coverage.jsonl`."""

from pathlib import Path

from muxgcl.io.schema import read_lines
from muxgcl.reproduce.numbers import DASH
from muxgcl.reproduce.typeset import Table, markdown

PAGE = Path("docs/evaluation.md")
NAMES = {"bootstrap": "before", "t": "now"}


def coverage_table(path: Path) -> Table:
    """One row a pattern of variances, before and now side by side for each number of seeds."""
    rows = read_lines(path)
    found = {(r["pattern"], r["seeds"], r["interval"]): r["coverage"] for r in rows}
    seeds = sorted({row["seeds"] for row in rows})
    body = [
        [pattern, *(_cell(found.get((pattern, n, i))) for n in seeds for i in NAMES)]
        for pattern in dict.fromkeys(row["pattern"] for row in rows)
    ]
    tables = ", ".join(sorted({f"{row['tables']:,}" for row in rows}))
    return Table(
        "coverage",
        "How often a nominal 95 % interval holds the true difference, in percent",
        ["", *(f"{n} seed{'s' * (n > 1)}, {name}" for n in seeds for name in NAMES.values())],
        body,
        [
            f"{tables} simulated tables each, by 20 splits. Before: percentiles of a bootstrap "
            f"over seeds and splits; now: the t interval ({DASH}: none is given). The last "
            "rows have the variances of seeds, splits and rest that the records of Table I show."
        ],
    )


def _cell(share: float | None) -> str:
    return DASH if share is None else f"{100 * share:.1f}"


def blocks(root: Path) -> dict[Path, str]:
    """What stands between the markers of the page."""
    return {PAGE: markdown(coverage_table(root / "records" / "coverage.jsonl"))}
