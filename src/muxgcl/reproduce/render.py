"""From records to files: every table as Markdown and LaTeX, every figure as PNG and SVG."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from muxgcl.io.files import write_atomically, write_text
from muxgcl.reproduce import theory_tables
from muxgcl.reproduce.artefacts import LOOKS, Scope, needed
from muxgcl.reproduce.hop_tables import hops
from muxgcl.reproduce.job import SCORES, Job
from muxgcl.reproduce.records import Found, Record, RecordStore
from muxgcl.reproduce.table5 import table5
from muxgcl.reproduce.tables import table1, table2
from muxgcl.reproduce.typeset import Table, latex, markdown
from muxgcl.reproduce.variants import table3, table4

if TYPE_CHECKING:  # tables need no matplotlib
    from matplotlib.figure import Figure

TABLES: dict[str, Callable[[Found, Scope], list[Table]]] = {
    "hops": hops,
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "table4": table4,
    "figure1": theory_tables.figure1,
    "figure3": theory_tables.figure3,
    "proposition": theory_tables.proposition,
}
DRAWN = {  # which trainings are drawn, by which function of `plots`
    "figure1": ([("grace", "full")], "similarities"),
    "figure3": ([("mux-gcl", "full"), ("mux-gcl", "literal")], "soft_negatives"),
    "proposition": ([("mux-gcl", "full"), ("mux-gcl", "literal")], "objectives"),
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """One table or figure of the paper, from the records there are."""

    artefact: str
    tables: list[Table]
    drawn: dict[str, Record]  # the name of each figure, and what it is drawn from
    missing: list[Job]

    def draw(self, name: str) -> "Figure":
        """The figure of that name."""
        from muxgcl.reproduce import plots

        figure: Figure = getattr(plots, DRAWN[self.artefact][1])(self.drawn[name])
        return figure


def render(artefact: str, store: RecordStore, scope: Scope, found: Found | None = None) -> Rendered:
    """All that the records say about one table or figure."""
    found = Found(store.lines()) if found is None else found
    tables = TABLES[artefact](found, scope) if artefact in TABLES else table5(scope, store.folder)
    drawn = {}
    if artefact in DRAWN:
        for dataset in scope.columns(artefact):
            for method, variant in DRAWN[artefact][0]:
                jobs = scope.looked_at(LOOKS[artefact], method, dataset, variant)
                name = f"{artefact}-{dataset}" + ("" if variant == "full" else f"-{variant}")
                for record in found.of(jobs):
                    drawn[name] = record
    missing = [job for job in needed(artefact, scope) if found.get(job) is None]
    return Rendered(artefact, tables, drawn, missing)


def write(rendered: Rendered, folder: Path) -> list[Path]:
    """Tables and figures as files; each appears whole or not at all."""
    name = rendered.artefact
    written = [folder / f"{name}.md", folder / f"{name}.tex"]
    for path, form in zip(written, (markdown, latex), strict=True):
        write_text(path, "\n".join(form(table) for table in rendered.tables))
    for figure in rendered.drawn:
        written += write_figure(rendered, figure, folder, ("png", "svg"))
    return written


def write_figure(rendered: Rendered, name: str, folder: Path, kinds: Iterable[str]) -> list[Path]:
    """One figure in each of these formats."""
    from muxgcl.report.style import save, styled

    written = []
    with styled():
        drawn = rendered.draw(name)
        for kind in kinds:
            path = folder / f"{name}.{kind}"
            write_atomically(path, partial(save, drawn, kind=kind))
            written.append(path)
    return written


def told(missing: Iterable[Job]) -> list[str]:
    """What is missing: one line for each method, with its datasets and how many seeds of each."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for job in missing:
        variant = "" if job.variant == "full" else f" {job.variant}"
        of_scores = f"{job.method}{variant}, protocol `{job.protocol}`"
        counts[of_scores if job.kind == SCORES else job.what][job.dataset] += 1
    return [
        f"{what}: {', '.join(f'{dataset} ({n})' for dataset, n in datasets.items())}"
        for what, datasets in counts.items()
    ]
