"""Table V: time of an epoch and peak memory, and how both grow with the number of nodes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.errors import UserError
from muxgcl.io.schema import read_lines
from muxgcl.methods import METHODS
from muxgcl.reproduce.artefacts import Scope
from muxgcl.reproduce.hops import OURS
from muxgcl.reproduce.job import settings_of, stated
from muxgcl.reproduce.numbers import DASH
from muxgcl.reproduce.paper import LABELS, TABLE5, TITLES
from muxgcl.reproduce.shown import mark, marks_told
from muxgcl.reproduce.typeset import Table
from muxgcl.runs.auto import BENCHMARKS
from muxgcl.runs.plan import Plan

TIMES = "times.jsonl"
Row = Mapping[str, Any]


def table5(scope: Scope, folder: Path) -> list[Table]:
    """Every method on one device, and the growth that `muxgcl bench epoch` recorded."""
    columns = scope.columns("table5")
    rows = method_rows(folder / TIMES)
    device = _commonest_device(rows.values())
    body = [
        [
            LABELS[method],
            METHODS[method].cost if method in METHODS else DASH,
            *(_cell(rows.get((method, d, device)), method, d) for d in columns),
        ]
        for method in scope.rows("table5")
    ]
    main = Table(
        "table5",
        "Table V. Time of an epoch and peak memory",
        ["method", "growth with N", *(TITLES.get(name, name) for name in columns)],
        body,
        [
            f"Median epoch (first and third quartile) and peak memory above the graph's own, on "
            f"one {device or 'device'}, one training at a time{_how(rows.values(), device)}; in "
            f"square brackets the paper's time, on an RTX 3090 Ti. {DASH}: not measured. Settings: "
            f"preset `paper` ({marks_told(scope.rows('table5'))}); {LABELS[OURS]} has `best`. "
            "Weights, affinities and diffusions are made before the clock starts. By `muxgcl bench "
            f"methods`; records: `records/{TIMES}`.",
            *_apart(rows.values(), device),
        ],
    )
    growth = epoch_rows(folder / "engine.jsonl")
    return [main, _growth(growth)] if growth else [main]


def method_rows(path: Path) -> dict[tuple[str, str, str], Row]:
    """What `muxgcl bench methods --record` wrote at settings that the preset still has."""
    return {
        (row["method"], row["dataset"], row["device"]): row
        for row in read_lines(path)
        if row.get("kind") == "method" and is_current(row)
    }


def is_current(row: Row) -> bool:
    """Whether the preset still has the settings that a time was measured at."""
    try:
        now = settings_of(Plan.make(row["method"], row["preset"], row["dataset"]))
    except UserError:  # a method or preset that is no more
        return False
    return now == {name: stated(row[name]) for name in ("train", "settings")}


def _cell(row: Row | None, method: str, dataset: str) -> str:
    printed = TABLE5.get(method, {}).get(dataset)
    claim = f" [{1000 * printed.mean:.0f} ms]" if printed else ""
    if row is None:
        return f"{DASH}{claim}"
    low, high = map(_ms, row["quartiles_ms"])
    time = f"{_ms(row['epoch_ms'])} ({low}, {high}) ms, {row['peak_mib']:,.0f} MiB"
    return f"{time}{claim}{mark(method, row['preset'], dataset)}"


def _apart(rows: Iterable[Row], device: str) -> list[str]:
    """Which cells were measured apart, at other commits."""
    by_commit: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["device"] == device:
            by_commit[row.get("commit", "")].append(row)
    if len(by_commit) < 2:
        return []
    most, *others = sorted(by_commit, key=lambda commit: -len(by_commit[commit]))
    told = "; ".join(f"at {_short(commit)} {_cells(by_commit[commit])}" for commit in others)
    dirty = any(commit.endswith("-dirty") for commit in by_commit)
    where = " (`records/README.md` says what code a commit in -dirty was)" * dirty
    return [f"Not measured in one call: {told}; the others at {_short(most)}{where}."]


def _short(commit: str) -> str:
    """Seven digits, and whether there were changes beside the commit."""
    return commit[:7] + ("-dirty" if commit.endswith("-dirty") else "")


def _cells(rows: Sequence[Row]) -> str:
    """Methods, with their graphs where these are not all five."""
    graphs: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        graphs[row["method"]].append(row["dataset"])
    told = []
    for name in sorted(graphs, key=list(LABELS).index):
        where = [TITLES[d] for d in BENCHMARKS if d in graphs[name]]
        told.append(LABELS[name] + f" ({', '.join(where)})" * (len(where) < len(BENCHMARKS)))
    return ", ".join(told)


def _how(rows: Iterable[Row], device: str) -> str:
    here = [row for row in rows if row["device"] == device]
    if not here:
        return ""
    least, warm_up = min(row["timed"] for row in here), min(row["warm_up"] for row in here)
    return (
        f", at least {least} timed epochs after {warm_up} that do not count, each block of five "
        "by the clock (so quartiles are of means over five)"
    )


def _commonest_device(rows: Iterable[Row]) -> str:
    counts = Counter(row["device"] for row in rows)
    return max(sorted(counts), key=lambda name: counts[name]) if counts else ""


def epoch_rows(path: Path) -> list[dict[str, Any]]:
    """What `muxgcl bench epoch --record` wrote: of each kind the row that counts."""
    kept: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in read_lines(path):
        key = (row.get("nodes"), row.get("backend"), row.get("precision"), row["device"])
        if row.get("kind") == "epoch" and counts(row, kept.get(key)):
            kept[key] = row
    return sorted(kept.values(), key=lambda row: (row["nodes"], row["backend"]))


def counts(row: Row, before: Row | None) -> bool:
    """Whether a measurement takes the place of an earlier one of the same thing.

    The last one counts; of the dense step, to which ours is compared, the fastest.
    """
    dense = row.get("kind") == "epoch" and row.get("backend") == "reference"
    return before is None or not dense or row["epoch_ms"] <= before["epoch_ms"]


def _growth(rows: Sequence[Mapping[str, Any]]) -> Table:
    """One line a size; below, the power of N that time and memory follow."""
    kinds: dict[str, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        kind = f"{row['backend']} {row.get('precision', '')}".strip()
        kinds[f"{kind}, {row['device']}"][row["nodes"]] = row
    sizes = sorted({row["nodes"] for row in rows})
    body = [
        [f"{size:,}", *(_measured(by_size.get(size)) for by_size in kinds.values())]
        for size in sizes
    ]
    body.append(["grows as", *(_powers(list(by_size.values())) for by_size in kinds.values())])
    return Table(
        "table5-growth",
        "Table V, continued. One epoch of MUX-GCL by the number of nodes",
        ["nodes", *kinds],
        body,
        [
            "`muxgcl bench epoch`, on the device that the column names. Sizes were measured at "
            "several commits; of the dense step (`reference`) the fastest measurement counts, of "
            "the others the last."
        ],
    )


def _measured(row: Mapping[str, Any] | None) -> str:
    return DASH if row is None else _cost(row["epoch_ms"], row["peak_mib"])


def _cost(ms: float, mib: float) -> str:
    """Three figures of time, whole mebibytes."""
    return f"{_ms(ms)} ms, {mib:,.0f} MiB"


def _ms(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def _powers(rows: Sequence[Mapping[str, Any]]) -> str:
    """Slopes of a straight line through the logarithms."""
    if len(rows) < 2:
        return DASH
    nodes = np.log([row["nodes"] for row in rows])
    slopes = [
        np.polyfit(nodes, np.log([max(row[name], 1e-9) for row in rows]), 1)[0]
        for name in ("epoch_ms", "peak_mib")
    ]
    return "time N^{:.1f}, memory N^{:.1f}".format(*slopes)
