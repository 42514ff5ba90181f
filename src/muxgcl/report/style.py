"""How a figure looks, and how it leaves: SVG in the page's own theme, or a file for a paper."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import IO, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from muxgcl.report.palette import GRID, INK, MUTED, THEMED

WIDTH = 480 / 72  # inches of every figure: 480 points, which are pixels in the page's SVG
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 11.5,
    "text.color": INK,
    "text.parse_math": False,  # a user's "$" is a dollar
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.4,
    "figure.facecolor": "#ffffff",
    "svg.fonttype": "none",  # text stays text: it can be searched, and the page sets the font
    "svg.hashsalt": "muxgcl",  # the same figure is the same file
    "savefig.dpi": 300,
}


@contextmanager
def styled() -> Iterator[None]:
    """Inside, figures are drawn and saved in the house style; matplotlib's settings come back."""
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcParams.update(STYLE)
        # a name in a script that the font lacks: the page's own font shows it
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        yield


def short(text: Any, most: int = 22) -> str:
    """Long names cut, unprintable characters replaced."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Names cut so that they stay apart: without the words that all of them begin with.

    What is too long still loses its end or, where others have the same beginning, its middle.
    """
    names = [short(name, len(str(name))) for name in names]
    if any(len(name) > most for name in names):
        one, two = min(names), max(names)
        same = next((k for k, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))
        start = one[:same]
        words = max(start.rfind(sign) for sign in " _-/:.") + 1
        names = [name[words:] for name in names] if all(len(n) > words for n in names) else names
    ends = [short(name, most) for name in names]
    head = most // 2
    return [
        end if ends.count(end) == 1 or end == name else f"{name[:head]}…{name[head + 1 - most :]}"
        for name, end in zip(names, ends, strict=True)
    ]


def save(figure: Figure, file: IO[bytes], kind: str) -> None:
    """A figure as a file of its own, the same bytes every time."""
    figure.savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else None)


def inline_svg(figure: Figure, name: str, label: str) -> str:
    """The figure as an element of the page; `name` keeps its ids apart from other figures'."""
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue().decode()
    box = re.search(r'viewBox="([\d. ]+)"', text)
    assert box is not None, "matplotlib gives every SVG a viewBox"
    body = text[text.index("</metadata>") + len("</metadata>") :]
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r'<g id="[^"]*">', "<g>", body)
    body = re.sub(r'( id="|url\(#|href="#)', rf"\1{name}-", body)
    for variable, colour in THEMED.items():
        body = body.replace(colour, f"var(--{variable})")
    return f'<svg viewBox="{box[1]}" role="img" aria-label="{label}">{body}'
