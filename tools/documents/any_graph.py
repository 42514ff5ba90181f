"""The default against every control on graphs of many kinds, for docs/mux-hop.md."""

from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

from muxgcl.evaluate.controls import control_name
from muxgcl.io.schema import read_lines
from muxgcl.reproduce.numbers import signed
from muxgcl.reproduce.typeset import Table, markdown

PAGE = Path("docs/mux-hop.md")
FILE = "any-graph.jsonl"
OURS = "mux-hop"


def any_graph_table(rows: list[dict[str, Any]]) -> Table:
    """One line a kind of graph: the default, the best control of each draw, and the difference."""
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_kind[row["graph"]].append(row)
    body = []
    for kind, draws in by_kind.items():
        ours = fmean(row["accuracy"][OURS] for row in draws)
        best = [_best_control(row["accuracy"]) for row in draws]
        theirs = fmean(score for _, score in best)
        names = dict.fromkeys(control_name(name).replace("|", ", ") for name, _ in best)
        body.append(
            [kind, f"{ours:.2f}", f"{theirs:.2f} ({'; '.join(names)})", signed(ours - theirs)]
        )
    drawn = len({row["draw"] for row in rows})
    splits = {row["splits"] for row in rows}
    return Table(
        "any-graph",
        "Accuracy of the default on graphs of many kinds that are made here",
        ["kind of graph", "mux-hop", "best control", "difference"],
        body,
        [
            f"`muxgcl run` with preset `auto` on a CPU, a graph for each of {drawn} draws, "
            f"{', '.join(map(str, sorted(splits)))} splits. The control that counts is the one "
            "that has the highest test score on that graph, which favours the controls. Records: "
            f"`records/{FILE}`, by `benchmarks/any_graph.py`, where each kind is described.",
        ],
    )


def _best_control(accuracy: dict[str, float]) -> tuple[str, float]:
    controls = {name: score for name, score in accuracy.items() if name != OURS}
    return max(controls.items(), key=lambda item: item[1])


def blocks(root: Path) -> dict[Path, str]:
    """What stands between the markers of the page."""
    return {PAGE: markdown(any_graph_table(read_lines(root / "records" / FILE)))}
