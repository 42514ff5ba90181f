"""Several runs on one page: scores side by side, linked small maps, losses, what differs."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from muxgcl.errors import UserError
from muxgcl.io.files import write_text
from muxgcl.report.markup import bullets, document, halves, section, table, text, value_text
from muxgcl.report.node_map import categories, groups, node_names, packed_map, shown
from muxgcl.report.page import score_table
from muxgcl.report.paired import pair_rows, scores_of_runs, verdicts
from muxgcl.report.palette import CATEGORIES, MAIN, MUTED, RAMP
from muxgcl.report.record import RunRecord
from muxgcl.report.score_figures import score_panels
from muxgcl.report.style import WIDTH, inline_svg, short_names, styled
from muxgcl.runs.environment import human_time

PAIRS = ("", "minus", "points of accuracy", "ahead")  # columns
# sizes of the sample, in the table `run`: mux-hop has a setting `anchors`, too
OF_A_STEP = {"anchors": "anchors of a step", "keys": "negatives of a step"}
LONGEST_NAME = 60  # characters of a folder's name: a disk may take no more than 255 bytes
MAP_NODES = 1_500  # of each run: small maps need no more, and all runs show the same


def compare(records: Sequence[RunRecord], path: str | Path) -> None:
    """Write one HTML file that sets the runs side by side; it appears whole or not at all."""
    if len(records) < 2:
        raise UserError(f"expected at least two runs to compare, got {len(records)}")
    names = distinct_names(records)
    data = {"runs": _small_maps(records, names), "palette": CATEGORIES, "ramp": RAMP}
    title = f"{len(records)} runs compared"
    told = [
        f"{name} ({record.title})" if record.title not in name else name
        for name, record in zip(names, records, strict=True)
    ]
    body = (
        f'<header><button type="button" class="theme" id="theme">Dark</button><h1>{title}</h1>'
        f'<p class="lead">{text(", ".join(told))}</p></header><main>'
        f"{''.join(_sections(records, names, data))}</main>"
        "<footer>Made by muxgcl. This file is complete in itself: it loads nothing from a network."
        "</footer>"
    )
    write_text(Path(path), document(title, body, data, ("map.js", "compare.js")))


def distinct_names(records: Sequence[RunRecord]) -> list[str]:
    """Each run's folder, or its title; where these repeat, with the title, and then the seed."""
    names = [record.folder or record.title for record in records]
    names = _told_apart(names, [record.title if record.folder else "" for record in records])
    seeds = [_facts(record).get("seed") for record in records]
    names = _told_apart(names, ["" if seed is None else f"seed {seed}" for seed in seeds])
    return [
        f"{name} ({again + 1})" if (again := names[:k].count(name)) else name
        for k, name in enumerate(names)
    ]


def folder_names(records: Sequence[RunRecord]) -> list[str]:
    """Each run's distinct name as that of a folder: letters, digits, `.`, `_` and `-` alone."""
    found: list[str] = []
    for name in distinct_names(records):
        plain = re.sub(r"[^\w.-]+", "-", name)[:LONGEST_NAME].strip("-.") or "run"
        numbered = (f"{plain}-{number}" for number in count(2))
        taken = {other.casefold() for other in found}  # some disks know no capital letters
        found.append(next(one for one in chain([plain], numbered) if one.casefold() not in taken))
    return found


def _told_apart(names: Sequence[str], marks: Sequence[str]) -> list[str]:
    """Names, with their marks where they repeat."""
    return [
        f"{name}, {mark}" if mark and names.count(name) > 1 else name
        for name, mark in zip(names, marks, strict=True)
    ]


def _sections(
    records: Sequence[RunRecord], names: Sequence[str], data: dict[str, Any]
) -> Iterator[str]:
    """Each section that there is something for, then why the others are missing."""
    missing = []
    if scores := scores_of_runs(records, names):
        yield section(
            "scores",
            "Scores",
            "A dot is a run's mean over repeats, its bar (±) one standard deviation; a difference "
            "much smaller than the bars may be chance. Grey: controls that needed no training.",
            halves(_drawn("scores", partial(score_panels, scores)), score_table(scores)),
        )
    else:
        missing.append("<b>Scores</b>: none of the runs was evaluated.")
    rows, sentences = pair_rows(records, names), verdicts(records, names)
    if rows or sentences:
        yield section(
            "pairs",
            "Differences in pairs",
            "Accuracy on the same splits, split by split; ± is one standard deviation over splits. "
            "Runs of one seed say nothing about other seeds."
            + " The table: each run minus the first one with the same splits."
            * bool(rows),
            (table(PAIRS, rows) if rows else "") + bullets(sentences),
        )
    if data["runs"]:
        yield section(
            "maps",
            "Maps",
            "Nodes that lie together have similar embeddings; point at one to find it on every "
            f"map. {data['runs'][0]['note']}",
            f'<div class="minis">{"".join(map(_stage, data["runs"]))}</div>{_legend(data["runs"])}',
        )
    else:
        missing.append("<b>Maps</b>: none of the runs has embeddings yet.")
    if any(record.metrics for record in records):
        yield section(
            "losses",
            "Losses",
            "What each run minimised; compare the shapes, not the heights, for every method has a "
            "loss of its own.",
            _drawn("losses", partial(_losses, records, names)),
        )
    else:
        missing.append("<b>Losses</b>: none of the runs has a metrics.jsonl.")
    yield section("differences", "Where the runs differ", "", _differences(records, names))
    if missing:
        yield section("left-out", "Not in this report", "", bullets(missing))


