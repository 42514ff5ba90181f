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
from muxgcl.reproduce.shown import ORIGINS, mark
from muxgcl.reproduce.typeset import Table
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
            f"preset `paper` ({ORIGINS}); {LABELS[OURS]} has `best`. Weights, affinities and "
            "diffusions are made before the clock starts. By `muxgcl bench methods`; records: "
            f"`records/{TIMES}`."
        ],
    )
    growth = epoch_rows(folder / "engine.jsonl")
    return [main, _growth(growth)] if growth else [main]


def method_rows(path: Path) -> dict[tuple[str, str, str], Row]:
    """What `muxgcl bench methods --record` wrote at settings that the preset still has."""
    return {
        (row["method"], row["dataset"], row["device"]): row
        for row in read_lines(path)
        if row.get("kind") == "method" and _current(row)
    }


def _current(row: Row) -> bool:
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
    """What `muxgcl bench epoch --record` wrote, the last row of each kind."""
    latest = {
        (row["nodes"], row["backend"], row.get("precision"), row["device"]): row
        for row in read_lines(path)
        if row.get("kind") == "epoch"
    }
    return sorted(latest.values(), key=lambda row: (row["nodes"], row["backend"]))


def _growth(rows: Sequence[Mapping[str, Any]]) -> Table:
    """One line a size; below, the power of N that time and memory follow."""
    kinds: dict[str, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        kinds[f"{row['backend']} {row.get('precision', '')}".strip()][row["nodes"]] = row
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
        [f"`muxgcl bench epoch` on {', '.join(sorted({row['device'] for row in rows}))}."],
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
