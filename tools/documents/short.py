"""Which cells of Table I end short of the paper, for docs/baselines.md."""

from pathlib import Path

from muxgcl.reproduce import numbers
from muxgcl.reproduce.artefacts import CONTROLS, Scope
from muxgcl.reproduce.paper import LABELS, TABLE1, TITLES
from muxgcl.reproduce.records import Found, RecordStore
from muxgcl.reproduce.shown import collapsed, mark, marks_told, shown
from muxgcl.reproduce.typeset import Table, markdown

PAGE = Path("docs/baselines.md")


def short_table(found: Found, scope: Scope) -> Table:
    """One row a cell, the largest distance first."""
    methods = [name for name in scope.rows("table1") if name not in CONTROLS]
    cells, listed = [], []
    for method in methods:
        for dataset in scope.columns("table1"):
            ours = numbers.summary(shown(found, scope, (method, "full"), dataset).records)
            printed = TABLE1.get(method, {}).get(dataset)
            if ours and printed and ours.mean - printed.mean < -numbers.SHORT_BY:
                name = f"{LABELS[method]} on {TITLES[dataset]}{mark(method, 'paper', dataset)}"
                gap = ours.mean - printed.mean
                listed.append(method)
                cells.append((gap, [name, f"{ours.mean:.2f}", printed.plain, numbers.signed(gap)]))
    return Table(
        "short",
        "Cells of Table I more than a point below the paper's",
        ["", "ours", "paper", "difference"],
        [row for _, row in sorted(cells, key=lambda cell: cell[0])],
        [
            f"Settings: {marks_told(listed)}.",
            *collapsed(found, scope, methods, scope.columns("table1")),
        ],
    )


def blocks(root: Path) -> dict[Path, str]:
    """What stands between the markers of the page."""
    found = Found(RecordStore(root / "records").lines())
    return {PAGE: markdown(short_table(found, Scope(chief_seeds=10)))}
