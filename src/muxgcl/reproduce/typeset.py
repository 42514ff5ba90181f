"""A table as text: Markdown for the documents, LaTeX for a paper, from the same cells."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "±": r"$\pm$",
    "▼": r"$\blacktriangledown$",
    "†": r"$^{\dag}$",
    "‡": r"$^{\ddag}$",
    "*": r"$^{*}$",
    "<": "$<$",
    ">": "$>$",
    "^": r"\^{}",
    "—": "---",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Cells, a title, and what a reader must know beside them."""

    name: str
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def markdown(table: Table) -> str:
    """The table, its title above and its notes below."""
    columns = zip(table.header, *table.rows, strict=True)
    widths = [max(3, *map(len, column)) for column in columns]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    body = "\n".join([line(table.header), line(rule), *map(line, table.rows)])
    notes = "".join(f"\n\n{note}" for note in table.notes)
    return f"**{table.title}**\n\n{body}{notes}\n"


def latex(table: Table) -> str:
    """A `table` with rules of `booktabs`; the triangle needs `amssymb`."""
    columns = "l" + "r" * (len(table.header) - 1)

    def line(cells: Sequence[str]) -> str:
        return f"    {' & '.join(map(_escaped, cells))} \\\\"

    notes = "".join(f"\n  \\par\\footnotesize {_escaped(note)}" for note in table.notes)
    return "\n".join(
        [
            "\\begin{table}",
            "  \\centering",
            f"  \\caption{{{_escaped(table.title)}}}",
            f"  \\label{{{table.name}}}",
            f"  \\begin{{tabular}}{{{columns}}}",
            "    \\toprule",
            line(table.header),
            "    \\midrule",
            *map(line, table.rows),
            "    \\bottomrule",
            f"  \\end{{tabular}}{notes}",
            "\\end{table}\n",
        ]
    )


def _escaped(text: str) -> str:
    text = "".join(LATEX.get(character, character) for character in text)
    return re.sub(r"(?<![\w-])-(?=\d)", "$-$", text)  # a minus is longer than a hyphen
