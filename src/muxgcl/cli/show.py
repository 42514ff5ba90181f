"""Scores as a person reads them."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from muxgcl.cli.progress import console

SHOWN = ("accuracy", "macro_f1", "nmi", "ari", "auc", "ap")
OPTIMISTIC = "  (optimistic: the epoch was chosen on test nodes)"


def show_scores(scores: Mapping[str, Any], where: Console = console) -> None:
    """One line a measure: mean, spread and number of repeats; controls first."""
    spread = "±" if where.encoding.lower().startswith("utf") else "+/-"
    others = {name: values for name, values in scores.items() if name != "controls"}
    for name, values in {**scores.get("controls", {}), **others}.items():
        for measure, value in values.items():
            if measure not in SHOWN or not isinstance(value, Mapping):
                continue
            percent = measure in ("accuracy", "macro_f1")
            digits, unit = (2, " %") if percent else (3, "")
            note = OPTIMISTIC if name == "paper" else ""
            where.print(
                f"{name:>12} {measure:<9} {value['mean']:.{digits}f} {spread} "
                f"{value['std']:.{digits}f}{unit}  (n = {value['n']}){note}"
            )
