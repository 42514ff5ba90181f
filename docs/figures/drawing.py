"""A few strokes of SVG. Colours are classes, so that one file serves light and dark pages."""

from pathlib import Path

Point = tuple[float, float]

STYLE = """
text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #333 }
.small { font-size: 12px } .strong { font-weight: 600 } .middle { text-anchor: middle }
.math { font-family: "STIX Two Text", Cambria, "DejaVu Serif", serif; font-style: italic }
.line { stroke: #8a8f98; fill: none } .fill { fill: #8a8f98 }
.blue { stroke: #2f6fb3; fill: none } .fill-blue { fill: #2f6fb3 }
.orange { stroke: #c8661d; fill: none } .fill-orange { fill: #c8661d }
.paper { fill: #fff; stroke: #8a8f98 }
.dashed { stroke-dasharray: 3 4 } .thick { stroke-width: 2.5 }
@media (prefers-color-scheme: dark) {
text { fill: #d8dbe2 } .paper { fill: #21232c; stroke: #8d93a1 }
.line { stroke: #8d93a1 } .fill { fill: #8d93a1 }
.blue { stroke: #6aa9ec } .fill-blue { fill: #6aa9ec }
.orange { stroke: #f0975a } .fill-orange { fill: #f0975a }
}
""".strip()
HEADS = "".join(
    f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    f'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" class="{kind}"/></marker>'
    for name, kind in (("line", "fill"), ("blue", "fill-blue"), ("orange", "fill-orange"))
)


class Drawing:
    """A picture of a given size; what is drawn later lies on top."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.title = title
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">',
            f"<title>{title}</title><style>\n{STYLE}\n</style><defs>{HEADS}</defs>",
        ]

    def line(self, a: Point, b: Point, kind: str = "line", *, arrow: bool = False) -> None:
        """A straight line; an arrow's head has the colour that `kind` begins with."""
        head = f' marker-end="url(#{kind.split()[0]})"' if arrow else ""
        places = f'x1="{a[0]:g}" y1="{a[1]:g}" x2="{b[0]:g}" y2="{b[1]:g}"'
        self.parts.append(f'<line {places} class="{kind}"{head}/>')

    def dot(self, at: Point, radius: float, kind: str = "fill", opacity: float = 1) -> None:
        """A disc, or a ring."""
        faint = f' opacity="{opacity:g}"' if opacity < 1 else ""
        place = f'cx="{at[0]:g}" cy="{at[1]:g}" r="{radius:g}"'
        self.parts.append(f'<circle {place} class="{kind}"{faint}/>')

    def box(
        self,
        at: Point,
        size: Point,
        kind: str = "paper",
        *,
        opacity: float = 1,
        radius: float = 4,
    ) -> None:
        """A rectangle by its upper left corner."""
        faint = f' opacity="{opacity:g}"' if opacity < 1 else ""
        place = f'x="{at[0]:g}" y="{at[1]:g}" width="{size[0]:g}" height="{size[1]:g}"'
        self.parts.append(f'<rect {place} rx="{radius:g}" class="{kind}"{faint}/>')

    def patch(self, corners: list[Point], pad: float, kind: str, opacity: float) -> None:
        """A soft outline around some points."""
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in corners) + "z"
        colour = kind.removeprefix("fill-")
        style = f'stroke-width="{2 * pad:g}" stroke-linejoin="round"'
        self.parts.append(
            f'<g opacity="{opacity:g}"><path d="{path}" class="{colour}" {style}/>'
            f'<path d="{path}" class="{kind}"/></g>'
        )

    def text(self, at: Point, words: str, kind: str = "") -> None:
        """A line of text; `_` and `^` set one group {...} below or above."""
        self.parts.append(
            f'<text x="{at[0]:g}" y="{at[1]:g}" class="{kind}">{_raised(words)}</text>'
        )

    def save(self, path: Path) -> None:
        """Write the picture."""
        path.write_text("\n".join([*self.parts, "</svg>", ""]), encoding="utf-8")


def _raised(words: str) -> str:
    """`u_{i}^{(L)}` with shifted, smaller groups."""
    out, rest = "", words
    while (place := min((rest.find(m) for m in ("_{", "^{") if m in rest), default=-1)) >= 0:
        end = rest.index("}", place)
        shift = 4 if rest[place] == "_" else -6
        group = rest[place + 2 : end]
        out += f'{rest[:place]}<tspan dy="{shift}" font-size="70%">{group}</tspan>'
        out += f'<tspan dy="{-shift}">\u200b</tspan>'
        rest = rest[end + 1 :]
    return out + rest
