"""Colours that the colour-blind tell apart and that are seen on white as on black.

The page replaces each named one by a CSS variable, so that figures follow its theme.
"""

import matplotlib as mpl
from matplotlib.colors import to_hex

INK = "#1c2330"  # text
MUTED = "#667085"  # axes, and whatever is of less account
GRID = "#e3e6ec"
MAIN = "#2f6fb3"  # the run itself; positive pairs
OTHER = "#d9642c"  # its opposite; negative pairs
CARD = "#ffffff"  # what figures lie on, and text on a strong colour
THEMED = {
    "ink": INK,
    "muted": MUTED,
    "grid": GRID,
    "main": MAIN,
    "other": OTHER,
    "card": CARD,
}

# found by search: as far apart as ten can be in CIELAB, to normal, protan and deutan eyes alike
CATEGORIES = (
    "#4488cc",
    "#eeaa11",
    "#119966",
    "#dd1144",
    "#6655ee",
    "#22bbdd",
    "#cc5511",
    "#bb4488",
    "#ee99aa",
    "#bbbb66",
)
RAMP = tuple(to_hex(mpl.colormaps["viridis"](0.08 + 0.84 * k / 31)) for k in range(32))
