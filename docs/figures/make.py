"""Draw the documentation's pictures: `python docs/figures/make.py` writes them beside itself."""

import sys
from collections.abc import Callable
from math import cos, radians, sin
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from drawing import Drawing, Point

NODES: list[Point] = [
    (38, 62), (76, 34), (88, 84), (44, 112), (138, 92), (172, 56), (184, 108), (142, 134),
]  # fmt: skip
EDGES = [(0, 1), (0, 2), (1, 2), (0, 3), (2, 3), (2, 4), (4, 5), (4, 6), (5, 6), (4, 7), (6, 7)]
HOPS = [0, 1, 1, 1, 2, 3, 3, 3]  # from node 0
HULLS = ([0], [1, 2, 3, 0], [1, 4, 3, 0])  # corners of node 0's patches


def place(node: int, at: Point) -> Point:
    """Where a node of the example graph lies in a picture."""
    return NODES[node][0] + at[0], NODES[node][1] + at[1]


def graph(d: Drawing, at: Point, kind: str, gone: tuple[int, ...] = ()) -> None:
    """The example graph, some of its edges dropped."""
    for number, (a, b) in enumerate(EDGES):
        d.line(place(a, at), place(b, at), "line dashed" if number in gone else f"{kind} thick")
    for node in range(len(NODES)):
        d.dot(place(node, at), 8, f"fill-{kind}" if kind != "line" else "fill")


def columns(d: Drawing, at: Point, kind: str, masked: tuple[int, ...] = ()) -> None:
    """Feature columns as a row of squares, some of them masked."""
    for number in range(10):
        fill = "line dashed" if number in masked else kind
        d.box((at[0] + 17 * number, at[1]), (13, 13), fill, radius=2)


def flow() -> Drawing:
    """From a graph to a loss."""
    d = Drawing(740, 190, "From a graph through views, encoder and projector to the contrast")
    stops = [("graph", "edges, features"), ("two views", "parts left out"),
             ("encoder", "a table a scale"), ("projector", "unit rows"),
             ("contrast", "pull and push")]  # fmt: skip
    for number, (name, what) in enumerate(stops):
        x = 4 + 150 * number
        d.box((x, 30), (124, 58), "paper", radius=6)
        d.text((x + 62, 55), name, "strong middle")
        d.text((x + 62, 74), what, "small middle")
        if number:
            d.line((x - 25, 59), (x - 2, 59), "line", arrow=True)
    d.box((154, 126), (274, 46), "paper", radius=6)
    d.text((291, 145), "affinity", "strong middle")
    d.text((291, 163), "where patches lie in the graph, once", "small middle")
    d.line((66, 88), (66, 149), "line")
    d.line((66, 149), (152, 149), "line", arrow=True)
    d.line((428, 149), (666, 149), "line")
    d.line((666, 149), (666, 91), "line", arrow=True)
    d.text((548, 141), "how much each pair counts", "small middle")
    return d


def views() -> Drawing:
    """A graph and two damaged copies of it."""
    d = Drawing(740, 240, "A graph and two views with other edges dropped and other columns masked")
    cases = (("the graph", "line", (), ()), ("view u", "blue", (2, 5, 8), (1, 6)),
             ("view v", "orange", (0, 6), (3, 4, 9)))  # fmt: skip
    for number, (name, kind, gone, masked) in enumerate(cases):
        x = 8 + 250 * number
        d.text((x + 110, 18), name, "strong middle")
        graph(d, (x, 18), kind, gone)
        columns(d, (x + 26, 190), "fill" if kind == "line" else f"fill-{kind}", masked)
        d.text((x + 110, 225), "feature columns", "small middle")
    return d


def pull_and_push() -> Drawing:
    """What the loss does to unit rows."""
    d = Drawing(740, 300, "The anchor is pulled to its other view and pushed from other nodes")
    centre, radius = (200.0, 150.0), 112.0

    def at(degrees: float, r: float = radius) -> Point:
        return centre[0] + r * cos(radians(degrees)), centre[1] - r * sin(radians(degrees))

    d.dot(centre, radius, "line")
    for start, end, kind in ((58, 74, "blue"), (106, 90, "orange")):
        d.line(at(start, 132), at(end, 132), kind + " thick", arrow=True)
    for angle, weight in ((8, 1.0), (-40, 1.0), (-95, 1.0), (205, 1.0), (160, 1.0), (32, 0.25)):
        d.dot(at(angle), 8, "fill", weight)
        step = -14 if -130 < angle < 50 else 14
        if weight == 1:
            d.line(at(angle, 128), at(angle + step, 128), "line", arrow=True)
    d.dot(at(50), 9, "fill-blue")
    d.dot(at(114), 9, "fill-orange")
    notes = (("fill-blue", 1.0, "anchor: a node in view u, at the last scale"),
             ("fill-orange", 1.0, "positive: the same node in view v; pulled near"),
             ("fill", 1.0, "negatives: all other nodes; pushed away"),
             ("fill", 0.25, "soft negative: it lies near in the graph and"))  # fmt: skip
    for row, (kind, weight, words) in enumerate(notes):
        d.dot((392, 92 + 34 * row), 8, kind, weight)
        d.text((410, 97 + 34 * row), words)
    d.text((410, 217), "may be of the same kind; hardly pushed")
    return d


