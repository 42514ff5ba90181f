"""Results in the README and the docs: a block between two markers, written by `make results`."""

import re
from pathlib import Path

from muxgcl.errors import UserError
from muxgcl.reproduce.claims import plain_words
from muxgcl.reproduce.layout import markdown
from muxgcl.reproduce.plan import ARTEFACTS, Scope
from muxgcl.reproduce.records import Found, Shelf
from muxgcl.reproduce.render import Rendered, render, told, write_figure
from muxgcl.runs import write_text

BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
HEADINGS = {
    "table1": "Node classification",
    "table2": "Node clustering",
    "table3": "Where affinities come from",
    "table4": "What each part adds",
    "table5": "Time and memory",
    "figure1": "Similarity across layers",
    "figure3": "Soft negatives, pair by pair",
    "proposition": "The proposition",
}
IN_README = {"table1": 2, "table4": 1}  # how many of their tables
README, PAGE, FIGURES = Path("README.md"), Path("docs/results.md"), Path("docs/figures")


def blocks(root: Path) -> dict[Path, str]:
    """What the marked block of each document should hold, from the records under `root`."""
    shelf = Shelf(root / "records")
    found = Found(shelf.lines())
    rendered = {name: render(name, shelf, Scope(), found) for name in ARTEFACTS}
    words = [f"{paragraph}\n" for paragraph in plain_words(found, Scope())]
    tables = [
        markdown(table)
        for name, count in IN_README.items()
        for table in rendered[name].tables[:count]
    ]
    return {
        README: "\n".join(tables),
        PAGE: "\n".join([*words, *(_section(rendered[name]) for name in ARTEFACTS)]),
    }


def _section(rendered: Rendered) -> str:
    parts = [f"## {HEADINGS[rendered.artefact]}\n", *map(markdown, rendered.tables)]
    for name, record in rendered.drawn.items():
        alt = f"{HEADINGS[rendered.artefact]}: {record['method']} on {record['dataset']}"
        parts.append(f"![{alt}](figures/{name}.svg)\n")
    if rendered.missing:
        lines = "; ".join(told(rendered.missing))
        parts.append(f"Not recorded yet (in brackets, how many seeds): {lines}.\n")
    return "\n".join(parts)


def with_block(text: str, block: str, name: str) -> str:
    """A document with what stands between its markers replaced."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(BEGIN):
        raise UserError(f"{name} needs one {BEGIN} and, after it, one {END}")
    marked = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    return marked.sub(lambda _: f"{BEGIN}\n\n{block}\n{END}", text)


def write_documents(root: Path) -> list[Path]:
    """Rewrite every marked block, and the figures that the page shows."""
    for path, block in blocks(root).items():
        text = (root / path).read_text(encoding="utf-8")
        write_text(root / path, with_block(text, block, str(path)))
    shelf = Shelf(root / "records")
    found = Found(shelf.lines())
    written = [root / path for path in (README, PAGE)]
    for name in ARTEFACTS:
        rendered = render(name, shelf, Scope(), found)
        for figure in rendered.drawn:
            written += write_figure(rendered, figure, root / FIGURES, ["svg"])
    return written
