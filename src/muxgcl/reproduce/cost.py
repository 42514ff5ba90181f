"""Table V: time of an epoch and peak memory, and how both grow with the number of nodes."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.io.schema import read_lines
from muxgcl.methods import METHODS
from muxgcl.reproduce.artefacts import CHIEF, Scope
from muxgcl.reproduce.job import BOUNDS, SIMILARITIES, SOFT_NEGATIVES, Job
from muxgcl.reproduce.numbers import DASH
from muxgcl.reproduce.paper import LABELS, TABLE5, TITLES
from muxgcl.reproduce.records import Found, Record
from muxgcl.reproduce.typeset import Table


def table5(found: Found, scope: Scope, folder: Path) -> list[Table]:
    """Every method on one device, and the growth that `muxgcl bench epoch` recorded."""
    columns = scope.columns("table5")
    cells = {
        (method, dataset): found.of(_trainings(scope, method, dataset))
        for method in scope.rows("table5")
        for dataset in columns
    }
    ours = [record for name in CHIEF for d in columns for record in cells.get((name, d), ())]
    device = _commonest_device(ours or [r for records in cells.values() for r in records])
    body = []
    for method in scope.rows("table5"):
        cost = METHODS[method].cost if method in METHODS else DASH
        shown = [_cell(cells[method, d], device, method, d) for d in columns]
        body.append([LABELS[method], cost, *shown])
    main = Table(
        "table5",
        "Table V. Time of an epoch and peak memory",
        ["method", "growth with N", *(TITLES.get(name, name) for name in columns)],
        body,
        [
            f"Median epoch and peak memory at each method's published settings, on one "
            f"{device or 'device'}, of the fastest of its runs: others may have shared the device "
            f"(in brackets the paper's time, on an RTX 3090 Ti). {DASH}: not run there."
        ],
    )
    rows = epoch_rows(folder / "engine.jsonl")
    return [main, _growth(rows)] if rows else [main]


def _cell(records: Sequence[Record], device: str, method: str, dataset: str) -> str:
    here = [record for record in records if record["device"] == device]
    printed = TABLE5.get(method, {}).get(dataset)
    claim = f" ({1000 * printed.mean:.0f} ms)" if printed else ""
    if not here:
        return f"{DASH}{claim}"
    least = min(here, key=lambda record: record["epoch_ms"])
    return f"{_cost(least['epoch_ms'], least['peak_mib'])}{claim}"


def _trainings(scope: Scope, method: str, dataset: str) -> list[Job]:
    """All of the whole method, those for a figure included."""
    kinds = (SIMILARITIES, SOFT_NEGATIVES, BOUNDS)
    looks = [job for kind in kinds for job in scope.looked_at(kind, method, dataset)]
    return [*scope.scored(method, dataset), *looks]


def _commonest_device(records: Sequence[Record]) -> str:
    counts = Counter(record["device"] for record in records)
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
    return f"{ms:,.0f} ms, {mib:,.0f} MiB" if ms >= 100 else f"{ms:.3g} ms, {mib:,.0f} MiB"


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