def _drawn(name: str, draw: Callable[[], Figure]) -> str:
    with styled():
        return f'<div class="figure">{inline_svg(draw(), name, name)}</div>'


def _stage(run: dict[str, Any]) -> str:
    return (
        f'<div class="mini"><h3>{text(run["run"])}</h3><div class="stage"><canvas tabindex="0" '
        'role="img" aria-label="small map"></canvas><div class="tip" hidden></div></div></div>'
    )


def _legend(runs: list[dict[str, Any]]) -> str:
    """What the colours stand for, where they stand for the same on every map."""
    names = runs[0]["column"]["names"][: len(CATEGORIES)]
    if any(run["column"]["names"][: len(CATEGORIES)] != names for run in runs):
        return ""
    marks = (
        f'<span><i class="swatch" style="background:{colour}"></i> {text(name)}</span>'
        for colour, name in zip(CATEGORIES, names, strict=False)
    )
    return f'<p class="marks">{"".join(marks)}</p>'


def _losses(records: Sequence[RunRecord], names: Sequence[str]) -> Figure:
    """One panel a run, each with heights of its own."""
    drawn = [(r, name) for r, name in zip(records, names, strict=True) if r.metrics]
    columns = min(3, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = Figure(figsize=(WIDTH, 0.5 + 1.5 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    titles = short_names([name for _, name in drawn], 24)
    for axes, (record, _), title in zip(grid.flat, drawn, titles, strict=False):
        epochs = [line["epoch"] for line in record.metrics]
        axes.plot(epochs, [line["loss"] for line in record.metrics], color=MAIN)
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=8)
    for axes in grid.flat[len(drawn) :]:
        axes.set_axis_off()
    figure.supxlabel("epoch", fontsize=10, color=MUTED)
    return figure


def _differences(records: Sequence[RunRecord], names: Sequence[str]) -> str:
    """Settings, times and versions that are not the same everywhere."""
    found = [_facts(record) for record in records]
    rows = [
        [text(fact), *(text(value_text(facts.get(fact, ""))) for facts in found)]
        for fact in dict.fromkeys(fact for facts in found for fact in facts)
        if len({value_text(facts.get(fact, "")) for facts in found}) > 1
    ]
    return table(["", *map(text, names)], rows) if rows else "<p>In nothing that was recorded.</p>"


def _facts(record: RunRecord) -> dict[str, Any]:
    facts: dict[str, Any] = {"dataset": record.dataset, "method": record.method}
    for name, value in record.settings.items():
        table = value if isinstance(value, dict) else {name: value}
        facts |= {OF_A_STEP.get(k, k) if name == "run" else k: v for k, v in table.items()}
    facts |= {f"version of {package}": version for package, version in record.versions.items()}
    facts["nodes"] = record.data_summary.get("nodes", "")
    facts["training"] = "" if record.seconds is None else human_time(record.seconds)
    facts["an epoch, ms"] = "" if record.epoch_ms is None else f"{record.epoch_ms:,.1f}"
    facts["peak memory, MiB"] = "" if record.peak_mib is None else f"{record.peak_mib:,.0f}"
    return facts


def _small_maps(records: Sequence[RunRecord], names: Sequence[str]) -> list[dict[str, Any]]:
    """Of each run the map that groups best, with names that link its nodes to the other maps."""
    small = []
    for record, name in zip(records, names, strict=True):
        if record.embedding is None:
            continue
        nodes = shown(record, MAP_NODES)
        column = categories(
            "label" if record.labels is not None else "cluster", *groups(record, nodes)
        )
        ids = node_names(record, nodes)
        small.append({"run": name, "ids": ids, "column": column, **packed_map(nodes.maps[-1])})
    return small
