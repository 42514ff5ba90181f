"""One run as a page: a map to explore, figures and how to read them, how to have it again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from muxgcl.io.files import write_text
from muxgcl.io.safety import how_many
from muxgcl.report.figures import PLOTS, Plot
from muxgcl.report.markup import (
    bullets,
    document,
    halves,
    pairs,
    prose,
    section,
    table,
    template,
    text,
)
from muxgcl.report.node_map import payload
from muxgcl.report.record import RunRecord
from muxgcl.report.scores import PROTOCOLS, Score, flatten, judged
from muxgcl.report.style import inline_svg, styled
from muxgcl.runs.environment import human_time

ALONE = (  # the scores where no control was measured
    "Scores",
    "What the embedding is good for; a dot is the mean over repeats, its bar (±) one standard "
    "deviation.",
)
FLAG = '<span class="flag">optimistic</span>'
NO_MAP = "the run has no embeddings yet"
COUNTED = {"nodes": "node", "edges": "edge", "features": "feature"}


def write_report(record: RunRecord, path: str | Path) -> None:
    """Write one HTML file that holds all it needs; it appears whole or not at all."""
    data = None if record.embedding is None else payload(record)
    title = record.folder or record.title
    write_text(Path(path), document(title, _body(record, data), data, ("map.js", "page.js")))


def _body(record: RunRecord, data: dict[str, Any] | None) -> str:
    scores = [(score.who or record.method, score) for score in flatten(record.scores)]
    drawn = {
        plot.name: _figure_section(
            plot, record, score_table(scores) if plot.name == "scores" else ""
        )
        for plot in PLOTS
        if not plot.missing(record)
    }
    parts = [] if data is None else [_map_section(record, data)]
    parts += [drawn.get("scores", "")]
    parts += ['<div class="pair">', *(v for k, v in drawn.items() if k != "scores")]
    parts += [_data_section(record), _run_section(record), "</div>"]
    parts += [_settings_section(record), _left_out_section(record)]
    shown = ["embedding"] * (data is not None) + [*drawn, "data", "time", "settings"]
    titles = {"embedding": "Map", "data": "Data", "time": "Time and memory", "settings": "Settings"}
    titles |= {plot.name: _heading(plot, record)[0] for plot in PLOTS}
    links = "".join(f'<a href="#{name}">{titles[name]}</a>' for name in shown)
    return (
        f'<header><button type="button" class="theme" id="theme">Dark</button>'
        f'<h1>{text(record.folder or record.title)}</h1><p class="lead">{_lead(record)}</p>'
        f"<nav>{links}</nav></header>"
        f"<main><noscript>The map needs JavaScript; the figures below do not.</noscript>"
        f"{_tiles(record)}{_verdict(record)}{''.join(parts)}</main>"
        "<footer>Made by muxgcl. This file is complete in itself: it loads nothing from a network."
        "</footer>"
    )


def _lead(record: RunRecord) -> str:
    what = f"{text(record.title)}. " if record.folder else ""
    if record.embedding is None:
        return f"{what}This run has no embeddings yet."
    return (
        f"{what}Each node of the graph became {record.embedding.shape[1]} numbers, its embedding, "
        "learned without looking at any label. Nodes that play a similar part get similar numbers."
    )


def _tiles(record: RunRecord) -> str:
    """The figures that are asked for first."""
    tiles = []
    found = flatten(record.scores)
    for score in [s for s in found if not s.who][:3]:
        rivals = [s for s in found if s.who and _same(s, score)]
        best = max(rivals, key=lambda s: s.mean, default=None)
        rest = f"{score.protocol}, {score.n} repeats" if score.n > 1 else score.protocol
        beside = f"best control: {best} ({best.who})" if best else ""
        flag = FLAG if score.optimistic else ""
        tiles.append((str(score), f"{text(score.heading)}: {text(rest)} {flag}", text(beside)))
    if "nodes" in record.data_summary:
        counts = _counts(record)
        nodes, edges, features = (
            how_many(counts[name], one) if name in counts else "" for name, one in COUNTED.items()
        )
        tiles.append((nodes, edges, features))
    if record.seconds is not None:
        each = (
            f"{human_time(record.epoch_ms / 1000)} an epoch" if record.epoch_ms is not None else ""
        )
        epochs = f"{len(record.metrics)} epochs" if record.metrics else "training"
        tiles.append((human_time(record.seconds), epochs, each))
    boxes = (
        f'<div class="tile"><b>{text(head)}</b><span>{one}</span><span>{two}</span></div>'
        for head, one, two in tiles
    )
    return f'<div class="tiles">{"".join(boxes)}</div>' if tiles else ""


def _verdict(record: RunRecord) -> str:
    """Whether training paid, in a sentence."""
    found = judged(record)
    if found is None:
        return ""
    sentence = found.sentence[0].upper() + found.sentence[1:]
    return f'<p class="verdict">{prose(sentence)}.</p>'


def _counts(record: RunRecord) -> dict[str, int]:
    """How many of what; a run folder counts edges both ways, a reader once."""
    counts = dict(record.data_summary)
    return counts | {"edges": counts["edges"] // 2} if "edges" in counts else counts


def _same(one: Score, two: Score) -> bool:
    return (one.protocol, one.measure) == (two.protocol, two.measure)


# sections --------------------------------------------------------------------------------------


def _figure_section(plot: Plot, record: RunRecord, more: str) -> str:
    title, reading = _heading(plot, record)
    with styled():
        drawing = inline_svg(plot.draw(record), plot.name, text(title))
    body = f'<div class="figure">{drawing}</div>'
    return section(plot.name, title, reading, halves(body, more) if more else body)


def _heading(plot: Plot, record: RunRecord) -> tuple[str, str]:
    """The title of a figure, and how to read it."""
    compared = any(score.is_control for score in flatten(record.scores))
    return ALONE if plot.name == "scores" and not compared else (plot.title, plot.reading)


def _map_section(record: RunRecord, data: dict[str, Any]) -> str:
    notes = []
    if data["total"] > len(data["ids"]):
        count = f"{len(data['ids']):,} of {data['total']:,}"
        notes.append(f"The map shows {count} nodes, drawn at random; so do search and similarity.")
    if data["leftOut"]:
        names = ", ".join(data["leftOut"])
        notes.append(f"Left out, to keep this file small: {names}.")
    if record.edge_index is not None and data["edges"] is None:
        notes.append("The graph's edges are left out, to keep this file small.")
    body = template("map.html", count=str(len(data["ids"])), notes=text(" ".join(notes)))
    reading = (
        "Each dot is a node, and dots that lie together have similar embeddings; if colours form "
        "groups, the embedding knows what the colour stands for."
    )
    return section("embedding", "Map of the embedding", reading, body)


def score_table(rows: Sequence[tuple[str, Score]]) -> str:
    """Named scores, one line a name and one column a measure, and how they were measured."""
    measures = {(score.protocol, score.measure): score for _, score in rows}
    cells = {(name, score.protocol, score.measure): str(score) for name, score in rows}
    counts = {
        (score.protocol, score.measure): _counted([s.n for _, s in rows if _same(s, score)])
        for _, score in rows
    }
    heads = [
        f"{text(score.protocol)}: {text(score.heading)}, {counts[measure]} "
        f"{FLAG if score.optimistic else ''}"
        for measure, score in measures.items()
    ]
    lines = [
        [text(name), *(text(cells.get((name, *measure), "")) for measure in measures)]
        for name in dict.fromkeys(name for name, _ in rows)
    ]
    controls = {text(name) for name, score in rows if score.is_control}
    own = {k for k, line in enumerate(lines) if line[0] not in controls}
    notes = [
        f"<b>{text(name)}</b>: {prose(PROTOCOLS[name])}"
        for name in dict.fromkeys(protocol for protocol, _ in measures)
        if name in PROTOCOLS
    ]
    return table(["", *heads], lines, own) + "<h3>How they were measured</h3>" + bullets(notes)


def _counted(repeats: Sequence[int]) -> str:
    """Over how many repeats figures are taken."""
    least, most = min(repeats), max(repeats)
    return f"n = {least}" if least == most else f"n = {least} to {most}"


def _data_section(record: RunRecord) -> str:
    counts = {name: f"{value:,}" for name, value in _counts(record).items()}
    notes = bullets(map(prose, record.data_notes)) if record.data_notes else "<p>Nothing.</p>"
    body = pairs({"graph": record.dataset, **counts}) + f"<h3>What was done to it</h3>{notes}"
    return section("data", "Data", "", body)


def _run_section(record: RunRecord) -> str:
    facts = {}
    if record.seconds is not None:
        facts["training"] = human_time(record.seconds)
    if record.epoch_ms is not None:
        facts["an epoch"] = human_time(record.epoch_ms / 1000)
    if record.peak_mib is not None:
        facts["peak memory"] = f"{record.peak_mib:,.0f} MiB"
    body = pairs(facts) if facts else "<p>Not recorded.</p>"
    if record.command:
        body += (
            '<h3>To repeat this run</h3><div class="command">'
            f'<pre id="command">{text(record.command)}</pre>'
            '<button type="button" id="copy">Copy</button></div>'
        )
    return section("time", "Time and memory", "", body)


def _settings_section(record: RunRecord) -> str:
    """Tables of settings side by side, versions last."""
    loose = {k: v for k, v in record.settings.items() if not isinstance(v, dict)}
    tables = {k: v for k, v in record.settings.items() if isinstance(v, dict)}
    if loose:
        tables = {"settings": loose, **tables}
    columns = "".join(
        f"<div><h3>{text(name)}</h3>{pairs(values)}</div>"
        for name, values in {**tables, "versions": record.versions}.items()
        if values
    )
    return section("settings", "Settings and versions", "", f'<div class="columns">{columns}</div>')


def _left_out_section(record: RunRecord) -> str:
    """What a reader may look for in vain, and why."""
    reasons = [] if record.embedding is not None else [("Map of the embedding", NO_MAP)]
    reasons += [(p.title, why) for p in PLOTS if (why := p.missing(record))]
    if record.embedding is not None and record.labels is None:
        reasons.append(("Colouring by label", "the graph has no labels"))
    if not reasons:
        return ""
    lines = bullets(f"<b>{text(title)}</b>: {text(why)}." for title, why in reasons)
    return section("left-out", "Not in this report", "", lines)