def scales() -> Drawing:
    """A layer's table stands for a patch."""
    d = Drawing(740, 270, "Patches of zero, one and two hops, and the layers that stand for them")
    origin = (20.0, 62.0)
    for hop, faint in ((2, 0.13), (1, 0.22)):
        d.patch([place(n, origin) for n in HULLS[hop]], 20, "fill-blue", faint)
    graph(d, origin, "line")
    d.dot(place(0, origin), 10, "fill-blue")
    d.text((118, 30), "patches of one node", "strong middle")
    d.text((place(0, origin)[0] - 12, place(0, origin)[1] - 20), "k = 0", "small middle")
    d.text((place(3, origin)[0] + 4, place(3, origin)[1] + 36), "k = 1", "small middle")
    d.text((place(4, origin)[0] + 6, place(4, origin)[1] - 30), "k = 2", "small middle")
    rows = (("X", "features", "scale 0"), ("U^{(1)}", "layer 1", "scale 1"),
            ("U^{(2)}", "layer 2", "scale 2"))  # fmt: skip
    d.text((382, 30), "encoder", "strong middle")
    d.text((650, 30), "tables of one width", "strong middle")
    for k, (symbol, name, scale) in enumerate(rows):
        y = 196 - 70 * k
        d.box((316, y), (132, 44), "paper", radius=6)
        d.text((332, y + 27), symbol, "math")
        d.text((372, y + 27), name)
        d.box((596, y), (108, 44), "paper", radius=6)
        d.text((650, y + 27), scale, "middle")
        d.line((448, y + 22), (593, y + 22), "blue thick", arrow=True)
        words = ("weights 1, 2 only", "weight 2 only", "as it is")[k]
        d.text((520, y + 14), words, "small middle")
        if k:
            d.line((382, y + 70), (382, y + 46), "line", arrow=True)
            d.text((392, y + 62), "propagate", "small")
    return d


def multiplex() -> Drawing:
    """Who is compared with whom."""
    d = Drawing(740, 270, "The last scale of each view is contrasted with every scale of the other")
    for side, (x, letter, kind) in enumerate(((150, "u", "blue"), (480, "v", "orange"))):
        d.text((x + 55, 28), f"view {letter}", "strong middle")
        for k in range(3):
            y = 194 - 70 * k
            d.box((x, y), (110, 44), "paper", radius=6)
            d.box((x, y), (8, 44), f"fill-{kind}", radius=3)
            d.text((x + 62, y + 27), f"{letter}^{{({k})}}", "math middle")
            d.text((x - 82 if side == 0 else x + 126, y + 27), f"{k} hops" if k != 1 else "1 hop",
                   "small")  # fmt: skip
    for k in range(3):
        y = 216 - 70 * k
        d.line((478, 80), (263, y + 6), "orange dashed", arrow=True)
        d.line((262, 72), (477, y - 4), "blue thick", arrow=True)
        if k < 2:
            d.text((430, (168, 114)[k]), f"λ_{{{k}}}", "math")
    d.text((430, 62), "λ_{2}", "math")
    return d


def affinity() -> Drawing:
    """Weights of one anchor's negatives."""
    d = Drawing(740, 220, "Nodes near the anchor weigh little as negatives, far ones in full")
    weights = (0.0, 0.2, 0.15, 0.3, 0.6, 0.9, 0.95, 0.9)
    origin = (30.0, 24.0)
    for a, b in EDGES:
        d.line(place(a, origin), place(b, origin), "line")
    for node, weight in enumerate(weights):
        d.dot(place(node, origin), 11, "paper")
        d.dot(place(node, origin), 11, "fill-orange" if node else "fill-blue", weight or 1)
    d.text((place(0, origin)[0] - 12, place(0, origin)[1] - 18), "anchor", "small middle")
    d.text((310, 58), "Patches that random walks visit together get similar")
    d.text((310, 80), "rows h: their cosine is high, the pair weighs little.")
    d.text((330, 112), "ω_{ij} = 1 - η(h_{i}, h_{j})", "math")
    for step in range(11):
        d.box((310 + 26 * step, 140), (26, 16), "fill-orange", opacity=0.04 + 0.09 * step, radius=0)
    d.text((310, 176), "near: ω close to 0, spared", "small")
    d.text((596, 176), "far: ω close to 1, pushed in full", "small middle")
    return d


