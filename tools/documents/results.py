"""Results in the README and the docs: a block between two markers, written by `make results`."""

import re
from dataclasses import replace
from pathlib import Path

from documents.claims import plain_words
from documents.theory_words import theory_words
from muxgcl.errors import UserError
from muxgcl.io.files import write_text
from muxgcl.reproduce.artefacts import ARTEFACTS, Scope
from muxgcl.reproduce.records import Found, RecordStore
from muxgcl.reproduce.render import Rendered, render, told, write_figure
from muxgcl.reproduce.typeset import Table, markdown

BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
HEADINGS = {
    "hops": "MUX-GCL over hops",
    "table1": "Node classification",
    "table2": "Node clustering",
    "table3": "Where affinities come from",
    "table4": "What each part adds",
    "table5": "Time and memory",
    "figure1": "Similarity across layers",
    "figure3": "Soft negatives, pair by pair",
    "proposition": "The proposition",
}
LEAD = "table1", 1  # MUX-GCL minus GRACE, which README shows below the story
STORY = ("hops", "hops-everyday")  # before them, of those over hops
SHOWN = Scope(chief_seeds=10)
README, PAGE, FIGURES = Path("README.md"), Path("docs/results.md"), Path("docs/figures")


def blocks(root: Path) -> dict[Path, str]:
    """What the marked block of each document should hold, from the records under `root`."""
    store = RecordStore(root / "records")
    found = Found(store.lines())
    rendered = {name: render(name, store, SHOWN, found) for name in ARTEFACTS}
    words = [f"{paragraph}\n" for paragraph in plain_words(found, SHOWN)]
    name, place = LEAD
    lead = [markdown(recorded(table)) for table in rendered[name].tables[place : place + 1]]
    theory = [f"{paragraph}\n" for paragraph in theory_words(found, SHOWN)]
    sections = {name: _section(one) for name, one in rendered.items() if name != "hops"}
    if theory:
        sections["figure1"] = "\n".join(["## The argument\n", *theory, sections["figure1"]])
    ours = rendered["hops"]
    story, section = [], []
    if recorded(ours.tables[0]).rows:
        front_page = [table for table in ours.tables if table.name in STORY]
        story = [markdown(recorded(table)) for table in front_page]
        section = [_section(ours), "## What holds of the paper\n"]
    return {
        README: "\n".join([*story, *lead]),
        PAGE: "\n".join([*section, *words, *sections.values()]),
    }


def recorded(table: Table) -> Table:
    """The rows in which something of ours is recorded: a front page is no place for dashes."""
    return replace(table, rows=[row for row in table.rows if any(map(_ours, row[1:]))])


def _ours(cell: str) -> bool:
    return bool(cell) and not cell.startswith("—")


def _section(rendered: Rendered) -> str:
    parts = [f"## {HEADINGS[rendered.artefact]}\n", *map(markdown, rendered.tables)]
    for name, record in rendered.drawn.items():
        alt = f"{HEADINGS[rendered.artefact]}: {record['method']} on {record['dataset']}"
        alt += "" if record["variant"] == "full" else f", {record['variant']} equation 5"
        parts.append(f"![{alt}](figures/{name}.svg)\n")
    if rendered.missing:
        lines = "; ".join(told(rendered.missing))
        parts.append(f"Not recorded yet (in brackets, how many seeds): {lines}.\n")
    return "\n".join(parts)


def with_block(text: str, block: str, name: str, marker: str = "results") -> str:
    """A document with what stands between its markers replaced."""
    begin, end = f"<!-- {marker}:begin -->", f"<!-- {marker}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        raise UserError(f"{name} needs one {begin} and, after it, one {end}")
    marked = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    return marked.sub(lambda _: f"{begin}\n\n{block}\n{end}", text)


def write_documents(root: Path) -> list[Path]:
    """Rewrite every marked block, and the figures that the page shows."""
    for path, block in blocks(root).items():
        text = (root / path).read_text(encoding="utf-8")
        write_text(root / path, with_block(text, block, str(path)))
    store = RecordStore(root / "records")
    found = Found(store.lines())
    written = [root / path for path in (README, PAGE)]
    for name in ARTEFACTS:
        rendered = render(name, store, SHOWN, found)
        for figure in rendered.drawn:
            written += write_figure(rendered, figure, root / FIGURES, ["svg"])
    return written
