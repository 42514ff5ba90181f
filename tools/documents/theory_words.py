"""The paper's argument and what is measured of it: two paragraphs, from the records."""

import math
from collections.abc import Callable

from muxgcl.reproduce.artefacts import Scope
from muxgcl.reproduce.numbers import signed
from muxgcl.reproduce.records import Found, Record
from muxgcl.reproduce.theory_tables import READINGS, gaps, looked_at, shares, tenths

LOG2 = f"log 2 = {math.log(2):.2f}"


def theory_words(found: Found, scope: Scope) -> list[str]:
    """On Figure 3, and on the proposition; none where nothing is recorded."""
    above = _by_reading(found, scope, "figure3", _range_above)
    order = _by_reading(found, scope, "proposition", _order)
    paragraphs = []
    if above:
        paragraphs.append(
            "**Figure 3.** The paper finds T_D and T_S above zero for most pairs of nodes. Whether "
            "they are depends on how Equation 5 is read. Share of pairs above zero at the scales "
            f"below the last, over ten points of training: {above}. The two readings differ by a "
            f"constant: the literal weight is twice the other, which adds {LOG2} to every T. And "
            "the sign works the other way round than the paper has it: a pair with T > 0 weighs "
            "more in MUX-GCL's denominator than in GRACE's and makes L_MUX smaller. The "
            "proposition needs T < 0."
        )
    literal = looked_at(found, scope, "proposition", "mux-gcl", "literal")
    without = "; the literal reading shows the gap without that" if literal else ""
    if order:
        paragraphs.append(
            "**The proposition.** It says L_GR < L_MUX < I(X; U, V). The gap L_MUX - L_GR on the "
            f"same weights and views, over training: {order}. Halving every weight raises L_MUX "
            f"by up to {LOG2}, whatever has been learned{without}. The second inequality says "
            "little: both objectives are logarithms of a share and so below zero, information "
            "never is. A larger lower bound is not by itself a better embedding; Tables I and IV "
            "show what accuracy comes with it."
        )
    return paragraphs


def _by_reading(found: Found, scope: Scope, artefact: str, say: Callable[[Record], str]) -> str:
    parts = []
    for variant, reading in READINGS.items():
        seen = looked_at(found, scope, artefact, "mux-gcl", variant)
        if seen:
            told = ", ".join(f"{name} {say(record)}" for name, record in seen)
            parts.append(f"by `{reading}` {told}")
    return "; ".join(parts)


def _range_above(record: Record) -> str:
    found = [share for point in tenths(record) for share in shares(point)]
    return f"{100 * min(found):.0f} to {100 * max(found):.0f} %"


def _order(record: Record) -> str:
    found = gaps(record)
    held = sum(gap > 0 for gap in found)
    span = f"{signed(min(found), 3)} to {signed(max(found), 3)}"
    return f"{span} (above zero at {held} of {len(found)})"