def tiles() -> Drawing:
    """What of the matrix of all pairs exists at a time."""
    d = Drawing(740, 276, "Dense: the whole matrix; chunked: one band of rows; fused: small tiles")
    size, step = 192.0, 24.0
    for number, name in enumerate(("reference", "chunked", "fused")):
        x, y = 26 + 246 * number, 48.0
        d.text((x + size / 2, 24), name, "strong middle")
        d.box((x, y), (size, size), "line", radius=0)
        if name == "reference":
            d.box((x, y), (size, size), "fill-blue", opacity=0.55, radius=0)
        elif name == "chunked":
            d.box((x, y), (size, 2 * step), "fill", opacity=0.15, radius=0)
            d.box((x, y + 2 * step), (size, step), "fill-blue", opacity=0.55, radius=0)
            d.line(
                (x + size + 8, y + 2 * step), (x + size + 8, y + 5 * step), "blue thick", arrow=True
            )
        else:
            for cell in range(8):
                d.box((x + cell * step, y + cell * step), (step, step), "fill-orange", opacity=0.35,
                      radius=0)  # fmt: skip
            for row in (1, 4, 6):
                d.box((x, y + row * step), (size, step), "line dashed", radius=0)
                column = {1: 4, 4: 1, 6: 3}[row]
                d.box((x, y + row * step), (column * step, step), "fill", opacity=0.15, radius=0)
                d.box((x + column * step, y + row * step), (step, step), "fill-blue", radius=0)
                tip = (x + (column + 2) * step + 14, y + (row + 0.5) * step)
                d.line((x + (column + 1) * step + 3, tip[1]), tip, "blue thick", arrow=True)
        note = ("all pairs in memory", "one band of rows at a time", "one tile a program, on chip")
        d.text((x + size / 2, 264), note[number], "small middle")
    d.text((16, 148), "n", "math middle")
    d.text((122, 44), "m", "math middle")
    return d


def hops() -> Drawing:
    """A perceptron on each node, then hops, then all of them side by side."""
    d = Drawing(740, 270, "A perceptron on the features, its output over hops, and the embedding")
    d.text((66, 30), "a view", "strong middle")
    d.box((10, 196), (112, 44), "paper", radius=6)
    d.text((66, 223), "features X", "middle")
    d.text((10, 258), "entries, edges dropped", "small")
    d.line((122, 218), (184, 218), "blue thick", arrow=True)
    d.text((152, 208), "f", "math middle")
    d.text((270, 30), "scales", "strong middle")
    names = ("f(X)", "Â f(X)", "Â^{2} f(X)")
    for k, name in enumerate(names):
        y = 196 - 70 * k
        d.box((188, y), (164, 44), "paper", radius=6)
        d.box((188, y), (8, 44), "fill-blue", opacity=1 - 0.3 * k, radius=3)
        d.text((210, y + 27), name, "math")
        d.text((318, y + 27), f"scale {k}", "small middle")
        d.line((352, y + 22), (440, 88 + 44 * (2 - k)), "line", arrow=True)
        if k:
            d.line((270, y + 70), (270, y + 46), "line", arrow=True)
            d.text((280, y + 62), "propagate", "small")
    d.text((536, 30), "training", "strong middle")
    d.box((444, 66), (184, 132), "paper", radius=6)
    d.text((536, 108), "projector, then", "middle")
    d.text((536, 130), "scale 2 of one view", "middle")
    d.text((536, 152), "against every scale", "middle")
    d.text((536, 174), "of the other", "middle")
    d.text((684, 30), "embedding", "strong middle")
    for k in range(3):
        d.box((654 + 20 * k, 66), (20, 132), "fill-blue", opacity=1 - 0.3 * k, radius=0)
        d.text((664 + 20 * k, 216), str(k), "small middle")
    d.text((684, 240), "unit rows,", "small middle")
    d.text((684, 256), "side by side", "small middle")
    return d


FIGURES: tuple[Callable[[], Drawing], ...] = (
    flow, views, pull_and_push, scales, multiplex, affinity, hops, tiles,
)  # fmt: skip

if __name__ == "__main__":
    for figure in FIGURES:
        figure().save(Path(__file__).with_name(f"{figure.__name__.replace('_', '-')}.svg"))
